"""The window under a hold on new starts, and the end that waits for running tasks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PySide6.QtWidgets import QPushButton

from engine.ledger.hold import hold_starts, read_hold, release_starts
from engine.ledger.reader import LedgerReader
from engine.model.records import Health, Status, TaskRecord
from engine.sample.site import Answer
from fixtures.site.site import Site
from gui.commands.hold_starts import HoldStarts
from gui.desktop.awaited_ends import FinishThenQuit
from gui.startup.session import Session
from gui.style.banners import Banner
from tests.gui.live_tasks import ended, running, start, status_of
from tests.gui.windows import dialog_of, heard, opened, press, until
from tests.support.endless_site import endless

CRAWL: dict[str, Any] = {"engine": "static", "delay_ms": 0, "max_pages": 2}


def hold_bar(session: Session) -> Banner:
    (part,) = session.window.findChildren(HoldStarts)
    return part.bar


def finishing(session: Session) -> FinishThenQuit:
    return session.window.finish_quit


def words(bar: Banner) -> str:
    return bar.accessibleName()


async def started(session: Session, site: Site, **more: Any) -> str:
    return await start(session, **{"url": site.url, **CRAWL, **more})


async def test_the_hold_of_another_program_is_shown_with_its_author_and_its_way_out(
    home: Path, site: Site
) -> None:
    async with opened(home) as session:
        root, acts = home / "tasks", session.window.acts
        hold_starts(root, "otto@laptop (octask)", 1_763_773_200_123, reason="a <b>move</b>")
        await until(lambda: hold_bar(session).isVisible(), session.bridge.health)
        assert "New starts are held" in words(hold_bar(session))
        assert "by otto@laptop (octask)" in words(hold_bar(session))
        assert "Reason: a <b>move</b>" in words(hold_bar(session))
        assert acts["hold"].isChecked()
        assert "starts held" in session.window.status.work.text()
        task_id = await started(session, site)
        assert status_of(session, task_id) == Status.PENDING
        session.window.table.select_ids([task_id])
        overview = session.window.details.overview
        await until(lambda: "starts are held" in overview._why.text(), session.bridge.health)
        press(hold_bar(session), "Start waiting tasks")
        assert await ended(session, task_id) == Status.COMPLETED
        assert not hold_bar(session).isVisible()
        assert not acts["hold"].isChecked()
        assert read_hold(root) is None


async def test_one_waiting_task_is_started_anyway(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window, acts = session.window, session.window.acts
        assert not acts["start_anyway"].isEnabled()
        acts["hold"].trigger()
        await until(lambda: acts["hold"].isChecked(), session.bridge.health)
        first, second = await started(session, site), await started(session, site)
        window.table.select_ids([second])
        await until(lambda: acts["start_anyway"].isEnabled(), window.scope.changed)
        acts["start_anyway"].trigger()
        assert await ended(session, second) == Status.COMPLETED
        assert status_of(session, first) == Status.PENDING
        assert acts["hold"].isChecked()
        acts["hold"].trigger()
        assert await ended(session, first) == Status.COMPLETED


async def test_a_closed_hold_bar_stays_closed_and_the_status_bar_still_says_it(
    home: Path,
) -> None:
    async with opened(home) as session:
        hold_starts(home / "tasks", "otto", 1)
        await until(lambda: hold_bar(session).isVisible(), session.bridge.health)
        hold_bar(session)._close.click()
        session.bridge.health.emit(Health(root="x", hold=read_hold(home / "tasks"), running=1))
        assert not hold_bar(session).isVisible()
        assert "starts held" in session.window.status.work.text()
        release_starts(home / "tasks")


async def test_the_window_quits_when_its_running_tasks_have_ended(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        leaving = asyncio.ensure_future(session.ended())
        first = endless(site, links=1)
        long = {"max_pages": 10_000, "max_depth": 100}
        task_id = await started(session, site, url=first, delay_ms=200, **long)
        await until(lambda: finishing(session).running, session.bridge.health)
        waiting = await started(session, site)
        session.window.acts["quit"].trigger()
        press(dialog_of(session), "Finish them, then quit")
        bar = finishing(session).bar
        assert "Quits when 1 task has ended" in words(bar)
        site.answers = {urlsplit(first).path: Answer(b"<p>No link.</p>")}  # no page after it
        assert not session.window.acts["new"].isEnabled()
        assert read_hold(home / "tasks") is None  # other programs go on
        assert await leaving is None
        record = LedgerReader(home / "tasks").read(task_id)  # the list may not have heard of it
        assert isinstance(record, TaskRecord)
        assert record.status == Status.COMPLETED
        assert status_of(session, waiting) == Status.PENDING
    async with opened(home) as session:
        news = session.window.context.news_bar
        told = "1 task was not started when the window quit"
        await until(lambda: told in words(news), session.bridge.health)
        begun = heard(session.bridge.started)
        press(news, "Start them now")
        (record,) = await begun
        assert record.args_summary["url"].startswith(site.url)
    async with opened(home) as session:
        assert not session.window.context.news_bar.isVisible()


async def test_who_stays_after_all_goes_on_with_the_waiting_tasks(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        leaving = asyncio.ensure_future(session.ended())
        await running(session, f"{site.url}/hang")
        waiting = await started(session, site)
        session.window.acts["finish_quit"].trigger()
        bar = finishing(session).bar
        assert "1 waiting task is cancelled then" in words(bar)
        press(bar, "Don’t quit")
        assert not bar.isVisible()
        assert session.window.acts["new"].isEnabled()
        (hanging,) = set(session.bridge.own_tasks) - {waiting}
        session.bridge.cancel([hanging])
        assert await ended(session, waiting) == Status.COMPLETED
        assert not leaving.done()
        leaving.cancel()


async def test_the_end_that_waits_can_be_made_at_once(home: Path, site: Site) -> None:
    async with opened(home) as session:
        leaving = asyncio.ensure_future(session.ended())
        await running(session, f"{site.url}/hang")
        await until(lambda: finishing(session).running, session.bridge.health)
        session.window.acts["finish_quit"].trigger()
        press(finishing(session).bar, "Quit now")
        assert await leaving is None


async def test_finishing_may_be_the_rule(home: Path, site: Site) -> None:
    async with opened(home) as session:
        session.window.desk.preferences.set("desktop.quit_with_tasks", "finish")
        await running(session, f"{site.url}/hang")
        await until(lambda: finishing(session).running, session.bridge.health)
        session.window.acts["quit"].trigger()
        assert finishing(session).is_active
        session.window.acts["quit"].trigger()  # who asks twice is asked
        found = [one.text() for one in dialog_of(session).findChildren(QPushButton)]
        assert "Finish them, then quit" not in found
        press(dialog_of(session), "Don’t quit")
        assert not finishing(session).is_active  # the quit that waited is over, too
        assert session.window.acts["new"].isEnabled()
