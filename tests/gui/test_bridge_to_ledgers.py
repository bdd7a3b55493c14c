"""Ledgers beside the window's own, as the window's parts ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.model.config import Settings
from engine.model.ledger_ids import qualified
from engine.model.records import TaskRecord, TaskView
from engine.service.feed import Batch
from engine.service.router.ledger_paths import BadLabel, Beside, LedgerState, NoSuchLedger
from gui.commands.exporting import file_name
from gui.engine_link.bridge import Bridge
from tests.gui.windows import WAIT_S, until
from tests.support.task_folders import elsewhere, task_id, write_meta


class Listener:
    """What a window keeps of the bridge's signals."""

    def __init__(self, bridge: Bridge) -> None:
        self.views: dict[str, TaskView] = {}
        self.states: list[tuple[LedgerState, ...]] = []
        self._bridge = bridge
        bridge.batch.connect(self._take)
        bridge.ledgers_changed.connect(lambda: self.states.append(bridge.ledgers))

    def _take(self, batch: Batch) -> None:
        for one in batch.gone:
            self.views.pop(one, None)
        self.views |= {view.task_id: view for view in batch.views}

    def status(self, one: str) -> str:
        view = self.views.get(one)
        return getattr(view.entry, "status", "?") if view else ""


@asynccontextmanager
async def bridged(own: Path, *besides: Beside) -> AsyncIterator[tuple[Bridge, Listener]]:
    bridge = Bridge(Settings.at(home=own), accepts=False)
    listener = Listener(bridge)
    for beside in besides:
        bridge.add_ledger(beside)
    bridge.open()
    try:
        await until(lambda: listener.status(task_id(1)), bridge.batch)
        yield bridge, listener
    finally:
        async with asyncio.timeout(WAIT_S):
            await bridge.close()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_meta(tmp_path / "own" / "tasks", 1)
    return tmp_path / "own"


@pytest.fixture
def nas(tmp_path: Path) -> Path:
    write_meta(tmp_path / "nas" / "tasks", 1, "COMPLETED")
    return tmp_path / "nas" / "tasks"


THERE = f"{task_id(1)}@nas"


async def test_early_requests_wait_for_the_own_ledger(own: Path, nas: Path) -> None:
    async with bridged(own, Beside(nas, "nas")) as (bridge, heard):
        assert heard.states[0] == (LedgerState("nas", nas),)  # before it was opened
        await until(lambda: heard.status(THERE) == "COMPLETED", bridge.batch)
        assert heard.status(task_id(1)) == "RUNNING"
        await until(
            lambda: [(one.state, one.tasks) for one in bridge.ledgers] == [("live", 1)],
            bridge.ledgers_changed,
        )


async def test_ledgers_come_and_go_without_a_restart(own: Path, nas: Path) -> None:
    async with bridged(own) as (bridge, heard):
        assert [*bridge.ledgers] == []
        bridge.add_ledger(Beside(nas, "nas"))
        assert [one.label for one in bridge.ledgers] == ["nas"]
        await until(lambda: heard.status(THERE), bridge.batch)
        bridge.remove_ledger("nas")
        assert [*bridge.ledgers] == []
        assert heard.states[-1] == ()
        await until(lambda: not heard.status(THERE), bridge.batch)
        assert heard.status(task_id(1)) == "RUNNING"
        bridge.remove_ledger("nas")  # twice is no error
        bridge.rescan()


async def test_a_ledger_can_be_renamed_and_made_writable(own: Path, nas: Path) -> None:
    write_meta(nas, 2, "PENDING")
    async with bridged(own, Beside(nas, "nas")) as (bridge, heard):
        await until(lambda: heard.status(THERE), bridge.batch)
        bridge.change_ledger("nas", new_label="attic")
        assert [one.label for one in bridge.ledgers] == ["attic"]
        there = f"{task_id(2)}@attic"
        await until(lambda: heard.status(there) and not heard.status(THERE), bridge.batch)
        with pytest.raises(BadLabel):
            bridge.change_ledger("attic", new_label="No such name")
        with pytest.raises(NoSuchLedger):
            bridge.change_ledger("nas", watch_only=False)
        assert [one.watch_only for one in bridge.ledgers] == [True]
        bridge.change_ledger("attic", watch_only=False)
        assert [one.watch_only for one in bridge.ledgers] == [False]
        bridge.cancel([there])
        await until(lambda: heard.status(there) == "CANCELLED", bridge.batch)
        assert "PENDING" not in (nas / task_id(2) / "meta.json").read_text()


async def test_ledgers_can_change_before_opening(own: Path, nas: Path, tmp_path: Path) -> None:
    bridge = Bridge(Settings.at(home=own), accepts=False)
    bridge.add_ledger(Beside(nas, "nas"))
    with pytest.raises(BadLabel):
        bridge.add_ledger(Beside(tmp_path, "nas"))
    bridge.change_ledger("nas", watch_only=False)
    assert bridge.ledgers == (LedgerState("nas", nas, watch_only=False),)
    bridge.change_ledger("nas", new_label="attic")
    assert bridge.ledgers == (LedgerState("attic", nas, watch_only=False),)
    bridge.remove_ledger("attic")
    assert [*bridge.ledgers] == []
    await bridge.close()


async def test_events_of_a_task_beside_are_followed_as_they_grow(own: Path, nas: Path) -> None:
    log = nas / task_id(1) / "events.jsonl"
    log.write_text('{"ts": 1, "kind": "task_created"}\n')
    async with bridged(own, Beside(nas, "nas")) as (bridge, heard):
        await until(lambda: heard.status(THERE), bridge.batch)
        parts: list[tuple[str, int]] = []
        bridge.events.connect(lambda one, part: parts.append((one, len(part.rows))))
        bridge.follow_events(THERE)
        await until(lambda: (THERE, 1) in parts, bridge.events)
        script = 'open(sys.argv[1], \'a\').write(\'{"ts": 2, "kind": "log"}\\n\' * 2)'
        with elsewhere(script, log):
            await until(lambda: (THERE, 2) in parts, bridge.events)
        assert {one for one, _ in parts} == {THERE}
        bridge.follow_events(None)


async def test_other_ledgers_outlive_the_own(own: Path, nas: Path, tmp_path: Path) -> None:
    async with bridged(own, Beside(nas, "nas")) as (bridge, heard):
        await until(lambda: heard.status(THERE), bridge.batch)
        (own / "tasks").rename(tmp_path / "away")
        await until(lambda: not heard.status(task_id(1)), bridge.batch)
        write_meta(nas, 2, "FAILED")
        await until(lambda: heard.status(f"{task_id(2)}@nas") == "FAILED", bridge.batch)
        (tmp_path / "away").rename(own / "tasks")
        await until(lambda: heard.status(task_id(1)) == "RUNNING", bridge.batch)


def test_results_of_copies_of_one_task_become_two_files() -> None:
    view = TaskView(TaskRecord(qualified(task_id(1), "nas"), "crawl"), ledger="nas")
    copy = TaskView(TaskRecord(qualified(task_id(1), "attic"), "crawl"), ledger="attic")
    own = TaskView(TaskRecord(task_id(1), "crawl"))
    assert len({file_name(one, "csv") for one in (view, copy, own)}) == 3
