"""Exported tasks come into the window's ledger: from a file dialog, or dropped on the window."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from engine.export.exporter import ExportProgress
from engine.export.exports import zip_folder
from engine.ledger import files, task_import
from engine.ledger.reader import LedgerReader
from gui.commands.bulk_work import Share, Work, WorkBar
from gui.startup.session import Session
from tests.gui.live_tasks import written_by_another
from tests.gui.start_dialogs import words_of
from tests.gui.test_starting import copied, drop
from tests.gui.windows import opened
from tests.support.engines import until


def exported(place: Path, number: int) -> list[Path]:
    """Write tasks to another ledger, and return their zip files."""
    ids = written_by_another(place / "elsewhere", number)
    reader = LedgerReader(place / "elsewhere" / "tasks")
    zipped = []
    for task_id in ids:
        zipped.append(place / f"{task_id}.zip")
        with zipped[-1].open("wb") as out:
            zip_folder(reader, task_id, out, ExportProgress())
    return zipped


async def test_dropped_zip_files_are_imported_and_the_last_one_is_selected(
    home: Path, tmp_path: Path
) -> None:
    zipped = await asyncio.to_thread(exported, tmp_path, 2)
    async with opened(home) as session:
        window = session.window
        assert window.model.total == 0
        assert drop(window, copied(files=tuple(zipped)))
        await until(lambda: window.model.total == 2)
        await until(window.table.selected_ids)
        assert window.table.selected_ids()[0] in {file.stem for file in zipped}
        await until(lambda: window.reports.bar.title == "2 tasks imported")


async def test_an_imported_task_that_the_filter_hides_is_said_to_be_imported(
    home: Path, tmp_path: Path
) -> None:
    zipped = await asyncio.to_thread(exported, tmp_path, 1)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("status:failed")
        assert drop(window, copied(files=tuple(zipped)))
        bar = window.started_task_selector._bar
        await until(lambda: bar.title == "Imported; hidden by the filter.")


async def test_a_file_that_cannot_be_imported_is_named_with_its_reason(
    home: Path, tmp_path: Path
) -> None:
    (file,) = await asyncio.to_thread(exported, tmp_path, 1)
    broken = tmp_path / "broken.zip"
    broken.write_text("no zip")
    async with opened(home) as session:
        window = session.window
        window.acts["import_tasks"].trigger()
        (dialog,) = window.findChildren(QFileDialog)
        dialog.filesSelected.emit([str(broken), str(file)])
        dialog.reject()
        bar = window.reports.bar
        await until(lambda: bar.title == "1 file could not be imported")
        assert "it is no complete zip file" in words_of(bar)
        await until(lambda: window.model.total == 1)


async def test_the_import_of_a_large_file_shows_its_progress_and_can_be_stopped(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = await asyncio.to_thread(exported, tmp_path, 1)
    monkeypatch.setattr(task_import, "BLOCK", 10)
    async with opened(home) as session:
        bar = await begun(session, file, monkeypatch)
        await until(lambda: bar.isVisible() and bar._bar.value() > 0)
        bar.stop.click()
        await until(lambda: session.window.reports.bar.title == "1 file could not be imported")
        assert "was stopped" in words_of(session.window.reports.bar)
        assert session.window.model.total == 0


async def begun(session: Session, file: Path, monkeypatch: pytest.MonkeyPatch) -> WorkBar:
    """Begin an import that goes on from its tenth block only when it is stopped."""
    write, blocks = files.write_fully, iter(range(10))

    def written(fd: int, data: bytes) -> None:
        write(fd, data)
        if next(blocks, None) is None:
            assert stopped.wait(60)

    stopped = threading.Event()
    monkeypatch.setattr(task_import, "write_fully", written)
    session.window.acts["import_tasks"].trigger()
    (dialog,) = session.window.findChildren(QFileDialog)
    dialog.filesSelected.emit([str(file)])
    dialog.reject()
    (bar,) = session.window.findChildren(WorkBar)
    bar.stop.clicked.connect(stopped.set)
    return bar


def test_the_progress_of_a_bulk_action_counts_the_parts_of_what_runs() -> None:
    stopped: list[bool] = []

    async def act(_: object, task_id: str) -> str:
        return task_id

    work = Work(["a", "b"], act, Share(lambda: 0.25, lambda: stopped.append(True)))
    assert work.progress == 0.25
    work.outcome.done.append("a")
    assert work.progress == 1.25
    work.stop()
    assert stopped == [True]
