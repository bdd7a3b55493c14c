"""The static engine's text omits what style sheets hide, as in a browser."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.egress.egress_policy import Policy
from engine.pages.extract import extract_now
from engine.pages.fetch import Fetched, OutputFormat, PageOptions
from engine.pages.static_engine import open_static
from engine.pages.style_sheets import parse_sheet, sheets_of
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages

MEDIA = (
    *("screen", "print", "all", "not print", "only screen and (min-width: 600px)", "not all"),
    *("(max-width: 600px)", "(max-width:80em)", "(min-width: 80.01em)", "(width >= 1280px)"),
    *("(400px < width <= 1279px)", "(100px <= width <= 2000px)", "(width = 1280px)", "(height)"),
    *("screen and (max-width: 400px), (min-height: 700px)", "(orientation: portrait)"),
    *("(prefers-color-scheme: dark)", "(prefers-color-scheme: light)", "(color)", "(nothing: 1)"),
    *("(prefers-reduced-motion: reduce)", "(prefers-reduced-motion)", "not (min-width: 9999px)"),
    *("(min-width: 1px) and (max-width: 2px)", "(min-width: 1px) or (max-width: 2px)", "tv"),
    *("((min-width: 1px) and (not (max-width: 2px)))", "not screen and (max-width: 1px)"),
)
SELECTORS = """
<style>
  /* a { display: none } */
  .a, .never:hover { display: none } .b { display: none; color: "}" } p.b { display: inline }
  .c { display: none !important } #c.c { display: block }
  #d { display: none } .d { display: inline }   .e > .f { display: none }
  .e .g:not(.h) { visibility: hidden }
  .i:hover, .i::before { display: none } .j:not(:target) { display: none }
  [data-k='1'] { display: none } .l:first-child { display: none } :is(.m, .n) { display: none }
  :where(#o) { display: none } .o { display: inline }  .p { text-transform: uppercase }
  @supports (display: grid) { .q { display: none } }
  @supports not (display: grid) { .r { display: none } }
  @layer x { .s.s.s { display: none } } .s { display: inline }
  .t { background: url(data:a;b{}c); display: none } .u { display: nonsense }
  .v:-moz-x, .v { display: none }
  @font-face { font-family: x; src: url(x) } @keyframes y { from { visibility: hidden } }
  .w { visibility: hidden } .w .x { visibility: visible }
  .y { display: block; & .z { color: red } }
  .y { float: left } b.y { float: none; display: inline } .hid { display: inline }
  .n1 { display: inline; .n2 { display: none } & > .n3, &.n4 { display: none; }
    @media (min-width: 9px) { visibility: hidden } u & { visibility: visible } color: red }
  u.n5, b.n5 { .n6 & { display: none } .n7 { .n8 { display: none } } } .n9 .n2 { display: block }
  .m1 { display: inline; @media (min-width: 9px) { display: none } }
  .k2 { display: revert; } span.k2 { display: none } p.last { display: none
"""


async def taken(pages: Pages, path: str) -> Fetched:
    async with open_static(Policy.for_start(pages.url)) as fetcher:
        return await fetcher.fetch(pages.url + path, PageOptions())


def said(fetched: Fetched) -> list[str]:
    return str(extract_now(fetched, "text").content).split()


async def test_style_sheets_hide_the_same_as_a_browser(browsing: Making, pages: Pages) -> None:
    spans = "".join(
        f"<span class={name} id={name}> {name} </span>" for name in "abcdefghijmnoqrstuvy"
    )
    pages["/selectors"] = (
        SELECTORS + "</style>" + spans + "<p class=b>pb</p>"
        "<div class=e>e<i class=f>f</i><i class=g>g</i><i class='g h'>gh</i></div>"
        "<em data-k=1>k</em><div><u class=l>l1</u><u class=l>l2</u></div><i class=p>upper</i>"
        "<i class=w>w<i class=x>x</i></i>one<b class=y>word</b>parts<i hidden class=hid>hid</i>"
        "<i class=c style='display:inline'>never</i><i class=a style='display:inline'>own</i>"
        "<i class=n1>hid<i class=n2>n2</i></i><u><i class=n1>n1<i class=n2>n2</i><i class=n3>n3</i>"
        "<i><i class=n3>in</i></i></i><i class='n1 n4'>n4</i></u><i class=n9><i class=n2>n9</i></i>"
        "<i class=n6><u class=n5>n5</u><b class=n5>n5</b></i><u class=n5>n5<i class=n7>n7"
        "<i class=n8>n8</i></i></u><i class=n8>out</i><i class=m1>gone</i>"
        "<span class=k2>gone</span><i class=k2>k2</i><p class=last>last</p>"
    )
    pages["/media"] = (
        "<style>"
        + "".join(
            f"@media {query} {{ .q{n} {{ display: none }} }}" for n, query in enumerate(MEDIA)
        )
        + "</style>"
        + "".join(f"<i class=q{n}> {n} </i>" for n in range(len(MEDIA)))
    )
    pages["/linked/page"] = (
        "<link rel=stylesheet href=one.css><link rel='stylesheet' media=print href=/two.css>"
        "<link rel='alternate stylesheet' title=x href=/two.css>"
        "<link rel=stylesheet href=/gone.css>"
        "<link rel=stylesheet href=/page.css>"
        "<style type=text/css>.later { display: inline }</style>"
        "<!-- <style>.two { display: none }</style> --><noscript><style>p {display:none}</style>"
        "</noscript><p>seen <i class=one>one</i> <i class=two>two</i> <i class=three>three</i>"
        " <i class=later>later</i> <i class=four>four</i> <i class=five>five</i>"
        " <i class=six>six</i>"
    )
    pages["/linked/one.css"] = css("@import '/sub/three.css' screen; .one, .later {display:none}")
    pages["/sub/three.css"] = css(
        "@import 'five.css'; .three { display: none } .one { display: inline }"
    )
    pages["/sub/five.css"] = css(
        "@import 'six.css'; @import 'five.css'; .five, .three { display: none }"
    )
    pages["/sub/six.css"] = css("@import 'five.css'; .six { display: none } .five {display: block}")
    pages["/two.css"] = css(".two { display: none }")
    pages["/page.css"] = Answer(b".four { display: none }", 200, "text/html")
    async with browsing(pages.url) as made:
        for path in ("/selectors", "/media", "/linked/page"):
            shown = await made.fetcher.fetch(pages.url + path, PageOptions())
            assert said(await taken(pages, path)) == shown.text.split(), path


def css(text: str) -> Answer:
    return Answer(text.encode(), 200, "text/css")


async def test_a_sheet_is_asked_for_once_by_a_crawl_and_its_failure_costs_no_page(
    pages: Pages, canary: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.pages.asset_loading.ASSET_S", 0.3)
    links = "".join(f"<link rel=stylesheet href={path}>" for path in ("/a.css", "/late.css", "/b"))
    page = f"{links}<link rel=stylesheet href={canary.url}/c.css><p>seen <i class=a>hidden</i>"
    pages["/a.css"] = css(".a { display: none }")
    pages["/late.css"] = Answer(b"p { display: none }", 200, "text/css", stops="before")
    pages["/1"] = pages["/2"] = page
    async with open_static(Policy.for_start(pages.url)) as fetcher:
        found = [await fetcher.fetch(f"{pages.url}/{n}", PageOptions()) for n in (1, 2)]
    assert [said(each) for each in found] == [["seen"], ["seen"]]
    assert (pages.hits["/a.css"], pages.hits["/late.css"], canary.hits["/c.css"]) == (1, 1, 0)


async def test_more_than_a_mebibyte_of_a_sheet_is_not_read(pages: Pages) -> None:
    filler = b".x { color: red }\n" * 300_000
    pages["/huge.css"] = Answer(
        b".a {display:none}" + filler + b".b {display:none}", 200, "text/css"
    )
    pages["/"] = "<link rel=stylesheet href=/huge.css><p>seen <i class=a>a</i> <i class=b>b</i>"
    assert said(await taken(pages, "/")) == ["seen", "b"]


@pytest.mark.parametrize(
    ("sheet", "needs"),
    [
        (".a { display: none } @layer x { .a { visibility: hidden } }", False),
        ("@container (width > 9px) { .a { display: none } }", True),
        ("@container (width > 9px) { .a { color: red } .other { display: none } }", False),
        (".a { @container (width > 9px) { display: none } }", True),
        ("body:has(.a) p { visibility: hidden }", True),
        ("body:has(.other) p { visibility: hidden } p:has(.a) { color: red }", False),
        ("p:not(:has(.other)) { display: none }", True),
    ],
)
async def test_complex_style_sheets_need_a_browser(pages: Pages, sheet: str, needs: bool) -> None:
    pages["/"] = f"<style>{sheet}</style><p>{'word ' * 60}<i class=a>a</i>"
    async with open_static(Policy.for_start(pages.url), judge=True) as fetcher:
        found = await fetcher.fetch(f"{pages.url}/", PageOptions())
    assert (found.needs_browser, found.runs) == (needs, "style" if needs else "")


@pytest.mark.parametrize("form", ["text", "markdown", "structured"])
def test_what_is_invisible_is_in_no_form_of_the_content(form: OutputFormat) -> None:
    html = (
        "<p style='visibility:hidden'>hidden <i style='visibility: hidden'>too</i></p><p>seen</p>"
        "<h2 style='visibility:collapse'>hidden</h2>"
        "<p style='visibility:hidden; visibility:visible'>last</p>"
        "<div style='visibility:hidden'><b style='visibility:visible'>shown</b></div>"
    )
    page = Fetched("http://x/", "http://x/", 200, html=html, engine="static")
    content = str(extract_now(page, form).content)
    assert all(word in content for word in ("seen", "last", "shown"))
    assert not any(word in content for word in ("hidden", "too"))


@pytest.mark.parametrize("form", ["text", "markdown", "structured"])
def test_what_a_sheet_hides_is_in_no_form_of_the_content(form: OutputFormat) -> None:
    sheet = parse_sheet(".a { display: none }").rules
    html = "<p>seen <i class=a>hidden</i></p><p class=a>hidden</p>"
    page = Fetched("http://x/", "http://x/", 200, html=html, engine="static", styles=(sheet,))
    content = str(extract_now(page, form).content)
    assert "seen" in content
    assert "hidden" not in content


@pytest.mark.parametrize(
    "sheet",
    [
        "* * * * * * * * * * * * x { display: none }" * 1_000,
        "div div div div div div div { display: none }" * 1_000,
        ":not(" * 2_000 + "a" + ")" * 2_000 + " { display: none }",
        "a:has(b:has(c)) { display: none }" * 10_000,
        ("div ~ div ~ div ~ div ~ p { display: none }") * 1_000,
        "*," * 100_000 + "* { position: relative }",
        "a, b { & & {" * 100_000,
        "a, b, c { d, e, f { g, h { i, j { display: none } } } }" * 5_000,
        "(" * 500_000,
        "@media (" * 50_000,
        "{" * 500_000,
        '"' * 500_000,
        "/*" * 300_000,
        "@import url(" * 50_000 + ";",
        "@media " + "not (" * 50_000 + "{ a { display: none } }",
    ],
    ids=lambda sheet: sheet[:12],
)
def test_no_sheet_takes_long(sheet: str) -> None:
    html = "<div>" * 60 + "<div></div>" * 2_000 + "<p>seen"
    began = time.process_time()
    rules = parse_sheet(sheet).rules
    page = Fetched("http://x/", "http://x/", 200, html=html, engine="static", styles=(rules,))
    extract_now(page, "text")
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "markup", ["<link", "<link rel=stylesheet media='(x'>", "<!--", "<style>", "<script>", "<base "]
)
def test_no_page_is_searched_for_sheets_for_long(markup: str) -> None:
    began = time.process_time()
    sheets_of("<style></style>" + markup * 200_000)
    assert time.process_time() - began < 20


@given(st.lists(st.sampled_from([*"{}();:,.#[]@\"'\\/*- a", "display:none", "@media", "url("])))
def test_any_sheet_can_be_read(parts: list[str]) -> None:
    parse_sheet("".join(parts))
