"""One spelling for one page, globs, the frontier's order, and the reading of arguments."""

import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from engine.kinds.arguments import BLANK_IN_FRONT, ONLY_WEB
from engine.kinds.crawl.crawl_args import ARGUMENTS, CrawlArgs, parse_crawl
from engine.kinds.crawl.frontier import Frontier, SeenKeys, Visit
from engine.kinds.snapshot_kind import parse_snapshot
from engine.model import addresses
from engine.model.addresses import (
    Glob,
    address_of,
    credentials_of,
    glob_matcher,
    in_charset,
    link_address,
)
from engine.model.errors import InvalidArguments
from engine.model.typed_address import addresses_within, complete
from engine.pages.static_engine import _target


def known(text):
    """The address of a text that surely is one."""
    found = address_of(text)
    assert found is not None
    return found


PARTS = st.text(st.characters(exclude_categories=()), max_size=12)
URLS = st.builds(
    "{}://{}{}/{}?{}#{}".format,
    st.sampled_from(["http", "HTTPS", "Http"]),
    st.sampled_from(
        ["example.com", "EXAMPLE.com.", "b\u00fccher.example", "u:p@a.example", "[::1]"]
    ),
    st.sampled_from(["", ":80", ":443", ":0080", ":8080"]),
    PARTS,
    PARTS,
    PARTS,
)


@given(URLS)
def test_levelling_twice_changes_nothing(url):
    once = address_of(url)
    if once is not None:
        assert address_of(once.url) == once
        assert known(once.key).key == once.key
        assert once.url.isascii()


@given(URLS)
def test_a_fragment_is_opened_and_changes_nothing_else_of_an_address(url):
    plain = url.partition("#")[0]
    whole, without = address_of(url), address_of(plain)
    assume(whole and without and plain[-1] > " ")  # else it is trimmed
    assert whole is not None
    assert without is not None
    assert (whole.asked, whole.key, whole.origin) == without
    assert whole.page("ignore") == without
    assert whole.page("routes").page("routes") == whole.page("routes")
    assert whole.own.own == whole.own
    assert whole.own.key == known(whole.url).page("routes").key == without.key + whole.route


@pytest.mark.parametrize(
    ("fragment", "route"),
    [
        ("#/orders", "#/orders"),
        ("#!/orders/1", "#!/orders/1"),
        ("#!orders", "#!orders"),
        ("#/a?b=1", "#/a?b=1"),
        ("#/a#top", "#/a"),  # a place in the page
        ("#/caf\u00e9", "#/caf%C3%A9"),
        *((plain, "") for plain in ("#", "#top", "#top/a", "#?a=/", "#a!/")),
        *((start, "") for start in ("#/", "#!", "#!/", "#/#top")),  # where it begins
    ],
)
def test_only_what_begins_like_one_is_a_route(fragment, route):
    found = known(f"http://example.com/app{fragment}")
    assert found.route == route
    assert found.page("routes").url == f"http://example.com/app{route}"
    assert (found.own.key == "http://example.com/app") == (not route)


@pytest.mark.parametrize("fragment", ["#/b", "#top", ""])
def test_globs_do_not_see_a_fragment(fragment):
    found = known(f"http://example.com/a{fragment}")
    for glob in ("/a", "http://example.com/a", "**/a", "/?"):
        assert glob_matcher((glob,))(found)
    assert not glob_matcher(("**b", "**#**"))(found)


@given(PARTS, PARTS)
def test_no_text_breaks_the_joining_of_a_link(base, href):
    found = link_address(f"http://example.com/{base}", href)
    assert found is None or found.url.startswith(("http://", "https://"))


@given(URLS, st.just("") | PARTS)
def test_what_is_asked_for_is_the_address_to_the_letter(url, query):
    found = address_of(f"{url.partition('?')[0]}?{query}")
    if found is None:
        return
    target = _target(found)
    assert target.raw_path_qs == found.asked[len(found.origin) :]
    assert (target.scheme, target.port) == (found.asked.partition(":")[0], _port(found))
    assert found.origin == f"{target.scheme}://{found.place}"
    assert target.raw_host
    assert found.place.removeprefix("[").startswith(target.raw_host)


def _port(address):
    read = addresses.parse(address.url)
    assert read is not None
    return addresses.PORTS[read.scheme] if read.port is None else read.port


STEPS = st.lists(
    st.sampled_from(
        [
            *(
                "a",
                "b.html",
                "..",
                ".",
                "/",
                "//",
                "#",
                "?",
                "#x",
                ";p",
                ":",
                "~c",
                "\\",
                "\t",
                " ",
            ),
            *("\n", "http:", "https://", "HTTP:/", "//b.example", "mailto:", "%2e", "|", "^", "'"),
            *("\u00e9", "\ud800"),
        ]
    ),
    max_size=6,
).map("".join)


