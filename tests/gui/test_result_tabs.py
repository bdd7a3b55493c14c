from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from engine.model.tally import CrawlOutcome
from engine.results.units import unit_of
from gui.details.commands_tab import Commands
from gui.details.raw import Raw
from gui.details.result import Result, _links, summary_text
from gui.details.screenshots import Screenshots
from gui.details.unit_columns import said_of
from gui.details.unit_list import Items
from gui.startup.session import Session
from gui.style.tables import SPOKEN
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.windows import WAIT_S, opened, press

BLOCKED = "Blocked by robots.txt"
BEGAN_MS = 1_780_000_000_000


async def settled(condition: Callable[[], Any]) -> Any:
    """Wait until `condition` holds: what is read on threads has no signal of its own."""
    async with asyncio.timeout(WAIT_S):
        while not (found := condition()):
            await asyncio.sleep(0.01)
    return found


async def tab_of(session: Session, number: int, key: str, kind: type[Any]) -> Any:
    """The tab `key` of the details of this task, once it was looked at."""
    window = session.window
    window.resize(1200, 800)
    window.show()
    row = window.model.ids.index(f"{number:016x}")
    window.table.setCurrentIndex(window.model.index(row, 0))
    window.details.restore_state(key)
    (tab,) = await settled(lambda: window.findChildren(kind))
    return tab


async def test_items_say_what_became_of_each_and_why(home: Path) -> None:
    pages = [page(0), page(1, status=404, error="HTTP 404"), page(2, error=BLOCKED)]
    folder = put_task(home, 1)
    put_pages(folder, *pages)
    told = {"phase": "egress", "place": "10.0.0.1:80", "reason": "private address"}
    (folder / "events.jsonl").write_text(json.dumps({"ts": 1, "kind": "log", "data": told}) + "\n")
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(lambda: not items.list.is_reading)
        model = items.list.model
        shown = [
            (one.name, one.state, one.reason) for one in map(model.unit_at, range(model.rowCount()))
        ]
        assert shown == [
            ("http://site.test/0", "done", ""),
            ("http://site.test/1", "failed", "HTTP 404"),
            ("http://site.test/2", "refused", BLOCKED),
            ("10.0.0.1:80", "refused", "private address"),
        ]


