"""The folder of a running task, or its ledger, goes away and returns: the run continues."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.filesystem_checks import HeldFolder, Presence, may_be_away
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owner
from engine.model.errors import LedgerAway, LedgerWriteFailed, TaskNotFound, TaskRemoved
from engine.model.records import Status, TaskId, TaskRecord
from engine.service.engine import Engine
from tests.support.endless_site import endless
from tests.support.engines import WAIT_S, opened, until
from tests.support.line_files import whole_lines

STATIC: dict[str, Any] = {
    "delay_ms": 10,
    "respect_robots": False,
    "max_pages": 40,
    "max_depth": 100,
    "engine": "static",
    "concurrency": 3,
}


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch, site: Any) -> None:
    monkeypatch.setitem(STATIC, "url", endless(site))


async def crawling(engine: Engine, **more: Any) -> Path:
    """The folder of a crawl that has two pages."""
    record = await engine.requests.start("crawl", {**STATIC, **more})
    folder = engine.settings.root / record.task_id
    pages = folder / "pages.jsonl"
    await until(lambda: pages.exists() and pages.read_bytes().count(b"\n") >= 2)
    return folder


def page_urls(folder: Path) -> list[str]:
    return [page["url"] for page in whole_lines(folder / "pages.jsonl")]


def checked(folder: Path, status: Status, pages: int | None = None) -> TaskRecord:
    """The task as it ended: every page once, the result with all of them."""
    record = Ledger(folder.parent).read(folder.name)
    assert isinstance(record, TaskRecord)
    assert record.status == status, record.error
    urls = page_urls(folder)
    assert len(urls) == len(set(urls))
    result = json.loads((folder / "result.json").read_bytes())
    assert [page["url"] for page in result["pages"]] == urls
    if pages is not None:
        assert len(urls) == pages
    return record


def whole(folder: Path) -> Path:
    return folder.parent


def task(folder: Path) -> Path:
    return folder


def moved(place: Path) -> Callable[[], object]:
    """Put `place` aside; returns what brings it back."""
    aside = place.with_name("aside")
    place.rename(aside)
    return lambda: aside.rename(place)


def unmounted(place: Path) -> Callable[[], object]:
    """The same, and an empty folder stands there, as where a disk was mounted."""
    back = moved(place)
    place.mkdir()

    def again() -> None:
        place.rmdir()
        back()

    return again


def copied(place: Path) -> Callable[[], object]:
    """The same, and what comes back is a copy: other folders, and a lease nobody holds."""
    aside = place.with_name("aside")
    place.rename(aside)

    def back() -> None:
        shutil.copytree(aside, place.with_name("copy"))
        place.with_name("copy").rename(place)

    return back


@pytest.mark.case("R94")
@pytest.mark.parametrize(
    ("what", "how"),
    [(whole, moved), (whole, unmounted), (whole, copied), (task, moved), (task, copied)],
)
async def test_a_run_waits_for_a_folder_that_is_away_and_goes_on(
    home: Path, site: Any, what: Callable[[Path], Path], how: Callable[[Path], Callable[[], object]]
) -> None:
    async with opened(home) as engine:
        folder = await crawling(engine)
        back = how(what(folder))
        await until(lambda: engine.own.run_of(TaskId(folder.name)).owner is Owner.AWAY)
        assert "the ledger folder is away, waiting" in engine.health().warnings
        await asyncio.sleep(0.3)
        back()
        await until(lambda: not engine.own.owns(folder.name))
        assert not engine.health().warnings
        assert engine.own.lost(folder.name) is None
        checked(folder, Status.COMPLETED, 40)
        events = Ledger(folder.parent).read_events(folder.name).events
        (told,) = [event.data for event in events if (event.data or {}).get("phase") == "ledger"]
        assert told is not None
        assert told["note"].startswith("the ledger folder is away: the run waited")


@pytest.mark.case("R94")
async def test_a_cancel_waits_for_an_away_folder(home: Path, site: Any) -> None:
    async with opened(home, away_s=1_000.0) as engine:  # not the end of that ends the wait
        folder = await crawling(engine, max_pages=1_000_000)
        back = moved(folder.parent)
        await until(lambda: engine.own.run_of(TaskId(folder.name)).owner is Owner.AWAY)
        cancelling = asyncio.create_task(engine.commands.cancel(folder.name, "enough"))
        await asyncio.sleep(1.5)  # longer than a body is given to stop
        assert not cancelling.done()
        back()
        async with asyncio.timeout(WAIT_S):
            await cancelling
        await until(lambda: not engine.own.owns(folder.name))
        record = checked(folder, Status.CANCELLED)
        assert record.engine is not None
        assert record.engine.units is not None
        assert record.engine.units.done == len(page_urls(folder))


@pytest.mark.case("R94")
async def test_an_away_ledger_delays_no_other_run(home: Path, tmp_path: Path, site: Any) -> None:
    async with opened(home) as engine, opened(tmp_path / "other") as other:
        folder = await crawling(engine)
        back = moved(folder.parent)
        await until(lambda: engine.own.run_of(TaskId(folder.name)).owner is Owner.AWAY)
        beside = await crawling(other)
        await until(lambda: not other.own.owns(beside.name))
        checked(beside, Status.COMPLETED, 40)
        assert not other.health().away
        back()
        await until(lambda: not engine.own.owns(folder.name))
        checked(folder, Status.COMPLETED, 40)


@pytest.mark.case("R95")
async def test_a_folder_away_for_good_fails_the_run(home: Path, site: Any) -> None:
    async with opened(home, away_s=0.5) as engine:
        folder = await crawling(engine, max_pages=1_000_000)
        back = moved(folder.parent)
        await until(lambda: not engine.own.owns(folder.name))
        lost = engine.own.lost(folder.name)
        assert isinstance(lost, LedgerAway)
        with pytest.raises(LedgerAway, match="away for more than"):
            await engine.commands.cancel(folder.name)
        back()
        ended = await engine.tasks.wait(folder.name, 100_000)
        assert ended.status == Status.FAILED
        assert ended.error is not None
        assert "the ledger folder was away for more than 0.5 s" in ended.error.message


@pytest.mark.case("R95")
async def test_a_run_that_waits_no_more_is_lost_in_the_same_moment(home: Path, site: Any) -> None:
    """Otherwise a reader takes the end of the wait for the return of the folder."""
    async with opened(home, away_s=0.5) as engine:
        folder = await crawling(engine, max_pages=1_000_000)
        back = moved(folder.parent)
        await until(lambda: engine.own.is_away(folder.name))
        while engine.own.is_away(folder.name):
            await asyncio.sleep(0)
        assert isinstance(engine.own.lost(folder.name), LedgerAway)
        back()


@pytest.mark.case("R95")
async def test_closing_does_not_wait_for_an_away_ledger(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        folder = await crawling(engine, max_pages=1_000_000)
        back = moved(folder.parent)
        await until(lambda: engine.own.run_of(TaskId(folder.name)).owner is Owner.AWAY)
        await engine.close(grace_s=0.5)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    back()
    async with opened(home) as engine:
        (reaped,) = engine.reaped
        assert reaped.status == Status.FAILED
    assert len(page_urls(folder)) == len(set(page_urls(folder)))


@pytest.mark.case("R95")
async def test_a_removed_task_ends_at_once(home: Path, site: Any) -> None:
    async with opened(home, away_s=1_000.0) as engine:  # as a folder that may come back
        folder = await crawling(engine, max_pages=1_000_000)
        gone = folder.with_name(".gone")
        folder.rename(gone)
        while gone.exists():
            shutil.rmtree(gone, ignore_errors=True)
        await until(lambda: not engine.own.owns(folder.name))
        assert isinstance(engine.own.lost(folder.name), TaskRemoved)
        assert not folder.exists()


@pytest.mark.case("R95")
async def test_a_lost_run_is_reaped_despite_its_held_lease(home: Path, site: Any) -> None:
    """Its lease alone would have kept it RUNNING for as long as the program lives."""
    async with opened(home) as engine:
        lease = engine._maintenance.lease
        assert lease is not None
        other = Ledger(home / "tasks", lease=lease)
        task_id = other.claim(other.create("crawl", {}).task_id).task_id
        assert (await engine.tasks.get(task_id)).orphaned
        (ended,) = await engine.commands.reap()
        assert (ended.task_id, ended.status) == (task_id, Status.FAILED)
        assert ended.error is not None
        assert "has no such run any more" in ended.error.message


@pytest.mark.case("R96")
async def test_an_older_copy_of_a_folder_fails_the_run(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        folder = await crawling(engine, max_pages=1_000_000)
        older = folder.with_name("older")
        shutil.copytree(folder, older)
        pages = folder / "pages.jsonl"
        await until(lambda: pages.read_bytes().count(b"\n") > len(page_urls(older)) + 3)
        folder.rename(folder.with_name("aside"))
        older.rename(folder)
        await until(lambda: not engine.own.owns(folder.name))
        record = checked(folder, Status.FAILED)
        assert record.error is not None
        assert record.error.code == "units_missing"


def test_a_folder_is_away_until_it_is_removed_while_its_ledger_stands(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    (root / ".runners").mkdir(parents=True)
    folder = root / ("a" * 16)
    folder.mkdir()
    (folder / "meta.json").write_text("{}")
    held = HeldFolder(root, folder.name)
    assert held.check() is Presence.THERE
    for place in (folder, root):
        back = moved(place)
        assert held.check() is Presence.AWAY
        back()
        assert held.check() is Presence.THERE
    back = unmounted(root)
    assert held.check() is Presence.AWAY
    back()
    shutil.rmtree(root)
    root.mkdir()
    assert held.check() is Presence.AWAY, "an emptied ledger has no mark that it is one"
    (root / ".runners").mkdir()
    assert held.check() is Presence.REMOVED
    held.close()


def test_a_deleted_folder_whose_ledger_stands_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / ("a" * 16)
    folder.mkdir(parents=True)
    (tmp_path / "tasks" / ".runners").mkdir()
    (folder / "meta.json").write_text("{}")
    held = HeldFolder(folder.parent, folder.name)
    shutil.rmtree(folder)
    assert held.check() is Presence.REMOVED
    held.close()


@pytest.mark.parametrize(("fault", "may_be"), [(errno.ENOENT, True), (errno.ENOSPC, False)])
def test_only_a_write_into_an_absent_folder_is_waited_for(fault: int, may_be: bool) -> None:
    failed = LedgerWriteFailed(path="x", reason="it failed")
    failed.__cause__ = OSError(fault, "it failed")
    assert may_be_away(failed) is may_be
    assert may_be_away(TaskNotFound(task_id="0" * 16, root="x"))
