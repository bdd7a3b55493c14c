"""Several tabs in one task, windows that pages open, and configured answers to dialogs."""

from __future__ import annotations

from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Opening, do, failure, results
from tests.commands.test_command_journeys import page, too_late

OPENER = """<title>Opener</title><a id=blank href=/popup target=_blank>popup</a>
<button id=script onclick="window.open('/popup?by=script')">open</button>
<a id=private href='http://127.0.0.1:{port}/' target=_blank>private</a><p id=out>opener</p>"""
POPUP = Answer(b"<!doctype html><title>Popup</title><p id=out>popup</p>")


async def test_a_window_opened_by_a_click_is_a_tab(opened: Opening, site: Site) -> None:
    site.answers["/opener"] = Answer(OPENER.format(port=9).encode())
    site.answers["/popup"] = site.answers["/popup?by=script"] = POPUP
    out = do("get_text", selector="#out")
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/opener"),
            do("click", selector="#blank"),
            out,
            do("switch_tab", tab="Popup"),
            out,
            do("click", selector="#out"),
            do("switch_tab", tab=0),
            do("click", selector="#script"),
            do("switch_tab", tab="**by=script"),
            do("tabs"),
            do("close_tab"),
            do("switch_tab", tab="Opener"),
            out,
            do("new_tab", url=f"{site.url}/static/1"),
            do("close_tab", tab="1"),
            do("tabs"),
        )
    assert [done[at]["text"] for at in (2, 4, 12)] == ["opener", "popup", "opener"]
    assert done[3] == {"tab": 1, "url": f"{site.url}/popup", "title": "Popup"}
    assert [(one["title"], one.get("current")) for one in done[9]["tabs"]] == [
        ("Opener", None),
        ("Popup", None),
        ("Popup", True),
    ]
    address = f"{site.url}/popup?by=script"
    assert done[10] == {"closed": True, "url": address, "tabs": 2}
    assert done[13]["status"] == 200
    assert [one["title"] for one in done[15]["tabs"]] == ["Opener", "Field notes 1"]


async def test_the_policy_applies_to_new_tabs(opened: Opening, site: Site) -> None:
    with Site() as other:
        port = other.port
        # Put together in the page: an address that stands in a task may be opened.
        site.answers["/opener"] = Answer(OPENER.format(port=port).encode())
        leave = f"location.href = 'http://127.0.0.1:' + {port}; 1"
        async with opened() as booth:
            await booth.run(
                do("goto", url=f"{site.url}/opener"),
                do("click", selector="#private"),
                do("evaluate", script=f"open('http://127.0.0.1:' + {port}); 1"),
                do("new_tab", url=f"{site.url}/opener"),
                do("evaluate", script=leave),
                do("wait_for", selector="#never", timeout=700),
            )
        assert not other.log


async def test_without_a_word_of_tabs_a_page_opens_no_window(opened: Opening, site: Site) -> None:
    site.answers["/opener"] = Answer(OPENER.format(port=9).encode())
    site.answers["/popup"] = POPUP
    async with opened() as booth:
        *_, status = await results(
            booth,
            do("goto", url=f"{site.url}/opener"),
            do("click", selector="#script"),
            do("get_text", selector="#out"),
            do("status"),
        )
    assert len(status["pages"]) == 1
    assert not site.hits["/popup"]


async def test_a_tab_that_is_not_there_is_told(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        goto = do("goto", url=f"{site.url}/static/1")
        why = "Nowhere (no tab has this number, title or address)"
        await too_late(booth, goto, do("switch_tab", tab="Nowhere"), why)
        closing = await failure(booth, goto, do("close_tab", tab=4))
        assert closing == ("EXECUTION_ERROR", "no tab has this number, title or address")


ASKS = """<button id=ask onclick="out.textContent = confirm('Delete Ada?')">ask</button>
<button id=name onclick="out.textContent = prompt('Who?', 'Bob')">name</button><p id=out></p>
<script>onbeforeunload = (event) => event.preventDefault()</script>"""


async def test_dialogs_are_answered_and_recorded(opened: Opening, site: Site) -> None:
    site.answers["/asks"] = page(ASKS)
    out = do("get_text", selector="#out")
    async with opened(environ={"WHO": "correct-horse"}) as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/asks"),
            do("click", selector="#ask"),
            out,
            do("dialog", answer="accept"),
            do("click", selector="#ask"),
            out,
            do("click", selector="#name"),
            out,
            do("dialog", answer="accept", text={"secret": "env:WHO"}),
            do("click", selector="#name"),
            out,
            do("goto", url=f"{site.url}/static/1"),
        )
        asked = {"type": "confirm", "message": "Delete Ada?"}
        assert done[1]["dialogs"] == [{**asked, "answer": "dismissed"}]
        assert done[4]["dialogs"] == [{**asked, "answer": "accepted"}]
        assert [done[at]["text"] for at in (2, 5, 7, 10)] == ["false", "true", "Bob", "[redacted]"]
        assert done[11]["dialogs"][0]["type"] == "beforeunload"
