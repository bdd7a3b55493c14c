"""The window on a bad day: hostile folders, floods, a ledger that vanishes, an early end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QLabel

from engine.model.config import Settings
from fixtures.hostile_ledger.planting import plant, remove_devices
from fixtures.site.site import Site
from gui.context.preferences import Memory
from gui.engine_link.subscription import MOST_VIEWS
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from tests.gui.windows import WAIT_S, heard, opened, until
from tests.hard.window_scenes import FLOOD, in_table, on_disk
from tests.support.endless_site import endless
from tests.support.task_folders import elsewhere, task_id, write_meta

ROOT = Path(__file__).resolve().parents[2]


def shown(session: Session) -> set[str]:
    model = session.window.model
    return {model.id_at(row) for row in range(model.rowCount())}


def written(root: Path, tasks: int) -> None:
    for number in range(tasks):
        write_meta(root, number, "COMPLETED")


def shows(session: Session, truth: dict[str, str]) -> bool:
    return in_table(session) == truth


@pytest.mark.case("R33")
async def test_every_hostile_folder_has_its_row_and_can_be_looked_at(home: Path) -> None:
    planted = plant(home / "tasks")
    try:
        async with opened(home) as session:
            window = session.window
            listed = {one for one, trap in planted.by_id.items() if trap.listed != "absent"}
            assert shown(session) == listed
            for number, one in enumerate(sorted(listed)[::12]):
                window.details.restore_state("events" if number % 2 else "overview")
                window.table.select_ids([one])
                await asyncio.sleep(0)
                assert window.details.task_id == one
                assert window.details.overview.sentence
            for column in ("task", "kind", "progress", "updated"):
                window.model.set_sort([(column, True)])
            window.filter_bar.set_text("unreadable")
            assert 0 < len(shown(session)) < len(listed)
            window.clear_filter()
            assert shown(session) == listed
            assert not window.banner.title
    finally:
        remove_devices(home / "tasks")


@pytest.mark.case("R52")
async def test_a_deleted_ledger_empties_the_list_until_it_returns(home: Path) -> None:
    root = home / "tasks"
    for number in range(3):
        write_meta(root, number, "COMPLETED")
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([task_id(1)])
        while root.exists():  # who runs here may put its lease back meanwhile
            shutil.rmtree(root, ignore_errors=True)
        await until(
            lambda: window.area.state == "trouble" and not window.model.total, session.bridge.health
        )
        words = [label.text() for label in window.area.findChildren(QLabel) if label.isVisible()]
        assert any("ledger folder is gone" in text for text in words)
        assert window.status.watcher.text == "Folder gone"
        for number in range(2):
            write_meta(root, number, "COMPLETED")
        await until(lambda: window.model.total == 2, session.bridge.batch)
        await until(lambda: window.area.state == "table", window.area.populated)


@pytest.mark.thorough
@pytest.mark.case("R56")
async def test_after_a_flood_of_rewrites_the_table_is_what_is_on_disk(home: Path) -> None:
    root = home / "tasks"
    for number in range(60):
        write_meta(root, number)
    async with opened(home) as session:
        child = elsewhere(FLOOD, root, 60, 8)
        assert child.stdout is not None
        try:
            await asyncio.to_thread(child.stdout.readline)  # all is written; its owner lives
            assert len(on_disk(root)) == 60
            # The engine may end what it took for an orphan before: the files tell how it is now.
            await until(lambda: in_table(session) == on_disk(root), session.bridge.batch)
        finally:
            await asyncio.to_thread(child.communicate)


@pytest.mark.case("R59")
async def test_two_windows_share_one_ledger(home: Path, site: Site) -> None:
    args = {"url": site.url, "engine": "static", "max_pages": 2, "delay_ms": 0}
    async with opened(home) as one, opened(home) as other:
        made = [
            await session.bridge.engine.requests.start("crawl", args)
            for _ in range(5)
            for session in (one, other)
        ]
        for record in made:
            ended = await one.bridge.engine.tasks.wait(record.task_id, 90_000)
            assert ended.status == "COMPLETED"
        truth = on_disk(home / "tasks")
        assert set(truth) == {record.task_id for record in made}
        for session in (one, other):
            await until(partial(shows, session, truth), session.bridge.batch)
        for record in made:
            kinds = await told_to_the_end(one, record.task_id)
            assert (kinds.count("started"), kinds.count("completed")) == (1, 1)


async def told_to_the_end(session: Session, task_id: str) -> list[str]:
    """The kinds of its events, once the last is written: a task ends a moment before that."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = await session.bridge.engine.tasks.events(task_id)
            kinds = [event.kind for event in found.events]
            if "completed" in kinds:
                return kinds
            await asyncio.sleep(0.01)


