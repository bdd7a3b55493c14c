"""Task runs are rows of the window: seen as they ask for help, helped, forced and cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit

from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.model.records import TaskRecord
from engine.text.words import status_word, why
from gui.commands.attention import ResumeDialog
from gui.commands.force_complete import ForceDialog
from gui.commands.task_requests import CancelDialog
from gui.startup.session import Session
from tests.gui.live_tasks import status_of
from tests.gui.windows import appearing, dialog_by_act, opened, press, until

HELP = {"reason": "A captcha stands before the shop.", "resume_hint": "Solve it in the browser."}


@pytest.fixture
def elsewhere(home: Path) -> Goals:
    """Another process that writes the same folders."""
    return Goals(home, lambda: Ledger(home / "tasks"))


async def seen(session: Session, run_id: str, status: str) -> None:
    await until(lambda: status_of(session, run_id) == status, session.bridge.batch)


async def test_a_run_shows_and_resolves_its_help_request(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Buy the lot"}).run_id
    async with opened(home) as session:
        window = session.window
        await seen(session, run_id, "RUNNING")
        await asyncio.to_thread(elsewhere.runs.needs_help, run_id, HELP)
        await seen(session, run_id, "NEEDS_HELP")
        view = window.model.view_of(run_id)
        assert view is not None
        assert status_word(view) == "Needs help"
        assert "captcha" in why(view, 0)
        assert "Solve it" in why(view, 0)
        window.table.select_ids([run_id])
        help_button = window.details.overview.state_actions.buttons[window.acts["resume"]]
        assert help_button.text() == "Resume…"
        assert help_button.isVisible()
        with appearing(ResumeDialog) as shown:
            help_button.click()
            dialog = await shown
        assert any("captcha" in label.text() for label in dialog.findChildren(QLabel))
        (line,) = dialog.findChildren(QLineEdit)
        QTest.keyClicks(line, "it is solved")
        press(dialog, "Resume")
        await seen(session, run_id, "RUNNING")
        assert not window.acts["resume"].isEnabled()


async def test_a_run_has_no_tabs_for_what_only_tasks_keep(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Buy the lot"}).run_id
    async with opened(home) as session:
        window = session.window
        await seen(session, run_id, "RUNNING")
        window.details.restore_state("events")
        window.table.select_ids([run_id])
        tabs = window.details._tabs
        shown = [tabs.tabText(at) for at in range(tabs.count()) if tabs.isTabVisible(at)]
        assert shown == ["Overview"]
        assert tabs.tabText(tabs.currentIndex()) == "Overview"


async def test_a_run_can_be_forced_like_a_task_and_shows_it(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Buy the lot"}, {"items": ["a", "b"]}).run_id
    async with opened(home) as session:
        window = session.window
        await seen(session, run_id, "RUNNING")
        window.table.select_ids([run_id])
        dialog = await dialog_by_act(window, "force", ForceDialog)
        QTest.keyClicks(dialog.reason.field, "the shop is closed for good")
        dialog.sure.click()
        dialog.force.click()
        await seen(session, run_id, "COMPLETED")
        view = window.model.view_of(run_id)
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        assert view.entry.engine is not None
        assert view.entry.engine.forced_at is not None


async def test_a_run_is_cancelled_at_once_after_a_question(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Buy the lot"}).run_id
    elsewhere.runs.needs_help(run_id, HELP)
    async with opened(home) as session:
        window = session.window
        await seen(session, run_id, "NEEDS_HELP")
        window.table.select_ids([run_id])
        dialog = await dialog_by_act(window, "cancel", CancelDialog)
        press(dialog, "Cancel task")
        await seen(session, run_id, "CANCELLED")
        assert not window.acts["delete"].isEnabled()
        assert not window.acts["cancel"].isEnabled()


async def test_a_run_alone_is_enough_for_a_list(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Buy the lot"}).run_id
    async with opened(home) as session:
        await seen(session, run_id, "RUNNING")
        assert session.window.area.state == "table"
