"""Which addresses a task may open: every spelling, every disguise, every later turn."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.egress.egress_policy import KEPT_S, Place, Policy, place_of, without_credentials
from engine.egress.http_session import PolicyResolver
from engine.egress.public_addresses import IPAddress, canonical_host, literal, refusal
from engine.model.errors import AddressBlocked, PageError

LOOPBACK_SPELLINGS = [
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0X7F.1",
    "017700000001", "0177.0.0.1", "0x7f.0.0x0.1", "127.0.0.1.", "%31%32%37.0.0.1", "127%2e0.0.1",
    "\uff11\uff12\uff17\u3002\uff10.0.1", "\u2460\u2461\u2466.0.0.1", "0", "0.0.0.0", "00",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
    "[2001:0:7f00:1::]", "[2001:0:808:808:0:0:80ff:fffe]", "[::ffff:0:127.0.0.1]",
]  # fmt: skip
PRIVATE = [
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "198.18.0.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.0.2.1", "0.1.2.3", "[fe80::1]",
    "[fc00::1]", "[fd12:3456::1]", "[ff02::1]", "[2001:db8::1]", "[64:ff9b::10.0.0.1]",
    "[2002:a00:1::]", "[fec0::1]", "[3fff::1]", "[5f00::1]", "[100:0:0:1::1]", "[4000::1]",
]  # fmt: skip
METADATA = [
    "169.254.169.254",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "168.63.129.16",
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "134744072",
    "[2606:4700:4700::1111]",
    "[64:ff9b::8.8.8.8]",
    "[2002:808:808::]",
]
START = "http://start.example/"


class Names:
    """A name server that answers what the test says; counts how often it was asked."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, host: str) -> asyncio.Future[tuple[IPAddress, ...]]:
        self.asked.append(host)
        future: asyncio.Future[tuple[IPAddress, ...]] = asyncio.get_running_loop().create_future()
        texts = self.answers.get(host.partition(".")[0], "")
        found = tuple(map(ipaddress.ip_address, texts.split()))
        unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
        answer = (future.set_result, found) if found else (future.set_exception, unknown)
        asyncio.get_running_loop().call_soon(*answer)
        return future


async def why(policy: Policy, url: str) -> str | None:
    try:
        await policy.check(url)
    except PageError as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("host", LOOPBACK_SPELLINGS + PRIVATE)
async def test_a_private_address_is_refused_in_every_spelling(host: str) -> None:
    assert await why(Policy.for_start(START), f"http://{host}/") == "blocked: private address"


@pytest.mark.parametrize("host", METADATA)
async def test_a_metadata_address_is_refused_even_as_the_start(host: str) -> None:
    url = f"http://{host}/latest/meta-data/"
    assert await why(Policy.for_start(url), url) == "blocked: metadata address"


@pytest.mark.parametrize("host", PUBLIC)
async def test_a_public_address_may_be_opened(host: str) -> None:
    assert await why(Policy.for_start(START), f"https://{host}/") is None


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://a.example/",
        "view-source:http://a.example",
        "blob:http://a.example/1",
        "//a.example/",
    ],
)
async def test_only_http_and_https_are_opened(url: str) -> None:
    told = await why(Policy.for_start(START), url)
    assert told == "blocked: only http and https addresses can be opened"


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///",
        "http://a:0/",
        "http://xn--a-\u00e9.example/",
        "http://1.2.3.4.5/",
        "http://256.1/",
        "http://09.1.1.1/",
        "http://a b/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://a:99999/",
        "http://0x7g.1.1.1.0x/x",
        "http://a%00b/",
    ],
)
async def test_an_address_that_is_none_is_refused_in_words(url: str) -> None:
    assert (await why(Policy.for_start(START), url) or "").startswith("blocked: ")


async def test_a_private_start_allows_its_own_host_and_port_and_nothing_else() -> None:
    policy = Policy.for_start("http://127.0.0.1:8000/a")
    assert await why(policy, "http://127.0.0.1:8000/b") is None
    assert await why(policy, "http://user:pw@127.1:8000/b") is None
    for other in (
        "http://127.0.0.1/",
        "http://127.0.0.1:8001/",
        "http://localhost:8000/",
        "http://[::1]:8000/",
    ):
        assert await why(policy, other) == "blocked: private address"


async def test_an_allowed_private_place_may_be_opened() -> None:
    policy = Policy.for_start(START, allow_private=("127.0.0.1:9000",))
    assert await why(policy, "http://127.0.0.1:9000/") is None
    assert await why(policy, "http://127.0.0.1:9001/") == "blocked: private address"


