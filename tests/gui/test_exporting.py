from __future__ import annotations

import asyncio
import json
import socket
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel

from engine.archive.task_archive import FILE_PATH
from engine.model.redact import MARK
from gui.commands.exporting import ExportDialog, file_name
from gui.details.unit_list import Items
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.questions import documents
from tests.archive.test_wacz import ONE, Written
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.task_views import a_view
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import dialog_of, opened, press


async def export_dialog(session: Session) -> ExportDialog:
    (found,) = await settled(lambda: session.window.findChildren(ExportDialog))
    assert isinstance(found, ExportDialog)
    return found


def choose_rows(session: Session, *numbers: int) -> None:
    """Mark these tasks, as one would with Ctrl held."""
    table, ids = session.window.table, session.window.model.ids
    session.window.show()
    for at, number in enumerate(numbers):
        index = session.window.model.index(ids.index(f"{number:016x}"), 0)
        held = Qt.KeyboardModifier.ControlModifier if at else Qt.KeyboardModifier.NoModifier
        place = table.visualRect(index).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, held, place)


async def test_a_result_is_exported_by_the_keyboard_alone(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1))
    async with opened(home) as session:
        choose_rows(session, 1)
        QTest.keyClick(session.window.table, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        dialog = await export_dialog(session)
        dialog.choose("jsonl")
        QTest.keyClick(dialog, Qt.Key.Key_Return)
        (chooser,) = await settled(lambda: dialog.findChildren(QFileDialog))
        chooser.setDirectory(str(tmp_path))
        chooser.selectFile(str(tmp_path / "mine.jsonl"))
        chooser.accept()
        await settled(dialog.folder.isVisible)
        lines = (tmp_path / "mine.jsonl").read_text().splitlines()
        assert [json.loads(line)["url"] for line in lines] == [page(0)["url"], page(1)["url"]]
        assert session.window.desk.preferences.get("export.format", str) == "jsonl"


async def test_arrow_keys_select_the_export_format(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        choose_rows(session, 1)
        QTest.keyClick(session.window.table, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        dialog = await export_dialog(session)
        dialog.activateWindow()
        await settled(dialog.isActiveWindow)
        focus = QApplication.focusWidget()
        assert focus is not None
        QTest.keyClick(focus, Qt.Key.Key_Down)
        assert dialog.form == "xlsx"
        dialog.export_to(tmp_path / "mine.JSON")
        await settled(dialog.folder.isVisible)
        assert json.loads((tmp_path / "mine.JSON").read_text())
        assert session.window.desk.preferences.get("export.format", str) == "json"


async def test_a_folder_as_a_zip_is_told_by_the_files_in_it(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        choose_rows(session, 1)
        QTest.keyClick(session.window.table, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        dialog = await export_dialog(session)
        dialog.choose("zip")
        dialog.export_to(tmp_path / "all.zip")
        await settled(dialog.folder.isVisible)
        with zipfile.ZipFile(tmp_path / "all.zip") as packed:
            names = packed.namelist()
        assert f"1 zip with {len(names)} files" in dialog._headline.text()


async def test_a_web_archive_is_offered_where_the_task_kept_one(home: Path, tmp_path: Path) -> None:
    asked = {"url": "http://site.test/", "archive": "warc"}
    folder = put_task(home, 1, args_summary=asked)
    put_pages(folder, page(0))
    written = Written()
    await written.archive.record(structs.replace(ONE, url=str(page(0)["url"])))
    (folder / "artifacts").mkdir()
    (folder / FILE_PATH).write_bytes(written.data)
    put_pages(put_task(home, 2), page(0))
    async with opened(home) as session:
        choose_rows(session, 1)
        QTest.keyClick(session.window.table, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        dialog = await export_dialog(session)
        assert "wacz" in dialog._words()
        dialog.choose("wacz")
        dialog.export_to(tmp_path / "site.wacz")
        await settled(dialog.folder.isVisible)
        assert dialog._headline.text() == "Exported"
        with zipfile.ZipFile(tmp_path / "site.wacz") as packed:
            assert page(0)["url"] in packed.read("pages/pages.jsonl").decode()
        both = replace(dialog._wanted, views=(a_view(1, args=asked), a_view(2)))
        other = ExportDialog(session.window.desk, both, session.window)
        assert "wacz" not in other._words()


async def test_each_result_is_exported_to_its_own_file(home: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        put_pages(put_task(home, number), page(0))
    put_task(home, 3)
    async with opened(home) as session:
        choose_rows(session, 1, 2, 3)
        session.window.acts["export_tasks"].trigger()
        dialog = await export_dialog(session)
        dialog.choose("csv")
        dialog.export_to(tmp_path)
        await settled(dialog.folder.isVisible)
        assert sorted(one.name for one in tmp_path.glob("*.csv")) == [
            f"crawl-site.test-2026-05-28-{1:016x}.csv",
            f"crawl-site.test-2026-05-28-{2:016x}.csv",
        ]
        assert f"{3:016x}" in dialog._problems.text()


async def test_the_list_is_exported_as_it_is_filtered(home: Path, tmp_path: Path) -> None:
    put_task(home, 1)
    put_task(home, 2, "recording")
    async with opened(home) as session:
        session.window.filter_bar.set_text("recording")
        await settled(lambda: session.window.model.rowCount() == 1)
        session.window.acts["export_list"].trigger()
        dialog = await export_dialog(session)
        dialog.choose("jsonl")
        dialog.export_to(tmp_path / "list.jsonl")
        await settled(dialog.folder.isVisible)
        (line,) = (tmp_path / "list.jsonl").read_text().splitlines()
        assert json.loads(line)["kind"] == "recording"


async def test_a_place_in_the_ledger_is_refused_in_the_dialog(home: Path) -> None:
    folder = put_task(home, 1)
    put_pages(folder, page(0))
    async with opened(home) as session:
        choose_rows(session, 1)
        session.window.acts["export_tasks"].trigger()
        dialog = await export_dialog(session)
        dialog.export_to(folder / "result.json")
        await settled(dialog._problems.isVisible)
        assert "inside the ledger" in dialog._problems.text()
        assert "Nothing was exported" in dialog._headline.text()


def put_failed_crawl(home: Path) -> None:
    url = "http://127.0.0.1:9/"  # no server of another test ever listens there
    engine = {"host": socket.gethostname(), "args": {"url": url, "engine": "static"}}
    folder = put_task(home, 1, status="FAILED", engine=engine)
    put_pages(folder, page(0, url=url), page(1, url=url + "bad", error="no", status=None))


async def test_only_what_failed_is_started_again_after_a_question(home: Path) -> None:
    put_failed_crawl(home)
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(items.retry.isVisible)
        QTest.mouseClick(items.retry, Qt.MouseButton.LeftButton)
        await settled(lambda: any(one.isVisible() for one in session.window.findChildren(QDialog)))
        press(dialog_of(session), "Start")
        model = session.window.model
        await settled(lambda: model.total == 2)
        (new,) = (one for one in model.ids if one != f"{1:016x}")
        view = model.view_of(new)
        assert view is not None
        # Never unreadable here.
        assert str(view.entry.args_summary["url"]).endswith("/bad")  # type: ignore[union-attr]
        # Never unreadable here.
        assert view.entry.engine.parent_task_id == f"{1:016x}"  # type: ignore[union-attr]


async def test_commands_that_lack_what_was_typed_are_shown_to_be_completed(home: Path) -> None:
    goto = {"action": "goto", "url": "http://127.0.0.1:1/"}
    typed = {"action": "type", "selector": "{{field}}", "text": MARK, "text_length": 4}
    commands = [
        {"tool_name": "browser_navigate", "intention": "before", "args": goto},
        {"tool_name": "browser_navigate", "intention": "go", "args": goto},
        {"tool_name": "browser_interact", "intention": "type", "args": typed},
    ]
    args: dict[str, Any] = {"task_name": "a", "task_intention": "b", "commands": commands}
    args["variables"] = {"field": MARK}
    states = ("success", "success", "error")
    told = [
        {**one, "id": f"{at}", "status": state}
        for at, (one, state) in enumerate(zip(commands, states, strict=True))
    ]
    engine = {"host": socket.gethostname(), "args": args, "command_task_id": "task_1_a"}
    folder = put_task(home, 1, kind="commands", status="FAILED", engine=engine)
    task: dict[str, Any] = {"id": "task_1_a", "instanceId": "", "name": "a", "commands": told}
    task["intention"] = "b"
    task |= {"status": "failed", "currentCommandIndex": 2, "createdAt": 1}
    (folder / "commands.json").write_text(json.dumps(task))
    async with opened(home) as session:
        choose_rows(session, 1)
        session.window.acts["retry_failed"].trigger()
        await settled(lambda: isinstance(session.window.requests.starting._dialog, StartDialog))
        dialog = session.window.requests.starting._dialog
        assert isinstance(dialog, StartDialog)
        asked = dialog.form.asked
        assert [one["intention"] for one in asked.args["commands"]] == ["go", "type"]
        kept = {name: value for name, value in typed.items() if name != "text_length"}
        assert asked.args["commands"][1]["args"] == kept
        assert not dialog.start.isEnabled()
        assert "Type the value of field." in dialog.start.toolTip()


async def test_a_failed_crawl_of_another_program_is_tried_again_with_a_form(home: Path) -> None:
    folder = put_task(home, 1, status="FAILED", error={"code": "E", "message": "no answer"})
    async with opened(home) as session:
        choose_rows(session, 1)
        session.window.acts["retry_failed"].trigger()
        await settled(lambda: isinstance(session.window.requests.starting._dialog, StartDialog))
        dialog = session.window.requests.starting._dialog
        assert isinstance(dialog, StartDialog)
        assert dialog.form["url"].value == "http://site.test/"
        said = [one.text() for one in dialog.findChildren(QLabel) if one.isVisible()]
        assert any("This starts all of it again" in one for one in said), said
        assert session.window.model.view_of(folder.name) is not None
        dialog.reject()


async def test_a_limit_of_a_summary_by_its_other_name_is_kept(home: Path) -> None:
    summary = {"url": "http://site.test/", "maxPages": 5}
    error = {"code": "E", "message": "no answer"}
    put_task(home, 1, status="FAILED", args_summary=summary, error=error)
    async with opened(home) as session:
        choose_rows(session, 1)
        session.window.acts["retry_failed"].trigger()
        await settled(lambda: isinstance(session.window.requests.starting._dialog, StartDialog))
        dialog = session.window.requests.starting._dialog
        assert isinstance(dialog, StartDialog)
        assert dialog.form.asked.args["max_pages"] == 5
        dialog.reject()


async def test_nothing_is_tried_again_where_nothing_can_be_started(home: Path) -> None:
    put_task(home, 1, status="FAILED", error={"code": "E", "message": "no answer"})
    async with opened(home) as session:
        choose_rows(session, 1)
        retry, health = session.window.acts["retry_failed"], session.bridge.look_at_health()
        assert retry.isEnabled()
        session.bridge.health.emit(structs.replace(health, read_only="the disk is full"))
        assert not retry.isEnabled()
        session.bridge.health.emit(health)
        assert retry.isEnabled()


async def test_escape_starts_nothing(home: Path) -> None:
    put_failed_crawl(home)
    async with opened(home) as session:
        choose_rows(session, 1)
        session.window.acts["retry_failed"].trigger()
        await settled(lambda: any(one.isVisible() for one in session.window.findChildren(QDialog)))
        QTest.keyClick(dialog_of(session), Qt.Key.Key_Escape)
        assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("retry ")]
        assert len(await session.bridge.engine.tasks.list()) == 1


def test_existing_folders_are_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one, the documents, else the home folder: a chooser must open somewhere."""
    places = {"DocumentsLocation": tmp_path / "Documents", "HomeLocation": tmp_path}

    def named(place: QStandardPaths.StandardLocation) -> str:
        return str(places[place.name])

    monkeypatch.setattr(QStandardPaths, "writableLocation", named)
    assert documents() == str(tmp_path)
    assert documents(str(tmp_path / "gone")) == str(tmp_path)
    places["DocumentsLocation"].mkdir()
    assert documents(str(tmp_path / "gone")) == str(tmp_path / "Documents")
    (tmp_path / "last").mkdir()
    assert documents(str(tmp_path / "last")) == str(tmp_path / "last")


async def test_the_chooser_opens_where_the_last_file_went(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    (tmp_path / "mine").mkdir()
    async with opened(home) as session:
        choose_rows(session, 1)
        for _ in range(2):
            session.window.acts["export_tasks"].trigger()
            dialog = await export_dialog(session)
            dialog.go.click()
            (chooser,) = await settled(partial(dialog.findChildren, QFileDialog))
            assert Path(chooser.directory().absolutePath()).is_dir()
            if session.window.desk.preferences.get("export.folder", str):
                assert chooser.directory().absolutePath() == str(tmp_path / "mine")
                chooser.reject()
                dialog.reject()
                return
            chooser.setDirectory(str(tmp_path / "mine"))
            chooser.selectFile(str(tmp_path / "mine" / "a.csv"))
            chooser.accept()
            await settled(dialog.folder.isVisible)
            dialog.reject()
            await settled(lambda: not session.window.findChildren(ExportDialog))
        raise AssertionError("the folder was not remembered")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://docs.example:8443/a", "crawl-docs.example-8443-2026-05-28-{0}.csv"),
        ("", "crawl-2026-05-28-{0}.csv"),
    ],
)
def test_a_file_name_has_the_host_and_the_date(url: str, name: str) -> None:
    view = a_view(1, args={"url": url})
    assert file_name(view, "csv") == name.format(view.task_id)
