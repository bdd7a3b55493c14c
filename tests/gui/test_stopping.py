"""Cancelling all that is listed, with a list of whom and a bar; ending recordings in good order."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication, QLabel

from engine.ledger import machine
from engine.model.records import EngineFields, TaskRecord, TaskView
from engine.service.commands import WORKER_VERB
from engine.service.feed import Batch
from fixtures.site.site import Site
from gui.commands.bulk_work import Work, WorkBar
from gui.commands.task_requests import CancelDialog, can_be_stopped, plan_cancel
from gui.startup.session import Session
from tests.gui.live_tasks import FAST, status_of
from tests.gui.task_views import a_view
from tests.gui.test_result_tabs import settled
from tests.gui.windows import (
    appearing,
    dialog_by_act,
    heard,
    opened,
    patient,
    press,
    showing,
    until,
)


async def crawls(session: Session, site: Site, number: int) -> list[str]:
    """So many crawls of a page that never answers: one runs, the rest wait for it."""
    ids = []
    for at in range(number):
        args = {"url": f"{site.url}/hang?{at}", **FAST}
        ids.append((await session.bridge.engine.requests.start("crawl", args)).task_id)
    model = session.window.model
    await until(lambda: all(map(model.view_of, ids)), session.bridge.batch)
    await until(lambda: status_of(session, ids[0]) == "RUNNING", session.bridge.batch)
    return [str(one) for one in ids]


async def test_cancel_all_listed_asks_first(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        patient(session)
        window = session.window
        ids = await crawls(session, site, 4)
        dialog = await dialog_by_act(window, "cancel_matching", CancelDialog)
        said = [label.text() for label in dialog.findChildren(QLabel)]
        assert "All 4 tasks of this ledger" in said
        assert dialog.list.topLevelItemCount() == 4
        press(dialog, "Cancel 4 tasks")
        await until(
            lambda: {status_of(session, one) for one in ids} == {"CANCELLED"}, session.bridge.batch
        )
        begun = [window.model.view_of(one) for one in ids[1:]]
        records = [view.entry for view in begun if view and isinstance(view.entry, TaskRecord)]
        assert [one.started_at for one in records] == [None] * 3  # none began in between
        await settled(lambda: "3 waiting tasks" in window.undo_bar.title)


async def test_refused_cancels_are_listed(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        window = session.window
        ids = await crawls(session, site, 2)
        views = [window.model.view_of(one) for one in ids]
        # Never unreadable here.
        gone = replace(views[1].entry, task_id="0" * 15 + "9")  # type: ignore[union-attr]
        with appearing(CancelDialog) as asked:
            window.requests.cancel([*(one for one in views if one), TaskView(gone)])
            dialog = await asked
        told = heard(session.bridge.cancelled)
        press(dialog, "Cancel 3 tasks")
        await told
        assert window.reports.bar.title == "1 task could not be cancelled"
        await until(lambda: status_of(session, ids[0]) == "CANCELLED", session.bridge.batch)


def test_long_work_shows_progress_and_can_stop(qapp: QApplication, qtbot: Any) -> None:
    # The callback's result is unused.
    work: Work[Any] = Work([str(number) for number in range(1200)], lambda *_: None)  # type: ignore[arg-type]
    bar = WorkBar("Asking to stop: {0} of {1} tasks", work)
    qtbot.addWidget(bar)
    work.outcome.done.extend(range(312))
    bar.show_progress()
    assert "Asking to stop: 312 of 1,200 tasks" in [one.text() for one in bar.findChildren(QLabel)]
    bar.stop.click()
    assert work._stopped
    assert not bar.stop.isEnabled()


def test_only_a_recording_that_runs_can_be_ended_in_good_order() -> None:
    recording = a_view(1, "RUNNING", kind="recording")
    asked = replace(recording.entry, engine=EngineFields(stop_requested_at=5))
    assert can_be_stopped(recording)
    assert not can_be_stopped(TaskView(asked))
    assert not can_be_stopped(TaskView(replace(recording.entry, cancel_requested_at=5)))
    assert not can_be_stopped(a_view(1, "RUNNING"))
    assert not can_be_stopped(a_view(1, "PENDING", kind="recording"))
    assert not can_be_stopped(None)


def test_a_cancel_of_one_needs_no_list(qapp: QApplication, qtbot: Any) -> None:
    dialog = CancelDialog(plan_cancel([a_view(1, "RUNNING")]))
    qtbot.addWidget(dialog)
    assert not hasattr(dialog, "list")


async def test_a_chosen_recording_offers_to_be_stopped(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "RUNNING", kind="recording"), a_view(2, "RUNNING")])
        window.table.select_ids([a_view(2).task_id])
        assert not window.acts["stop"].isEnabled()
        window.table.select_ids([a_view(1).task_id])
        assert window.acts["stop"].isEnabled()
        with showing(window.reports.bar) as told:
            window.acts["stop"].trigger()
            await told
        # there is no such folder
        assert window.reports.bar.title == "1 task could not be ended"


async def test_of_many_chosen_tasks_none_of_which_runs_no_recording_is_stopped(home: Path) -> None:
    async with opened(home) as session:
        window, stop = session.window, session.window.acts["stop"]
        window.model.put_many([a_view(number, "COMPLETED") for number in range(1, 701)])
        window.table.selectAll()
        await settled(lambda: window.scope.counts.complete)
        assert not stop.isEnabled()
        window.model.put_many([a_view(701, "RUNNING", kind="recording")])
        window.scope.refresh()
        await settled(stop.isEnabled)


async def test_a_recording_can_be_stopped_while_nothing_is_chosen(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        stop = window.acts["stop"]
        running = a_view(1, "RUNNING", kind="recording", ours=True)
        others = (a_view(2, "RUNNING", ours=True), a_view(3, "RUNNING", kind="recording"))
        session.bridge.news.emit(Batch(others))
        window.model.put_many([running, *others])
        assert not stop.isEnabled()
        session.bridge.news.emit(Batch((running,)))
        assert stop.isEnabled()
        window.table.select_ids([others[0].task_id])
        assert not stop.isEnabled()
        window.table.clearSelection()
        with showing(window.reports.bar) as told:
            stop.trigger()
            await told
        # there is no such folder
        assert window.reports.bar.title == "1 task could not be ended"
        session.bridge.news.emit(Batch((a_view(1, "COMPLETED", kind="recording", ours=True),)))
        assert not stop.isEnabled()


@asynccontextmanager
async def process(*words: str) -> AsyncIterator[int]:
    """The pid of a process of this machine with these words in its command line."""
    run = await asyncio.create_subprocess_exec(
        # It does nothing until the test kills it.
        sys.executable,
        "-c",
        "import time; time.sleep(600)",
        *words,
    )
    try:
        yield run.pid
    finally:
        run.kill()
        await run.wait()


def unresponsive(number: int, asked_ms: int, pid: int, **owner: Any) -> TaskView:
    """A task of another process, which was asked to stop so long ago."""
    view, began = a_view(number, "RUNNING"), machine.started_at_ms(pid)
    known = {"runner": "0" * 16, "host": machine.host(), "owner_started_at": began, **owner}
    entry = replace(
        view.entry,
        pid=pid,
        cancel_requested_at=int(time.time() * 1000) - asked_ms,
        engine=EngineFields(**known),
    )
    return replace(view, entry=entry)


async def test_a_task_that_does_not_stop_offers_to_be_stopped_by_force(home: Path) -> None:
    async with opened(home) as session, process(WORKER_VERB) as pid:
        window = session.window
        late, early = unresponsive(1, 60_000, pid), unresponsive(2, 0, pid)
        window.model.put_many([late, early])
        button = window.details.overview.state_actions.buttons[window.acts["force_stop"]]
        window.table.select_ids([early.task_id])
        assert button.isHidden()
        window.table.select_ids([late.task_id])
        assert not button.isHidden()
        assert button.text() == "Force stop…"


async def test_what_is_no_worker_of_this_machine_offers_no_force(home: Path) -> None:
    async with opened(home) as session, process(WORKER_VERB) as worker, process() as window_pid:
        window = session.window
        views = [
            unresponsive(1, 60_000, worker, host="elsewhere.example"),
            unresponsive(2, 60_000, window_pid),
            unresponsive(3, 60_000, worker, owner_started_at=1),
        ]
        window.model.put_many(views)
        for view in views:
            window.table.select_ids([view.task_id])
            assert not window.acts["force_stop"].isEnabled(), view