async def test_one_private_answer_among_public_ones_refuses_the_name() -> None:
    names = Names(start="8.8.8.8", mixed="8.8.8.8 10.0.0.1")
    policy = Policy(place_of(START), lookup=names)
    assert await why(policy, "http://mixed.example/") == "blocked: private address"


async def test_a_public_start_that_turns_private_later_is_refused() -> None:
    clock = [0.0]
    names = Names(start="8.8.8.8")
    policy = Policy(place_of(START), lookup=names, now=lambda: clock[0])
    assert await why(policy, START) is None
    names.answers["start"] = "127.0.0.1"
    assert await why(policy, START) is None, "the first answer is believed for a minute"
    clock[0] = KEPT_S + 1
    assert await why(policy, START) == "blocked: private address"


async def test_a_private_start_may_not_move_to_another_private_address() -> None:
    clock = [0.0]
    names = Names(start="10.0.0.5")
    policy = Policy(place_of(START), lookup=names, now=lambda: clock[0])
    assert await why(policy, START) is None
    names.answers["start"] = "127.0.0.1"
    clock[0] = KEPT_S + 1
    assert await why(policy, START) == "blocked: private address"


async def test_many_questions_about_one_host_are_one_look_up() -> None:
    names = Names(start="8.8.8.8")
    policy = Policy(place_of(START), lookup=names)
    await asyncio.gather(*(policy.check(f"{START}{n}") for n in range(50)))
    await policy.check("https://START.example:8443/")
    assert names.asked == ["start.example"]


async def test_what_is_known_is_answered_without_waiting() -> None:
    policy = Policy(place_of(START), lookup=Names(start="8.8.8.8"))
    assert policy.known(START) is None
    await policy.check(START)
    assert policy.known(START) is True
    assert policy.known("http://127.0.0.1/") is False
    assert policy.known("file:///etc/passwd") is False


async def test_a_name_that_does_not_exist_is_a_plain_sentence() -> None:
    policy = Policy(place_of(START), lookup=Names())
    assert await why(policy, START) == "name not found"


async def test_a_refusal_never_tells_the_password() -> None:
    with pytest.raises(AddressBlocked) as refused:
        await Policy.for_start(START).check("http://me:hunter2@127.0.0.1/x")
    assert refused.value.url == "http://127.0.0.1/x"
    assert "hunter2" not in repr(refused.value.__dict__)


async def test_the_resolver_hands_aiohttp_only_what_was_judged() -> None:
    policy = Policy(place_of(START), lookup=Names(start="8.8.8.8", inside="10.0.0.1"))
    resolver = PolicyResolver(policy)
    rows = await resolver.resolve("start.example", 80, socket.AF_UNSPEC)
    assert [(row["host"], row["port"]) for row in rows] == [("8.8.8.8", 80)]
    connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False)
    async with aiohttp.ClientSession(connector=connector) as http:
        with pytest.raises(AddressBlocked, match="private address"):
            await http.get("http://inside.example/")


@given(st.integers(0, 2**32 - 1), st.data())
def test_ipv4_spellings_are_parsed_as_in_a_browser(value: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    numbers = [value >> 8 * (3 - at) & 255 for at in range(count - 1)]
    numbers.append(value & (256 ** (5 - count) - 1))
    spell = st.sampled_from(["{:d}", "{:#x}", "0{:o}", "0X{:X}"])
    host = ".".join(data.draw(spell).format(number) for number in numbers)
    assert canonical_host(host) == str(ipaddress.IPv4Address(value))


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_inside_an_ipv6_one_is_judged_like_itself(value: int) -> None:
    inner = ipaddress.IPv4Address(value)
    for outer in (f"::ffff:{inner}", f"64:ff9b::{inner}"):
        assert refusal(ipaddress.ip_address(outer)) == refusal(inner)
    if refusal(inner):
        assert refusal(ipaddress.IPv6Address((0x2002 << 112) + (value << 80)))
        if value > 1:
            assert refusal(ipaddress.IPv6Address(value))


@given(st.text(max_size=30))
def test_no_text_makes_the_reading_of_a_url_crash(text: str) -> None:
    for url in (text, f"http://{text}", f"http://{text}/", f"http://a@{text}:80/"):
        try:
            place = place_of(url)
        except AddressBlocked:
            continue
        assert isinstance(place, Place)
        literal(place.host)


@pytest.mark.parametrize("login", ["ann:pw@", "ann@", ":pw@", "", "a@b:p@"])
def test_an_address_is_shown_without_user_and_password(login: str) -> None:
    assert without_credentials(f"http://{login}a.example/x@y") == "http://a.example/x@y"
