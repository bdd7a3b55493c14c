"""Pages that load more by scrolling or clicks: what is loaded, and what a page claims about it."""

from __future__ import annotations

import pytest

from engine.browser.page import extraction_options
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages
from tests.support.far_limits import FAR_S

BOTH = pytest.mark.parametrize("direct", [True, False], ids=["direct", "playwright"])
PROSE = "<p>" + "All of this text came with the markup of the page. " * 8 + "</p>"
SCROLLED = PageOptions(timeout_ms=100_000, scroll=True)
CLICKED = PageOptions(timeout_ms=100_000, load_more=".more")
ROWS = ["row1", "row2", "row3"]


@pytest.fixture
def patient_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for more as long as a crowded machine needs for the timers of a page."""
    monkeypatch.setattr(extraction_options, "MORE_MS", int(FAR_S * 1_000))


# `add` adds a row, 900 pixels high, until there are three. `isEnd` tells whether it is in view.
TALL = f"""{PROSE}<div style=height:1500px></div><main></main><p id=end>the end</p><script>
let n = 0;
const add = () => {{ if (n < 3) document.querySelector("main").insertAdjacentHTML("beforeend",
  `<div style=height:900px>row${{++n}}</div>`) }};
const isEnd = () => innerHeight + scrollY > document.body.scrollHeight - 300;
HOW
</script>"""
SCROLLS = {
    "a handler that waits for the end of the scrolling": """let timer, asked = false;
addEventListener("scroll", () => { clearTimeout(timer); timer = setTimeout(async () => {
  if (!isEnd() || asked) return;
  asked = true; await fetch("/rows"); asked = false; add() }, 250) })""",
    "an observer that sets a timer": """new IntersectionObserver(([one]) => {
  if (one.isIntersecting) setTimeout(add, 300) }).observe(end)""",
}


@pytest.mark.timeout(900)  # many cases in one browser
@pytest.mark.usefixtures("patient_looks")
@BOTH
async def test_rows_that_a_scrolled_page_adds_by_a_timer_are_loaded(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/rows"] = Answer(b"[]", delay_s=0.1)
    async with browsing(pages.url, direct=direct) as made:
        for name, how in SCROLLS.items():
            with subtests.test(name=name):
                pages["/"] = TALL.replace("HOW", how)
                page = await made.fetcher.fetch(pages.url, SCROLLED)
                assert [row for row in ROWS if row in page.text] == ROWS
                assert (page.loads_cut, page.settled) == (False, True)


@BOTH
async def test_rows_that_a_scrolled_page_adds_by_an_interval_are_loaded(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    monkeypatch.setattr(extraction_options, "MORE_MS", 8_000)  # all of it, because it never ends
    pages["/"] = TALL.replace("HOW", "setInterval(() => { if (isEnd()) add() }, 900)")
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, SCROLLED)
    assert [row for row in ROWS if row in page.text] == ROWS
    assert (page.loads_cut, page.settled) == (False, True)


# `add` adds a row until there are three, then the button goes.
LIST = f"""{PROSE}<ul></ul><button class=more>Load more</button><script>
let n = 0;
const button = document.querySelector("button");
const add = () => {{
  document.querySelector("ul").insertAdjacentHTML("beforeend", `<li>row${{++n}}</li>`);
  if (n === 3) button.remove() }};
button.onclick = HOW
</script>"""
CLICKS = {
    "a timer": "() => setTimeout(add, 300)",
    "a class, a timer, and a request": """async () => { button.classList.add("is-loading");
  await new Promise((then) => setTimeout(then, 200)); await fetch("/rows");
  button.classList.remove("is-loading"); add() }""",
    "a disabled button with another label": """() => { button.disabled = true;
  button.innerHTML = "<i></i> Loading…";
  setTimeout(() => { button.disabled = false; button.textContent = "Load more"; add() }, 600) }""",
    "a button that is replaced for a while": """() => { button.hidden = true;
  const spinner = document.createElement("i"); spinner.textContent = "…"; button.after(spinner);
  setTimeout(() => { spinner.remove(); button.hidden = false; add() }, 600) }""",
    "a message that no request shows": """() => { const at = performance.now() + 400;
  const look = () => performance.now() < at ? requestAnimationFrame(look) : add(); look() }""",
}


@pytest.mark.timeout(900)  # many cases in one browser
@pytest.mark.usefixtures("patient_looks")
@BOTH
async def test_rows_that_a_click_adds_after_a_while_are_loaded(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/rows"] = Answer(b"[]", delay_s=0.1)
    async with browsing(pages.url, direct=direct) as made:
        for name, how in CLICKS.items():
            with subtests.test(name=name):
                pages["/"] = LIST.replace("HOW", how)
                page = await made.fetcher.fetch(pages.url, CLICKED)
                assert [row for row in ROWS if row in page.text] == ROWS
                assert (page.loads_cut, page.settled) == (False, True)


@BOTH
async def test_a_label_that_changes_is_nothing_loaded(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    changes = "() => { button.innerHTML = '<i></i> Nothing more'; button.disabled = true }"
    pages["/"] = LIST.replace("HOW", changes)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (0, False, True)


@pytest.mark.usefixtures("patient_looks")
@BOTH
async def test_a_button_that_is_disabled_at_first_is_waited_for(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    starts = "add; button.disabled = true; setTimeout(() => { button.disabled = false }, 1_500)"
    pages["/"] = LIST.replace("HOW", starts)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (3, False, True)


@pytest.mark.usefixtures("patient_looks")
@BOTH
async def test_a_page_without_timers_is_not_looked_at_again(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = TALL.replace("HOW", "addEventListener('scroll', () => { if (isEnd()) add() })")
    pages["/list"] = LIST.replace("HOW", "add")
    async with browsing(pages.url, direct=direct) as made:
        scrolled = await made.fetcher.fetch(pages.url, SCROLLED)
        clicked = await made.fetcher.fetch(f"{pages.url}/list", CLICKED)
    # A second look would last until the time limit, and the pages would not be settled.
    for page in (scrolled, clicked):
        assert [row for row in ROWS if row in page.text] == ROWS
        assert (page.loads_cut, page.settled) == (False, True)
