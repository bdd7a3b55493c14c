"""What a page displays: once its placeholders are replaced, and as its style sheets say."""

from __future__ import annotations

import re

import pytest

from engine.pages.extract import extract_now
from engine.pages.fetch import OutputFormat, PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import TABS, Making, Pages
from tests.support.connections import BOTH_CONNECTIONS

PATIENT = PageOptions(timeout_ms=100_000)
PROSE = "<p>" + "All of this came with the markup. " * 20 + "</p>"


def later(script: str, ms: int = 300) -> str:
    return f"<script>setTimeout(() => {{ {script} }}, {ms})</script>"


SHOW = "root.textContent = 'the words of the page'"
PLACEHOLDERS = {
    "a word": f"<div id=root>Loading...</div>{later(SHOW)}",
    "a drawing": f"<div id=root><svg width=9 height=9><circle r=4 /></svg></div>{later(SHOW)}",
    "a busy region": f"{PROSE}<div id=root aria-busy=true>Loading</div>{later(SHOW)}",
    "a bar": f"{PROSE}<div id=root><b role=progressbar>Loading</b></div>{later(SHOW)}",
    # React's server sends sections late, and its function shows each by a timer.
    "a section": f"{PROSE}<script>$RC = () => 0</script><p id=root>Loading</p>{later(SHOW)}",
}