@given(STEPS, STEPS)
@example("a/b", "?c")
@example("a/b", "#c")
@example("a/b", "http:?c")
@example("a/b", "ht\ttp:c")
@example("a/b?c/d", "e")
@example("a/b", " \t?c")
def test_a_link_leads_where_the_parser_alone_leads_it(base, href):
    page = known(f"http://example.com/{base}").asked
    led = addresses.href_of(href, page)
    assert link_address(page, href) == (None if led is None else address_of(led))


# Facts of the URL standard (url.spec.whatwg.org, and the tests that belong to it).
OPENED = {
    "https://stra\u00dfe.example/": "https://xn--strae-oqa.example/",
    "http://fa\u00df.example": "http://xn--fa-hia.example/",
    "http://XN--A.example/": "http://xn--a.example/",  # ASCII is never decoded
    "http:\\\\example.com\\x": "http://example.com/x",
    "http:\\example.com": "http://example.com/",
    "http:///example.com": "http://example.com/",
    "http://example.com\\\\a": "http://example.com//a",
    "http://example.com/a?q='x'": "http://example.com/a?q=%27x%27",
    "http://example.com/a^b?a^b": "http://example.com/a%5Eb?a^b",
    "http://example.com/?": "http://example.com/?",
    "http://example.com/#": "http://example.com/#",
    "http://example.com:0/": "http://example.com:0/",
    "http://example.com:0080/": "http://example.com/",
    "http://example.com./": "http://example.com./",
    "\x01 http://exa\tmple.com/\na\r": "http://example.com/a",
    "http://ab\u00adc.example/": "http://abc.example/",
    "http://\uff27\uff4f.example/": "http://go.example/",
    "http://a\u3002b/": "http://a.b/",
    "http://0x7F.1/": "http://127.0.0.1/",
    "http://[0:0::00AB]/": "http://[::ab]/",
    "http://[::127.0.0.1]/": "http://[::7f00:1]/",
    "http://ho%73t/": "http://host/",
    "http://example.com/%2e%2E/a/%2e": "http://example.com/a/",
    "http://example.com/\ud800": "http://example.com/%EF%BF%BD",
    "http://example.com/caf\u00e9?\u00e9": "http://example.com/caf%C3%A9?%C3%A9",
    # Chromium alone encodes this one, which a server sees.
    "http://example.com/a|b?a|b": "http://example.com/a%7Cb?a|b",
}
# As Chromium resolves them on a page in that character set.
IN_CHARSET = [
    ("windows-1252", "?q=\u00e9\u65e5#\u00e9", "?q=%E9%26%2326085%3B#%C3%A9"),
    ("windows-1252", "\u00e9?~^|'\u00e9", "%C3%A9?~^|%27%E9"),
    ("windows-1252", "#\u00e9?\u00e9", "b#%C3%A9?%C3%A9"),
    ("shift_jis", "?a=\u30bd\u00e9", "?a=%83\\%26%23233%3B"),
    ("gbk", "?\u00e9\u65e5", "?%A8%A6%C8%D5"),
    ("iso-2022-jp", "?q=\u65e5", "?q=%1B$BF|%1B(B"),
    ("utf-8", "?\u00e9", "?%C3%A9"),
    ("utf-16le", "?\u00e9", "?%C3%A9"),
    ("", "?\u00e9", "?%C3%A9"),
]


@pytest.mark.parametrize(("charset", "href", "led"), IN_CHARSET)
def test_a_query_is_sent_in_the_character_set_of_its_page(charset, href, led):
    base = "http://example.com/a/b"
    found = link_address(base, in_charset(href, charset))
    assert found is not None
    assert found.url == (base if led.startswith("?") else "http://example.com/a/") + led


REFUSED = (
    *("http://xn--a-\u00e9.example/", "http://xn--a\u00df/", "http://a<b/", "http://a%00b/"),
    *("http://1.2.3.4.5/", "http://256.1/", "http://a.0x1.09/", "http://[::1", "http://[1::2::3]/"),
    *("http://:80/", "http://a:65536/", "http://a:b/", "http://\u00ad/", "http://a\x7fb/"),
)


@pytest.mark.parametrize("text", OPENED)
def test_what_is_opened_is_spelled_as_the_standard_says(text):
    found = known(text)
    assert found.url == OPENED[text]
    assert known(found.url) == found


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_standard_refuses_is_no_address(text):
    assert address_of(text) is None


