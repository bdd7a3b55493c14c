"""Pages with a `beforeunload` question: a task leaves them, or stays when configured."""

from __future__ import annotations

from typing import Any

import pytest

from engine.browser.interact import command_tools
from engine.browser.interact.command_tools import KEPT
from engine.kinds.commands.command_check import check
from engine.model.errors import InvalidArguments
from fixtures.site.site import Site
from tests.commands.conftest import Opening, do, failure, mistakes, results, task
from tests.commands.test_command_journeys import page

ASKS = "<script>addEventListener('beforeunload', (event) => event.preventDefault())</script>"
EDITOR = f"""<h1>Editor</h1><button id=edit type=button>edit</button>
<form id=form action=/saved><input id=field name=draft value=Ada>
<button id=save>Save</button></form>
<a id=link href='/saved?draft=Ada'>go</a>
<button id=script onclick="location.href = '/saved?draft=Ada'">go</button>
<button id=later onclick="setTimeout(() => document.forms[0].submit(), 20)">later</button>
<select id=choose onchange="document.forms[0].submit()"><option>a<option>b</select>{ASKS}"""
SAVED = page("<h1 id=saved>Saved</h1>")
# Where a way leads to `/saved?draft=Ada`, the server must be asked for that.
WAYS: dict[str, list[dict[str, Any]]] = {
    "goto": [do("goto", url="{url}/saved?draft=Ada")],
    "link": [do("click", selector="#link")],
    "form": [do("click", selector="#save")],
    "Enter in a field": [do("press", selector="#field", key="Enter")],
    "Enter": [do("click", selector="#field"), do("keyboard", key="Enter")],
    "choice": [do("select", selector="#choose", value="b")],
    "script of a button": [do("click", selector="#script")],
    "script": [do("evaluate", script="location.href = '/saved?draft=Ada'; 1")],
    "script that sends the form": [do("evaluate", script="form.submit()")],
    "later": [do("click", selector="#later")],
}


# Ways that lead elsewhere, with what stands there.
AWAY: dict[str, tuple[list[dict[str, Any]], str]] = {
    "reload": ([do("reload")], "#edit"),
    "back": ([do("back")], "#first"),
    "back by a script": ([do("evaluate", script="history.back()")], "#first"),
    "forward": ([do("forward")], "#saved"),
}


def there(site: Site) -> list[dict[str, Any]]:
    """To the editor, between two other pages, with a click that makes it ask before it is left."""
    return [
        do("goto", url=f"{site.url}/first"),
        do("goto", url=f"{site.url}/editor"),
        do("goto", url=f"{site.url}/forward"),
        do("back"),
        do("click", selector="#edit"),
    ]


def way(site: Site, name: str) -> list[dict[str, Any]]:
    made = [{**one, "args": dict(one["args"])} for one in WAYS[name]]
    for one in made:
        if "url" in one["args"]:
            one["args"]["url"] = one["args"]["url"].replace("{url}", site.url)
    return made


@pytest.fixture
def editor(site: Site) -> Site:
    site.answers["/editor"] = page(EDITOR)
    site.answers["/saved"] = SAVED
    site.answers["/forward"] = SAVED
    site.answers["/first"] = page("<h1 id=first>First</h1>")
    return site


@pytest.mark.case("R69")
async def test_beforeunload_dialogs_do_not_block_navigation(opened: Opening, editor: Site) -> None:
    async with opened() as booth:
        for name in WAYS:
            before = editor.hits["/saved"]
            done = await results(
                booth, *there(editor), *way(editor, name), do("wait_for", selector="#saved")
            )
            assert editor.hits["/saved"] == before + 1, name
            told = [one for each in done for one in each.get("dialogs", ())]
            assert {one["answer"] for one in told} == {"accepted"}, name
            if name != "later":  # nothing waits for what a page does by itself
                await results(booth, *there(editor), *way(editor, name))
                assert editor.hits["/saved"] == before + 2, f"{name}, as the last command"


async def test_history_and_closing_skip_beforeunload(opened: Opening, editor: Site) -> None:
    async with opened() as booth:
        for name, (commands, selector) in AWAY.items():
            done = await results(
                booth, *there(editor), *commands, do("wait_for", selector=selector)
            )
            told = [one["type"] for each in done for one in each.get("dialogs", ())]
            assert set(told) == {"beforeunload"}, name
        closed = await results(booth, *there(editor), do("new_tab"), do("close_tab", tab=0))
    assert closed[-1] == {"closed": True, "url": f"{editor.url}/editor", "tabs": 1}


@pytest.mark.thorough
async def test_dialogs_set_to_stay_fail_the_navigation(
    opened: Opening, editor: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_tools, "ASKED_MS", 1_000)  # a crowded machine asks late
    ways = {name: way(editor, name) for name in WAYS if name != "later"}
    ways |= {name: commands for name, (commands, _) in AWAY.items()}
    ways["close"] = [do("close_tab")]
    stay = do("dialog", answer="stay")
    async with opened() as booth:
        for name, commands in ways.items():
            said = await failure(booth, *there(editor), stay, *commands)
            assert said == ("EXECUTION_ERROR", KEPT), name
        stay = do("dialog", answer="stay", expected=True)
        heading = do("get_text", selector="h1")
        *_, clicked, last = await results(booth, *there(editor), stay, *ways["link"], heading)
        assert clicked["dialogs"][0]["answer"] == "dismissed"
        assert last["text"] == "Editor"
        goto, click = do("goto", url=f"{editor.url}/editor"), do("click", selector="#edit")
        said = await failure(booth, goto, click, *ways["link"], dialogs="stay")
        assert said == ("EXECUTION_ERROR", KEPT)
    assert not editor.hits["/saved"]


async def test_a_page_without_beforeunload_is_left(opened: Opening, editor: Site) -> None:
    async with opened() as booth:
        await results(
            booth,
            do("goto", url=f"{editor.url}/first"),
            do("reload"),
            do("new_tab", url=f"{editor.url}/forward"),
            do("close_tab"),
            dialogs="stay",
        )


def test_what_a_task_may_say_of_leaving_is_checked() -> None:
    odd = do("dialog", answer="leave", expected=True)
    with pytest.raises(InvalidArguments) as raised:
        check(task(odd, do("dialog", answer="stay", text="a"), dialogs="never"))
    assert mistakes(raised.value) == {
        "dialogs": "invalid_value",
        "commands[0].args.expected": "contradiction",
        "commands[1].args.text": "contradiction",
    }
