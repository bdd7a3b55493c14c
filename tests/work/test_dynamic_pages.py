"""Pages that load more, and custom fields: what a crawl of them stores."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.crawl.crawl_args import parse_crawl
from engine.model.errors import InvalidArguments
from engine.model.tally import Tally
from engine.pages.custom_fields import MAX_FIELDS, MAX_VALUES, FieldRule, field_rule, field_rules
from engine.results.units import unit_of
from engine.sample.site import Answer, Request
from tests.support.serving import served
from tests.work.test_page_facts import page_of

SHOP = """<!doctype html><html><head><meta name=sku content=" A-1 "></head><body>
<h1>One   <b>thing</b></h1><p class=price>12 €</p><p class=price>13 €</p>
<ul><li class=tag>red</li><li class=tag>blue</li></ul>
<img class=main src="/pictures/1.png?a=b" alt=""><a class=shop href="mailto:a@shop.test">mail</a>
<p hidden class=secret>hidden too</p></body></html>"""
RULES = [
    "name = h1",
    "price=.price",
    "tags[] = .tag",
    "picture = img.main @src",
    "mail = a.shop @HREF",
    "sku = meta[name='sku'] @content",
    "hidden = .secret",
    "none = .nothing",
    "no_attribute = h1 @title",
]
# A list that grows by ten rows whenever its end comes into view, 40 in all.
ENDLESS = """<main></main><p id=end>the end</p><script>
const more = () => { const at = document.querySelectorAll('article').length;
  if (at < MOST) for (let n = at; n < at + 10; n += 1) {
    const row = document.createElement('article'); row.style.height = '200px';
    row.textContent = `row ${n}`; document.querySelector('main').append(row); } };
new IntersectionObserver(([one]) => { if (one.isIntersecting) setTimeout(more, 60) })
  .observe(document.querySelector('#end')); more();
</script>"""
BUTTON = """<main></main><a id=more href="/elsewhere">Load more</a><script>
let page = 0;
document.querySelector('#more').onclick = async (event) => { event.preventDefault();
  const rows = await (await fetch(`/rows/${page++}`)).json();
  for (const row of rows) {
    const one = document.createElement('p'); one.textContent = row;
    document.querySelector('main').append(one); }
  if (page == 3) event.target.remove() };
