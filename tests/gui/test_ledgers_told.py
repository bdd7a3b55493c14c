"""Texts about other ledgers name the right ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from engine.contracts.completing import (
    CompletionCheck,
    CompletionObstacle,
    CompletionVerdict,
)
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.model.errors import TaskNotFound
from engine.model.ledger_ids import qualified
from engine.service.router.ledger_paths import Beside, ContractsElsewhere
from gui.commands.bulk_work import Refusal, Refusals
from gui.commands.exporting import ExportDialog
from gui.commands.force_complete import ForceDialog
from gui.commands.ledger_actions import LedgerCard, LedgerTrouble
from gui.context.open_ledgers import KEPT
from gui.filters.facet_tree import COUNT, SIGN
from gui.tasks.columns import COLUMN_AT
from gui.window.list_area import ContractCounts
from tests.gui.result_ledgers import put_task
from tests.gui.side_ledgers import LAPTOP, a_ledger, all_read, facet, side_by_side
from tests.gui.task_views import task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import appearing, dialog_by_act, opened, press, until


def labels(widget: Any) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel)]


async def test_export_notes_name_the_ledger(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        window.table.select_ids([task_id(1), qualified(task_id(1), LAPTOP)])
        window.acts["export_tasks"].trigger()
        (dialog,) = await settled(lambda: window.findChildren(ExportDialog))
        dialog.choose("csv")
        dialog.export_to(tmp_path)
        await settled(dialog._problems.isVisible)
        here, there = sorted(dialog._problems.text().splitlines(), reverse=True)
        assert here.startswith("http://own.test/1: ")
        assert there.startswith("http://laptop.test/1 at laptop: ")


async def test_what_was_refused_is_listed_with_its_ledger(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        ids = (task_id(1), qualified(task_id(1), LAPTOP))
        refused = [Refusal(one, TaskNotFound(task_id=task_id(1), root="/x")) for one in ids]
        dialog = Refusals("2 tasks could not", refused, window.model.view_of, window)
        items = [dialog.list.topLevelItem(row) for row in range(2)]
        names = [item.text(0) for item in items if item is not None]
        assert names == ["http://own.test/1", "http://laptop.test/1 at laptop"]


async def test_session_ledgers_are_not_saved(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path) as session:
        window = session.window
        window.beside.visit([laptop.path])
        await all_read(session)
        window.beside.change(LAPTOP, Beside(laptop.path, "office", watch_only=False))
        assert [one.beside for one in window.beside.states] == [
            Beside(laptop.path, "office", watch_only=False)
        ]
        assert window.preferences.get(KEPT, list) == []
        with appearing(LedgerCard) as shown:
            window.beside.change_wanted.emit("office")
            card = await shown
        assert "It is shown until this window is closed." in labels(card)
        QTest.mouseClick(card.keep, Qt.MouseButton.LeftButton)
        press(card, "Change")
        assert [one["label"] for one in window.preferences.get(KEPT, list)] == ["office"]
        with appearing(LedgerCard) as again:
            window.beside.change_wanted.emit("office")
            card = await again
        assert card.keep.isHidden()
        press(card, "Cancel")


async def test_a_lost_ledger_is_marked(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        key = f"root:{LAPTOP}"
        await settled(lambda: _cell(window, key)[1] == "3")
        laptop.path.rename(tmp_path / "away")
        await settled(lambda: _cell(window, key) == ("laptop: Folder gone", "", "orphaned"))
        item = facet(window.sidebar, key)
        assert item is not None
        assert "It had 3 tasks when it was last seen" in item.toolTip(0)
        assert "Folder gone" in item.data(0, Qt.ItemDataRole.AccessibleTextRole)
        (tmp_path / "away").rename(laptop.path)
        window.bridge.rescan()
        await settled(lambda: _cell(window, key) == ("laptop", "3", ""))


def _cell(window: Any, key: str) -> tuple[str, str, str]:
    item = facet(window.sidebar, key)
    if item is None:
        return "", "", ""
    return item.text(0), str(item.data(0, COUNT) or ""), str(item.data(0, SIGN) or "")


async def test_contracts_of_other_ledgers_are_counted(tmp_path: Path) -> None:
    goals = Goals(tmp_path / LAPTOP, lambda: Ledger(tmp_path / LAPTOP / "tasks"))
    link = goals.contracts.start({"expected_total": 120}).contract.contract_id
    put_task(tmp_path / LAPTOP, 9, "browser_task", "RUNNING", engine={"contract_id": link})
    async with side_by_side(tmp_path, Beside(tmp_path / LAPTOP / "tasks", LAPTOP)) as session:
        window = session.window
        window.table.header().show_column("contract", True)
        goals.contracts.update(link, {"completed": ["a", "b"]})
        (counts,) = window.findChildren(ContractCounts)
        counts.look()

        def said() -> str:
            row = window.model.row_of(qualified(task_id(9), LAPTOP))
            return str(window.model.index(row, COLUMN_AT["contract"]).data())

        await settled(lambda: said() == "open: 2/120")


async def test_contracts_without_a_known_home_are_not_missing(tmp_path: Path) -> None:
    put_task(tmp_path / "x", 9, "browser_task", "RUNNING", engine={"contract_id": "0" * 16})
    loose = (tmp_path / "x" / "tasks").rename(tmp_path / "loose")
    async with side_by_side(tmp_path, Beside(loose, "loose")) as session:
        window, engine = session.window, session.bridge.engine
        named = qualified("0" * 16, "loose")
        with pytest.raises(ContractsElsewhere, match="contracts of the ledger 'loose' lie"):
            await engine.contracts.get(named)
        assert await engine.contracts.counts([named]) == {}
        window.table.select_ids([qualified(task_id(9), "loose")])
        part = "Nobody knows where the contracts of the ledger 'loose' lie"
        await settled(lambda: any(part in text for text in labels(window.details)))


def test_many_of_which_none_or_one_can_be_completed_are_counted_so(qapp: QApplication) -> None:
    never = [
        CompletionCheck(
            subject=task_id(n), verdict=CompletionVerdict.NEVER, obstacle=CompletionObstacle.ALONE
        )
        for n in (1, 2)
    ]
    none = ForceDialog(never, {}, left_out=3)
    assert "None of these tasks can be completed" in labels(none)
    assert "Left out, because they cannot be completed by hand: 3" in labels(none)
    one = CompletionCheck(subject=task_id(3), verdict=CompletionVerdict.ALLOWED)
    assert "Complete 1 task?" in labels(ForceDialog([never[0], one], {}))


async def test_copies_in_two_ledgers_are_completed_each_where_it_is(tmp_path: Path) -> None:
    for name in ("own", LAPTOP):
        put_task(tmp_path / name, 9, "browser_task", "RUNNING")
    beside = Beside(tmp_path / LAPTOP / "tasks", LAPTOP, watch_only=False)
    async with side_by_side(tmp_path, beside) as session:
        window = session.window
        ids = [task_id(9), qualified(task_id(9), LAPTOP)]
        window.table.select_ids([*ids, task_id(1)])
        dialog = await dialog_by_act(window, "force", ForceDialog)
        assert "Complete 2 tasks?" in labels(dialog)
        assert "Left out, because they cannot be completed by hand: 1" in labels(dialog)
        assert dialog.list is not None
        names = [dialog.list.topLevelItem(row) for row in range(2)]
        assert {item.text(0) for item in names if item} == {
            "http://site.test/",
            "http://site.test/ at laptop",
        }
        press(dialog, "Complete")
        found: Any = window.model.view_of
        await until(
            lambda: all(found(one).entry.status == "COMPLETED" for one in ids), session.bridge.batch
        )


async def test_pending_work_of_a_closed_ledger_is_shown(tmp_path: Path, laptop: Beside) -> None:
    own = tmp_path / "own" / "tasks"
    own.parent.mkdir()
    own.write_text("no folder")
    async with opened(own.parent, wait="unusable") as session:
        window = session.window
        window.beside.add(laptop)
        trouble: Any = window.findChild(LedgerTrouble)
        assert trouble.bar.title == "The window’s own ledger cannot be opened"
        said = "Not shown until then: laptop. It is tried again every few seconds."
        way = "With another folder as the window’s own they are shown at once."
        assert f"{said}\n{way}" in labels(trouble.bar)
        own.unlink()
        window.bridge.rescan()
        await settled(lambda: window.model.total == 3)
        await settled(lambda: trouble.bar.title == "")


async def test_a_new_own_folder_shows_the_waiting_ledgers(tmp_path: Path, laptop: Beside) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tasks").write_text("no folder")
    async with opened(tmp_path / "own", wait="unusable") as session:
        window = session.window
        window.beside.add(laptop)
        trouble: Any = window.findChild(LedgerTrouble)
        with appearing(QFileDialog) as shown:
            press(trouble.bar, "Open another folder…")
            (await shown).close()
        window.folder_wanted.emit(a_ledger(tmp_path / "other"))
        folder, kept = await session.ended(), window.preferences.get(KEPT, list)
    assert folder is not None
    async with opened(folder.parent) as session:
        session.window.preferences.set(KEPT, kept)  # the program's windows share them
        await all_read(session)
        assert session.window.model.total == 5
