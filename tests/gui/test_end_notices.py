"""A chosen task reports its end, whatever the settings say, and after a restart, too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt

from engine.model.records import Status
from fixtures.site.site import Site
from gui.desktop.notifications import News, Popup
from gui.startup.session import Session
from gui.tasks.columns import COLUMNS
from tests.gui.live_tasks import ended, running, start
from tests.gui.windows import heard, opened, until
from tests.support.endless_site import endless

LONG: dict[str, Any] = {"engine": "static", "delay_ms": 1000, "max_pages": 10_000}
LONG["max_depth"] = 100
SPOKEN = Qt.ItemDataRole.AccessibleTextRole


def news_of(session: Session) -> News:
    (news,) = session.window.findChildren(News)
    return news


def spoken(session: Session, task_id: str) -> str:
    model = session.window.model
    task = next(number for number, one in enumerate(COLUMNS) if one.key == "task")
    return str(model.index(model.row_of(task_id), task).data(SPOKEN))


def quiet(session: Session) -> None:
    """No notice of any completed task, and a quiet time around the clock."""
    preferences = session.window.desk.preferences
    preferences.set("notify.completed", "none")
    preferences.set("notify.quiet_from", "00:00")
    preferences.set("notify.quiet_until", "23:59")


async def choose(session: Session, *ids: str) -> None:
    session.window.table.select_ids(list(ids))
    await until(lambda: session.window.acts["notify_end"].isEnabled(), session.bridge.health)


async def test_the_end_of_a_chosen_task_comes_through_in_a_quiet_time(
    home: Path, site: Site
) -> None:
    async with opened(home) as session:
        quiet(session)
        first = endless(site, links=1)  # no crawl ends before it is chosen
        other = await start(session, url=first, **LONG)
        task_id = await start(session, url=first, **LONG)
        await choose(session, task_id)
        told: asyncio.Future[Any] = heard(news_of(session).told)
        session.window.acts["notify_end"].trigger()
        assert "you are notified of its end" in spoken(session, task_id)
        endless(site, links=0)  # each next page is the last one
        (popup,) = await told
        assert isinstance(popup, Popup)
        assert popup.task_ids == (task_id,)
        assert await ended(session, other) == Status.COMPLETED
        assert await ended(session, task_id) == Status.COMPLETED
        (entry,) = news_of(session).entries  # the other one is not reported
        assert entry.task_ids == (task_id,)
        assert "You asked to be notified of its end." in entry.body
        assert "you are notified" not in spoken(session, task_id)
        assert not session.window.acts["notify_end"].isEnabled()


async def test_the_choice_can_be_taken_back_for_several(home: Path, site: Site) -> None:
    async with opened(home) as session:
        quiet(session)
        ids = [await running(session, f"{site.url}/hang") for _ in range(2)]
        await choose(session, *ids)
        action = session.window.acts["notify_end"]
        action.trigger()
        assert all("you are notified" in spoken(session, one) for one in ids)
        assert action.iconText() == "Do not notify me at the end"
        action.trigger()
        assert not any("you are notified" in spoken(session, one) for one in ids)
        session.bridge.cancel(ids)
        for one in ids:
            await ended(session, one)
        assert not news_of(session).entries


async def test_an_end_without_a_window_is_reported_at_the_next_start(
    home: Path, site: Site
) -> None:
    async with opened(home) as session:
        task_id = await running(session, f"{site.url}/hang")
        await choose(session, task_id)
        session.window.acts["notify_end"].trigger()
    async with opened(home) as session:  # the end of the first window has cancelled it
        news = news_of(session)
        assert [one.task_ids for one in news.entries] == [(task_id,)]
        assert news.entries[0].title == "A task was cancelled"
    async with opened(home) as session:
        assert not news_of(session).entries