@pytest.mark.parametrize(
    ("glob", "url"),
    [
        ("https://stra\u00dfe.example/**", "https://stra\u00dfe.example/a"),
        ("HTTP://Example.COM:80/*", "http://example.com/a"),
        ("https://*.b\u00fccher.example/**", "https://www.b\u00fccher.example/a"),
        ("https://**.STRA\u00dfE.example:443/*", "https://a.b.stra\u00dfe.example/a"),
        ("*://b\u00fccher.example:8443/**", "https://b\u00fccher.example:8443/a"),
        ("*://www.*.Example/**", "http://www.a.example/a"),
        ("http://*.1\uff12.b\u00fc.example/", "http://a.12.b\u00fc.example/"),
        ("/caf\u00e9/**", "http://example.com/caf\u00e9/a"),
        ("/a b^c|d'e", "http://example.com/a b^c|d'e"),
        ("/a?'b'", "http://example.com/a?'b'"),
        ("/a%20b", "http://example.com/a b"),
    ],
)
def test_a_glob_may_spell_an_address_as_people_do(glob, url):
    assert glob_matcher([glob])(known(url))


def test_a_glob_that_a_command_waits_for_may_spell_the_host_as_people_do():
    for glob in ("https://b\u00fccher.example/**", "https://*.B\u00fccher.example/**", "*://**/a"):
        assert Glob(glob).matches("https://xn--bcher-kva.example/a") is ("*." not in glob)
    assert Glob("https://*.b\u00fccher.example/{a,b}").matches(
        "https://www.xn--bcher-kva.example/b"
    )
    assert not Glob("https://*.b\u00fccher.example/").matches("https://www.bucher.example/")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP://EXAMPLE.com/a", "http://example.com/a"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/", "https://example.com"),
        ("http://example.com/a#x", "http://example.com/a"),
        ("http://example.com/?b=2&a=1", "http://example.com/?a=1&b=2"),
        ("http://example.com/x/../a/./", "http://example.com/a/"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://u:p@example.com/", "http://example.com/"),
        ("http://example.com/caf\u00e9", "http://example.com/caf%C3%A9"),
        ("http://example.com/a?", "http://example.com/a"),
    ],
)
def test_spellings_of_one_page_have_one_key(one, other):
    assert known(one).key == known(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com/a", "http://example.com/a/"),
        ("http://example.com/a", "http://example.com/A"),
        ("http://example.com/", "https://example.com/"),
        ("http://example.com/?a=1&a=2", "http://example.com/?a=2&a=1"),
        ("http://example.com/", "http://example.com:8080/"),
    ],
)
def test_pages_that_may_differ_keep_their_own_keys(one, other):
    assert known(one).key != known(other).key


@pytest.mark.parametrize(
    "text",
    ["", "example.com", "ftp://a/", "javascript:alert(1)", "http://", "http://[::1", "http://a:99999/",
     "data:text/html,x", "http://a b/", "http://" + "a" * 9_000],
)  # fmt: skip
def test_what_is_no_web_address_is_none(text):
    assert address_of(text) is None


@pytest.mark.parametrize(
    "typed",
    [
        "http://ada:my pass@example.com/",
        "http://ada:pa\tss@example.com/",
        "http:\n//ada:pass@example.com/",
        "ht\rtp://ada:pass@example.com/",
        "http://exam\nple.com/",
    ],
)
def test_no_whitespace_may_stand_before_the_path_of_a_typed_address(typed):
    with pytest.raises(InvalidArguments, match=BLANK_IN_FRONT):
        parse_crawl({"url": typed})


def test_whitespace_around_an_address_and_in_its_path_is_no_mistake():
    assert parse_crawl({"url": " http://example.com/a b\n"}).url == "http://example.com/a%20b"
    assert parse_crawl({"url": "http:example.com/a b"}).url == "http://example.com/a%20b"


def test_credentials_are_read_from_what_was_typed_and_shown_nowhere():
    found = credentials_of("https://ada:s%40c@example.com/x")
    assert found is not None
    assert (found.origin, found.username, found.password) == ("https://example.com", "ada", "s@c")
    assert "s@c" not in repr(found)
    assert credentials_of("https://example.com/@x") is None


