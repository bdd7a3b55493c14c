"""Every part of the window is usable without a mouse and with a screen reader."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QDialog, QWidget

from engine.model.status import Standing
from engine.service.forms import startable
from engine.text.messages import ENGLISH
from gui.commands.attention import ResumeDialog
from gui.commands.force_complete import ForceDialog
from gui.commands.task_requests import CancelDialog, plan_cancel
from gui.details.result_window import ResultWindow
from gui.filters.filter_bar import FilterHelp
from gui.start.start_dialog import StartDialog
from gui.startup.failure_reports import CrashDialog
from gui.startup.session import Session
from gui.tasks.cell_painting import sign
from tests.gui.access_walk import walk, walk_by_tab
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.task_views import task_id
from tests.gui.test_app_dialogs import VIEWS
from tests.gui.test_forcing import short_of_76
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened

# Presets and recent ones stand at the left, and are passed after everything that is filled in.
PRESETS = "to Choices in PresetList"
DIALOGS = (
    *("list_mode", "settings", "statistics", "doctor", "help", "shortcuts", "news", "palette"),
    *("about", "save_view", "export_tasks", "export_list", "rerun_many", "delete_for_good"),
)


@pytest.fixture
def ledger(home: Path) -> Path:
    """One task of each sort, the first with everything that a result can have."""
    folder = put_task(home, 1)
    put_picture(folder, "a.png")
    put_pages(folder, page(0), page(1, status=404, error="HTTP 404"))
    lines = ({"ts": 1_780_000_000_000 + n, "kind": "log", "data": {"n": n}} for n in range(5))
    (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    error = {"code": "NAV_FAILED", "message": "The page did not answer"}
    put_task(home, 2, status="FAILED", error=error)
    put_task(home, 3, status="CANCELLED")
    limits = {"maxToolCalls": 10}
    put_task(home, 4, status="RUNNING", policy=limits, counters={"tool_calls": 9})
    steps = [{"tool": "navigate", "args": {"url": "http://site.test"}}]
    put_task(home, 5, kind="commands", args_summary={"commands": steps})
    return home


async def active(session: Session) -> QWidget:
    window = session.window
    window.show()
    window.activateWindow()
    await settled(window.isActiveWindow)
    return window


def faults_of(window: QWidget, where: str) -> list[str]:
    found = [*walk(window), *walk_by_tab(window)]
    return [f"{where}: {fault}" for fault in dict.fromkeys(found) if PRESETS not in fault]


async def test_everything_in_the_window_has_a_name_and_is_reached_by_tab(ledger: Path) -> None:
    async with opened(ledger) as session:
        window = await active(session)
        found = faults_of(window, "nothing selected")
        tabs = session.window.details._tabs
        for number in (1, 2, 4, 5):
            session.window.table.select_ids([task_id(number)])
            assert session.window.details.task_id == task_id(number)
            for at in filter(tabs.isTabVisible, range(tabs.count())):
                tabs.setCurrentIndex(at)
                found += faults_of(window, f"{number} {tabs.tabText(at)}")
        session.window.table.selectAll()
        found += faults_of(window, "several selected")
        session.window.filter_bar.set_text("status:nothing-like-that")
        found += faults_of(window, "a mistake in the filter")
        session.window.filter_bar.set_text("nowhere-to-be-found")
        found += faults_of(window, "empty by filter")
        assert found == []


async def test_an_empty_list_and_its_messages_can_be_walked(home: Path) -> None:
    async with opened(home) as session:
        window = await active(session)
        session.window.banner.tell("Something is wrong", "And this is why.")
        assert faults_of(window, "empty") == []


def dialogs_of(session: Session) -> list[QDialog]:
    return [one for one in session.window.findChildren(QDialog) if one.isVisible()]


async def dialog_by(session: Session, key: str) -> QDialog:
    session.window.acts[key].trigger()
    (dialog,) = await settled(lambda: dialogs_of(session))
    dialog.activateWindow()
    await settled(dialog.isActiveWindow)
    return dialog


async def test_every_dialog_can_be_walked(ledger: Path) -> None:
    async with opened(ledger) as session:
        await active(session)
        found: list[str] = []
        for key in DIALOGS:
            few = key in ("export_tasks", "delete_for_good")
            session.window.table.select_ids([task_id(1), task_id(2)] if few else [])
            await settled(session.window.acts[key].isEnabled)
            dialog = await dialog_by(session, key)
            found += faults_of(dialog, key)
            dialog.close()
            await settled(lambda: not dialogs_of(session))
        assert found == []


async def test_the_form_of_every_kind_can_be_walked(ledger: Path) -> None:
    async with opened(ledger) as session:
        await active(session)
        dialog = await dialog_by(session, "new")
        assert isinstance(dialog, StartDialog)
        found: list[str] = []
        for kind in startable():
            dialog.form.choose(kind)
            found += faults_of(dialog, kind)
            dialog.ask()  # what is missing is told under its field
            found += faults_of(dialog, f"{kind} with its mistakes")
        dialog.reject()
        assert found == []


async def test_questions_that_need_a_special_case_can_be_walked(ledger: Path) -> None:
    async with opened(ledger) as session:
        window = await active(session)
        names, parent = {task_id(1): "shop"}, session.window
        found: list[str] = []
        for dialog in (
            ForceDialog([short_of_76()], names, ["it was done by hand"], parent),
            CancelDialog(plan_cancel(VIEWS), parent),
            CrashDialog("Traceback: it broke", ledger / "log.txt", parent),
            FilterHelp(lambda _: None, parent),
            ResumeDialog(VIEWS[0], parent),
        ):
            dialog.open()
            dialog.activateWindow()
            await settled(dialog.isActiveWindow)
            found += faults_of(dialog, type(dialog).__name__)
            dialog.close()
            dialog.deleteLater()
        assert window.isVisible()
        assert found == []


async def test_the_result_viewer_can_be_walked(ledger: Path) -> None:
    async with opened(ledger) as session:
        await active(session)
        session.window.table.select_ids([task_id(1)])
        session.window.acts["open_result"].trigger()
        (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
        await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)
        viewer.activateWindow()
        await settled(viewer.isActiveWindow)
        viewer.pages.table.selectRow(0)
        found: list[str] = []
        for at in range(viewer.tabs.count()):
            viewer.tabs.setCurrentIndex(at)
            await asyncio.sleep(0)
            found += faults_of(viewer, viewer.tabs.tabText(at))
        viewer.close()
        assert found == []


def test_each_state_has_a_sign_and_a_word_of_its_own(qapp: object) -> None:
    black = QColor("black")
    signs = {one: sign(one.value, black).toImage() for one in Standing}
    same = [(one, other) for one, other in combinations(signs, 2) if signs[one] == signs[other]]
    assert same == []
    words = [ENGLISH[f"status.{one.value}"] for one in Standing if one is not Standing.UNKNOWN]
    assert len(set(words)) == len(words)
