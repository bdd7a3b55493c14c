"""A task's folder, or the whole ledger, moved or replaced under a running crawl: a typed end.

Nothing is made again in the place of what went, and nothing is written through a link.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError, TaskNotFound, TaskRemoved
from engine.model.records import Status, TaskRecord
from engine.service import pruning
from engine.service.engine import Engine
from engine.service.pruning import Rules
from tests.support.endless_site import endless
from tests.support.engines import opened, until
from tests.support.far_limits import be_patient

ENDLESS = {"delay_ms": 20, "respect_robots": False, "max_pages": 1_000_000, "max_depth": 100}
STATIC = {**ENDLESS, "engine": "static"}
Change = Callable[[Path], None]


async def crawling(engine: Engine, args: dict[str, Any]) -> Path:
    """The folder of a crawl that has two pages."""
    record = await engine.requests.start("crawl", args)
    folder = engine.settings.root / record.task_id
    pages = folder / "pages.jsonl"
    await until(lambda: pages.exists() and pages.read_bytes().count(b"\n") >= 2)
    return folder


def all_files(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def deleted(folder: Path) -> None:
    # Renamed first: what is removed file by file may be written to meanwhile.
    gone = folder.with_name(".gone")
    folder.rename(gone)
    while gone.exists():  # who had it open may put a file into it meanwhile
        shutil.rmtree(gone, ignore_errors=True)


def renamed(folder: Path) -> None:
    folder.rename(folder.with_name("kept-by-hand"))


def linked(folder: Path) -> None:
    """A link stands where the folder was: to a folder with a task of the same shape."""
    outside = folder.parent.parent / "outside"
    shutil.copytree(folder, outside)
    folder.rename(folder.with_name(".gone"))
    folder.symlink_to(outside)


def moved_root(folder: Path) -> None:
    folder.parent.rename(folder.parent.with_name("moved"))


def another_root(folder: Path) -> None:
    moved_root(folder)
    folder.parent.mkdir()


CHANGES: list[Change] = [deleted, renamed, linked, moved_root, another_root]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_crawl_whose_folder_goes_ends_and_makes_nothing_in_its_place(
    home: Path, site: Any, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(home, away_s=1.0) as engine:
        folder = await crawling(engine, STATIC)
        change(folder)
        outside = all_files(home / "outside")
        async with asyncio.timeout(60):
            await engine.tasks.join(folder.name)
        assert engine.health().running == 0
        assert not engine.own.owns(folder.name)
        assert all_files(home / "outside") == outside
        if change is linked:
            assert folder.is_symlink()
        else:
            assert not os.path.lexists(folder)
        if change is not moved_root:
            again = await engine.requests.start("crawl", {**STATIC, "max_pages": 1})
            assert (await engine.tasks.wait(again.task_id)).status == Status.COMPLETED
    assert home.joinpath("tasks").exists() == (change is not moved_root)
    errors = [entry for entry in caplog.records if entry.levelno >= logging.ERROR]
    assert not errors, errors


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch, site: Any) -> None:
    url = endless(site)
    for args in (STATIC, ENDLESS):
        monkeypatch.setitem(args, "url", url)


async def test_a_removed_crawl_frees_its_browser(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch)
    async with opened(home) as engine:
        folder = await crawling(engine, ENDLESS)
        deleted(folder)
        async with asyncio.timeout(60):
            await engine.tasks.join(folder.name)
        args = {**ENDLESS, "max_pages": 2}
        again = await engine.requests.start("crawl", args)
        record = await engine.tasks.wait(again.task_id, timeout_ms=100_000)
        assert record.status == Status.COMPLETED
        assert not folder.exists()
        assert not [run for run in engine.runs.list_runs() if run.status == "running"] or (
            await engine.commands.reap() == []
        )
        assert {run.status for run in engine.runs.list_runs()} == {"aborted", "completed"}


@pytest.mark.case("R58")
@pytest.mark.parametrize("change", [deleted, renamed, linked], ids=lambda one: one.__name__)
async def test_waiting_for_a_removed_task_ends(home: Path, site: Any, change: Change) -> None:
    async with opened(home, away_s=1.0) as engine:
        folder = await crawling(engine, STATIC)
        waiting = asyncio.create_task(engine.tasks.wait(folder.name, timeout_ms=90_000))
        await asyncio.sleep(0)
        change(folder)
        with pytest.raises(EngineError) as told:
            await waiting
        assert isinstance(told.value, TaskRemoved | TaskNotFound)
        if isinstance(told.value, TaskRemoved):
            assert str(told.value) == f"Task {folder.name} was removed."
        await engine.tasks.join(folder.name)


async def test_pruning_removes_no_running_task(home: Path, site: Any) -> None:
    """Also by a clock that is an hour ahead, and beside a run that ends meanwhile."""
    root = home / "tasks"

    def prune_all() -> int:
        later = wall_ms() + 3_600_000
        look = LedgerReader(root)
        shown = pruning.preview(look, Rules(keep=0), later)
        return len(pruning.prune(look, shown, delete=True, now_ms=lambda: later).gone)

    async with opened(home) as engine:
        folder = await crawling(engine, STATIC)
        short = await engine.requests.start("crawl", {**STATIC, "max_pages": 5})
        went = 0
        async with asyncio.timeout(90):
            while not went:
                went += await asyncio.to_thread(prune_all)
        assert (folder / "meta.json").exists()
        await engine.commands.cancel(folder.name)
        await engine.tasks.join(folder.name)
        await engine.tasks.join(short.task_id)
        record = Ledger(root).read(folder.name)
    assert not (root / short.task_id).exists()
    assert isinstance(record, TaskRecord)
    assert record.status == Status.CANCELLED
    assert json.loads((folder / "result.json").read_bytes())["summary"]["total_pages"] >= 2
    assert [name for name in os.listdir(root) if name.startswith(".pruned")] == []