@pytest.mark.parametrize(
    ("glob", "url", "fits"),
    [
        ("http://a.com/**", "http://a.com/x/y", True),
        ("http://a.com/*", "http://a.com/x/y", False),
        ("http://a.com/*", "http://a.com/x", True),
        ("**/blog/**", "http://a.com/blog/", True),
        ("**/p?", "http://a.com/p1", True),
        ("**/p?", "http://a.com/p", False),
        ("/docs/**", "http://a.com/docs/x", True),
        ("/docs/**", "http://a.com/x/docs/", False),
        ("**.pdf", "http://a.com/x.pdf?y", False),
        ("**a*b*c", "http://a.com/a/aXbYc", True),
        ("**x**y**", "http://a.com/x1y2", True),
        ("http://a.com/(x", "http://a.com/(x", True),
    ],
)
def test_globs(glob, url, fits):
    assert glob_matcher([glob])(known(url)) is fits


def test_a_glob_full_of_stars_takes_no_time():
    started = time.process_time()
    glob_matcher(["**a" * 60 + "b", "*a" * 60 + "*b"])(known("http://a.com/" + "a" * 4_000))
    assert time.process_time() - started < 20


def test_routes_are_left_out_and_counted_or_pages_of_their_own():
    def links(*fragments):
        return [known(f"http://a.example/{fragment}") for fragment in fragments]

    found = links("#/b", "#!c", "#/b#top", "#top", "#/", "#/start")
    elsewhere = [known("http://b.example/#/b")]

    def frontier(fragments, typed):
        made = Frontier(2, 100, lambda one: one.origin == "http://a.example", fragments)
        made.start([Visit(typed if fragments == "ignore" else typed.own, 0)])
        visit = made.take()
        assert visit is not None
        made.land(known("http://a.example/#/landed"), visit)
        made.add([*found, *links("#/landed"), *elsewhere], 0)
        made.add(links("#/too/deep"), 2)
        made.done(visit)
        return made

    (typed,) = links("#/start")
    ignoring = frontier("ignore", typed)
    assert ignoring.take() is None
    assert ignoring.left.told() == {"links_fragments": 2, "links_outside": 1}
    taking = frontier("routes", typed)
    taken = [visit.address.url for visit in iter(taking.take, None)]
    assert taken == ["http://a.example/#/b", "http://a.example/#!c", "http://a.example/"]
    assert taking.left.told() == {"links_outside": 1, "links_too_deep": 1}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=120), st.randoms())
def test_the_frontier_gives_each_page_once_and_at_its_true_depth(edges, order):
    links: dict[int, list[int]] = {}
    for source, target in edges:
        links.setdefault(source, []).append(target)
    frontier = Frontier(5, 1_000, lambda address: True)
    place = {n: known(f"http://a.com/{n}") for n in range(31)}
    number = {address.key: n for n, address in place.items()}
    frontier.start([Visit(place[0], 0)])
    flying: list[Visit] = []
    found: dict[int, int] = {}
    while not frontier.is_empty:
        while len(flying) < 4 and (visit := frontier.take()) is not None:
            flying.append(visit)
        visit = flying.pop(order.randrange(len(flying)))
        n = number[visit.address.key]
        assert n not in found
        found[n] = visit.depth
        frontier.add([place[t] for t in links.get(n, [])], visit.depth)
        frontier.done(visit)
    assert found == distances(links, 5)


def test_a_shorter_path_found_late_moves_a_waiting_page_up():
    """Page z is found at depth 3 by a quick page, and at depth 2 by a slow one of the level above.

    With a limit of 3 the page behind it was lost where the slow page ended last.
    """
    a, b, c, d, z, last = (known(f"http://a.com/{name}") for name in "abcdzl")
    frontier = Frontier(3, 1_000, lambda address: True)
    frontier.start([Visit(a, 0)])
    assert frontier.take() == Visit(a, 0)
    frontier.add([b, c], 0)
    frontier.done(Visit(a, 0))
    assert (frontier.take(), frontier.take()) == (Visit(b, 1), Visit(c, 1))
    frontier.add([d], 1)
    frontier.done(Visit(b, 1))
    assert frontier.take() == Visit(d, 2)
    frontier.add([z], 2)
    frontier.done(Visit(d, 2))
    frontier.add([z], 1)
    frontier.done(Visit(c, 1))
    assert frontier.known == 1
    assert frontier.take() == Visit(z, 2)
    assert frontier.add([last], 2) == 1
    assert frontier.left.told() == {}


def distances(links, limit):
    known, level = {0: 0}, [0]
    for depth in range(1, limit + 1):
        level = [t for s in level for t in links.get(s, []) if known.setdefault(t, depth) == depth]
        level = list(dict.fromkeys(level))
    return known


