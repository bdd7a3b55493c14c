"""The proxy of a task: what it is given, what it is never given, and how it fails."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine import doctor
from engine.doctor import Finding
from engine.egress import upstream as dialing
from engine.egress.egress_policy import KEPT_FAILED_S, KEPT_S, Place, Policy, Route
from engine.egress.proxy_listener import Upstream
from engine.egress.upstream import MAX_HEAD_BYTES, is_same_program, probe_proxy
from engine.model.config import Settings
from engine.model.errors import PageError, ProxyFailed, ProxyRefusedUser, ProxyUnreachable
from engine.model.listening import close_server
from engine.model.proxies import DefaultProxy, ProxyChoice, UpstreamProxy
from tests.browser.test_egress import LOOPBACK_SPELLINGS, METADATA, PRIVATE
from tests.egress.conftest import PUBLIC, World
from tests.egress.test_proxy import GET, OTHER, answer, client, echo, laned, said, serving
from tests.support.engines import until
from tests.support.ports import free_port
from tests.support.update_server import certificate
from tests.support.upstream_proxy import RecordingProxy, Wanted, upstream

USER = ("ann", "pass word:ü")
SCHEMES = ("http", "https", "socks5", "socks5h")
NAMES = ("http", "https", "socks5h")  # these resolve names themselves
CONNECT = b"CONNECT %b HTTP/1.1\r\n\r\n"
TRAP = Place("trap.example", 80)


@pytest.fixture(autouse=True)
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a certificate, which this process trusts."""
    folder = tmp_path / "certificate"
    folder.mkdir()
    dialing._tls.cache_clear()
    monkeypatch.setattr(dialing, "_tls", lambda: _trusting(folder))
    yield folder
    monkeypatch.undo()


def _trusting(folder: Path) -> ssl.SSLContext:
    found = next(iter(folder.iterdir()), None)
    return ssl.create_default_context(cafile=str(found) if found else None)


def chosen(proxy: RecordingProxy, **more: Any) -> UpstreamProxy:
    username, password = proxy.user or ("", "")
    found = ProxyChoice(proxy.url, username, password, **more).upstream({})
    assert found is not None
    return found


@pytest.mark.parametrize("user", [None, USER], ids=["open", "user"])
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_requests_and_tunnels_go_through_the_proxy(
    world: World, trusted: Path, scheme: str, user: tuple[str, str] | None
) -> None:
    async with serving(world, echo):
        port = world.routes[PUBLIC]
        routes = {"trap.example": port, PUBLIC: port}
        with upstream(scheme, user=user, routes=routes, folder=trusted) as proxy:
            policy = world.policy(proxy=chosen(proxy))
            async with laned(world, policy) as (listener, _), client(listener) as (reader, writer):
                writer.write(GET % b"plain")
                plain = await answer(reader)
                async with client(listener) as (tunnelled, out):
                    out.write(CONNECT % b"trap.example:443")
                    opened = await tunnelled.readuntil(b"\r\n\r\n")
                    out.write(b"GET /inside HTTP/1.1\r\n\r\n")
                    inside = await answer(tunnelled)
    assert plain.startswith(b"GET /plain HTTP/1.1\r\n")
    assert b"Host: trap.example\r\n" in plain
    assert b"roxy" not in plain
    assert opened.startswith(b"HTTP/1.1 200 ")
    assert inside.startswith(b"GET /inside ")
    assert {address for address, _ in world.reached} == {"127.0.0.1"}  # the proxy alone
    assert proxy.hosts == {PUBLIC if scheme == "socks5" else "trap.example"}
    ways = {"socks5": {"socks address"}, "socks5h": {"socks name"}}
    assert proxy.ways == ways.get(scheme, {"CONNECT", "absolute"})


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
async def test_no_private_address_is_given_to_a_proxy(world: World, scheme: str) -> None:
    hosts = [one for one in LOOPBACK_SPELLINGS + PRIVATE + METADATA if "%" not in one]
    with upstream(scheme) as proxy:
        async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
            for host in filter(str.isascii, hosts):
                asked = f"GET http://{host}:81/ HTTP/1.1\r\n\r\n".encode()
                assert await said(listener, asked) == b"", host
                told = await said(listener, CONNECT % f"{host}:443".encode())
                assert told.startswith(b"HTTP/1.1 502 "), host
    assert not proxy.connections