async def test_items_show_what_a_kept_page_lacks_only_where_a_page_lacks_it(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    lacking = {"empty": True, "attempts": 3, "redacted": 2, "links_over_limit": 1200}
    failed = ["page used too much memory", "HTTP 503"]
    lacking_page = page(1, **lacking, earlier_errors=failed)
    put_pages(put_task(home, 2), page(0), lacking_page, page(2, attempts=2))
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(lambda: items.list.model.total == 1 and not items.list.is_reading)
        assert shown_titles(items) == ["#", "State", "Item", "Title", "Reason"]
        await tab_of(session, 2, "items", Items)
        await settled(lambda: items.list.model.total == 3 and not items.list.is_reading)
        rare = ["Attempts", "Earlier errors", "Redacted", "Links over limit"]
        assert shown_titles(items) == ["#", "State", "Item", "Title", *rare, "Reason"]
        words = "shows neither text nor link nor picture"
        earlier = "page used too much memory; HTTP 503"
        assert row_of(items, 1)[4:] == ["3", earlier, "2", "1,200", words]
        assert row_of(items, 0)[4:] == ["", "", "", "", ""]
        assert earlier in items.list.model.data(items.list.model.index(1, 0), SPOKEN)
        items.list.table.sortByColumn(4, Qt.SortOrder.DescendingOrder)
        assert [row_of(items, at)[4] for at in range(3)] == ["3", "2", ""]
        QTest.keyClicks(items.list.search, "neither text")
        await settled(lambda: items.list.model.rowCount() == 1)
        items.list.table.selectAll()
        items.list.copy()
        copied = QGuiApplication.clipboard().text().split("\t")
        assert copied[4:] == ["3", earlier, "2", "1,200", words]
        QTest.keyClicks(items.list.search, " too much memory")
        await settled(lambda: items.list.model.rowCount() == 1)
        await tab_of(session, 1, "items", Items)
        await settled(lambda: items.list.model.total == 1 and not items.list.is_reading)
        assert shown_titles(items) == ["#", "State", "Item", "Title", "Reason"]


def shown_titles(items: Items) -> list[str]:
    header, model = items.list.table.horizontalHeader(), items.list.model
    shown = [at for at in range(header.count()) if not header.isSectionHidden(at)]
    return [model.headerData(at, Qt.Orientation.Horizontal) for at in shown]


def row_of(items: Items, row: int) -> list[str]:
    model = items.list.model
    return [model.data(model.index(row, at)) for at in range(model.columnCount())]


async def test_items_are_narrowed_by_switches_and_words(home: Path) -> None:
    put_pages(put_task(home, 1), *(page(at, error="x" if at % 2 else None) for at in range(9)))
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(lambda: items.list.model.total == 9 and not items.list.is_reading)
        chips = [one for one in items.list.chips.findChildren(QToolButton) if one.isVisible()]
        assert [one.text() for one in chips] == ["✓ Done (5)", "✕ Failed (4)"]
        QTest.mouseClick(chips[1], Qt.MouseButton.LeftButton)
        assert items.list.model.rowCount() == 4
        QTest.keyClicks(items.list.search, "site.test/3")
        await settled(lambda: items.list.model.rowCount() == 1)


async def test_a_running_task_adds_its_new_items(home: Path) -> None:
    folder = put_task(home, 1, status="RUNNING")
    put_pages(folder, page(0), result=False)
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(lambda: items.list.model.total == 1 and not items.list.is_reading)
        with (folder / "pages.jsonl").open("a") as file:
            file.write(json.dumps(page(1)) + "\n")
        view = session.window.model.view_of(f"{1:016x}")
        assert view is not None
        items.show_task(view)
        await settled(lambda: items.list.model.total == 2)


def test_a_page_that_was_kept_and_may_not_be_what_it_should_says_so() -> None:
    told = {"empty": {"empty": True}, "unsettled": {"settled": False}, "": {"settled": True}}
    for remark, fields in told.items():
        assert unit_of(page(1, **fields), 0).remark == remark
    failed = unit_of(page(1, settled=False, error="it broke"), 0)
    assert (failed.remark, said_of(failed)) == ("", "it broke")
    empty = unit_of(page(1, empty=True, settled=False), 0)
    assert said_of(empty) == "shows neither text nor link nor picture"


def test_what_ended_a_task_is_told_in_words_and_not_twice() -> None:
    found = {"summary": {"failed": 1, "stopped_by": "max_pages", "links_not_web": 9}}
    told = summary_text(found, "crawl")
    words = "failed 1 · stopped by its page limit; more pages were known"
    assert told == f"{words} · links to no web page 9"
    found["summary"]["links_fragments"] = 4
    told = summary_text(found, "crawl")
    assert told.startswith(f"{words} · links to no web page 9 · links with #/ or #! 4\n")
    assert "As pages of their own" in told
    assert summary_text({"failed": 1, "stopped_by": "failed"}, "crawl") == "failed 1"
    assert summary_text({"stopped_by": "a_meteor"}, "crawl") == "stopped by a_meteor"
    bundle = {"bundle_id": "bundle-1", "path": "artifacts/", "size_bytes": 2_000_000}
    assert summary_text(bundle) == "bundle ID bundle-1 · folder artifacts/ · size 2.0 MB"
    commands = {"instanceId": "a1", "currentCommandIndex": 2}
    assert summary_text(commands) == "instance ID a1 · current command 2"


def test_every_count_of_a_crawl_is_told() -> None:
    counts = [one.name for one in msgspec.structs.fields(CrawlOutcome) if one.type is int]
    left_out = dict.fromkeys(_links(), 7)
    given = {"scope": "here", "stopped_by": "budget", "left_out": left_out}
    outcome = msgspec.convert({**dict.fromkeys(counts, 7), **given}, CrawlOutcome)
    told = summary_text({"summary": outcome.summary()}, "crawl").split("\n")[0]
    assert len(told.split(" · ")) == len(outcome.summary()) == len(counts) + 2 + len(left_out)


async def test_the_result_is_told_in_a_line_and_searched_as_a_tree(home: Path) -> None:
    put_pages(put_task(home, 1), *map(page, range(700)))
    async with opened(home) as session:
        result: Result = await tab_of(session, 1, "result", Result)
        await settled(lambda: result.tree.model.rowCount() == 2)
        assert "duration 8.1 s" in result.summary.text()
        assert summary_text({"completedAt": 1e12, "at": 5}).endswith(":40 · at 5")
        QTest.keyClicks(result.tree.search, "page 650")
        await settled(lambda: result.tree.tree.currentIndex().isValid())
        path = result.tree.model.path(result.tree.tree.currentIndex())
        assert path == "$.pages[650].title"
        result.tree.copy_path()
        assert QGuiApplication.clipboard().text() == path
        result.tree.copy_value()
        await settled(lambda: QGuiApplication.clipboard().text() == "Page 650")


async def test_a_task_without_a_result_says_so(home: Path) -> None:
    put_task(home, 1, status="RUNNING")
    async with opened(home) as session:
        result: Result = await tab_of(session, 1, "result", Result)
        await settled(lambda: "before the task has ended" in result._nothing.text())


async def test_a_command_task_shows_each_step_and_why_it_stopped(home: Path) -> None:
    folder = put_task(home, 1, "commands", "FAILED", error={"message": "no", "code": "X"})
    steps: list[dict[str, Any]] = [
        {"id": "c0", "tool_name": "browser_content", "intention": "look", "args": {"a": 1}},
        {"id": "c1", "tool_name": "browser_interact", "intention": "buy", "args": {"b": 2}},
        {"id": "c2", "tool_name": "browser_content", "intention": "read", "args": {}},
    ]
    error = {"code": "EXECUTION_ERROR", "message": "element not found"}
    states: tuple[dict[str, Any], ...]
    kept = {"url": "http://shop.test/pay", "screenshot": "artifacts/command-002-failed.png"}
    failed = {"status": "error", "error": error, "failure": kept}
    states = ({"status": "success"}, failed, {"status": "skipped"})
    times = {"startedAt": 1000, "completedAt": 1500}
    whole = [{**step, **state, **times} for step, state in zip(steps, states, strict=True)]
    document: dict[str, Any] = {"id": "task_1_a", "instanceId": "", "name": "n", "intention": "i"}
    document |= {"commands": whole, "status": "failed", "currentCommandIndex": 1, "createdAt": 1}
    (folder / "commands.json").write_text(json.dumps(document))
    shot = {"path": "artifacts/command-001.png", "width": 40, "height": 30}
    put_picture(folder, "command-001.png")
    put_picture(folder, "command-002-failed.png")
    lines = [{**whole[0], "result": shot}, whole[1]]
    (folder / "pages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    async with opened(home) as session:
        tab: Commands = await tab_of(session, 1, "commands", Commands)
        await settled(lambda: tab.model.rowCount() == 3)
        assert tab.table.currentIndex().row() == 1
        assert "element not found" in tab.text.toPlainText()
        await settled(lambda: tab.picture.isVisible())
        menu = tab.menu(1)
        acts = {one.text().replace("&", ""): one for one in menu.actions()}
        assert list(acts) == ["Copy address", "Open in browser", "Copy row", "Copy step in full"]
        acts["Copy address"].trigger()
        assert QGuiApplication.clipboard().text() == "http://shop.test/pay"
        acts["Copy row"].trigger()
        assert "element not found" in QGuiApplication.clipboard().text()
        assert "Copy address" not in {one.text().replace("&", "") for one in tab.menu(2).actions()}
        menu.deleteLater()
        tab.table.selectRow(0)
        await settled(lambda: tab.picture.isVisible() and "1.png" in tab.text.toPlainText())
        states_shown = [tab.model.index(row, 1).data() for row in range(3)]
        assert states_shown == ["✓ Done", "✕ Failed", "– Skipped"]


async def test_the_failed_step_of_many_is_in_sight(home: Path) -> None:
    folder = put_task(home, 1, "commands", "FAILED", error={"message": "no", "code": "X"})
    states = [*["success"] * 50, "error", *["skipped"] * 9]
    steps = [
        {"id": f"c{at}", "tool_name": "t", "args": {}, "status": state}
        for at, state in enumerate(states)
    ]
    document = {"id": "task_1_a", "name": "n", "commands": steps, "createdAt": 1}
    (folder / "commands.json").write_text(json.dumps(document))
    async with opened(home) as session:
        tab: Commands = await tab_of(session, 1, "commands", Commands)
        await settled(lambda: tab.model.rowCount() == 60)
        table = tab.table
        assert table.currentIndex().row() == 50

        def in_sight() -> bool:
            return table.viewport().rect().contains(table.visualRect(table.currentIndex()).center())

        await settled(in_sight)


async def test_steps_are_narrowed_to_what_was_under_way_then(home: Path) -> None:
    folder = put_task(home, 1, "commands")
    steps: list[dict[str, Any]] = [
        {"id": f"c{at}", "tool_name": "t", "args": {"at": at}, "status": "success"}
        for at in range(3)
    ]
    for at, step in enumerate(steps):
        step |= {"startedAt": BEGAN_MS + at * 1000, "completedAt": BEGAN_MS + at * 1000 + 500}
    document = {"id": "task_1_a", "name": "n", "commands": [*steps, {"id": "c3"}], "createdAt": 1}
    (folder / "commands.json").write_text(json.dumps(document))
    async with opened(home) as session:
        tab: Commands = await tab_of(session, 1, "commands", Commands)
        await settled(lambda: tab.model.rowCount() == 4)
        session.window.desk.span.choose(BEGAN_MS + 1400, BEGAN_MS + 1900)
        assert [tab.model.index(row, 0).data() for row in range(tab.model.rowCount())] == ["2"]
        assert '"at": 1' in tab.text.toPlainText()
        assert tab.part.isVisible()
        session.window.desk.span.choose(BEGAN_MS + 9000, BEGAN_MS + 9001)
        assert (tab.model.rowCount(), tab.text.toPlainText()) == (0, "")
        press(tab.part, "Show all")
        assert tab.model.rowCount() == 4
        assert not tab.part.isVisible()


async def test_pictures_are_narrowed_to_what_was_taken_then(home: Path) -> None:
    folder = put_task(home, 1)
    for at, name in enumerate(("page-1.png", "page-2.png")):
        put_picture(folder, name)
        os.utime(folder / "artifacts" / name, (BEGAN_MS / 1000 + at * 60,) * 2)
    async with opened(home) as session:
        tab: Screenshots = await tab_of(session, 1, "screenshots", Screenshots)
        await settled(lambda: tab.thumbs.count() == 2)
        span = session.window.desk.span
        span.choose(BEGAN_MS + 59_000, BEGAN_MS + 61_000)
        assert [tab.thumbs.item(at).isHidden() for at in range(2)] == [True, False]
        assert tab.thumbs.currentItem().text() == "page-2.png"
        span.choose(BEGAN_MS + 90_000, BEGAN_MS + 91_000)
        assert tab.thumbs.currentRow() == -1
        span.clear()
        assert not any(tab.thumbs.item(at).isHidden() for at in range(2))
        assert tab.thumbs.currentRow() == 0


async def test_pictures_are_shown_small_and_one_of_them_large(home: Path) -> None:
    folder = put_task(home, 1)
    for name in ("page-1.png", "page-2.png"):
        put_picture(folder, name)
    (folder / "artifacts" / "page-3.png").write_text("<svg onload='alert(1)'/>")
    async with opened(home) as session:
        tab: Screenshots = await tab_of(session, 1, "screenshots", Screenshots)
        await settled(lambda: tab.thumbs.count() == 3)
        view = tab.picture.view
        await settled(lambda: view._image.width() == 40)
        view.zoom(1)
        assert view.scale == 1.5
        tab.thumbs.setCurrentRow(2)
        await settled(lambda: "is none" in tab.picture._facts.text())


async def test_every_file_is_shown_as_it_stands_and_searched_whole(home: Path) -> None:
    folder = put_task(home, 1)
    put_pages(folder, page(0))
    (folder / "notes.txt").write_text("line\n" * 60_000 + "<b>needle</b>\n")
    async with opened(home) as session:
        tab: Raw = await tab_of(session, 1, "raw", Raw)
        await settled(lambda: tab.list.count() == 4)
        await settled(lambda: tab.tree.model.rowCount() == 2)
        names = [tab.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(4)]
        tab.list.setCurrentRow(names.index("notes.txt"))
        await settled(lambda: tab.text.text.toPlainText().startswith("line"))
        QTest.keyClicks(tab.text.search, "NEEDLE")
        QTest.keyClick(tab.text.search, Qt.Key.Key_Return)
        await settled(lambda: tab.text.text.textCursor().selectedText() == "needle")
        assert "<b>needle</b>" in tab.text.text.toPlainText()


async def test_a_file_that_was_written_again_is_shown_again(home: Path) -> None:
    folder = put_task(home, 1)
    async with opened(home) as session:
        tab: Raw = await tab_of(session, 1, "raw", Raw)
        await settled(lambda: tab.tree.model.rowCount() > 2)
        meta = json.loads((folder / "meta.json").read_bytes())
        (folder / "meta.json").write_text(json.dumps({"kind": meta["kind"]}))
        tab._look()
        await settled(lambda: tab.tree.model.rowCount() == 1)


BROKEN = '{\n  "task_id": "0000000000000001",\n  "kind": "crawl",\n  "status": RUNNING\n}'


async def test_an_unreadable_task_shows_the_line_of_the_mistake_and_the_path(home: Path) -> None:
    meta = put_task(home, 1) / "meta.json"
    meta.write_text(BROKEN)
    async with opened(home) as session:
        tab: Raw = await tab_of(session, 1, "raw", Raw)
        await settled(lambda: tab.tree.model.rowCount() == 3)
        mistake = tab.tree._mistake
        await settled(mistake.isVisible)
        said = "Not valid JSON in line 4, column 13: the tree may miss a part."
        assert mistake.text() == said
        overview = session.window.details.overview
        session.window.details.restore_state("overview")
        assert overview.text_of("error") == "not valid JSON (line 4, column 13)"
        assert overview.text_of("path") == str(meta)


async def test_a_tree_of_valid_json_has_no_warning(home: Path) -> None:
    meta = put_task(home, 1) / "meta.json"
    async with opened(home) as session:
        tab: Raw = await tab_of(session, 1, "raw", Raw)
        await settled(lambda: tab.tree.model.rowCount() > 2)
        reading = session.bridge.engine.reading
        assert await reading.mistake(f"{1:016x}", meta.name) is None
        assert not tab.tree._mistake.isVisible()
