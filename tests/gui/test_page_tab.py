"""The Page tab shows a running task's page with its address, and asks for nothing while unseen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLineEdit

from engine.sample.site import Answer
from gui.details.page_tab import PageTab, can_be_watched, has_page
from gui.startup.session import Session
from tests.gui.task_views import a_view
from tests.gui.windows import heard, opened, until
from tests.support.far_limits import be_patient
from tests.support.serving import served

GREEN = b"<!doctype html><title>t</title><body style='background:#00c800'>"


@pytest.fixture(autouse=True)
def patient_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that answers late on a crowded machine is no broken one."""
    be_patient(monkeypatch)


@pytest.fixture
def green() -> Iterator[str]:
    """The address of a green page."""
    with served(lambda _: Answer(GREEN)) as url:
        yield f"{url}/"


@asynccontextmanager
async def crawling(home: Path, address: str) -> AsyncIterator[tuple[Session, str]]:
    """A window that runs a crawl which goes on until it is cancelled, and that task's id."""
    async with opened(home) as session:
        asked = {
            "url": address,
            "maxPages": 1,
            "engine": "browser",
            "wait_for": "#never",
            "timeout_ms": 600_000,
        }
        session.bridge.start("crawl", asked)
        (record,) = await heard(session.bridge.started)
        model, task_id = session.window.model, record.task_id

        def runs() -> Any:
            view = model.view_of(task_id)
            return view is not None and can_be_watched(view)

        await until(runs, session.bridge.batch)
        session.window.table.select_ids([task_id])
        yield session, task_id


async def seen(session: Session) -> PageTab:
    """The tab, once a green picture is in it."""
    while True:
        for tab in session.window.details.findChildren(PageTab):
            image = tab.grab().toImage()
            middle = image.pixelColor(image.width() // 2, image.height() // 2)
            if middle.green() > 150 and middle.red() < 50:
                return tab
        await asyncio.sleep(0.05)


async def test_the_live_page_shows_its_address(tmp_path: Path, green: str) -> None:
    async with crawling(tmp_path / "home", green) as (session, task_id):
        act = session.window.acts["watch_page"]
        assert act.isEnabled()
        act.trigger()
        tab = await seen(session)
        (address,) = (one for one in tab.findChildren(QLineEdit) if one.isReadOnly())
        assert address.text() == green
        assert tab.state == "● Live"
        session.bridge.cancel([task_id])
        await until(lambda: not act.isEnabled(), session.bridge.batch)
        while tab.state != "Last seen":
            await asyncio.sleep(0.02)


async def test_hidden_live_views_request_nothing(tmp_path: Path, green: str) -> None:
    async with crawling(tmp_path / "home", green) as (session, _):
        watched = [task.get_name() for task in asyncio.all_tasks()]
        assert not any("watch a page" in name for name in watched)
        session.window.acts["watch_page"].trigger()
        await seen(session)
        assert any("watch a page" in task.get_name() for task in asyncio.all_tasks())
        session.window.details.restore_state("overview")
        while any("watch a page" in task.get_name() for task in asyncio.all_tasks()):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (a_view(1, "COMPLETED", ours=True), "has ended"),
        (a_view(1, "RUNNING", foreign=True), "Another program"),
        (a_view(1, "PENDING", ours=True), "waits for its turn"),
        (a_view(1, "RUNNING", ours=True, kind="recording"), "pages of a recording"),
    ],
)
async def test_it_says_why_there_is_nothing_to_see(tmp_path: Path, view: Any, words: str) -> None:
    async with opened(tmp_path / "home") as session:
        tab = PageTab(session.window.desk, session.window)
        tab.show_task(view)
        assert words in tab.state


def test_kinds_that_open_no_page_have_no_such_tab() -> None:
    assert has_page(a_view(1, "RUNNING"))
    assert not has_page(a_view(1, "RUNNING", kind="browser_task"))