@pytest.mark.parametrize("scheme", NAMES)
async def test_a_private_name_is_not_left_to_the_proxy(
    world: World, trusted: Path, scheme: str
) -> None:
    world.names["inside.example"] = ["10.0.0.7"]  # the rest resolves nowhere here
    local = ["localhost", "a.localhost", "printer.local", "metadata.google.internal", "intranet"]
    local += ["nas.home.arpa", "box.localdomain", "LOCALHOST."]
    with upstream(scheme, folder=trusted) as proxy:
        policy = world.policy(proxy=chosen(proxy))
        async with laned(world, policy) as (listener, _):
            for host in (*local, "inside.example"):
                told = await said(listener, CONNECT % f"{host}:443".encode())
                assert told.startswith(b"HTTP/1.1 502 "), host
    assert not proxy.connections
    refused = {one.place: one.reason for one in policy.blocked_requests.counts}
    assert refused.pop("inside.example:443") == "private address"
    assert set(refused.values()) == {"private name"}
    assert len(refused) == len({host.lower().removesuffix(".") for host in local})


@pytest.mark.parametrize("scheme", NAMES)
async def test_a_name_that_is_unknown_here_is_left_to_a_proxy_that_resolves(
    world: World, trusted: Path, scheme: str
) -> None:
    async with serving(world, echo):
        routes = {"far.example": world.routes[PUBLIC]}
        with upstream(scheme, routes=routes, folder=trusted) as proxy:
            policy = world.policy("http://far.example/", proxy=chosen(proxy))
            async with laned(world, policy) as (listener, _), client(listener) as (reader, writer):
                writer.write(b"GET http://far.example/a HTTP/1.1\r\nHost: far.example\r\n\r\n")
                assert (await answer(reader)).startswith(b"GET /a ")
    assert proxy.hosts == {"far.example"}


async def test_socks5_gets_addresses_and_no_name_is_left_to_it(world: World) -> None:
    with upstream("socks5") as proxy:
        policy = world.policy(proxy=chosen(proxy))
        async with laned(world, policy) as (listener, _):
            await said(listener, CONNECT % b"far.example:443")
            failed = listener.last_failure(Place("far.example", 443))
    assert str(failed) == "name not found"
    assert not proxy.connections


async def test_a_name_that_socks_cannot_hold_is_refused(world: World) -> None:
    host = ".".join(["a" * 60] * 5)
    with upstream("socks5h") as proxy:
        place, route = Place(host, 443), Route((), chosen(proxy))
        with pytest.raises(ProxyFailed, match="the name is too long for a SOCKS proxy"):
            await dialing.UpstreamDialer().connect(
                place, route, lambda: Upstream(place), tunnel=True
            )
    assert not proxy.wanted


async def test_a_slow_name_server_leaves_the_name_to_the_proxy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.egress.egress_policy.LOOKUP_BESIDE_S", 0.01)
    loop = asyncio.get_running_loop()
    never = Policy(None, lookup=lambda _: loop.create_future())
    with upstream() as proxy:
        never.proxy = chosen(proxy)
        for _ in range(2):
            assert await never.addresses(Place("slow.example", 80), "//slow.example") == ()
    never.proxy = None


async def test_a_start_that_was_unknown_may_not_become_private(world: World) -> None:
    world.names["far.example"] = ["", "10.0.0.7"]
    now = [0.0]
    with upstream("socks5h", routes={"far.example": 9}) as proxy:
        policy = world.policy("http://far.example/", proxy=chosen(proxy), now=lambda: now[0])
        place = Place("far.example", 80)
        assert (await policy.route(place, "//far.example")).found == ()
        now[0] += KEPT_S + KEPT_FAILED_S
        with pytest.raises(PageError, match="private address"):
            await policy.route(place, "//far.example")


