"""Rules of single actions that the journeys do not cover."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.browser.chromium import browser_instance
from engine.browser.interact import command_pages
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Opening, do, failure, results
from tests.commands.test_command_journeys import page, too_late

POINTED = """<style>div { width: 80px; height: 80px } #slot { position: absolute; left: 500px;
top: 300px; width: 6px; height: 6px }</style><div id=knob>knob</div><div id=slot></div>
<pre id=log></pre><script>
const say = (text) => { log.textContent += text + " " };
let from = 0;
knob.onpointerdown = (event) => { from = event.clientY };
onpointerup = (event) => say(event.clientY - from);
</script>"""


async def test_a_drag_presses_moves_and_releases(opened: Opening, site: Site) -> None:
    site.answers["/pointed"] = page(POINTED)
    card = "<div id=card draggable=true>card</div>"
    drops = "slot.ondragover = (event) => { over += 1; event.preventDefault() }"
    body = f"{card}<div id=slot></div><pre id=log></pre><script>let over = 0; {drops};"
    body += "slot.ondrop = () => { log.textContent = over > 1 ? 'dropped' : 'too soon' }</script>"
    site.answers["/drops"] = page(POINTED.partition("</style>")[0] + "</style>" + body)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/pointed"),
            do("drag", selector="#knob", y=120),
            do("get_text", selector="#log"),
            do("goto", url=f"{site.url}/drops"),
            do("drag", selector="#card", target="#slot"),
            do("get_text", selector="#log"),
        )
    assert [done[at]["text"] for at in (2, 5)] == ["120", "dropped"]


async def test_fields_with_secret_keys_are_masked(opened: Opening, site: Site) -> None:
    site.answers["/field"] = page("<input id=name>")
    pictures = []
    async with opened() as booth:
        for key in "iW":
            await results(
                booth,
                do("goto", url=f"{site.url}/field"),
                do("press", selector="#name", key=key),
                do("screenshot"),
            )
            (path,) = booth.home.glob("tasks/*/artifacts/command-003.png")
            pictures.append(path.read_bytes())
            path.unlink()
    assert pictures[0] == pictures[1]


async def test_the_limit_of_an_upload_is_that_of_all_its_files(
    opened: Opening, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_pages, "MAX_BYTES", 8)
    (tmp_path / "a.txt").write_text("first")
    site.answers["/form"] = page("<input type=file multiple>")
    goto = do("goto", url=f"{site.url}/form")
    async with opened(allow_files=tmp_path) as booth:
        await results(booth, goto, do("upload", selector="input", files="a.txt"))
        twice = do("upload", selector="input", files=["a.txt", "a.txt"])
        code, said = await failure(booth, goto, twice)
    assert (code, said) == ("EXECUTION_ERROR", "a.txt: more than 50 MiB at once")


HIDDEN = (
    "<p id=in>in here</p><p id=out>out</p><p hidden>secret words</p><p hidden>both</p><p>both</p>"
)


async def test_wait_for_text_finds_named_and_visible_text(opened: Opening, site: Site) -> None:
    site.answers["/hidden"] = page(HIDDEN)
    site.answers["/never"] = Answer(stops="before")
    site.answers["/busy"] = page("busy<script>fetch('/never')</script>")
    goto = do("goto", url=f"{site.url}/hidden")
    async with opened() as booth:
        both = do("wait_for", text="both")  # the first of them is hidden, the second is not
        await results(booth, goto, do("wait_for", selector="#in", text="in here"), both)
        elsewhere = do("wait_for", selector="#out", text="in here")
        await too_late(booth, goto, elsewhere, "(it is not there or hidden)")
        unseen = do("wait_for", text="secret words")
        await too_late(booth, goto, unseen, "(it is not there or hidden)")
        busy = do("goto", url=f"{site.url}/busy")
        idle = do("wait_for", load_state="networkidle")
        await too_late(booth, busy, idle, "networkidle")


TABS = """<title>Opener</title><a id=one href=/wing1 target=_blank>one</a>
<a id=two href=/wing2 target=_blank>two</a>
<a id=late href=/wing3 target=_blank>late</a>"""
LATE = b"<title>Wing</title><script>setTimeout(() => { document.title = 'Late' }, 700)</script>"


async def test_of_several_tabs_the_newest_is_meant_also_one_whose_title_is_yet_to_come(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answers["/opener"] = Answer(TABS.encode())
    site.answers["/wing1"] = site.answers["/wing2"] = Answer(b"<title>Wing</title>")
    site.answers["/wing3"] = Answer(LATE)
    monkeypatch.setattr(command_pages, "MAX_TABS", 4)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/opener"),
            do("click", selector="#one"),
            do("switch_tab", tab="**/wing1"),
            do("switch_tab", tab="Opener"),
            do("click", selector="#two"),
            do("switch_tab", tab="**/wing2"),
            do("switch_tab", tab=0),
            do("switch_tab", tab="Wing"),
            do("switch_tab", tab=0),
            do("click", selector="#late"),
            do("switch_tab", tab="Late"),
        )
        assert [done[at]["tab"] for at in (2, 7, 10)] == [1, 2, 3]
        several = [do("new_tab")] * 3
        said = await failure(booth, do("goto", url=f"{site.url}/opener"), *several, do("new_tab"))
    assert said == ("EXECUTION_ERROR", "too many tabs are open; close one first")


async def test_of_many_dialogs_a_few_are_told(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_instance, "MAX_KEPT", 2)
    site.answers["/asks"] = page("<button onclick='for (const n of [1, 2, 3]) alert(n)'>x</button>")
    async with opened() as booth:
        _, done = await results(
            booth, do("goto", url=f"{site.url}/asks"), do("click", selector="button")
        )
    assert [one["message"] for one in done["dialogs"]] == ["1", "2"]


async def test_frame_readers_report_a_missing_element(opened: Opening, site: Site) -> None:
    site.answers["/plain"] = page("<h1>plain</h1>")
    async with opened() as booth:
        goto = do("goto", url=f"{site.url}/plain")
        said = await failure(booth, goto, do("get_html", frame="h1"))
    assert said == ("EXECUTION_ERROR", "the frame selector met an element that is no frame")


async def test_expected_texts_ignore_differences_of_whitespace(opened: Opening, site: Site) -> None:
    site.answers["/pre"] = page("<pre>All\n   done</pre>")
    async with opened() as booth:
        goto = do("goto", url=f"{site.url}/pre")
        await results(booth, goto, do("expect", selector="pre", text="All done"))
