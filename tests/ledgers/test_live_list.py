"""One live list of several ledgers: tasks appear and vanish in each independently."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from engine.model.errors import EngineError
from engine.model.records import TaskId
from engine.service.engine import Engine
from engine.service.feed import Batch, Feed
from engine.service.router import connection
from engine.service.router.ledger_paths import (
    BadLabel,
    Beside,
    LedgerAlreadyShown,
    LedgerInside,
    LedgerState,
    NoSuchLedger,
)
from engine.service.router.merging import Merging
from tests.ledgers.world import OWN, Reader, furnished, reading, side_by_side, until
from tests.support.task_folders import elsewhere, task_id, write_meta


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A home with one task."""
    write_meta(tmp_path / "own" / "tasks", 1)
    return tmp_path / "own"


@pytest.fixture
def nas(tmp_path: Path) -> Path:
    """The folder of another ledger, with a task of the same id."""
    write_meta(tmp_path / "nas" / "tasks", 1, "COMPLETED")
    return tmp_path / "nas" / "tasks"


def _state(engine: Engine, label: str = "nas") -> LedgerState:
    return next(one for one in engine.ledgers.states if one.label == label)


async def _complete(reader: Reader, total: int) -> None:
    await reader.until(lambda: reader.last.complete and reader.last.total == total)


async def test_with_none_beside_every_batch_is_the_own_ledgers_very_own() -> None:
    calls: list[str] = []
    merging = Merging("tasks", lambda: calls.append("call"))
    for batch in (Batch(loaded=1, total=2), Batch(gone=(TaskId(task_id(1)),)), Batch()):
        (told,) = merging.joined(batch)
        assert told is batch
    assert calls == []


async def test_copies_of_a_task_are_two_rows_and_totals_are_of_all(own: Path, nas: Path) -> None:
    async with side_by_side(own, Beside(nas, "nas")) as engine, reading(engine) as reader:
        await _complete(reader, 2)
        assert reader.status(task_id(1)) == "RUNNING"
        assert reader.status(task_id(1), "nas") == "COMPLETED"
        assert {view.ledger for view in reader.views.values()} == {OWN, "nas"}
        await until(lambda: _state(engine).tasks == 1)
        assert _state(engine).state == "live"


async def test_what_other_processes_change_in_either_arrives(own: Path, nas: Path) -> None:
    async with side_by_side(own, Beside(nas, "nas")) as engine, reading(engine) as reader:
        await _complete(reader, 2)
        script = "for place in sys.argv[1:]: write_meta(Path(place), 2, 'PENDING')"
        with elsewhere(script, nas, own / "tasks"):
            await reader.until(lambda: reader.status(task_id(2), "nas") == "PENDING")
            await reader.until(lambda: reader.status(task_id(2)) == "PENDING")
        shutil.rmtree(nas / task_id(1))
        await reader.until(lambda: not reader.status(task_id(1), "nas"))
        assert reader.status(task_id(1)) == "RUNNING"
        assert reader.last.total == 3


async def test_a_ledger_comes_and_goes_while_the_list_is_read(own: Path, nas: Path) -> None:
    heard: list[tuple[LedgerState, ...]] = []
    for number in range(2, 800):
        write_meta(nas, number, "COMPLETED")
    async with side_by_side(own) as engine, reading(engine) as reader:
        engine.ledgers.told = lambda: heard.append(engine.ledgers.states)
        await _complete(reader, 1)
        engine.ledgers.add(Beside(nas, "nas"))
        assert _state(engine).state == "opening"
        await _complete(reader, 800)
        assert len(reader.views) == 800
        engine.ledgers.remove("nas")
        assert engine.ledgers.states == ()
        await reader.until(lambda: len(reader.views) == 1)
        assert (reader.last.total, reader.last.complete) == (1, True)
        assert heard[-1] == ()
        engine.ledgers.add(Beside(nas, "nas"))  # at once, by the same name
        await reader.until(lambda: len(reader.views) == 800)
        with pytest.raises(NoSuchLedger):
            engine.ledgers.remove("other")


async def test_removed_halfway_and_added_again_no_row_is_lost(own: Path, nas: Path) -> None:
    for number in range(2, 1500):
        write_meta(nas, number, "COMPLETED")
    async with side_by_side(own, Beside(nas, "nas")) as engine, reading(engine) as reader:
        await reader.until(lambda: len(reader.views) > 1)
        for _ in range(3):
            engine.ledgers.remove("nas")
            engine.ledgers.add(Beside(nas, "nas"))
        await _complete(reader, 1500)
        assert len(reader.views) == 1500


async def test_rows_follow_a_vanishing_folder(own: Path, nas: Path, tmp_path: Path) -> None:
    async with side_by_side(own, Beside(nas, "nas")) as engine, reading(engine) as reader:
        await _complete(reader, 2)
        nas.rename(tmp_path / "away")
        await reader.until(lambda: not reader.status(task_id(1), "nas"))
        await until(lambda: _state(engine).state == "gone")
        assert _state(engine).reason
        write_meta(own / "tasks", 1, "COMPLETED")
        await reader.until(lambda: reader.status(task_id(1)) == "COMPLETED")
        assert reader.last.complete
        (tmp_path / "away").rename(nas)
        await reader.until(lambda: reader.status(task_id(1), "nas") == "COMPLETED")
        await until(lambda: _state(engine).state == "live")