</script>"""


@pytest.mark.parametrize("engine", ["static", "browser", "auto"])
async def test_custom_fields_are_read_by_their_selectors(home: Path, engine: str) -> None:
    with served(lambda _: Answer(SHOP.encode())) as url:
        page = await page_of(home, url, engine, fields=RULES)
    assert page["fields"] == {
        "name": "One thing",
        "price": "12 €",
        "tags": ["red", "blue"],
        "picture": f"{url}/pictures/1.png?a=b",
        "mail": "mailto:a@shop.test",
        "sku": "A-1",
        "hidden": "hidden too",
    }


async def test_values_of_a_field_are_redacted_like_the_page(home: Path) -> None:
    with served(lambda _: Answer(b"<p class=key>AKIAIOSFODNN7EXAMPLB here</p>")) as url:
        page = await page_of(home, url, "static", fields=["key = .key"])
    assert "AKIA" not in str(page)
    assert page["fields"]["key"].endswith(" here")


async def test_a_page_is_scrolled_while_it_grows(home: Path) -> None:
    html = ENDLESS.replace("MOST", "40").encode()
    with served(lambda _: Answer(html)) as url:
        page = await page_of(home, url, "browser", scroll=True)
        still = await page_of(home, url, "browser")
    assert "row 39" in page["content"]
    assert 1 <= page["loads"] <= 3
    assert "loads_cut" not in page
    assert ("row 9" in still["content"], "row 39" in still["content"]) == (True, False)


@pytest.mark.thorough
async def test_scrolling_ends_at_its_limit_and_says_so(home: Path) -> None:
    # Its rows come so late that no machine is too slow to tell a page from its scrolling.
    html = ENDLESS.replace("MOST", "1e9").replace("setTimeout(more, 60)", "ask()")
    html = "<script>const ask = async () => { await fetch('/rows'); more(); };</script>" + html

    def answer(request: Request) -> Answer:
        return Answer(b"[]", delay_s=5) if request.path == "/rows" else Answer(html.encode())

    with served(answer) as url:
        began_s = time.monotonic()
        page = await page_of(home, url, "browser", scroll=True, max_loads=2)
        lasted_ms = (time.monotonic() - began_s) * 1_000
    assert (page["loads"], page["loads_cut"]) == (2, True)
    assert page["settled"]
    assert unit_of(page, 0).remark_words == "may have more than was loaded"
    assert Tally([page]).outcome("", 0, "frontier").summary()["unloaded_pages"] == 1
    assert page["render_ms"] <= lasted_ms - 2 * 5_000  # without the time of scrolling


async def test_the_element_that_loads_more_is_clicked_while_it_is_there(home: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.path.startswith("/rows/"):
            number = request.path.rpartition("/")[2]
            return Answer(f'["row {number}"]'.encode(), 200, "application/json", delay_s=0.3)
        return Answer(BUTTON.encode())

    with served(answer) as url:
        page = await page_of(home, url, "browser", load_more="#more")
    assert page["content"].strip().split("\n\n") == ["row 0", "row 1", "row 2"]
    assert (page["loads"], page["final_url"]) == (3, f"{url}/")


async def test_a_click_that_no_script_handles_leaves_the_page_where_it_is(home: Path) -> None:
    html = (
        '<p>here</p><a class=more href="/next">more</a>'
        '<form action="/next"><button class=more>more</button></form>'
    )
    with served(lambda _: Answer(html.encode())) as url:
        page = await page_of(home, url, "browser", load_more=".more")
    assert "error" not in page
    assert (page["final_url"], page["content"].split()[0]) == (f"{url}/", "here")
    assert "loads" not in page


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"load_more": 'p:lexbor-contains("x")'}, "load_more is not a selector"),
        ({"wait_for": "p["}, "wait_for is not a selector"),
    ],
)
async def test_a_selector_that_a_browser_refuses_is_named(home: Path, more: Any, said: str) -> None:
    with served(lambda _: Answer(b"<p>here</p>")) as url:
        page = await page_of(home, url, "browser", **more)
    assert said in page["error"]


@pytest.mark.parametrize("engine", ["static", "auto"])
def test_loading_more_needs_the_browser(engine: str) -> None:
    given = {"url": "http://site.test/", "engine": engine, "scroll": True, "load_more": "a"}
    with pytest.raises(InvalidArguments) as refused:
        parse_crawl(given)
    assert [one.path for one in refused.value.problems] == ["scroll", "load_more"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a = p", "price"], "price: is no field"),
        (["= .price"], "is no field"),
        (["1 = .price"], "is no field"),
        (["price = ..x"], "price: ..x is not a CSS selector"),
        (["a = p", "a = b"], "has the field a twice"),
        ([f"a{number} = p" for number in range(MAX_FIELDS + 1)], f"at most {MAX_FIELDS}"),
    ],
)
def test_a_mistake_in_a_field_is_told(lines: list[str], said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        parse_crawl({"url": "http://site.test/", "fields": lines})


def test_a_mistake_in_the_selector_that_loads_more_is_told() -> None:
    with pytest.raises(InvalidArguments, match=r"b\[ is not a CSS selector"):
        parse_crawl({"url": "http://site.test/", "load_more": "b["})


def test_blank_lines_are_no_fields() -> None:
    assert field_rules(["", " \n", "a=b"]) == (FieldRule("a", "b"),)


@given(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True),
    st.sampled_from(["p", "a > b", "[href*='@ x']", "p:not(.a), b"]),
    st.sampled_from(["", "src", "data-x"]),
    st.booleans(),
)
def test_a_rule_reads_back(name: str, selector: str, attribute: str, many: bool) -> None:
    line = f" {name}{' []' * many} = {selector} {'@' * bool(attribute)}{attribute}"
    assert field_rule(line) == FieldRule(name, selector, attribute, many)


async def test_a_field_has_a_limit_of_values(home: Path) -> None:
    html = "<p>x</p>" * (MAX_VALUES + 50) + f"<h1>{'y' * 9_000}</h1>"
    for engine in ("static", "browser"):
        with served(lambda _: Answer(html.encode())) as url:
            page = await page_of(home, url, engine, fields=["all[] = p", "long = h1"])
        assert (len(page["fields"]["all"]), len(page["fields"]["long"])) == (200, 2_048)
