"""The records that engine and workers exchange: unchanged both ways, and checked as untrusted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cluster import page_records
from engine.cluster.page_limits import clamped
from engine.cluster.page_records import (
    Failed,
    Hello,
    PageReply,
    PageRequest,
    Terms,
    check_hello,
    check_reply,
    packed,
    plain_name,
    unpacked,
)
from engine.cluster.wire import Misbehaviour
from engine.pages.custom_fields import FieldRule
from engine.pages.fetch import ClickedLink, Fetched, PageOptions, Redirect
from engine.pages.page_facts import RawFacts
from engine.pages.style_sheets import Rule

MIB = 2**20
URL = "http://a.test/"
ANY = st.text(st.characters(codec=None), max_size=20)  # lone surrogates, escapes, anything
NUMBERS = st.integers(0, 2**40)
FETCHED = st.builds(
    Fetched,
    url=ANY,
    final_url=ANY,
    status=st.integers(0, 999),
    content_type=ANY,
    title=ANY,
    html=ANY,
    text=ANY,
    links=st.lists(ANY, max_size=3),
    link_texts=st.lists(ANY, max_size=3),
    response_ms=st.floats(0, 1e6),
    bytes=NUMBERS,
    redirects=st.lists(st.builds(Redirect, ANY, st.integers(300, 399), st.booleans()), max_size=2),
    engine=st.sampled_from(["browser", "static"]),
    script_names=st.frozensets(ANY, max_size=3),
    screenshot=st.none() | st.binary(max_size=9),
    retry_after_s=st.none() | st.floats(0, 1e6),
    facts=st.none() | st.builds(RawFacts, charset=ANY, linked_data=st.lists(ANY, max_size=2)),
    values=st.dictionaries(ANY, ANY | st.lists(ANY, max_size=2), max_size=2),
    clicked=st.lists(st.builds(ClickedLink, ANY, ANY), max_size=2),
    robots_header=ANY,
    styles=st.lists(
        st.lists(
            st.builds(
                Rule,
                ANY,
                st.lists(ANY, max_size=2).map(tuple),
                st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
                st.lists(st.tuples(ANY, ANY, st.booleans()), max_size=2).map(tuple),
            ),
            max_size=2,
        ).map(tuple),
        max_size=2,
    ).map(tuple),
    inner=st.lists(st.builds(Fetched, ANY, ANY, st.integers(0, 999), html=ANY), max_size=2),
)


@given(FETCHED)
def test_every_page_comes_back_as_it_was(fetched: Fetched) -> None:
    reply = PageReply(fetched=fetched, refusals=[("a:1", fetched.title)])
    assert unpacked(packed(reply), PageReply, MIB) == reply


@given(ANY, ANY)
def test_every_request_comes_back_as_it_was(url: str, selector: str) -> None:
    options = PageOptions(wait_for=selector, fields=(FieldRule(selector, "p"),))
    request = PageRequest("s", Terms(URL, (url,), budgets={"a": [1]}), "static", url, options)
    assert unpacked(packed(request), PageRequest, MIB) == request


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for start in (b"", b"\x00", b"\x01"):
        try:
            unpacked(start + data, PageReply, MIB)
        except Misbehaviour:
            continue


@pytest.mark.parametrize("first", [b"\x00", b"\x01"])
def test_deep_nesting_is_refused(first: bytes) -> None:
    deep = b"\x91" * 100_000 + b"\xc0"
    with pytest.raises(Misbehaviour):
        unpacked(first + deep, PageReply, MIB)
    whole = msgspec.msgpack.encode({"fetched": {"url": "", "final_url": "", "status": 0}})
    inside = whole.replace(b"\xa6status\x00", b"\xa6values" + deep)
    with pytest.raises(Misbehaviour):
        unpacked(first + inside, PageReply, MIB)


def test_a_record_that_is_too_long_is_not_decoded() -> None:
    with pytest.raises(Misbehaviour, match="more than 10 bytes"):
        unpacked(b"\x00" + bytes(10), PageReply, 10)


REQUEST = PageRequest(
    "s", Terms(URL), "static", URL, PageOptions(fields=(FieldRule("price", ".price"),))
)
PAGE = Fetched(URL, URL, 200, "text/html", html="<p>", engine="static")


@pytest.mark.parametrize(
    "lie",
    [
        {"url": "http://b.test/"},
        {"final_url": "file:///etc/passwd"},
        {"final_url": "http://a.test/" + "a" * 3 * MIB},
        {"final_url": URL + "\ud800"},
        {"charset": "hex"},
        {"charset": "\x00"},
        {"charset": "no character set"},
        {"status": -1},
        {"status": 1_000},
        {"engine": "browser"},
        {"html": "a" * 6 * MIB},
        {"title": "a" * 6 * MIB},
        {"content_type": "a" * 70_000},
        {"links": ["http://a.test/"] * 20_001},
        {"link_texts": ["more texts than links"]},
        {"link_rels": "1"},
        {"links": [URL], "link_rels": "x"},
        {"links": [URL], "link_rels": "9"},
        {"links": [URL], "link_rels": "\u0661"},
        {"response_ms": float("nan")},
        {"render_ms": float("inf")},
        {"response_ms": -1.0},
        {"retry_after_s": float("nan")},
        {"bytes": -1},
        {"transferred_bytes": 2**60},
        {"redirects": [Redirect(URL, 301)] * 21},
        {"redirects": [Redirect("javascript:alert(1)", 301)]},
        {"redirects": [Redirect(URL + "a" * 2**20, 301)] * 3},
        {"redirects": [Redirect(URL, -301)]},
        {"screenshot": b"\x89PNG\r\n\x1a\n"},
        {"body": b"a"},
        {"compared": True},
        {"worker": "another"},
        {"values": {"unknown": "a"}},
        {"values": {"price": {"a": {"b": 1}}}},
        {"values": {"price": "a" * 3_000}},
        {"values": {"price": ["a"] * 300}},
        {"consent": {"cmp": "a"}},
        {"inner": [PAGE] * 101},
        {"inner": [Fetched(URL, URL, 200, inner=[PAGE])]},
        {"inner": [Fetched(URL, URL, -5)]},
        {"inner": [Fetched(URL, URL, 200, links=[URL], link_rels="x")]},
        {"styles": ((Rule("", (), (0, 0, 0, 0), ()),) * 150_000,) * 2},
        {"facts": RawFacts(words=-1)},
        {"facts": RawFacts(h1="a" * 5_000)},
        {"facts": RawFacts(h1="\ud800")},
        {"facts": RawFacts(linked_data=["{}"] * 21)},
        {"facts": RawFacts(linked_data=["\ud800"])},
        {"facts": RawFacts(items=["a"] * 21)},
        {"values": {"price": "\ud800"}},
        {"clicked": [ClickedLink(URL, "without a click")]},
    ],
    ids=lambda lie: "-".join(lie),
)
def test_a_lie_about_a_page_is_refused(lie: dict[str, Any]) -> None:
    check_reply(PageReply(fetched=PAGE), REQUEST)
    with pytest.raises(Misbehaviour, match="wrong field"):
        check_reply(PageReply(fetched=msgspec.structs.replace(PAGE, **lie)), REQUEST)


@pytest.mark.parametrize(
    "reply",
    [
        PageReply(),
        PageReply(PAGE, Failed("busy")),
        PageReply(failed=Failed("page", "no kind")),
        PageReply(failed=Failed("page", "a" * 40)),
        PageReply(failed=Failed("page", "dns", "a" * 2_000)),
        PageReply(failed=Failed("page", "dns", status=-1)),
        PageReply(failed=Failed("page", "dns", retry_after_s=float("inf"))),
        PageReply(PAGE, refusals=[("a:1", "no")] * 101),
        PageReply(PAGE, refusals=[("a" * 2_000, "no")]),
    ],
)
def test_a_reply_without_sense_is_refused(reply: PageReply) -> None:
    with pytest.raises(Misbehaviour, match="wrong field"):
        check_reply(reply, REQUEST)


MANY = 2 * MIB
EMPTIES = b"\xdd" + MANY.to_bytes(4, "big") + b"\x90" * MANY
TINY_PAGES = b"\xdd" + (MANY // 27).to_bytes(4, "big")
TINY_PAGES += msgspec.msgpack.encode({"url": "", "final_url": "", "status": 0}) * (MANY // 27)


@pytest.mark.parametrize("first", [b"\x00", b"\x01"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, EMPTIES) for name in ("links", "link_texts", "redirects", "styles", "clicked")),
        *((name, EMPTIES) for name in ("script_names", "edits", "inner")),
        ("values", b"\x81\xa5price" + EMPTIES),
        ("facts", b"\x81\xaalinkedData" + EMPTIES),
        ("facts", b"\x81\xa5items" + EMPTIES),
        ("inner", TINY_PAGES),
        ("inner", b"\x91\x81\xa5inner" + TINY_PAGES),
        ("inner", b"\x91\x81\xa5links" + EMPTIES),
        ("styles", b"\x91" + EMPTIES),
        ("styles", b"\x91\x91\x94\xa0\x90\x94\x00\x00\x00\x00" + EMPTIES),
    ],
)
def test_a_list_that_is_too_long_is_refused_before_it_is_built(
    first: bytes, name: str, value: bytes
) -> None:
    page = msgspec.msgpack.encode({"url": "u", "final_url": "u", "status": 200})
    page = b"\x84" + page[1:] + msgspec.msgpack.encode(name) + value
    with pytest.raises(Misbehaviour, match="of length <="):
        unpacked(first + b"\x81\xa7fetched" + page, PageReply, 32 * MIB)


def test_more_rules_than_a_page_may_have_are_refused_while_they_are_read() -> None:
    sheet = (Rule("", (), (0, 0, 0, 0), ()),) * 70_000
    page = msgspec.structs.replace(PAGE, styles=(sheet,) * 2, inner=[PAGE])
    assert unpacked(packed(PageReply(page)), PageReply, 32 * MIB) == PageReply(page)
    page.inner[0] = msgspec.structs.replace(PAGE, styles=(sheet,))
    with pytest.raises(Misbehaviour, match="of length <="):
        unpacked(packed(PageReply(page)), PageReply, 32 * MIB)


def test_what_a_page_may_have_more_of_here_is_cut_for_the_way() -> None:
    rule = Rule("", (), (0, 0, 0, 0), ())
    page = msgspec.structs.replace(
        PAGE,
        retry_after_s=3e11,
        robots_header="noindex, " * 9_000,
        styles=((rule,) * 150_000,) * 2,
        inner=[msgspec.structs.replace(PAGE, styles=((rule,),))],
        redirects=[Redirect("about:blank", 0), *[Redirect(URL, 301)] * 30],
    )
    cut = clamped(page)
    check_reply(PageReply(cut), REQUEST)
    assert [len(sheet) for sheet in cut.styles] == [150_000, 50_000]
    assert cut.inner[0].styles == ((),)
    assert len(cut.redirects) == 20
    assert cut.robots_header.startswith("noindex, noindex")
    assert cut.retry_after_s == 1e9


@pytest.mark.parametrize("field", ["status", "bytes", "html", "links", "settled", "redirects"])
def test_another_type_is_refused(field: str) -> None:
    plain = msgspec.to_builtins(PageReply(fetched=PAGE))
    plain["fetched"][field] = {"another": "type"}
    for first in (b"\x00", b"\x01"):
        with pytest.raises(Misbehaviour, match="wrong record"):
            unpacked(first + msgspec.msgpack.encode(plain), PageReply, MIB)


def test_another_version_is_refused() -> None:
    with pytest.raises(Misbehaviour, match="another version"):
        check_hello(Hello(page_records.PROTOCOL + 1, "9.9", "w", 4))
    with pytest.raises(Misbehaviour):
        check_hello(Hello(page_records.PROTOCOL, "9.9", "w", 0))


@given(ANY)
def test_a_name_is_short_plain_text(name: str) -> None:
    shown = plain_name(name)
    assert 0 < len(shown) <= 64
    assert shown.isprintable()
    assert plain_name(shown) == shown


def test_what_clicks_found_is_bounded_like_the_links_of_a_page() -> None:
    options = PageOptions(click_links="button", max_clicks=1)
    request = msgspec.structs.replace(REQUEST, options=options)
    found = [ClickedLink(URL + str(n), "one of a list") for n in range(1_000)]
    check_reply(PageReply(fetched=msgspec.structs.replace(PAGE, clicked=found)), request)
    found = [ClickedLink(URL, "a" * MIB)] * 5
    with pytest.raises(Misbehaviour, match="wrong field"):
        check_reply(PageReply(fetched=msgspec.structs.replace(PAGE, clicked=found)), request)
