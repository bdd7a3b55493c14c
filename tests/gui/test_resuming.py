"""Stopped crawls go on in the window: one by its button, several after a dry run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.records import Status, TaskRecord
from gui.commands.rerunning import ResumeDialog
from gui.startup.session import Session
from tests.gui.live_tasks import status_of
from tests.gui.test_replaying import overview_buttons
from tests.gui.test_rerunning import OURS
from tests.gui.windows import appearing, dialog_by_act, heard, opened, press, until
from tests.support.linked_site import LinkedSite

LINKS = {0: [1, 2, 3], 1: [4], 2: [5], 3: [], 4: [], 5: []}


@pytest.fixture
def linked() -> Iterator[LinkedSite]:
    """Six pages."""
    site = LinkedSite(LINKS)
    with site.running():
        yield site


def stopped(home: Path, site: LinkedSite, status: Status = Status.CANCELLED) -> str:
    """A crawl of an earlier session that ended with the first page."""
    root = home / "tasks"
    root.mkdir(parents=True, exist_ok=True)
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    args = {"url": f"{site.url}/0", "delay_ms": 0, "engine": "static", "respect_robots": False}
    made = ledger.create("crawl", args, engine=OURS)
    ledger.claim(made.task_id)
    links = [{"href": f"{site.url}/{to}", "text": ""} for to in LINKS[0]]
    page = {"url": f"{site.url}/0", "final_url": f"{site.url}/0", "status": 200, "title": "kept"}
    page |= {"content": "", "depth": 0, "links_found": 3, "links": links, "settled": True}
    ledger.append_page(made.task_id, page)
    ledger.finish(made.task_id, status)
    lease.release()
    return str(made.task_id)


def successors_of(session: Session) -> list[TaskRecord]:
    """The tasks that resumed another one and have ended."""
    views = (session.window.model.view_of(one) for one in session.window.model.ids)
    records = [view.entry for view in views if view and isinstance(view.entry, TaskRecord)]
    return [one for one in records if one.engine and one.engine.resumes and one.is_terminal]


async def test_the_button_of_a_stopped_crawl_resumes_it_and_shows_the_new_task(
    home: Path, linked: LinkedSite
) -> None:
    old = await asyncio.to_thread(stopped, home, linked)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([old])
        assert overview_buttons(window)[0] == "Resume"
        begun = heard(session.bridge.started)
        window.details.overview.state_actions.buttons[window.acts["resume_crawl"]].click()
        (record,) = await begun
        await until(lambda: len(successors_of(session)) == 1, session.bridge.batch)
        assert window.table.selected_ids() == [record.task_id]
        assert window.details.overview.links.parent_link.text() == "Show what it resumes"
        assert "/0" not in linked.requests
        result = home / "tasks" / record.task_id / "result.json"
        pages = json.loads(result.read_text())["pages"]
        assert pages[0]["title"] == "kept"
        assert len(pages) == 6
        window.table.select_ids([old])
        assert not window.acts["resume_crawl"].isEnabled()
        assert "resumed before" in window.acts["resume_crawl"].toolTip()


async def test_several_are_resumed_after_a_dry_run_that_names_the_others(
    home: Path, linked: LinkedSite
) -> None:
    old = [await asyncio.to_thread(stopped, home, linked) for _ in range(2)]
    whole = await asyncio.to_thread(stopped, home, linked, Status.COMPLETED)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([whole])
        assert not window.acts["resume_crawl"].isEnabled()
        assert "ended by itself" in window.acts["resume_crawl"].toolTip()
        window.table.select_ids([*old, whole])
        dialog = await dialog_by_act(window, "resume_crawl", ResumeDialog)
        rows = map(dialog.list.topLevelItem, range(dialog.list.topLevelItemCount()))
        words = {row.text(1) for row in rows if row is not None}
        assert words == {"will go on", "ended by itself"}
        press(dialog, "Resume 2 tasks")
        await until(lambda: len(successors_of(session)) == 2, session.bridge.batch)
        parents = {one.engine and one.engine.parent_task_id for one in successors_of(session)}
        assert parents == set(old)


def left_running(home: Path, site: LinkedSite) -> str:
    """A crawl whose program ended without a word, with its first page."""
    old = stopped(home, site)
    place = home / "tasks" / old / "meta.json"
    meta = json.loads(place.read_text())
    for name in ("ended_at", "error"):
        meta.pop(name, None)
    meta |= {"status": "RUNNING", "pid": 2**22 + 1}  # no process has a number that high
    place.write_text(json.dumps(meta))
    (place.parent / "result.json").unlink(missing_ok=True)
    return old


async def test_crawls_of_a_program_that_ended_are_offered_once(
    home: Path, linked: LinkedSite
) -> None:
    old = [await asyncio.to_thread(left_running, home, linked) for _ in range(2)]
    async with opened(home) as session:
        window = session.window
        bar = window.news_bar
        await until(lambda: "interrupted" in bar.title, session.bridge.batch)
        assert bar.title == "2 crawls were interrupted: the program that ran them ended"
        with appearing(ResumeDialog) as shown:
            press(bar, "Resume…")
            dialog = await shown
        press(dialog, "Resume 2 tasks")
        await until(lambda: len(successors_of(session)) == 2, session.bridge.batch)
        assert {one.engine and one.engine.parent_task_id for one in successors_of(session)} == {
            *old
        }
        assert bar.isHidden()
    async with opened(home) as session:
        assert not session.window.news_bar.isVisible()


async def test_a_crawl_that_was_asked_to_stop_is_not_called_interrupted(
    home: Path, linked: LinkedSite
) -> None:
    asked, other = [await asyncio.to_thread(left_running, home, linked) for _ in range(2)]
    place = home / "tasks" / asked / "meta.json"
    meta = json.loads(place.read_text())
    place.write_text(json.dumps(meta | {"cancel_requested_at": meta["created_at"] + 1}))
    async with opened(home) as session:
        window = session.window
        await until(lambda: "interrupted" in window.news_bar.title, session.bridge.batch)
        assert {status_of(session, one) for one in (asked, other)} == {"FAILED"}
        assert window.news_bar.title == "1 crawl was interrupted: the program that ran it ended"


async def test_an_orphan_of_an_earlier_day_is_not_offered(home: Path, linked: LinkedSite) -> None:
    old = await asyncio.to_thread(stopped, home, linked, Status.FAILED)
    place = home / "tasks" / old / "meta.json"
    meta = json.loads(place.read_text())
    meta |= {
        "error": {"code": "orphaned", "message": "gone"},
        "ended_at": meta["ended_at"] - 60_000,
    }
    place.write_text(json.dumps(meta))
    async with opened(home) as session:
        assert session.window.acts["resume_crawl"] is not None
        assert session.window.news_bar.isHidden()


async def test_a_failed_crawl_needs_nobody_once_it_was_resumed(
    home: Path, linked: LinkedSite
) -> None:
    old = await asyncio.to_thread(stopped, home, linked, Status.FAILED)
    async with opened(home) as session:
        window, model = session.window, session.window.model
        row = model.row_by_id(old)
        assert row is not None
        assert row.needs
        window.table.select_ids([old])
        resumed = heard(session.bridge.resumed)
        window.acts["resume_crawl"].trigger()
        await resumed
        row = model.row_by_id(old)
        assert row is not None
        assert (row.needs, row.quiet) == ((), True)
        await until(lambda: len(successors_of(session)) == 1, session.bridge.batch)