@pytest.mark.case("R60")
async def test_the_first_rows_appear_while_others_load(home: Path) -> None:
    await asyncio.to_thread(written, home / "tasks", 2_000)
    session = Session(Settings.at(home=home), Memory(home.parent / "window.ini"), CrashHandler())
    told: list[tuple[int, bool]] = []
    session.bridge.batch.connect(lambda batch: told.append((len(batch.views), batch.complete)))
    loaded = heard(session.window.bridge.loaded)
    session.open()
    await loaded
    await session.close()
    assert told[0][0] > 0
    assert not told[0][1]
    assert sum(views for views, _ in told) == 2_000
    # A click comes in between: no repaint takes more rows than that.
    assert max(views for views, _ in told) <= MOST_VIEWS


# A window whose user closes it in the middle of a crawl and says that tasks may be cancelled.
CLOSED_MID_CRAWL = """
import json, sys
import gui.engine_link.bridge, gui.startup.session
from gui import app
from gui.style.questions import Question
from gui.startup.session import Session
from PySide6.QtWidgets import QPushButton
home, args = sys.argv[1:]
gui.engine_link.bridge.CLOSE_S = gui.startup.session.CLOSE_S = 60.0  # a busy machine
open_window = Session.open
def open_and_close(session, wish=None):
    open_window(session, wish)
    bridge, pages = session.bridge, []
    bridge.opened.connect(lambda: bridge.start("crawl", json.loads(args)))
    def look(batch):
        if pages or not any(view.units and view.units.done >= 3 for view in batch.views):
            return
        pages.append(1)
        session.window.close()
        (question,) = session.window.findChildren(Question)
        for button in question.findChildren(QPushButton):
            if button.text() == "Cancel tasks and quit":
                button.click()
    bridge.batch.connect(look)
Session.open = open_and_close
sys.exit(app.main(["--home", home, "--new-window"]))
"""


@pytest.mark.case("R78")
def test_closing_during_a_crawl_cancels_it(home: Path, site: Site) -> None:
    args = {"url": endless(site), "delay_ms": 0, "max_pages": 10_000, "max_depth": 100}
    words = [sys.executable, "-X", "dev", "-c", CLOSED_MID_CRAWL, str(home), json.dumps(args)]
    mark = f"closed-mid-crawl-{home}"
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | {"OC_TEST_MARK": mark},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    (meta,) = (json.loads(place.read_bytes()) for place in home.glob("tasks/*/meta.json"))
    assert meta["status"] == "CANCELLED"
    (pages,) = home.glob("tasks/*/pages.jsonl")
    assert pages.read_bytes().count(b"\n") >= 3
    until_s = time.monotonic() + 60  # what was killed needs a moment
    while left := [one for one in psutil.process_iter() if _mark_of(one) == mark]:
        assert time.monotonic() < until_s, left
        time.sleep(0.05)  # no event to wait for: another process changes it


def _mark_of(process: psutil.Process) -> str:
    try:
        return process.environ().get("OC_TEST_MARK", "")
    except (psutil.Error, OSError):
        return ""
