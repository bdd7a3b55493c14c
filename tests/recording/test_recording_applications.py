"""Recordings of real applications replay without manual changes."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recording.applications import made, missing
from tests.recording.conftest import Operator
from tests.recording.test_recording_export import exported, replayed, state_of
from tests.recording.trap_pages import served

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "they are there")


@pytest.fixture(scope="module")
def applications(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("applications")
    made(folder)
    with served({}, folder) as url:
        yield url


async def todo(operator: Operator) -> None:
    for text in ("Buy milk", "Walk the dog", "Call Ada"):
        await operator.type(".new-todo", text)
        await operator.page.keyboard.press("Enter")
    await operator.click("li:nth-of-type(2) .toggle")
    await operator.page.locator("li:nth-of-type(1) label").dblclick()
    await operator.page.keyboard.press("End")
    await operator.page.keyboard.type(" and bread")
    await operator.page.keyboard.press("Enter")
    await operator.click("text=Active")
    await operator.click("li:has-text('Ada') .toggle")
    await operator.click("text=All")
    await operator.page.locator("li:nth-of-type(2)").first.hover()
    await operator.click("li:nth-of-type(2) .destroy")
    await operator.heard()


async def radix(operator: Operator) -> None:
    await operator.click("text=billing >> nth=0")
    await operator.click("text=Edit")
    await operator.type("[name=name]", "Ada")
    await operator.click("[role=checkbox]")
    await operator.click("[role=combobox]")
    await operator.click("[role=option]:has-text('de')")
    await operator.click("text=Save")
    await operator.heard()


async def modal(operator: Operator) -> None:
    await operator.click("text=More")
    await operator.click("text=Rename >> nth=0")
    await operator.type("#m1 .form-control", "Better")
    await operator.click("text=Everywhere")
    await operator.click("#m1 .ok")
    await operator.page.locator(".modal-backdrop").wait_for(state="detached")
    await operator.click("text=More")
    await operator.click("text=Delete >> nth=0")
    await operator.click("#m2 .ok")
    await operator.page.locator(".modal-backdrop").wait_for(state="detached")
    await operator.heard()


async def quill(operator: Operator) -> None:
    await operator.click(".ql-editor")
    keys = operator.page.keyboard
    await keys.type("Notes of today")
    await keys.press("Enter")
    await keys.type("plain ")
    await operator.click(".ql-bold")
    await keys.type("bold")
    await keys.press("Control+b")
    await keys.type(" end")
    await keys.press("Enter")
    await operator.click(".ql-list[value=bullet]")
    await keys.type("one")
    await keys.press("Enter")
    await keys.type("twoo")
    await keys.press("Backspace")
    await operator.heard()


async def table(operator: Operator) -> None:
    await operator.click(".tabulator-row:has-text('Jones') input")
    await operator.page.locator(".tabulator-cell:has-text('Smithson')").dblclick()
    await operator.page.keyboard.press("Control+a")
    await operator.page.keyboard.type("Miller")
    await operator.page.keyboard.press("Enter")
    await operator.click(".tabulator-row:has-text('Baker') .tabulator-cell >> nth=3")
    await operator.click(".tabulator-col:has-text('Name')")
    await operator.click(".tabulator-row:has-text('Baker') input")
    await operator.heard()


TYPED = {
    "todo": ["Buy milk", "Walk the dog", "Call Ada", "Buy milk and bread"],
    "radix": ["Ada"],
    "modal": ["Better"],
    "quill": ["Notes of today\nplain ", "bold", " end\n", "one\ntwo"],
    "table": ["Miller"],
}
FADED = {  # the state is compared once Bootstrap's dialogs have faded out
    "tool_name": "browser_navigate",
    "intention": "Wait",
    "args": {"action": "wait_for", "gone": ".modal-backdrop"},
}
END = {
    "todo": "Buy milk and bread",
    "radix": "billing Ada, true, de",
    "modal": "Rename it Better true; Delete it",
    "quill": '{\\"attributes\\":{\\"bold\\":true},\\"insert\\":\\"bold\\"}',
    "table": '[\\"Jones\\",\\"Baker\\"]',
}


@pytest.mark.parametrize("script", [todo, radix, modal, quill, table], ids=lambda one: one.__name__)
async def test_a_recording_of_a_real_application_is_done_again_with_the_same_end(
    recording: Any, applications: str, tmp_path: Path, script: Callable[[Operator], Awaitable[None]]
) -> None:
    name = script.__name__
    async with recording(f"{applications}/{name}.html") as running:
        await script(running.operator)
        wanted = await state_of(running.operator.page)
        await running.stop()
        if "RECORDING_SHOW" in os.environ:
            print(json.dumps(running.result()["actions"], indent=1))
        assert END[name] in json.dumps(wanted)
        task = exported(running, tmp_path)
        assert "notReplayed" not in task["metadata"]
        known = [one["name"] for one in task["metadata"].get("variables", ())]
        given = dict(zip(known, TYPED[name], strict=True))
        commands = [*task["commands"], FADED]
        assert await replayed(running, {**task, "commands": commands, "variables": given}) == wanted