async def test_of_a_public_start_with_a_private_address_the_proxy_gets_the_public_one(
    world: World,
) -> None:
    world.names["trap.example"] = [f"10.0.0.7 {PUBLIC}"]
    with upstream(routes={PUBLIC: 9}) as proxy:
        async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
            await said(listener, CONNECT % b"trap.example:80")
            await said(listener, GET % b"a")
    assert set(proxy.wanted) == {Wanted("CONNECT", PUBLIC, 80), Wanted("absolute", PUBLIC, 80)}


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_private_start_is_reached_through_the_proxy(
    world: World, trusted: Path, scheme: str
) -> None:
    async with serving(world, echo):
        port = world.routes[PUBLIC]
        with upstream(scheme, folder=trusted) as proxy:
            policy = world.policy(f"http://127.0.0.1:{port}/", proxy=chosen(proxy))
            assert policy.loopback_places() == ()
            async with laned(world, policy) as (listener, _), client(listener) as (reader, writer):
                assert listener.bypass == "<-loopback>"
                writer.write(b"GET http://127.0.0.1:%d/a HTTP/1.1\r\n\r\n" % port)
                assert (await answer(reader)).startswith(b"GET /a ")
    assert proxy.hosts == {"127.0.0.1"}
    assert world.reached == [("127.0.0.1", proxy.port)]


@pytest.mark.parametrize(
    "bypass", ["trap.example", ".example", "*.example", "trap.example:80", "*"]
)
async def test_an_exception_is_connected_to_directly_at_checked_addresses(
    world: World, bypass: str
) -> None:
    with upstream() as proxy:
        policy = world.policy(proxy=chosen(proxy, bypass=(bypass,)))
        async with (
            serving(world, echo),
            laned(world, policy) as (listener, _),
            client(listener) as (reader, writer),
        ):
            writer.write(GET % b"a")
            await answer(reader)
            await said(listener, CONNECT % b"10.0.0.7:80")
    assert world.reached == [(PUBLIC, 80)]
    assert not proxy.connections


async def test_a_network_is_an_exception_for_numbers_alone(world: World) -> None:
    world.routes[OTHER] = 9
    with upstream(routes={"trap.example": 9}) as proxy:
        policy = world.policy(proxy=chosen(proxy, bypass=("11.0.0.0/8",)))
        async with laned(world, policy) as (listener, _):
            await said(listener, CONNECT % b"11.0.0.2:80")
            await said(listener, CONNECT % b"trap.example:80")
    assert proxy.hosts == {"trap.example"}
    assert world.reached == [(OTHER, 80), ("127.0.0.1", proxy.port)]


@pytest.mark.parametrize(
    ("scheme", "refusal", "message", "kind"),
    [
        ("http", 403, "the proxy refused the address: HTTP 403", "proxy_refused"),
        ("http", 502, "the proxy did not reach the server: HTTP 502", "proxy"),
        ("http", 503, "the proxy did not reach the server: HTTP 503", "proxy"),
        (
            *("socks5h", 2, "the proxy refused the address: not allowed by its rules"),
            "proxy_refused",
        ),
        ("socks5h", 4, "the proxy did not reach the server: host unreachable", "proxy"),
        ("socks5h", 5, "the proxy did not reach the server: connection refused", "proxy"),
        ("socks5h", 99, "the proxy did not reach the server: SOCKS reply 99", "proxy"),
    ],
)
async def test_a_refusal_says_whose_it_is(
    world: World, scheme: str, refusal: int, message: str, kind: str
) -> None:
    with upstream(scheme, refusals={"trap.example": refusal}) as proxy:
        async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
            told = await said(listener, CONNECT % b"trap.example:80")
            failed = listener.last_failure(TRAP)
    assert told.startswith(b"HTTP/1.1 502 ")
    assert failed is not None
    assert (str(failed), failed.kind) == (message, kind)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_page_of_the_proxys_own_is_no_page_of_the_site(
    world: World, trusted: Path, status: int, scheme: str
) -> None:
    with upstream(scheme, refusals={"trap.example": status}, folder=trusted) as proxy:
        async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
            assert await said(listener, GET % b"a") == b""
            failed = listener.last_failure(TRAP)
    assert str(failed) == f"the proxy did not reach the server: HTTP {status}"
    assert proxy.ways == {"absolute", "CONNECT"}


