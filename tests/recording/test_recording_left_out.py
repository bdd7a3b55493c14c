"""Actions without a replay are named in the result and in the export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.text.words import remarks
from tests.recording.test_recording_export import exported
from tests.recording.trap_pages import served

STYLE = "#zone:hover b { display: inline }"
PAGE = """<link rel="stylesheet" href="http://{host}/style.css">
<h1>Left out</h1><script>window.open("/by-itself")</script>
<a href="/left" target="_blank">Details</a>
<button onclick="window.open('/left?token=a')">Print</button>
<div id="zone" style="width:200px;height:80px" ondragover="event.preventDefault()"
  ondrop="event.preventDefault()">Drop here</div>"""
ROWS = """<style>.row * { display: none } .row:hover * { display: inline }</style>
<h1>Rows</h1><div class="row" id="first">Milk
<select id="many"><option>one<option>two</select><button>Rename</button></div>"""

NOTHING = """<h1>Nothing</h1><input type="checkbox" id="own"> <button id="toggle"
onclick="document.querySelector('#own').click()">Toggle</button>
<input type="checkbox" id="refused" onclick="event.preventDefault()">
<p><button id="thin" style="height:20px">Thin</button></p><p>Below</p>"""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served({"style.css": STYLE}) as sheets:
        host = sheets.removeprefix("http://")
        with served(
            {"left": PAGE.replace("{host}", host), "rows": ROWS, "nothing": NOTHING}
        ) as url:
            yield url


async def test_unopened_windows_are_named(recording: Any, pages: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("n")
    async with recording(f"{pages}/left") as running:
        operator = running.operator
        await operator.click("text=Details")
        await operator.click("text=Print")
        await operator.recorded("window", 2)
        await drop(operator.page, "#zone", tmp_path / "notes.txt")
        await operator.heard()
        await running.stop()
        result, task = running.result(), exported(running, tmp_path)
    windows = [one for one in result["actions"] if one["type"] == "window"]
    assert [one["asked"].removeprefix(pages) for one in windows] == [
        "/left",
        "/left?token=[redacted]",
    ]
    (dropped,) = [one for one in result["actions"] if one["type"] == "drop"]
    assert (dropped["files"], dropped["selector"]) == (["notes.txt"], "#zone")
    assert result["windows_refused"] == 2
    assert remarks(result) == ["2 windows did not open: a recording without a window opens none"]
    said = {one["action"]: one["why"] for one in task["metadata"]["notReplayed"]}
    assert [said[one["n"]].split(",")[0] for one in (*windows, dropped)] == [
        "it opened a window",
        "it opened a window",
        "files were dropped onto the page",
    ]


async def test_unreadable_sheets_are_noted_once(recording: Any, pages: str, tmp_path: Path) -> None:
    async with recording(f"{pages}/left") as running:
        operator = running.operator
        await operator.click("#zone")
        await operator.page.reload()
        await operator.click("#zone")
        await operator.recorded("click", 2)
        await running.stop()
        actions, task = running.result()["actions"], exported(running, tmp_path)
    clicks = [one for one in actions if one["type"] == "click"]
    (host,) = clicks[0]["unread"]
    assert host.startswith("127.0.0.1:")
    assert "unread" not in clicks[1]
    (said,) = task["metadata"]["notReplayed"]
    assert said["action"] == clicks[0]["n"]
    assert host in said["why"]


async def test_hover_precedes_a_choice_in_a_menu(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/rows") as running:
        operator = running.operator
        await operator.page.locator("#first").hover()
        await operator.click("#many")
        await operator.page.keyboard.press("ArrowDown")
        await operator.page.keyboard.press("Enter")
        await operator.recorded("select")
        await running.stop()
        actions = running.result()["actions"][1:]
    assert [(one["type"], one["selector"]) for one in actions][:2] == [
        ("hover", "#first"),
        ("select", "#many"),
    ]


async def test_a_double_click_has_one_hover(recording: Any, pages: str, tmp_path: Path) -> None:
    async with recording(f"{pages}/rows") as running:
        operator = running.operator
        await operator.page.locator("#first").hover()
        await operator.page.locator("#first button").dblclick()
        await operator.heard()
        await running.stop()
        task = exported(running, tmp_path)
    did = [(one["args"]["action"], one["args"].get("count")) for one in task["commands"]]
    assert did[1:3] == [("hover", None), ("click", 2)]


async def test_scripted_or_empty_changes_are_no_action(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/nothing") as running:
        operator, mouse = running.operator, running.operator.page.mouse
        await operator.click("#own")
        await operator.click("#toggle")  # a script checks the box that a hand had checked
        await operator.click("#refused")
        box = await operator.page.locator("#thin").bounding_box()
        await mouse.move(box["x"] + 10, box["y"] + 17)
        await mouse.down()
        await mouse.move(box["x"] + 10, box["y"] + 25)  # let go beside it, and not dragged
        await mouse.up()
        await operator.heard()
        await running.stop()
        actions = running.result()["actions"][1:]
    assert [(one["type"], one.get("selector")) for one in actions[:-1]] == [
        ("check", "#own"),
        ("click", 'role=button[name="Toggle"]'),
    ]


async def drop(page: Any, selector: str, file: Path) -> None:
    """Drop a file of this machine onto an element, as a hand from the desktop does."""
    box = await page.locator(selector).bounding_box()
    place = {"x": box["x"] + 20, "y": box["y"] + 20}
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    wire = await page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        await wire.send("Input.dispatchDragEvent", {"type": step, **place, "data": data})
