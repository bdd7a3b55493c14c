"""Force-complete shows missing items first, needs a reason, and ignores Enter."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from engine.contracts.bulk_progress import Contract, guard
from engine.contracts.completing import (
    CompletionCheck,
    CompletionObstacle,
    CompletionVerdict,
)
from engine.contracts.contract_service import Goals
from engine.contracts.task_runs import contract_of
from engine.ledger.ledger import Ledger
from engine.model.records import TaskRecord
from engine.service.admission import Terms
from gui.commands.force_complete import MOST_REASON, ForceComplete, ForceDialog
from gui.startup.session import Session
from tests.gui.live_tasks import status_of
from tests.gui.task_views import task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import dialog_by_act, heard, opened, press, until

REASON = "the site was switched off for good"
ONE = task_id(1)
MISSING = tuple(f"https://a.example/{number}" for number in range(76))


def prospect(
    number: int = 1, done: int = 41, total: int | None = 120, **given: Any
) -> CompletionCheck:
    contract = Contract(contract_id="0" * 16, expected_total=total, completed_total=done, **given)
    said = guard(contract)
    verdict = CompletionVerdict.ALLOWED if said.allowed else CompletionVerdict.FORCE
    return CompletionCheck(subject=task_id(number), verdict=verdict, guard=said)


def short_of_76() -> CompletionCheck:
    found = prospect(failed_total=3)
    return CompletionCheck(
        subject=ONE, verdict=CompletionVerdict.FORCE, guard=found.guard, missing=MISSING
    )


def shown(qtbot: Any, *given: CompletionCheck, recent: tuple[str, ...] = ()) -> ForceDialog:
    names = {task_id(number): f"shop {number}" for number in range(9)}
    dialog = ForceDialog(given, names, recent)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def said_in(dialog: ForceDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()]


def buttons(dialog: ForceDialog) -> list[str]:
    return [one.text() for one in dialog.findChildren(QPushButton) if one.isVisible()]


def test_it_says_what_is_missing_in_numbers_and_names(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76())
    said = said_in(dialog)
    assert "Complete “shop 1” although 76 items are missing?" in said
    assert "expected 120 · done 41 · failed 3 · missing 76" in said
    assert any(text.startswith("Better: Continue processing") for text in said)
    press(dialog, "Copy all 76")
    assert QGuiApplication.clipboard().text().splitlines() == list(MISSING)


def test_forcing_needs_a_reason_and_a_confirmation(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76())
    assert not dialog.force.isEnabled()
    QTest.keyClicks(dialog.reason.field, "too short")
    dialog.sure.setChecked(True)
    assert not dialog.force.isEnabled()
    assert "10 characters" in dialog.force.toolTip()
    QTest.keyClicks(dialog.reason.field, "er")
    assert dialog.force.isEnabled()
    dialog.sure.setChecked(False)
    assert not dialog.force.isEnabled()
    assert f"11/{MOST_REASON}" in said_in(dialog)


def test_enter_never_forces(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76())
    dialog.activateWindow()
    dialog.reason.field.setFocus()
    QTest.keyClicks(dialog.reason.field, REASON)
    QTest.keyClick(dialog.reason.field, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert dialog.focusWidget() is dialog.sure
    QTest.keyClick(dialog.sure, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert dialog.sure.isChecked()
    assert dialog.focusWidget() is dialog.force
    QTest.keyClick(dialog.force, Qt.Key.Key_Return)
    assert dialog.answer == "leave"


def test_the_last_reasons_are_offered_and_none_is_filled_in(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76(), recent=(REASON,))
    assert dialog.reason.reason == ""
    assert dialog.reason.field.itemText(0) == REASON


def test_what_needs_no_force_asks_for_no_reason(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, prospect(done=120))
    assert buttons(dialog) == ["Complete", "Not yet"]
    assert "Complete “shop 1”?" in said_in(dialog)


@pytest.mark.parametrize("bar", list(CompletionObstacle))
def test_refusals_have_a_reason(qapp: QApplication, qtbot: Any, bar: CompletionObstacle) -> None:
    dialog = shown(
        qtbot, CompletionCheck(subject=ONE, verdict=CompletionVerdict.NEVER, obstacle=bar)
    )
    assert buttons(dialog) == ["Close"]
    assert "“shop 1” cannot be completed" in said_in(dialog)


def test_bulk_forcing_lists_the_missing_items(qapp: QApplication, qtbot: Any) -> None:
    never = CompletionCheck(
        subject=task_id(4), verdict=CompletionVerdict.NEVER, obstacle=CompletionObstacle.ENDED
    )
    given = (prospect(1), prospect(2, done=100), prospect(3, done=120), never)
    dialog = shown(qtbot, *given)
    said = said_in(dialog)
    assert "Complete 3 tasks?" in said
    assert "Need force, because their contracts are not met: 2" in said
    assert "May be completed as they are: 1" in said
    assert "Cannot be completed, and are left as they are: 1" in said
    assert dialog.list is not None
    found = [dialog.list.topLevelItem(row) for row in range(4)]
    assert [item.text(1) for item in found if item][:2] == ["79", "20"]


async def an_envelope(session: Session, **contract: Any) -> str:
    terms = Terms(contract=contract or None)
    args = {"objective": "Buy the lot"}
    record = await session.bridge.engine.requests.start("browser_task", args, terms=terms)
    model = session.window.model
    await until(lambda: model.view_of(record.task_id), session.bridge.batch)
    return str(record.task_id)


async def test_an_envelope_is_forced_from_the_window_by_keyboard(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        one = await an_envelope(session, expected_total=9)
        window.table.select_ids([one])
        dialog = await dialog_by_act(window, "force", ForceDialog)
        QTest.keyClicks(dialog.reason.field, REASON)
        QTest.keyClick(dialog.sure, Qt.Key.Key_Space)
        QTest.keyClick(dialog.force, Qt.Key.Key_Space)
        await until(lambda: status_of(session, one) == "COMPLETED", session.bridge.batch)
        view = window.model.view_of(one)
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        assert view.entry.engine is not None
        assert view.entry.engine.forced_at is not None
        kept = session.bridge.engine.goals.contracts.get(str(view.entry.engine.contract_id))
        assert kept.contract.forced is not None
        assert kept.contract.forced.reason == REASON
        assert window.desk.preferences.get("force.reasons", list) == [REASON]
        assert not window.acts["force"].isEnabled()


async def test_a_secret_in_a_reason_is_not_remembered(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        one = await an_envelope(session, expected_total=9)
        asked = await session.bridge.engine.contracts.prospect(one)
        told = heard(session.bridge.batch)
        forcing = window.findChild(ForceComplete)
        assert forcing is not None
        forcing.complete([asked], "see https://u:hush@a.example/")
        await told
        assert "hush" not in str(window.desk.preferences.get("force.reasons", list))


async def test_many_are_completed_with_force_only_where_it_is_needed(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        ids = [await an_envelope(session, expected_total=9), await an_envelope(session)]
        window.table.select_ids(ids)
        dialog = await dialog_by_act(window, "force", ForceDialog)
        QTest.keyClicks(dialog.reason.field, REASON)
        dialog.sure.click()
        dialog.force.click()
        await until(
            lambda: {status_of(session, one) for one in ids} == {"COMPLETED"}, session.bridge.batch
        )
        records = [window.model.view_of(one) for one in ids]
        # Never unreadable here.
        forced = [view.entry.engine.forced_at is not None for view in records if view]  # type: ignore[union-attr]
        assert forced == [True, False]


async def test_to_continue_instead_changes_nothing(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        one = await an_envelope(session, expected_total=9)
        window.table.select_ids([one])
        dialog = await dialog_by_act(window, "force", ForceDialog)
        press(dialog, "Continue instead")
        assert (
            await session.bridge.engine.contracts.prospect(one)
        ).verdict is CompletionVerdict.FORCE


def test_an_open_dialog_updates_the_missing_items(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76())
    QTest.keyClicks(dialog.reason.field, REASON)
    assert "Force-complete" in buttons(dialog)
    dialog.show_checks([prospect(done=119)])
    assert "Complete “shop 1” although 1 item is missing?" in said_in(dialog)
    assert "expected 120 · done 119 · failed 0 · missing 1" in said_in(dialog)
    assert (dialog.reason.reason, dialog.list) == (REASON, None)
    dialog.show_checks([prospect(done=120)])
    assert "Complete “shop 1”?" in said_in(dialog)
    assert buttons(dialog) == ["Complete", "Not yet"]
    dialog.show_checks(
        [
            CompletionCheck(
                subject=ONE, verdict=CompletionVerdict.NEVER, obstacle=CompletionObstacle.ENDED
            )
        ]
    )
    assert buttons(dialog) == ["Close"]


def test_what_is_typed_at_once_is_the_reason(qapp: QApplication, qtbot: Any) -> None:
    dialog = shown(qtbot, short_of_76())
    QTest.keyClicks(dialog.focusWidget(), REASON)
    assert dialog.isVisible()
    assert dialog.reason.reason == REASON


def test_a_task_that_ends_while_its_reason_is_typed_leaves_the_answer_open(
    qapp: QApplication, qtbot: Any
) -> None:
    dialog = shown(qtbot, short_of_76())
    QTest.keyClicks(dialog.focusWidget(), "the site ")
    ended = CompletionCheck(
        subject=ONE, verdict=CompletionVerdict.NEVER, obstacle=CompletionObstacle.ENDED
    )
    dialog.show_checks([ended])
    QTest.keyClicks(dialog.focusWidget() or dialog, "was switched off")
    assert dialog.isVisible()
    assert "It has ended; what has ended is never changed." in said_in(dialog)


@pytest.mark.parametrize("part", ["sure", "force"])
def test_a_key_for_a_part_that_has_just_gone_presses_no_other_button(
    qapp: QApplication, qtbot: Any, part: str
) -> None:
    dialog = shown(qtbot, short_of_76())
    dialog.activateWindow()
    QTest.keyClicks(dialog.focusWidget(), REASON)
    dialog.sure.setChecked(True)
    getattr(dialog, part).setFocus()
    qtbot.waitUntil(lambda: dialog.isActiveWindow())
    dialog.show_checks([prospect(done=120)])
    assert not getattr(dialog, part).isVisible()
    QTest.keyClick(dialog.focusWidget() or dialog, Qt.Key.Key_Space)
    assert dialog.isVisible()


async def test_while_it_is_asked_the_numbers_are_those_on_disk(home: Path) -> None:
    goals = Goals(home, lambda: Ledger(home / "tasks"))
    run = goals.runs.start({"goal": "All of it"}, {"expected_total": 3})
    async with opened(home) as session:
        window = session.window
        await until(lambda: window.model.view_of(run.run_id), session.bridge.batch)
        window.table.select_ids([run.run_id])
        dialog = await dialog_by_act(window, "force", ForceDialog)
        assert any("3 items are missing" in said for said in said_in(dialog))
        link = contract_of(goals.runs.get(run.run_id).raw)
        assert link is not None
        told_of = {"completed": ["a", "b", "c"]}
        await asyncio.to_thread(goals.contracts.update, link, told_of)
        (followed,) = [one for one in dialog.findChildren(QPushButton) if one.text() == "Complete"]
        await settled(followed.isVisible)
        press(dialog, "Complete")
        await until(lambda: status_of(session, run.run_id) == "COMPLETED", session.bridge.batch)
        assert goals.contracts.get(link).contract.forced is None