async def test_a_server_with_tls_that_ended_first_is_left_without_an_error(trusted: Path) -> None:
    serving_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving_tls.load_cert_chain(certificate(trusted))
    ended: list[asyncio.StreamWriter] = []

    async def ends(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(writer)
        writer.close()

    server = await asyncio.start_server(ends, "127.0.0.1", 0, ssl=serving_tls)
    port = server.sockets[0].getsockname()[1]
    loop, trusting = asyncio.get_running_loop(), _trusting(trusted)
    one = Upstream(TRAP)
    await loop.create_connection(lambda: one, "127.0.0.1", port, ssl=trusting)
    one.resume_reading()
    await until(one.transport.is_closing)  # asyncio has closed its side as well
    one.leave()
    one.leave()
    await close_server(server)
    assert ended


LONG = b"x" * 300_000


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("tunnels", [True, False])
@pytest.mark.parametrize("status", [b"403 No", b"500 No", b"502 No", b"503 No", b"504 No"])
async def test_an_error_of_the_site_stays_its_own(
    world: World, trusted: Path, status: bytes, tunnels: bool, scheme: str
) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(65_536):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")
            writer.write(b"HTTP/1.1 %b\r\nConnection: close\r\n\r\n%b" % (status, LONG))
            await writer.drain()

    async with serving(world, broken):
        port = world.routes[PUBLIC]
        routes = {"trap.example": port}
        with upstream(scheme, routes=routes, tunnels=tunnels, folder=trusted) as proxy:
            async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
                told = await said(listener, GET % b"a")
                again = await said(listener, GET % b"b")
                failed = listener.last_failure(TRAP)
    assert told.startswith(b"HTTP/1.1 103 Early Hints\r\n")
    assert told.endswith(LONG)
    assert again == told
    assert failed is None
    assert [one.way for one in proxy.wanted].count("CONNECT") == 1  # the answer to it is kept


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 403 No\nServer: old\n\nText",
        b"HTTP/1.1 503 No\r\nServer: old\n\r\nText",
        b"HTTP/1.1 403 No\r\nServer: cut",
        b"HTTP/1.1 4",
    ],
)
async def test_an_unusual_head_of_a_site_is_relayed(world: World, sent: bytes) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(65_536):
            writer.write(sent)

    async with serving(world, old):
        with upstream(routes={"trap.example": world.routes[PUBLIC]}) as proxy:
            async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
                async with asyncio.timeout(60):
                    assert await said(listener, GET % b"a") == sent


TINY = b"HTTP/1.1 403 Filtered\r\nServer: tinyproxy/1.11.1\r\nConnection: close"
SQUID = (
    b"HTTP/1.1 403 Forbidden\r\nServer: squid/5.7\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\n"
    b"Via: 1.1 vm (squid/5.7)"
)
SQUID_DNS = SQUID.replace(b"403 Forbidden", b"503 Service Unavailable")
OF_A_SQUID_SITE = SQUID_DNS.replace(b"Via: ", b"Via: 1.1 cache (squid/5.7), ")
SITE = b"HTTP/1.1 503 No\r\nServer: Apache/2.4.57 (Debian)"


