"""The window while its ledger or its browser is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel

from engine.model.config import Settings
from engine.model.errors import TaskNotFound
from engine.model.records import Health
from engine.text.words import why
from gui.engine_link.bridge import Bridge
from gui.style.questions import Question, _FolderOpening
from gui.tasks.columns import COLUMNS
from tests.gui.live_tasks import FAST, ended, running, start, written_by_another
from tests.gui.windows import appearing, heard, opened, press, until
from tests.support import engines
from tests.support.endless_site import endless


@pytest.mark.case("R51")
async def test_a_root_that_is_a_file_is_a_sentence_and_heals_by_itself(home: Path) -> None:
    (home / "tasks").write_text("no folder")
    async with opened(home, wait="unusable") as session:
        window = session.window
        assert window.area.state == "trouble"
        (home / "tasks").unlink()
        told = heard(window.bridge.loaded)
        window.acts["rescan"].trigger()
        await told
        assert window.area.state == "empty"


async def test_nothing_is_offered_to_start_before_the_ledger_is_open(home: Path) -> None:
    (home / "tasks").write_text("no folder")
    async with opened(home, wait="unusable") as session:
        acts = session.window.acts
        assert not any(acts[key].isEnabled() for key in ("new", "paste", "sample"))
        told = heard(session.bridge.failed)
        session.bridge.start("crawl", {"url": "https://example.com"})
        (error,) = await told
        assert error.code == "ledger_unusable"
        (home / "tasks").unlink()
        loaded = heard(session.window.bridge.loaded)
        acts["rescan"].trigger()
        await loaded
        assert acts["new"].isEnabled()


async def test_a_root_that_disappears_is_trouble_until_it_returns(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    root, aside = home / "tasks", home / "aside"
    async with opened(home) as session:
        window = session.window
        root.rename(aside)
        await until(lambda: window.area.state == "trouble", session.bridge.health)
        words = [label.text() for label in window.area.findChildren(QLabel) if label.isVisible()]
        assert any(str(root) in text for text in words)
        aside.rename(root)
        await until(lambda: window.model.total == len(ids), session.bridge.batch)
        await until(lambda: window.area.state == "table", window.area.populated)


async def test_a_failed_feed_restarts_without_removed_tasks(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window, bridge = session.window, session.bridge
        told = heard(bridge.failed)

        def fail() -> None:
            raise ValueError("a defect")

        (feed,) = bridge.engine.tasks._feeds
        feed._snapshot.survey = fail  # type: ignore[assignment]  # injects a failure
        bridge.rescan()
        await told
        shutil.rmtree(home / "tasks" / ids[0])
        assert window.status.watcher.text == "Polling"
        bridge.rescan()
        await until(lambda: window.model.total == 2, bridge.batch)
        assert window.model.view_of(ids[0]) is None
        await until(lambda: window.status.watcher.text == "Live", bridge.health)


async def test_a_window_that_closes_while_it_opens_leaves_no_lease(home: Path) -> None:
    session_settings = Settings.at(home=home)
    bridge = Bridge(session_settings)
    bridge.open()
    runners = home / "tasks" / ".runners"
    async with asyncio.timeout(60):
        while not runners.exists():
            await asyncio.sleep(0)
    await bridge.close()
    assert not list(runners.iterdir())


async def test_a_missing_browser_is_a_banner_and_the_list_still_works(home: Path) -> None:
    async with opened(home, browser_path="/nowhere/chromium") as session:
        session.bridge.warm()
        window = session.window
        await until(lambda: window.banner.title, session.bridge.health)
        assert "browser" in window.banner.title.lower()
        (task_id,) = await asyncio.to_thread(written_by_another, home)
        assert await ended(session, task_id) == "COMPLETED"


async def test_a_passing_error_gives_way_to_what_lasts(home: Path) -> None:
    async with opened(home) as session:
        trouble, banner = session.window.trouble, session.window.banner
        trouble.show_health(Health(root="/x", browser="missing"))
        lasting = banner.title
        missing = [TaskNotFound(task_id=f"{number:016x}", root="/x") for number in range(7)]
        trouble.show_refusals(missing)
        assert banner.title == "7 tasks could not be cancelled"
        assert "and 2 more" in banner.accessibleName()
        banner._close.click()
        assert banner.title == lasting
        banner._close.click()
        trouble.show_refusals(missing[:1])
        banner._close.click()
        assert banner.title == ""  # closed by hand once: not told again


def without_end(site: Any) -> dict[str, Any]:
    """A crawl with one page after the other, as long as these have links."""
    long = {"max_pages": 10_000, "max_depth": 100, "delay_ms": 500}
    return {**FAST, **long, "url": endless(site, links=1)}


@pytest.mark.case("R94")
async def test_a_running_task_stays_while_its_ledger_is_away(home: Path, site: Any) -> None:
    root, aside = home / "tasks", home / "aside"
    async with opened(home) as session:
        window, model = session.window, session.window.model
        task_id = await start(session, **without_end(site))
        await until(lambda: (root / task_id / "pages.jsonl").exists(), session.bridge.batch)
        root.rename(aside)
        await until(lambda: getattr(model.view_of(task_id), "away", False), session.bridge.batch)
        view = model.view_of(task_id)
        assert view is not None
        assert why(view, 0) == "Waiting: the ledger folder is away. It goes on when that is back."
        await until(lambda: window.banner.title, session.bridge.health)
        assert window.banner.title == "The ledger folder is away"
        assert "wait for it" in window.banner.accessibleName()
        assert window.area.state == "table"
        aside.rename(root)
        endless(site, links=0)  # its end, and not before
        assert await ended(session, task_id) == "COMPLETED"
        await until(lambda: not window.banner.title, session.bridge.health)


@pytest.mark.case("R95")
@pytest.mark.parametrize("what", ["ledger", "task"])
async def test_a_task_with_a_lost_folder_fails(home: Path, site: Any, what: str) -> None:
    root, aside = home / "tasks", home / "aside"
    async with opened(home, away_s=0.3) as session:
        window = session.window
        task_id = await start(session, **without_end(site))
        await until(lambda: (root / task_id / "pages.jsonl").exists(), session.bridge.batch)
        place = root if what == "ledger" else root / task_id
        told = heard(session.bridge.failed)
        place.rename(aside)
        (error,) = await told
        assert "was away for more than 0.3 s" in str(error)
        assert "away for more than" in window.banner.accessibleName()
        assert session.bridge.own_tasks == ()
        aside.rename(place)
        assert await ended(session, task_id) == "FAILED"


async def test_a_removed_folder_is_created_again_by_a_button(home: Path) -> None:
    async with opened(home) as session:
        window, bridge = session.window, session.bridge
        shutil.rmtree(home / "tasks")
        bridge.rescan()
        await until(lambda: window.area.state == "trouble", bridge.health)
        assert not window.acts["new"].isEnabled()
        assert "gone" in window.acts["new"].toolTip()
        told = heard(bridge.loaded)
        press(window.area, "Create the folder again")
        await told
        await until(lambda: window.acts["new"].isEnabled(), bridge.health)
        assert window.area.state == "empty"
        assert (home / "tasks").is_dir()


async def test_list_and_overview_tell_the_same_age(home: Path, site: Any) -> None:
    async with opened(home) as session:
        window = session.window
        task_id = await running(session, f"{site.url}/hang")
        window.table.select_ids([task_id])
        age = next(number for number, one in enumerate(COLUMNS) if one.key == "age")
        seen = set[str]()

        def compare() -> bool:
            row = window.model.row_of(task_id)
            listed = str(window.model.index(row, age).data())
            # A second may end between the tick and this look at the list.
            if f"({listed} ago)" in window.details.overview.text_of("created"):
                seen.add(listed)
            return len(seen) > 2

        await until(compare, window.model.ticked)


@pytest.mark.skipif(os.name == "nt", reason="xdg-open is a program of X11 desktops")
@pytest.mark.parametrize("code", [0, 3])
async def test_a_desktop_without_a_file_manager_gets_the_path_to_copy(
    home: Path, tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.style.questions.OPENER_LOOKS", 10_000)  # a program may start late
    opener = tmp_path / "xdg-open"
    opener.write_text(f"#!/bin/sh\nexit {code}\n")
    opener.chmod(0o700)
    async with opened(home) as session:
        if code:
            with appearing(Question) as shown:
                opening = _FolderOpening(str(opener), home / "tasks")
                question = await shown
            assert "No program here shows folders." in question.accessibleName()
            press(question, "Copy the path")
            assert QGuiApplication.clipboard().text() == str(home / "tasks")
        else:
            opening = _FolderOpening(str(opener), home / "tasks")
            process = opening._process
            await engines.until(lambda: process.returncode is not None)
            assert not any(one.isVisible() for one in session.window.findChildren(Question))