@BOTH_CONNECTIONS
async def test_what_stands_in_for_a_placeholder_is_waited_for(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for name, one in (await made.taken(PLACEHOLDERS, pages, PATIENT)).items():
            with subtests.test(name=name):
                page = one.result()
                assert "the words of the page" in page.text
                assert "Loading" not in page.text
                assert page.settled


async def test_a_page_that_guards_its_names_is_waited_for(browsing: Making, pages: Pages) -> None:
    guard = "Object.defineProperty(window, '$RC', { get() { throw Error('no') } })"
    pages["/"] = f"<div id=root>Loading...</div><script>{guard}</script>{later(SHOW)}"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.settled
    assert "the words of the page" in page.text


def ticking(step: str, end: str, ms: int = 50) -> str:
    """A script that makes a hundred steps, and then shows something."""
    return (
        f"<script>let n = 0; const ticks = setInterval(() => {{ {step};"
        f" if (++n === 100) {{ clearInterval(ticks); {end} }} }}, {ms})</script>"
    )


COUNT = "count.textContent = `${n}%`"
WORDS = "count.outerHTML = 'late words'"
SLOW_TO_SHOW = {
    "a hidden text": f"<i id=count>0%</i><div id=late hidden>{PROSE}late words</div>"
    + ticking(COUNT, "count.remove(); late.hidden = false"),
    "a bar": f"{PROSE}<b role=progressbar id=count>0%</b>" + ticking(COUNT, WORDS),
    "a spinner": "<b id=count>Loading</b>" + ticking("count.style.rotate = `${n}deg`", WORDS),
    "a number after an answer": f"{PROSE}<b id=count>0</b><script>fetch('/data').then(() => {{"
    f" let n = 0; const ticks = setInterval(() => {{ {COUNT};"
    f" if (++n === 60) {{ clearInterval(ticks); {WORDS} }} }}, 50) }})</script>",
    "a text that is typed": f"{PROSE}<p id=count></p>"
    + ticking("count.textContent = 'typed '.repeat(20).slice(0, n + 1)", WORDS, 60),
}


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_animations_that_end_are_waited_for(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    pages["/data"] = Answer(b"{}", delay_s=2)
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for name, one in (await made.taken(SLOW_TO_SHOW, pages, PATIENT)).items():
            with subtests.test(name=name):
                page = one.result()
                assert "late words" in page.text
                assert page.settled


RESTLESS = {
    "a style": "setInterval(() => { root.style.left = `${n++}px` }, 30)",
    "an attribute": "setInterval(() => { root.dataset.n = n++ }, 30)",
    "words that are typed and deleted": "setInterval(() => {"
    " root.textContent = 'some words '.slice(0, n++ % 12) }, 50)",
    "a clock": "setInterval(() => { root.textContent = `${n++} s` }, 30)",
    "an element": "setInterval(() => root.replaceChildren(document.createElement('b')), 30)",
    "frames": "const next = () => { root.title = n++; requestAnimationFrame(next) }; next()",
}


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_changes_without_end_and_without_more_text_hold_up_no_page(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    made_of = {
        name: f"{PROSE}<i id=root>0</i><script>let n = 0; {script}</script>"
        for name, script in RESTLESS.items()
    }
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for name, one in (await made.taken(made_of, pages, PATIENT)).items():
            with subtests.test(name=name):
                page = one.result()
                assert page.settled
                assert "came with the markup" in page.text


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_a_page_that_grows_beside_an_animation_is_read_when_it_is_whole(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = (
        f"{PROSE}<i id=root>0</i><script>let n = 0; setInterval(() => root.title = n++, 30);"
        "let parts = 0; const grow = () => { if (parts++ === 24) return;"
        " document.body.insertAdjacentHTML('beforeend', `<p>part ${parts} of the page</p>`);"
        " setTimeout(grow, 250) }; grow()</script>"
    )
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert "part 24 of the page" in page.text
    assert page.settled


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_an_answer_is_waited_for_beside_an_animation(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = (
        f"{PROSE}<i id=root>0</i><script>let n = 0; setInterval(() => root.title = n++, 30);"
        "fetch('/late').then((a) => a.text()).then((t) => document.body.append(t))</script>"
    )
    pages["/late"] = Answer(b"the late words", delay_s=6)
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert "the late words" in page.text
    assert page.settled


STYLED = (
    "<style>.shown { display: block !important } .unseen { visibility: hidden }"
    " .seen { visibility: visible }</style>"
    "<p hidden class=shown>shown one</p><p style='display: none' class=shown>shown two</p>"
    "<div style='visibility: hidden'>unseen one <p class=seen>shown three</p></div>"
    "<div class=unseen>unseen two <b class=seen>shown four</b> unseen three</div>"
    "<a href=/x class=unseen>unseen four</a><template>unseen five</template>"
    "<p style='display: none'>unseen six</p><p hidden>unseen seven</p>"
    "<noscript>unseen eight</noscript>"
)
SHADOW = "<x-a></x-a><script>document.querySelector('x-a').attachShadow({ mode: 'open' })</script>"


@BOTH_CONNECTIONS
@pytest.mark.parametrize("more", ["", SHADOW], ids=["plain", "beside a shadow root"])
async def test_all_outputs_have_what_is_displayed(
    browsing: Making, pages: Pages, direct: bool, more: str
) -> None:
    """Attributes and styles of elements say something else than the style sheet."""
    pages["/"] = STYLED + more
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    forms: tuple[OutputFormat, ...] = ("text", "markdown", "structured")
    for output in forms:
        found = extract_now(page, output).content
        content = found if isinstance(found, str) else str(found["blocks"])
        assert content.count("shown") >= 4, output
        assert "unseen" not in content, output


SEPARATED = (
    "<style>.b { display: block } .flex { display: flex } .grid { display: grid }"
    " .t { display: table } .tr { display: table-row } .td { display: table-cell }"
    " my-card { display: block } .left { float: left } .over { position: absolute }</style>"
    "<a href=/x><span class=b>one</span><span class=b>two</span></a>"
    "<div class=flex><span>three</span><span>four</span></div>"
    "<div class=grid><b>five</b><i>six</i></div>"
    "<div class=t><i class=tr><span class=td>seven</span><span class=td>eight</span></i></div>"
    "<my-card>nine</my-card><my-card>ten</my-card>"
    "<p>in<b>side</b><i>words</i></p>"
    "<p>t<i class=left>o</i><b class=over>gether</b></p>"
    "<p class=flex><b>l</b><b>e</b><b>t</b><b>t</b><b>e</b><b>r</b></p>"
    "<p style='visibility: hidden'><a href=/menu>unseen</a><img src=/i alt=unseen></p>"
    "<pre><code>x = <i class=over></i>1\n"
    "<span class=b>y = <br></span><span class=b>z = 2</span>\n</code></pre>"
    "<pre><code><span class=b>first line</span><span class=b>second line</span>\n"
    "<span class=b>third line</span></code></pre>"
)


@BOTH_CONNECTIONS
@pytest.mark.parametrize("more", ["", SHADOW], ids=["plain", "beside a shadow root"])
async def test_words_that_styles_separate_are_not_glued_in_markup(
    browsing: Making, pages: Pages, direct: bool, more: str
) -> None:
    pages["/"] = SEPARATED + more
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    forms: tuple[OutputFormat, ...] = ("markdown", "structured")
    for form in forms:
        found = extract_now(page, form).content
        content = found if isinstance(found, str) else str(found["blocks"])
        words = re.findall("[a-z]+", content)
        wanted = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        assert [word for word in words if word in wanted] == wanted, form
        assert "inside" in content.replace("*", ""), form
        assert "together" in content.replace("*", ""), form
        assert "letter" in content.replace("*", ""), form
        assert "unseen" not in content, form
        assert "/menu" not in content, form
        assert re.search(r"x = 1(\n|\\n)y = (\n|\\n)z = 2", content), form
        assert re.search(r"first line(\n|\\n)second line(\n|\\n)third line\b", content), form
