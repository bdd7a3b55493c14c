from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QRadioButton, QToolButton
from pytestqt.qtbot import QtBot

from engine.results.units import Unit, unit_of
from gui.commands.exporting import ExportDialog
from gui.details.result_window import ResultWindow
from gui.details.unit_columns import PAGE_COLUMNS
from gui.details.unit_list import UnitModel
from gui.details.viewer_tabs import runs_of_same_target
from gui.startup.session import Session
from gui.tasks.row import make_row
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.task_views import NOW, a_view
from tests.gui.test_exporting import choose_rows
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened


async def viewer_of(session: Session, number: int) -> ResultWindow:
    """The viewer, as Ctrl+Enter in the list opens it, once it has read the units."""
    choose_rows(session, number)
    keys = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(session.window.table, Qt.Key.Key_Return, keys)
    (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
    assert isinstance(viewer, ResultWindow)
    await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)
    return viewer


async def test_pages_are_filtered_by_status(home: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1, status=404, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        model = viewer.pages.model
        table = viewer.pages.table
        shown = [at for at in range(model.columnCount()) if not table.isColumnHidden(at)]
        cells = [model.index(0, column).data() for column in shown]
        assert cells == ["1", "200", page(0)["url"], "Page 0", "0", "10 ms", "20 ms", "1.0 kB", ""]
        chips = [one for one in viewer.pages.chips.findChildren(QToolButton) if one.isVisible()]
        assert [one.text() for one in chips] == ["2xx (1)", "4xx (1)"]
        chips[1].click()
        assert [model.unit_at(row).code for row in range(model.rowCount())] == [404]


async def test_lines_that_cannot_be_read_are_told_beside_the_number_of_pages(home: Path) -> None:
    folder = put_task(home, 1)
    put_pages(folder, page(0), page(1), page(2))
    lines = (folder / "pages.jsonl").read_text().splitlines()
    (folder / "pages.jsonl").write_text("\n".join([lines[0], lines[1][:20], "[]", lines[2], ""]))
    put_pages(put_task(home, 2), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        await settled(lambda: viewer.pages._state.text() == "2 · damaged lines: 2")
        viewer.on.click()
        await settled(lambda: viewer.pages._state.text() == "1")


async def test_a_crawl_of_openchrome_opens_in_the_viewer(home: Path) -> None:
    """Its result.json holds the pages inside a string."""
    stored = {"url": "http://site.test/a", "title": 'A "b"', "content": "# A", "depth": 1}
    refused = {"url": "http://site.test/b", "title": "", "error": "Blocked by robots.txt"}
    text = json.dumps({"summary": {"total_pages": 2}, "pages": [stored, refused]}, indent=2)
    whole = json.dumps({"content": [{"type": "text", "text": text}]}, indent=2)
    (put_task(home, 1) / "result.json").write_text(whole)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        model = viewer.pages.model
        assert [model.unit_at(row).title for row in range(model.rowCount())] == ['A "b"', ""]
        assert [model.unit_at(row).state for row in (0, 1)] == ["done", "refused"]
        viewer.pages.table.selectRow(0)
        viewer.show_tab(viewer.source)
        await settled(lambda: viewer.source.text.toPlainText() == "# A")


async def test_commands_are_told_by_what_they_are_for_and_their_tool(home: Path) -> None:
    step = {"tool_name": "browser_navigate", "intention": "open it", "args": {"action": "goto"}}
    put_pages(put_task(home, 1, "commands"), {**step, "status": "success"})
    async with opened(home) as session:
        model = (await viewer_of(session, 1)).pages.model
        titles = [model.headerData(at, Qt.Orientation.Horizontal) for at in (2, 3)]
        assert titles == ["What for", "Tool"]
        assert [model.index(0, at).data() for at in (2, 3)] == ["open it", "browser_navigate"]


async def test_what_is_exported_as_this_view_is_what_is_shown(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1, status=404, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.pages.search.setText("404")
        await settled(lambda: viewer.pages.model.rowCount() == 1)
        viewer.this_view.trigger()
        (dialog,) = await settled(lambda: viewer.findChildren(ExportDialog))
        dialog.choose("jsonl")
        dialog.export_to(tmp_path / "part.jsonl")
        await settled(dialog.folder.isVisible)
        (line,) = (tmp_path / "part.jsonl").read_text().splitlines()
        assert json.loads(line)["status"] == 404


async def test_this_view_is_offered_only_where_its_rows_are_shown(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    put_pages(put_task(home, 2), page(0), page(1))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        assert viewer.this_view.isEnabled()
        for tab in (viewer.json, viewer.log, viewer.source):
            viewer.show_tab(tab)
            assert not viewer.this_view.isEnabled()
            assert "Pages" in viewer.this_view.toolTip()
        for listed in (viewer.audit, viewer.pages):
            viewer.show_tab(listed)
            assert viewer.this_view.isEnabled()
        viewer.show_tab(viewer.diff)
        await settled(viewer.this_view.isEnabled)


async def test_this_view_of_a_task_that_is_compared_with_none_is_off(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        assert not viewer.this_view.isEnabled()
        assert "compared" in viewer.this_view.toolTip()


async def test_this_view_of_a_comparison_exports_the_shown_differences(
    home: Path, tmp_path: Path
) -> None:
    put_pages(put_task(home, 1), page(0), page(1, content="new"), page(3))
    put_pages(put_task(home, 2), page(0), page(1, content="old"), page(2))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        await settled(viewer.this_view.isEnabled)
        for chip in viewer.diff.chips.findChildren(QToolButton):
            chip.setChecked("Removed" not in chip.text())
        await settled(lambda: viewer.diff.model.rowCount() == 2)
        viewer.this_view.trigger()
        (dialog,) = await settled(lambda: viewer.findChildren(ExportDialog))
        assert "zip" not in {one.property("form") for one in dialog.findChildren(QRadioButton)}
        dialog.choose("json")
        dialog.export_to(tmp_path / "diff.json")
        await settled(dialog.folder.isVisible)
        written = json.loads((tmp_path / "diff.json").read_text())
        rows = {(one["change"], one["item"]): one for one in written["differences"]}
        assert set(rows) == {("added", page(3)["url"]), ("changed", page(1)["url"])}
        assert rows["changed", page(1)["url"]]["text_differs"] is True
        counted = {"added": 1, "removed": 1, "changed": 1, "same": 1}
        assert written["about"]["summary"] == {"compared_with": f"{2:016x}", **counted}


async def test_marked_differences_are_copied_as_lines(home: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1, status=404))
    put_pages(put_task(home, 2), page(0), page(1), page(2))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        await settled(lambda: viewer.diff.model.rowCount() == 2)
        viewer.diff.table.selectAll()
        viewer.diff.table.setFocus()
        QTest.keyClick(viewer.diff.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        lines = QApplication.clipboard().text().splitlines()
        assert [line.split("\t")[1] for line in lines] == [page(1)["url"], page(2)["url"]]
        viewer.diff.table.clearSelection()
        QTest.keyClick(viewer.diff.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        assert QApplication.clipboard().text().splitlines() == lines, "nothing replaces it"


async def test_the_source_of_a_page_is_text_and_never_rendered(home: Path) -> None:
    hostile = "<img src='file:///etc/passwd'><script>alert(1)</script>"
    put_pages(put_task(home, 1), page(0, content=hostile))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.pages.table.selectRow(0)
        viewer.show_tab(viewer.source)
        await settled(lambda: viewer.source.text.toPlainText() == hostile)
        viewer.pages.search.setText("none of them is called so")
        await settled(lambda: not viewer.pages.model.rowCount())
        viewer.show_tab(viewer.json)
        await settled(viewer.json.isVisible)
        viewer.show_tab(viewer.source)
        await settled(lambda: not viewer.source.text.toPlainText())
        viewer.pages.search.clear()  # the same page once more is read once more
        await settled(viewer.pages.model.rowCount)
        viewer.pages.table.selectRow(0)
        await settled(lambda: viewer.source.text.toPlainText() == hostile)


async def test_the_preview_shows_the_picture_of_the_chosen_page(home: Path) -> None:
    folder = put_task(home, 1)
    put_picture(folder, "a.png", 40, 30)
    put_picture(folder, "b.png", 50, 30)
    put_pages(folder, page(0), page(1, screenshot="artifacts/b.png"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.pages.table.selectRow(1)
        viewer.show_tab(viewer.preview)
        await settled(lambda: viewer.preview.now.view._image.width() == 50)


def put_bundle(home: Path, number: int, dom: str, began_ms: int) -> None:
    """An evidence bundle with a document, its requests and a picture."""
    folder = put_task(home, number, kind="oc_evidence_bundle")
    put_picture(folder, "screenshot.png", 50, 30)
    request = {"url": "http://site.test/", "method": "GET", "status": 200, "started_ms": began_ms}
    texts = {"dom.html": dom, "network.json": json.dumps({"entries": [request]})}
    for name, text in texts.items():
        (folder / "artifacts" / name).write_text(text)
    files = {"dom": "dom.html", "network": "network.json", "screenshot": "screenshot.png"}
    parts: list[dict[str, Any]] = [
        {"part": part, "file": f"artifacts/{name}", "bytes": 9, "sha256": "00"}
        for part, name in files.items()
    ]
    put_pages(folder, *parts, result=False)
    (folder / "result.json").write_text(json.dumps({"bundle_id": "b", "parts": parts}))


async def test_the_parts_of_an_evidence_bundle_are_shown_as_they_were_taken(home: Path) -> None:
    put_bundle(home, 1, "<p>what stood there</p>", 7)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.pages.table.selectRow(0)
        viewer.show_tab(viewer.source)
        await settled(lambda: viewer.source.text.toPlainText() == "<p>what stood there</p>")
        viewer.pages.table.selectRow(1)
        await settled(lambda: "started_ms" in viewer.source.text.toPlainText())
        viewer.pages.table.selectRow(2)
        viewer.show_tab(viewer.preview)
        await settled(lambda: viewer.preview.now.view._image.width() == 50)


async def test_a_part_whose_file_is_gone_is_told_by_its_record(home: Path) -> None:
    put_bundle(home, 1, "<p>gone</p>", 7)
    (home / "tasks" / f"{1:016x}" / "artifacts" / "dom.html").unlink()
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.pages.table.selectRow(0)
        viewer.show_tab(viewer.source)
        await settled(lambda: "sha256" in viewer.source.text.toPlainText())


async def test_two_evidence_bundles_differ_by_what_their_files_hold(home: Path) -> None:
    put_bundle(home, 1, "<p>new</p>\n", 7)
    put_bundle(home, 2, "<p>old</p>\n", 3)  # the same requests at another time
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        diff = viewer.diff
        await settled(lambda: diff.model.rowCount() == 1)
        assert diff.model.index(0, 1).data() == "dom"
        diff.table.selectRow(0)
        await settled(diff.lines.isVisible)
        assert diff.lines.toPlainText().splitlines() == ["@@", "-<p>old</p>", "+<p>new</p>"]


async def test_two_runs_of_a_target_are_compared(home: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1, status=404, error="HTTP 404"), page(3))
    put_pages(put_task(home, 2), page(0), page(1), page(2))
    put_task(home, 3, args_summary={"url": "http://other.test/"})
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        model = viewer.diff.model
        await settled(lambda: model.rowCount() == 3)
        assert viewer.diff.runs.count() == 1
        found = {(model.index(row, 0).data(), model.index(row, 1).data()) for row in range(3)}
        assert found == {
            ("≠ Changed", page(1)["url"]),
            ("− Removed", page(2)["url"]),
            ("+ Added", page(3)["url"]),
        }


@pytest.mark.parametrize("stopped_by", ["frontier", "max_pages"])
async def test_a_run_that_stopped_early_does_not_call_what_it_did_not_load_removed(
    home: Path, stopped_by: str
) -> None:
    folder = put_task(home, 1)
    put_pages(folder, page(0))
    put_pages(put_task(home, 2), page(0), page(1))
    summary = {"pages": 1, "stopped_by": stopped_by}
    (folder / "result.json").write_text(json.dumps({"summary": summary}))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        await settled(lambda: viewer.diff.model.rowCount() == 1)
        assert ("may still exist" in viewer.diff.state.text()) is (stopped_by == "max_pages")


async def test_of_a_recording_the_diff_tells_of_no_pages(home: Path) -> None:
    for number, rows in ((1, [page(0)]), (2, [page(0), page(1)])):
        folder = put_task(home, number, kind="recording")
        put_pages(folder, *rows)
        told = {"url": "http://site.test/", "stopped_by": "closed", "actions": rows}
        (folder / "result.json").write_text(json.dumps(told))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        await settled(lambda: viewer.diff.model.rowCount() == 1)
        assert "are the same" in viewer.diff.state.text()
        assert "pages" not in viewer.diff.state.text()


async def test_the_lines_by_which_a_page_differs_stand_below_the_list(home: Path) -> None:
    texts = ["one\ntwo\nthree\n", "one\n<b>2</b>\nthree\n"]
    put_pages(put_task(home, 1), page(0, content=texts[1]), page(1), page(3))
    put_pages(put_task(home, 2), page(0, content=texts[0]), page(1), page(2))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.diff)
        diff = viewer.diff
        await settled(lambda: diff.model.rowCount() == 3)
        assert not diff.lines.isVisible()
        rows = {diff.model.index(row, 1).data(): row for row in range(3)}
        diff.table.selectRow(rows[page(0)["url"]])
        await settled(diff.lines.isVisible)
        shown = diff.lines.toPlainText().splitlines()
        assert shown == ["@@", " one", "-two", "+<b>2</b>", " three"]
        diff.table.selectRow(rows[page(3)["url"]])
        await settled(lambda: not diff.lines.isVisible())


async def test_the_viewer_walks_the_list_and_shows_the_log_of_what_it_shows(home: Path) -> None:
    for number in (1, 2):
        folder = put_task(home, number)
        put_pages(folder, page(number))
        event = {"ts": 1, "kind": "log", "data": {"message": f"of task {number}"}}
        (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.log)
        await settled(lambda: viewer.log.events.model.total == 1)
        assert viewer.back.isEnabled() is False
        QTest.keyClick(viewer, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        assert viewer.task_id == f"{2:016x}"
        await settled(lambda: "of task 2" in str(viewer.log.events.model.index(0, 2).data()))
        assert viewer.on.isEnabled() is False
        QTest.keyClick(viewer, Qt.Key.Key_Escape)
        assert not viewer.isVisible()


async def test_a_contract_is_told_with_its_guard(home: Path) -> None:
    contract = {
        "contract_id": "c" * 16,
        "scope": "crawl",
        "expected_total": 3,
        "item_key": "page",
        "completed": ["/1"],
        "completed_total": 1,
        "failed": [{"item": "/2", "reason": "no"}],
        "failed_total": 1,
        "created_at": 1,
        "updated_at": 1,
        "last_progress_at": 1,
    }
    (home / "progress-contracts").mkdir(parents=True)
    (home / "progress-contracts" / f"{'c' * 16}.json").write_text(json.dumps(contract))
    put_pages(put_task(home, 1, engine={"contract_id": "c" * 16}), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.contract)
        await settled(lambda: "2/3 page items observed" in viewer.contract.facts.text())
        assert "failed: /2 (no)" in viewer.contract.items.toPlainText()
        assert "failed 1 · skipped 0 · missing 1" in viewer.contract.facts.text()


async def test_a_met_contract_of_an_ended_task_gives_no_advice_to_complete_it(home: Path) -> None:
    times = dict.fromkeys(("created_at", "updated_at", "last_progress_at"), 1)
    contract = {
        **times,
        "contract_id": "c" * 16,
        "scope": "crawl",
        "expected_total": 1,
        "item_key": "page",
        "completed": ["/1"],
        "completed_total": 1,
    }
    (home / "progress-contracts").mkdir(parents=True)
    (home / "progress-contracts" / f"{'c' * 16}.json").write_text(json.dumps(contract))
    put_pages(put_task(home, 1, engine={"contract_id": "c" * 16}), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.contract)
        await settled(lambda: "1/1 page items" in viewer.contract.facts.text())
        assert "Complete it" not in viewer.contract.facts.text()


def units(number: int, make: Callable[[int], dict[str, Any]] = page) -> list[Unit]:
    return [unit_of(make(at), at) for at in range(number)]


def test_long_tables_are_filtered_in_slices(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gui.details.unit_list._SLICE_MS", 0.0)  # for a machine of any pace
    model = UnitModel(PAGE_COLUMNS)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.add(units(8_000))
    with qtbot.waitSignal(model.changed, timeout=60_000):
        model.set_filter(frozenset(), "site.test/777")
        assert model.rowCount() == 8_000, "what is shown stays until all are judged"
    assert [model.unit_at(row).number for row in range(model.rowCount())] == [
        777,
        *range(7770, 7780),
    ]
    size = next(at for at, one in enumerate(PAGE_COLUMNS) if one.key == "size")
    model.sort(size, Qt.SortOrder.DescendingOrder)
    assert model.unit_at(0).number == 7779
    model.sort(-1)
    assert model.unit_at(0).number == 777


def test_new_units_are_filtered_as_well(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gui.details.unit_list._SLICE_MS", 0.0)
    model = UnitModel(PAGE_COLUMNS)
    model.add(units(200))
    with qtbot.waitSignal(model.modelReset, timeout=60_000):
        model.set_filter(frozenset({"4xx"}), "")
        model.add([unit_of(page(200, status=404, error="HTTP 404"), 200)])
    assert (model.rowCount(), model.total) == (1, 201)


def test_short_tables_are_filtered_at_once(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gui.details.unit_list._SLICE_MS", 0.0)
    model = UnitModel(PAGE_COLUMNS)
    model.add(units(20))
    model.set_filter(frozenset({"4xx"}), "")
    model.add([unit_of(page(20, status=404, error="HTTP 404"), 20)])
    assert (model.rowCount(), model.total) == (1, 21)


def test_the_run_before_is_offered_first() -> None:
    args = {"url": "http://site.test/"}
    views = [a_view(number, age=age, args=args) for number, age in ((1, 5), (2, 1), (3, 9))]
    views.append(a_view(4, args=args, kind="recording"))
    rows = [make_row(view, None, NOW) for view in views]
    found = runs_of_same_target(views[0], rows)
    assert [int(one.task_id, 16) for one in found] == [3, 2]
