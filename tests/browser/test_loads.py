"""Pages that load more by scrolling or clicks: what is loaded, and what a page claims about it."""

from __future__ import annotations

import pytest

from engine.browser.page import extraction_options
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer, Request
from tests.browser.conftest import TABS, Making, Pages
from tests.support.connections import BOTH_CONNECTIONS
from tests.support.far_limits import FAR_S

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
AT_ONCE = "addEventListener('scroll', () => { if (isEnd()) add() })"
SCROLLS = {
    "a handler that waits for the end of the scrolling": """let timer, asked = false;
addEventListener("scroll", () => { clearTimeout(timer); timer = setTimeout(async () => {
  if (!isEnd() || asked) return;
  asked = true; await fetch("/rows"); asked = false; add() }, 250) })""",
    "an observer that sets a timer": """new IntersectionObserver(([one]) => {
  if (one.isIntersecting) setTimeout(add, 300) }).observe(end)""",
}


@pytest.mark.usefixtures("patient_looks")
@BOTH_CONNECTIONS
async def test_rows_that_a_scrolled_page_adds_by_a_timer_are_loaded(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/rows"] = Answer(b"[]", delay_s=0.1)
    cases = {name: TALL.replace("HOW", how) for name, how in SCROLLS.items()}
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        taken = await made.taken(cases, pages, SCROLLED, "/rows")
        for name, one in taken.items():
            with subtests.test(name=name):
                page = one.result()
                assert [row for row in ROWS if row in page.text] == ROWS
                assert (page.loads_cut, page.settled) == (False, True)


@pytest.mark.thorough
@BOTH_CONNECTIONS
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


@pytest.mark.usefixtures("patient_looks")
@BOTH_CONNECTIONS
async def test_rows_that_a_click_adds_after_a_while_are_loaded(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/rows"] = Answer(b"[]", delay_s=0.1)
    cases = {name: LIST.replace("HOW", how) for name, how in CLICKS.items()}
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        taken = await made.taken(cases, pages, CLICKED, "/rows")
        for name, one in taken.items():
            with subtests.test(name=name):
                page = one.result()
                assert [row for row in ROWS if row in page.text] == ROWS
                assert (page.loads_cut, page.settled) == (False, True)


@BOTH_CONNECTIONS
async def test_a_label_that_changes_is_nothing_loaded(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    changes = "() => { button.innerHTML = '<i></i> Nothing more'; button.disabled = true }"
    pages["/"] = LIST.replace("HOW", changes)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (0, False, True)


@pytest.mark.usefixtures("patient_looks")
@BOTH_CONNECTIONS
async def test_a_button_that_is_disabled_at_first_is_waited_for(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    starts = "add; button.disabled = true; setTimeout(() => { button.disabled = false }, 1_500)"
    pages["/"] = LIST.replace("HOW", starts)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (3, False, True)


@pytest.mark.usefixtures("patient_looks")
@BOTH_CONNECTIONS
async def test_a_page_without_timers_is_not_looked_at_again(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = TALL.replace("HOW", AT_ONCE)
    pages["/list"] = LIST.replace("HOW", "add")
    async with browsing(pages.url, direct=direct) as made:
        scrolled = await made.fetcher.fetch(pages.url, SCROLLED)
        clicked = await made.fetcher.fetch(f"{pages.url}/list", CLICKED)
    # A second look would last until the time limit, and the pages would not be settled.
    for page in (scrolled, clicked):
        assert [row for row in ROWS if row in page.text] == ROWS
        assert (page.loads_cut, page.settled) == (False, True)


# A list whose rows are requested one by one; nothing is done about one that fails.
ASKING = f"""{PROSE}<ul></ul><button class=more>Load more</button><script>
let n = 0;
const button = document.querySelector("button");
const ask = async () => (await fetch(`/rows/${{n}}`).catch(() => ({{ ok: false }}))).ok;
button.onclick = async () => {{ n += 1; if (!(ASKED)) return;
  document.querySelector("ul").insertAdjacentHTML("beforeend", `<li>row${{n}}</li>`);
  if (n === 3) button.remove() }};
</script>"""
ROW = Answer(b"[]", 200, "application/json")
# The answer for the second row, and whether there may be more rows.
FAILURES = {
    "429": (Answer(b"", 429), True),
    "503": (Answer(b"", 503), True),
    "redirects without end": (Answer(b"", 302, headers=(("Location", "2"),)), True),
    "404, as at the end of a list": (Answer(b"", 404), False),
}


@BOTH_CONNECTIONS
async def test_a_page_may_have_more_when_a_request_for_it_failed(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    cases = {}
    for number, (name, (failure, _)) in enumerate(FAILURES.items()):
        cases[name] = ASKING.replace("ASKED", "await ask()").replace("/rows", f"/rows{number}")
        pages[f"/rows{number}/1"], pages[f"/rows{number}/2"] = ROW, failure
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        taken = await made.taken(cases, pages, CLICKED)
        for name, (_, may_have_more) in FAILURES.items():
            with subtests.test(name=name):
                page = taken[name].result()
                assert ("row1" in page.text, "row2" in page.text) == (True, False)
                assert (page.loads, page.loads_cut) == (1, may_have_more)


@BOTH_CONNECTIONS
async def test_a_page_that_repeats_its_failed_request_is_complete(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    again = "await ask() || await (await fetch('/heal'), ask())"
    pages["/"] = ASKING.replace("ASKED", again)
    pages["/rows/1"] = pages["/rows/3"] = pages["/heal"] = ROW
    failures = [Answer(b"", 503)]
    answer = pages.server.answer

    def once(request: Request) -> Answer:
        return failures.pop() if request.path == "/rows/2" and failures else answer(request)

    pages["/rows/2"] = ROW
    pages.server.answer = once
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert not failures
    assert (page.loads, page.loads_cut) == (3, False)


@BOTH_CONNECTIONS
async def test_a_button_that_stays_without_effect_is_no_claim_of_more(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = LIST.replace("HOW", "() => { if (n < 2) add() }")
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (2, False, True)


SHADOW = """<div></div><script>
const root = document.querySelector("div").attachShadow({ mode: "open" });
root.innerHTML = "<ul></ul><button class=more>Load more</button>";
let n = 0;
root.querySelector("button").onclick = ({ target }) => {
  root.querySelector("ul").insertAdjacentHTML("beforeend", `<li>row${++n}</li>`);
  if (n === 3) target.remove() };
</script>"""


@BOTH_CONNECTIONS
async def test_a_button_in_a_shadow_root_is_clicked(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = SHADOW
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert page.text.split()[:3] == ROWS
    assert (page.loads, page.loads_cut) == (3, False)


FORM = f"""{PROSE}<ul></ul>
<form method=post action=/sent>NEEDS<button class=more>More</button></form><script>
let n = 0;
const form = document.querySelector("form");
form.onsubmit = (event) => {{ event.preventDefault();
  document.querySelector("ul").insertAdjacentHTML(
    "beforeend", `<li>row${{++n}} of ${{event.submitter.className}}</li>`);
  if (n === 3) form.remove() }};
</script>"""


@BOTH_CONNECTIONS
async def test_a_form_that_a_script_handles_loads_more(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = FORM.replace("NEEDS", "")
    pages["/needs"] = FORM.replace("NEEDS", "<input required>")
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
        needs = await made.fetcher.fetch(f"{pages.url}/needs", CLICKED)
    assert "row3 of more" in page.text
    assert (page.loads, page.loads_cut) == (3, False)
    assert (needs.loads, "row" in needs.text) == (0, False)  # as for a visitor


STOPS = "for (const kind of ['click', 'submit']) form.addEventListener(kind, (event) => HOW)"
UNHANDLED = {
    "no script": "",
    "a script that only listens": STOPS.replace("HOW", "0"),
    "a script that stops the events": STOPS.replace("HOW", "event.stopImmediatePropagation()"),
}


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_no_form_is_sent_to_load_more(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    cases = {
        f"{name}, {method}": f"<p>here</p><form action=/sent method={method}>"
        "<button class=more name=a value=b>More</button></form>"
        f"<script>const form = document.querySelector('form'); {script}</script>"
        for name, script in UNHANDLED.items()
        for method in ("get", "post")
    }
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        taken = await made.taken(cases, pages, CLICKED)
        for number, (name, one) in enumerate(taken.items()):
            with subtests.test(name=name):
                page = one.result()
                assert (page.final_url, page.loads) == (f"{pages.url}/case/{number}", 0)
                assert page.text.split() == ["here", "More"]
        assert pages.hits["/sent"] == 0


TWO = f"""{PROSE}<section><ul></ul><button class=more>More</button></section>
<section><ul></ul><button class=more>More</button></section><script>
document.querySelectorAll("section").forEach((section, k) => {{
  let n = 0;
  section.querySelector("button").onclick = () => {{
    if (n < MOST[k]) section.querySelector("ul").insertAdjacentHTML("beforeend",
      `<li>row${{k}}${{++n}}</li>`) }} }});
</script>"""


@BOTH_CONNECTIONS
async def test_each_of_several_lists_is_loaded(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    cases = {most: TWO.replace("MOST", str([*most])) for most in ((2, 2), (0, 2), (2, 0))}
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for most, one in (await made.taken(cases, pages, CLICKED)).items():
            page = one.result()
            assert (page.loads, page.loads_cut) == (sum(most), False)
            assert page.text.count("row") == sum(most)


async def test_a_page_with_very_many_buttons_without_effect_may_have_more(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = PROSE + "<button class=more>More</button>" * 500
    async with browsing(pages.url, direct=True) as made:
        page = await made.fetcher.fetch(pages.url, CLICKED)
    assert (page.loads, page.loads_cut, page.settled) == (0, True, True)


# A list in a box of its own, which adds a row whenever its end is in view.
BOX = f"""<div id=box style="height:100%;overflow:auto">{PROSE}<div style=height:1500px></div>
<main></main></div>"""
ADDS = """<script>
const host = HOST, box = host.querySelector("#box");
let n = 0;
box.onscroll = () => {
  if (n < 3 && box.scrollTop + box.clientHeight > box.scrollHeight - 100)
    host.querySelector("main").insertAdjacentHTML("beforeend",
      `<div style=height:900px>row${++n}</div>`) };
</script>"""
OVERLAY = (
    "<div style='position:fixed;inset:0;SCROLLS'><p style='margin:30%'>subscribe</p>MORE</div>"
)
LOCKED = "<style>html, body { height: 100%; margin: 0; overflow: hidden }</style>"
INNER = LOCKED + BOX + ADDS.replace("HOST", "document")
BOXES = {
    "below an overlay": INNER + OVERLAY,
    "below an overlay that can be scrolled further": INNER
    + OVERLAY.replace("SCROLLS", "overflow:auto").replace(
        "MORE", "<div style=height:9000px>terms</div>"
    ),
    "in a page that is a little too high itself": "<style>html, body { height: 100% }</style>"
    + INNER.removeprefix(LOCKED)
    + "<p>foot",
    "in a shadow root": LOCKED
    + "<div style=height:100% id=app></div><script>"
    + f"app.attachShadow({{ mode: 'open' }}).innerHTML = `{BOX}`;</script>"
    + ADDS.replace("HOST", "app.shadowRoot"),
    "around the content of another": LOCKED
    + "<div style=height:100% id=app><main></main><div style=height:1500px></div></div><script>"
    + "app.attachShadow({ mode: 'open' }).innerHTML = "
    + "`<div id=box style='height:100%;overflow:auto'><slot></slot></div>`;</script>"
    + ADDS.replace("HOST", "app").replace("box = host.", "box = app.shadowRoot."),
}


@BOTH_CONNECTIONS
async def test_the_box_with_the_list_is_scrolled(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for name, one in (await made.taken(BOXES, pages, SCROLLED)).items():
            with subtests.test(name=name):
                page = one.result()
                assert [row for row in ROWS if row in page.text] == ROWS
                assert (page.loads_cut, page.settled) == (False, True)


@BOTH_CONNECTIONS
async def test_a_long_page_is_scrolled_although_a_box_in_it_is_longer(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    long = "<pre style='height:90vh;overflow:auto'>" + "words\n" * 500 + "</pre>"
    pages["/"] = TALL.replace(PROSE, long).replace("HOW", AT_ONCE)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, SCROLLED)
    assert [row for row in ROWS if row in page.text] == ROWS


SEARCH = f"""{PROSE}<div style=height:9000px></div><script>
let one;
addEventListener("scroll", () => {{
  one?.abort();
  one = new AbortController();
  fetch(`/rows?y=${{scrollY}}`, {{ signal: one.signal }}).catch(() => 0);
}});
</script>"""


async def test_requests_that_a_page_cancels_are_no_failures(browsing: Making, pages: Pages) -> None:
    pages["/rows"] = Answer(b"[]", delay_s=0.3)
    pages["/"] = SEARCH
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, SCROLLED)
    assert pages.hits["/rows"] > 1
    assert (page.loads_cut, page.settled) == (False, True)


@pytest.mark.thorough
async def test_a_page_that_grows_by_itself_is_not_scrolled_for_ever(
    browsing: Making, pages: Pages
) -> None:
    ticks = "setInterval(() => list.insertAdjacentHTML('beforeend', '<li>tick'), 700)"
    pages["/"] = f"{PROSE}<ul id=list></ul><script>{ticks}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, SCROLLED)
    assert (page.loads_cut, page.settled) == (True, True)
    assert page.loads == 10