@given(st.lists(st.text(max_size=3), max_size=300))
def test_seen_keys_are_a_set(texts):
    seen, plain = SeenKeys(), set()
    for text in texts:
        clean = text.encode("utf-8", "replace").decode()
        assert (clean in seen) == (clean in plain)
        assert seen.add(clean) == (clean not in plain)
        plain.add(clean)
    assert len(seen) == len(plain)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(ARGUMENTS)) | st.text(), JSON, max_size=8))
def test_arbitrary_arguments_are_read_or_refused_with_problems(given):
    try:
        assert isinstance(parse_crawl(given), CrawlArgs)
    except InvalidArguments as refused:
        assert refused.problems  # noqa: PT017 - either end is right


def test_every_mistake_is_named_at_once():
    with pytest.raises(InvalidArguments) as refused:
        parse_crawl(
            {"url": "ftp://a/", "max_pages": 0, "max_dept": 1, "delay_ms": True, "engine": "x"}
        )
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told["url"] == ONLY_WEB
    assert told["max_pages"] == "must be between 1 and 1,000,000"
    assert "did you mean max_depth?" in told["max_dept"]
    assert told["delay_ms"] == "must be a whole number"
    assert told["engine"] == "must be one of browser, static, auto"


def test_defaults_and_other_spellings():
    args = parse_crawl({"url": "http://a.com", "maxPages": 3, "maxDepth": 1, "engine": "cdp",
                        "sameOrigin": False, "failOnPage": 2})  # fmt: skip
    assert (args.max_pages, args.max_depth, args.engine, args.scope, args.fail_on_page) == (
        3, 1, "browser", "**", 2,
    )  # fmt: skip
    assert (args.delay_ms, args.concurrency, args.settle_ms, args.url) == (
        1_000,
        3,
        100,
        "http://a.com/",
    )


def test_two_words_for_one_argument_must_agree():
    assert parse_crawl({"url": "http://a.com", "maxPages": 3, "max_pages": 3}).max_pages == 3
    with pytest.raises(InvalidArguments):
        parse_crawl({"url": "http://a.com", "maxPages": 3, "max_pages": 4})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "see https://a.example/x, and HTTP://b.example.",
            ["https://a.example/x", "HTTP://b.example"],
        ),
        ("(https://a.example/b_(c)) twice: https://a.example/b_(c)", ["https://a.example/b_(c)"]),
        ("no address, example.com or ftp://a.example/", []),
        ('<a href="https://a.example/">x</a>', ["https://a.example/"]),
        (
            "`https://a.example/x` and **https://b.example/**",
            ["https://a.example/x", "https://b.example/"],
        ),
        ("[https://a.example/](https://a.example/) done", ["https://a.example/"]),
        (
            "\u2018https://a.example/\u2019 \u2039https://b.example/\u203a",
            ["https://a.example/", "https://b.example/"],
        ),
        ("\u8bf7\u770b https://a.example/\u3002 \u518d\u770b", ["https://a.example/"]),
        ("a: https://a.example/,https://b.example/", ["https://a.example/", "https://b.example/"]),
        (
            "at https://a.example/?u=https://b.example/ x",
            ["https://a.example/?u=https://b.example/"],
        ),
        ("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>", []),
        ("blob:https://a.example/1f3c", []),
        (
            "\uff08https://a.example/L\u2019Or\u00e9al\uff09 x",
            ["https://a.example/L\u2019Or\u00e9al"],
        ),
    ],
)
def test_addresses_between_other_words_are_found_without_their_punctuation(text, found):
    assert addresses_within(text) == found


def test_a_wrong_address_of_a_list_is_named_by_its_number():
    wrong = ["https://a.example/", "nonsense word", "ftp://b.example/"]
    with pytest.raises(InvalidArguments, match="urls: entry 2: is not a web address"):
        parse_crawl({"url": "https://a.example/", "urls": wrong})
    with pytest.raises(InvalidArguments, match="urls: is not a web address"):
        parse_crawl({"url": "https://a.example/", "urls": wrong[1:2]})
    with pytest.raises(InvalidArguments, match="tabs: entry 3: only http and https"):
        parse_snapshot({"objective": "look", "tabs": [wrong[0], wrong[0], wrong[2]]})


def test_no_address_between_words_is_lost_and_none_takes_long():
    many = [f"https://a.example/{number}" for number in range(2_000)]
    assert addresses_within("see " + " and ".join(many)) == many
    # With a time that grows by the square of the length, this takes more than the test may.
    assert addresses_within("see https://a.example/" + ")" * 1_500_000) == ["https://a.example/"]


@pytest.mark.parametrize("typed", ["/login", "/home/me/addresses.txt"])
def test_a_path_gets_no_scheme(typed):
    assert complete(typed) == typed
    assert complete("//a.example/x") == "https://a.example/x"