@pytest.mark.parametrize(
    ("answer_", "refusal", "own"),
    [
        (TINY.replace(b"403 Filtered", b"500 Unable to connect"), TINY, True),
        (SQUID_DNS, SQUID, True),
        (SQUID_DNS, TINY, False),
        (TINY + b"\r\nVia: 1.1 vm (tinyproxy/1.11.1)", TINY, False),  # a site's own tinyproxy
        (OF_A_SQUID_SITE, SQUID, False),
        (SQUID_DNS + b"\r\nVia: 1.1 vm (squid/5.7)", SQUID, False),
        (SQUID_DNS, SQUID.replace(b"5.7", b"6.1"), False),
        (SITE, SITE, False),  # a program that sites use, too
        (SITE, TINY, False),
        (TINY, b"", False),  # the proxy opened a tunnel
        (b"HTTP/1.1 503 No", b"HTTP/1.1 403 No", False),
    ],
)
def test_a_page_is_a_proxys_own_if_the_same_forward_proxy_made_both(
    answer_: bytes, refusal: bytes, own: bool
) -> None:
    assert is_same_program(answer_, refusal) is own


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("request_", [GET % b"a", CONNECT % b"trap.example:80"])
async def test_a_wrong_password_is_no_page(
    world: World, trusted: Path, scheme: str, request_: bytes
) -> None:
    with upstream(scheme, user=USER, folder=trusted) as proxy:
        wrong = ProxyChoice(proxy.url, "ann", "other").upstream({})
        async with laned(world, world.policy(proxy=wrong)) as (listener, _):
            told = await said(listener, request_)
            failed = listener.last_failure(TRAP)
    assert b"who?!" not in told
    assert str(failed) == "the proxy refused the user or the password"
    assert failed is not None
    assert failed.kind == "proxy_refused"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(serve: Serve) -> AsyncIterator[int]:
    """A port on which `serve` is the proxy."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await close_server(server)
        await server.wait_closed()


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
@pytest.mark.parametrize(
    ("junk", "reason"),
    [
        (b"", "the connection was cut"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "its answer cannot be understood"),
        (b"x" * (MAX_HEAD_BYTES + 1), "its answer cannot be understood"),
    ],
)
async def test_what_is_no_proxy_is_told(
    world: World, scheme: str, junk: bytes, reason: str
) -> None:
    async def chatter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)
        writer.write(junk)
        await writer.drain()

    async with answering(chatter) as port:
        proxy = ProxyChoice(f"{scheme}://127.0.0.1:{port}").upstream({})
        async with laned(world, world.policy(proxy=proxy)) as (listener, _):
            await said(listener, CONNECT % b"trap.example:80")
            failed = listener.last_failure(TRAP)
    assert str(failed) == f"the proxy cannot be reached: {reason}"


@pytest.mark.parametrize(
    ("page", "tunnel", "kind"),
    [
        (403, 429, None),
        (503, 500, None),
        (503, 400, None),
        (403, 0, None),
        (500, 0, None),
        (503, 0, "proxy"),  # silent, and its page says the same
        (403, 503, "proxy_refused"),
    ],
)
async def test_only_a_proxy_that_did_not_reach_the_server_answered_itself(
    world: World, monkeypatch: pytest.MonkeyPatch, page: int, tunnel: int, kind: str | None
) -> None:
    # Only a proxy that stays silent is waited for so shortly.
    monkeypatch.setattr("engine.egress.upstream.PROBE_S", 60.0 if tunnel else 0.2)
    asked = 0

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        is_tunnel = (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT")
        asked += is_tunnel
        if not is_tunnel:
            writer.write(b"HTTP/1.1 %d No\r\nServer: nginx\r\nSet-Cookie: a=b\r\n" % page)
            writer.write(b"Connection: close\r\n\r\n")
        elif tunnel:
            writer.write(b"HTTP/1.1 %d No\r\nServer: gate\r\n\r\n" % tunnel)
        else:
            await reader.read()  # until the client has waited long enough

    async with answering(proxy) as port:
        found = ProxyChoice(f"http://127.0.0.1:{port}").upstream({})
        async with laned(world, world.policy(proxy=found)) as (listener, _):
            told = [await said(listener, GET % b"a"), await said(listener, GET % b"b")]
            failed = listener.last_failure(TRAP)
    assert (failed and failed.kind) == kind
    assert all(one.startswith(b"HTTP/1.1 %d No" % page) == (kind is None) for one in told)
    assert asked == 1  # the answer to it is kept


async def test_a_silent_proxy_ends_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "ANSWER_S", 0.05)

    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with answering(nothing) as port:
        proxy = ProxyChoice(f"socks5://127.0.0.1:{port}").upstream({})
        async with laned(world, world.policy(proxy=proxy)) as (listener, _):
            await said(listener, CONNECT % b"trap.example:80")
            failed = listener.last_failure(TRAP)
    assert str(failed) == "the proxy cannot be reached: no answer in time"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_server_that_speaks_first_is_heard_through_the_proxy(
    world: World, trusted: Path, scheme: str
) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()

    async with serving(world, greet):
        port = world.routes[PUBLIC]
        routes = {"trap.example": port, PUBLIC: port}
        with upstream(scheme, routes=routes, folder=trusted) as proxy:
            async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
                told = await said(listener, CONNECT % b"trap.example:443")
    assert told == b"HTTP/1.1 200 Connection established\r\n\r\nhello"


async def test_bytes_that_come_with_the_proxys_answer_are_kept(world: World) -> None:
    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        await writer.drain()

    async with answering(eager) as port:
        proxy = ProxyChoice(f"http://127.0.0.1:{port}").upstream({})
        async with laned(world, world.policy(proxy=proxy)) as (listener, _):
            told = await said(listener, CONNECT % b"trap.example:443")
    assert told.endswith(b"\r\n\r\nhello")


async def test_a_certificate_that_is_not_trusted_is_no_proxy(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with upstream("https", folder=folder) as proxy:
        async with laned(world, world.policy(proxy=chosen(proxy))) as (listener, _):
            await said(listener, CONNECT % b"trap.example:80")
            failed = listener.last_failure(TRAP)
    assert str(failed) == "the proxy cannot be reached: its certificate is not valid"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_probe_finds_what_is_wrong_before_any_page(trusted: Path, scheme: str) -> None:
    with upstream(scheme, user=USER, folder=trusted) as proxy:
        await probe_proxy(chosen(proxy), ("trap.example", 443))
        wrong = ProxyChoice(proxy.url, "ann", "other").upstream({})
        assert wrong is not None
        with pytest.raises(ProxyRefusedUser, match=f"The proxy {proxy.url} refused"):
            await probe_proxy(wrong, ("trap.example", 443))
    with free_port() as port:
        closed = ProxyChoice(f"{scheme}://127.0.0.1:{port}").upstream({})
        assert closed is not None
        with pytest.raises(ProxyUnreachable, match="cannot be reached: connection refused"):
            await probe_proxy(closed)


async def diagnosed(url: str, user: tuple[str, str] = ("", "")) -> Finding:
    """What doctor tells of this default proxy."""
    name, word = user
    default = DefaultProxy(url, name, "env:WORD" if word else "", environ={"WORD": word})
    settings = Settings(home=Path("x"), root=Path("x"), proxy=default)
    (found,) = await asyncio.to_thread(doctor.proxy, settings)
    return found


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
async def test_doctor_tells_of_a_proxy_that_refuses_the_user(scheme: str) -> None:
    with upstream(scheme, user=USER) as proxy:
        right = await diagnosed(proxy.url, USER)
        wrong = await diagnosed(proxy.url, ("ann", "wrong"))
        nobody = await diagnosed(proxy.url)
    assert right.state == "ok"
    assert (wrong.state, nobody.state) == ("problem", "problem")
    assert "refused the user or the password" in wrong.text
    assert "refused the user or the password" in nobody.text


async def test_doctor_tells_of_a_server_that_is_no_proxy() -> None:
    async def secure_shell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await reader.read(3)

    async with answering(secure_shell) as port:
        found = await diagnosed(f"http://127.0.0.1:{port}")
    assert found.state == "problem"
    assert "its answer cannot be understood" in found.text


async def test_doctor_accepts_a_proxy_that_ends_what_leads_nowhere() -> None:
    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)

    async with answering(hangs_up) as port:
        found = await diagnosed(f"http://127.0.0.1:{port}")
    assert found.state == "ok"


async def test_a_proxy_whose_name_is_unknown_is_told() -> None:
    proxy = ProxyChoice("socks5://proxy.invalid:1080").upstream({})
    assert proxy is not None
    with pytest.raises(ProxyUnreachable, match="name not found"):
        await probe_proxy(proxy)


async def test_a_proxy_from_outside_may_not_be_private(world: World) -> None:
    with upstream() as proxy:
        given = chosen(proxy)
        strange = UpstreamProxy(given.address, allowed=())
        with pytest.raises(ProxyUnreachable, match="private address"):
            await probe_proxy(strange)
        assert not proxy.connections
        await probe_proxy(UpstreamProxy(given.address, allowed=(f"127.0.0.1:{proxy.port}",)))


def test_no_password_is_shown() -> None:
    choice = ProxyChoice("http://h:1", "ann", "s3cret")
    proxy = choice.upstream({})
    assert "s3cret" not in f"{choice!r} {proxy!r} {proxy}"
