"""Pages that change under the mouse: an element is named as it was when the button went down."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.recording.recording_export import command_task
from tests.recording.conftest import Operator
from tests.recording.test_recording_export import exported, replayed, state_of
from tests.recording.trap_pages import PAGES, served


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served(PAGES) as url:
        yield url


async def use_the_list(operator: Operator) -> None:
    for text in ("Buy milk", "Walk the dog", "Call Ada"):
        await operator.type(".new-todo", text)
        await operator.page.keyboard.press("Enter")
    await operator.click("li:nth-of-type(2) .toggle")
    await operator.page.locator("li:nth-of-type(1) label").dblclick()
    await operator.page.keyboard.type(" and bread")
    await operator.page.keyboard.press("Enter")
    await operator.click("text=Active")
    await operator.click("li:has-text('Ada') .toggle")  # goes away with the click
    await operator.recorded("check", 2)


async def test_checkboxes_keep_their_former_name(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/todo") as running:
        await use_the_list(running.operator)
        await running.stop()
        actions = running.result()["actions"]
    entry = "{{what_needs_to_be_done"
    assert [(one["selector"], one["on"]) for one in actions if one["type"] == "check"] == [
        (f'li:has(:text-is("{entry}_2}}}}")) >> role=checkbox', True),
        (f'li:has(:text-is("{entry}_3}}}}")) >> role=checkbox', True),
    ]
    double = [one for one in actions if one["type"] == "click" and one.get("count") == 2]
    assert [one["selector"] for one in double] == [f'text="{entry}}}}}"']


async def test_elements_removed_on_press_are_clicked(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/tabs") as running:
        await use_the_tabs(running.operator)
        await running.stop()
        actions = running.result()["actions"][1:]
    assert [one["selector"] for one in actions] == [
        'role=tab[name="Billing"]',
        'role=button[name="Choose"]',
        'text="blue"',
    ]
    assert not [one for one in actions if "+9" in str(one) or "r1" in str(one)]


async def use_the_tabs(operator: Operator) -> None:
    await operator.click("text=Billing")
    await operator.click("text=Choose")
    await operator.click("text=blue")
    await operator.recorded("click", 3)


async def use_the_modals(operator: Operator) -> None:
    await operator.click("text=Settings")
    await operator.click("b >> nth=0")
    await operator.page.locator("select").focus()
    await operator.page.keyboard.press("ArrowDown")
    await operator.click(".close >> nth=0")
    await operator.click("#other")
    await operator.click("b >> nth=1")
    await operator.click(".close >> nth=1")
    await operator.page.locator("#said").click(button="right")
    await operator.recorded("click", 5)


async def use_the_editor(operator: Operator) -> None:
    await operator.click(".editor")
    keys = operator.page.keyboard
    await keys.type("# Titel")
    await keys.press("Enter")
    await keys.type("plain wrog")
    await keys.press("Backspace")
    await keys.type("ng ")
    await keys.press("Control+b")
    await keys.insert_text("über")
    await keys.press("Control+b")
    await keys.type(" end")
    await keys.press("Home")
    await keys.type("so ")
    await operator.heard()


async def use_what_shows_under_the_mouse(operator: Operator) -> None:
    locate, mouse = operator.page.locator, operator.page.mouse
    await mouse.move(1, 1)
    await locate("#more").hover()
    await operator.click("text=Rename")
    await locate("b >> text=Bread").hover()
    await operator.click(".destroy:visible")
    await mouse.move(1, 1)
    await locate("nav > li").hover()
    await locate("text=Export").hover()
    await operator.click("text=As PDF")
    await operator.recorded("navigated")
    await operator.recorded("click", 3)


async def test_a_needed_hover_is_recorded_before_the_click(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/hover") as running:
        await use_what_shows_under_the_mouse(running.operator)
        await running.operator.click("h1")
        await running.operator.recorded("click", 4)
        await running.stop()
        actions = running.result()["actions"][1:]
    did = [(one["type"], one.get("selector")) for one in actions if one["type"] != "navigated"]
    assert did == [
        ("hover", 'role=button[name="More"]'),
        ("click", 'role=button[name="Rename"]'),
        ("hover", 'li:has(:text-is("Bread"))'),
        ("click", 'role=button[name="x"]'),
        ("hover", 'text="File"'),
        ("hover", 'text="Export"'),
        ("click", 'role=link[name="As PDF"]'),
        ("click", 'role=heading[name="Hover"]'),
    ]


async def drag_things(operator: Operator) -> None:
    mouse = operator.page.mouse
    await operator.page.locator("text=Milk").drag_to(operator.page.locator("text=Bread"))
    for x, y, to_x, to_y in ((60, 240, 500, 330), (10, 404, 134, 404)):
        await mouse.move(x, y)
        await mouse.down()
        await mouse.move(to_x, to_y, steps=5)
        await mouse.up()
    await operator.click("h1")
    await operator.recorded("click")


BREAD = "li:nth-of-type(2)"


async def test_a_drag_goes_to_what_lay_under_it_else_by_pixels(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/drag") as running:
        await drag_things(running.operator)
        await running.stop()
        actions = running.result()["actions"][1:]
    assert [one["type"] for one in actions] == ["drag", "drag", "drag", "click"]
    assert [one.get("target") for one in actions[:3]] == ['text="Bread"', 'text="Zone"', None]
    assert (actions[2]["dx"], actions[2].get("dy", 0)) == (124, 0)
    others = [one.get("target_alternatives") for one in actions[:3]]
    assert others == [
        [BREAD, f"body > ul > {BREAD}"],
        ["div.zone", "body > div:nth-of-type(2)"],
        None,
    ]
    task = command_task({}, actions)
    assert task is not None
    made = [one["args"].get("target_alternatives") for one in task["commands"][:3]]
    assert made == others


TYPED = {
    "todo": ["Buy milk", "Walk the dog", "Call Ada", "Buy milk and bread"],
    "editor": ["# Titel\nplain wrong ", "über", " end", "so "],
}


END = {
    "drag": "Milk on Bread; in the zone; at 124",
    "hover": "renamed without Bread #pdf",
    "todo": "Buy milk and bread",
    "tabs": "Settings of Billing",
    "modal": "closed Settings true 1a2b3c4d5e6f closed Account true menu",
    "editor": "<h2>Titel</h2><p>so plain wrong <b>über</b>&nbsp;end</p>",
}


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("todo", use_the_list),
        ("tabs", use_the_tabs),
        ("modal", use_the_modals),
        ("editor", use_the_editor),
        ("drag", drag_things),
        ("hover", use_what_shows_under_the_mouse),
    ],
)
async def test_what_an_operator_did_on_a_page_with_traps_is_done_again_with_the_same_end(
    recording: Any,
    pages: str,
    tmp_path: Path,
    name: str,
    script: Callable[[Operator], Awaitable[None]],
) -> None:
    async with recording(f"{pages}/{name}") as running:
        await script(running.operator)
        wanted = await state_of(running.operator.page)
        assert END[name] in json.dumps(wanted, ensure_ascii=False)
        await running.stop()
        task = exported(running, tmp_path)
        assert "notReplayed" not in task["metadata"]
        known = [one["name"] for one in task["metadata"].get("variables", ())]
        given = dict(zip(known, TYPED.get(name, ()), strict=True))
        assert await replayed(running, {**task, "variables": given}) == wanted