async def test_an_unopenable_ledger_is_retried(own: Path, tmp_path: Path) -> None:
    lost = tmp_path / "a" / "b" / "tasks"
    async with side_by_side(own, Beside(lost, "nas")) as engine, reading(engine) as reader:
        await _complete(reader, 1)
        state = _state(engine)
        assert state.state == "unusable"
        assert isinstance(state.error, EngineError)
        assert state.error.title
        assert state.error.advice
        write_meta(lost, 7)
        engine.tasks.rescan()
        await reader.until(lambda: reader.status(task_id(7), "nas") == "RUNNING")
        assert _state(engine).error is None


async def test_a_file_is_no_ledger(own: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    async with side_by_side(own, Beside(tmp_path / "file", "nas")) as engine:
        assert _state(engine).state == "unusable"
        assert "not a folder" in _state(engine).reason


@pytest.mark.parametrize("linked", [False, True])
async def test_no_folder_is_shown_twice(own: Path, nas: Path, tmp_path: Path, linked: bool) -> None:
    def led_to(place: Path, name: str) -> Path:
        if linked:
            os.symlink(place, tmp_path / name)
        return tmp_path / name if linked else place

    mine, theirs = led_to(own / "tasks", "mine"), led_to(nas, "theirs")
    besides = Beside(mine, "mine"), Beside(nas, "nas"), Beside(theirs, "theirs")
    async with side_by_side(own, *besides) as engine, reading(engine) as reader:
        await _complete(reader, 2)
        assert isinstance(_state(engine, "mine").error, LedgerAlreadyShown)
        assert isinstance(_state(engine, "theirs").error, LedgerAlreadyShown)
        assert _state(engine, "nas").error is None  # the first that came


async def test_no_ledger_is_shown_inside_another(own: Path, nas: Path) -> None:
    inside = own / "tasks" / task_id(1)
    besides = Beside(own, "home"), Beside(inside, "inside"), Beside(nas, "nas")
    async with side_by_side(own, *besides) as engine:
        assert isinstance(_state(engine, "home").error, LedgerInside)
        assert isinstance(_state(engine, "inside").error, LedgerInside)
        assert _state(engine).error is None


async def test_a_label_must_be_one_and_be_free(own: Path, nas: Path) -> None:
    async with side_by_side(own, Beside(nas, "nas")) as engine:
        for label in ("", "here", "Nas", "a@b", "nas"):
            with pytest.raises(BadLabel):
                engine.ledgers.add(Beside(nas, label))
        assert [one.label for one in engine.ledgers.states] == ["nas"]


async def test_failed_feeds_restart(own: Path, nas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that one ledger does may end the list of the others, or leave old rows in it."""
    monkeypatch.setattr(connection, "AGAIN_S", 30.0)  # not before it is asked to
    real, slips = Feed.batches, [RuntimeError("a slip of ours")]

    async def slipping(feed: Feed) -> AsyncGenerator[Batch, None]:
        async with aclosing(real(feed)) as batches:
            async for batch in batches:
                yield batch
                if feed.watch is not None and feed.watch.root == nas and batch.views and slips:
                    raise slips.pop()

    monkeypatch.setattr(Feed, "batches", slipping)
    async with side_by_side(own, Beside(nas, "nas")) as engine, reading(engine) as reader:
        await until(lambda: _state(engine).state == "unusable")
        assert "a slip of ours" in _state(engine).reason
        told = reader.batches
        await reader.until(lambda: any("@nas" in one for batch in told for one in batch.gone))
        assert {*reader.views} == {task_id(1)}
        assert (reader.last.total, reader.last.complete) == (1, True)
        engine.tasks.rescan()
        await reader.until(lambda: reader.status(task_id(1), "nas") == "COMPLETED")
        await until(lambda: _state(engine).state == "live")


async def test_task_runs_of_all_homes_stand_side_by_side_and_none_twice(tmp_path: Path) -> None:
    own, nas = await furnished(tmp_path / "own"), await furnished(tmp_path / "nas")
    shutil.copytree(own.root, own.top / "copied")  # tasks in the own home, not called so
    besides = Beside(nas.root, "nas"), Beside(own.top / "copied", "copied")
    async with side_by_side(own.top, *besides) as engine, reading(engine, runs=True) as reader:
        await reader.until(lambda: len(reader.views) == 2)
        assert {*reader.views} == {own.ids["run"], f"{nas.ids['run']}@nas"}
        assert engine.tasks.is_run(own.ids["run"])
        assert engine.tasks.is_run(f"{nas.ids['run']}@nas")
        assert not engine.tasks.is_run(f"{nas.ids['ended']}@nas")
        assert engine.tasks.folder_of(f"{nas.ids['run']}@nas").is_dir()
        engine.ledgers.allow("nas", watch_only=False)
        await engine.contracts.give_up(f"{nas.ids['run']}@nas")
        await reader.until(lambda: reader.status(nas.ids["run"], "nas") == "CANCELLED")
        engine.ledgers.remove("nas")
        await reader.until(lambda: {*reader.views} == {own.ids["run"]})
