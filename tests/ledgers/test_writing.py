"""A change goes to the folder of the ledger that the id names, and to no other."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contracts.contract_progress import RunView
from engine.model.errors import EngineError, LedgerReadOnly
from engine.model.ledger_ids import ledger_label, qualified
from engine.model.records import Status, TaskRecord
from engine.service.engine import Engine
from engine.service.router.ledger_paths import Beside, LedgerWatchOnly, OnlyInItsOwnWindow
from tests.ledgers.world import OWN, Home, everything, furnished, side_by_side

REASON = "the site was switched off for good"
Act = Callable[[Engine, str], Awaitable[Any]]

WRITES: dict[str, Act] = {
    "cancel": lambda engine, one: engine.commands.cancel(one, "not needed"),
    "stop": lambda engine, one: engine.commands.stop(one),
    "update": lambda engine, one: engine.contracts.update(one, phase="act", note="on it"),
    "finish": lambda engine, one: engine.contracts.finish(one, "failed"),
    "complete": lambda engine, one: engine.contracts.complete(
        one, force=engine.contracts.force(REASON)
    ),
    "complete unforced": lambda engine, one: engine.contracts.complete(one),
    "call failed": lambda engine, one: engine.contracts.complete(one, status=Status.FAILED),
    "discard": lambda engine, one: engine.commands.discard(one, delete=True),
    "resume": lambda engine, one: engine.contracts.resume(one, "help is there"),
    "give up": lambda engine, one: engine.contracts.give_up(one),
}
REFUSED: dict[str, Act] = {"force stop": lambda engine, one: engine.commands.force_stop(one)}
LOOKS: dict[str, Act] = {
    "get": lambda engine, one: engine.tasks.get(one),
    "prospect": lambda engine, one: engine.contracts.prospect(one, named=True),
    "asked": lambda engine, one: engine.requests.asked(one),
    "files": lambda engine, one: engine.reading.files(one),
    "head": lambda engine, one: engine.tasks.head(one),
    "contract": lambda engine, one: engine.contracts.get(one),
}
ALL = WRITES | REFUSED | LOOKS
LABELS = (OWN, "copy", "nas", "loose")
WHAT = ("envelope", "contract", "run", "waiting", "running", "ended")
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(ALL)), st.sampled_from(LABELS), st.sampled_from(WHAT)),
    min_size=1,
    max_size=6,
)


class Houses:
    """Four homes: the own one, a copy of it, another, and a copy of the tasks alone: what is kept
    of them elsewhere is in the own home, and nobody can know."""

    def __init__(self, base: Path, homes: dict[str, Home]) -> None:
        self.base, self.homes = base, homes

    def root(self, label: str) -> Path:
        top = self.homes[label].top
        return top if label == "loose" else top / "tasks"

    def besides(self, *, watch_only: bool) -> list[Beside]:
        return [Beside(self.root(one), one, watch_only) for one in LABELS if one]

    def id(self, what: str, label: str) -> str:
        return qualified(self.homes[label].ids[what], label)

    def stand(self) -> dict[str, dict[str, tuple[int, int, int]]]:
        return {label: everything(home.top) for label, home in self.homes.items()}


async def _built(base: Path) -> Houses:
    own, nas = await furnished(base / "own"), await furnished(base / "nas")
    shutil.copytree(own.root, base / "loose")
    loose = Home(base / "loose", dict(own.ids))
    homes = {OWN: own, "copy": own.copied(base / "copy"), "nas": nas, "loose": loose}
    return Houses(base, homes)


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Houses:
    """Made once; each example works on a copy."""
    return asyncio.run(_built(tmp_path_factory.mktemp("houses")))


def _moved(houses: Houses, base: Path) -> Houses:
    shutil.copytree(houses.base, base)
    homes = {label: Home(base / home.top.name, home.ids) for label, home in houses.homes.items()}
    return Houses(base, homes)


def _ids_in(answer: object) -> list[str]:
    if isinstance(answer, RunView):
        return [answer.run_id]
    if isinstance(answer, TaskRecord):
        linked = answer.engine and answer.engine.contract_id
        return [answer.task_id, *([linked] if linked else [])]
    found = getattr(answer, "task_id", getattr(answer, "subject", None))
    return [found] if isinstance(found, str) else []


@settings(max_examples=15)
@given(steps=STEPS)
async def test_verbs_write_one_ledger(houses: Houses, steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        mine = _moved(houses, Path(place) / "base")
        besides = mine.besides(watch_only=False)
        async with side_by_side(mine.homes[OWN].top, *besides) as engine:
            before = mine.stand()
            for verb, label, what in steps:
                try:
                    answer = await ALL[verb](engine, mine.id(what, label))
                except EngineError:
                    answer = None
                after = mine.stand()
                changed = {one for one in LABELS if before[one] != after[one]}
                assert changed <= ({label} if verb in WRITES else set())
                assert {ledger_label(one) for one in _ids_in(answer)} <= {label}
                before = after


@pytest.mark.parametrize("label", LABELS[1:])
async def test_other_ledgers_accept_commands(houses: Houses, tmp_path: Path, label: str) -> None:
    """Else the rule above would hold for an engine that does nothing at all."""
    mine = _moved(houses, tmp_path / "base")
    async with side_by_side(mine.homes[OWN].top, *mine.besides(watch_only=False)) as engine:
        cancelled = await engine.commands.cancel(mine.id("waiting", label), "not needed")
        assert cancelled.status == Status.CANCELLED
        assert cancelled.task_id == mine.id("waiting", label)
        asked = await engine.commands.cancel(mine.id("running", label))
        assert asked.cancel_requested_at is not None
        await engine.commands.discard(mine.id("ended", label), delete=True)
        assert not (mine.root(label) / mine.homes[label].ids["ended"]).exists()
        before, names = mine.stand(), {one.name for one in mine.root(label).iterdir()}
        finished = await engine.contracts.finish(mine.id("envelope", label), "failed")
        assert finished.status == Status.FAILED
        after = mine.stand()
        assert {one.name for one in mine.root(label).iterdir()} == names  # tasks, nothing else
        assert {one for one in LABELS if after[one] != before[one]} == {label}
        for other in {*LABELS} - {label}:
            here = await engine.tasks.get(mine.id("waiting", other))
            assert getattr(here.entry, "status", "") == Status.PENDING


@pytest.mark.parametrize("label", ["copy", "nas"])
async def test_foreign_runs_complete_in_place(houses: Houses, tmp_path: Path, label: str) -> None:
    mine = _moved(houses, tmp_path / "base")
    before = mine.stand()
    async with side_by_side(mine.homes[OWN].top, *mine.besides(watch_only=False)) as engine:
        run = await engine.contracts.complete(
            mine.id("run", label), force=engine.contracts.force(REASON)
        )
        assert isinstance(run, RunView)
        assert run.run_id == mine.id("run", label)
        task = await engine.contracts.complete(
            mine.id("envelope", label), force=engine.contracts.force(REASON)
        )
        assert isinstance(task, TaskRecord)
        assert task.task_id == mine.id("envelope", label)
    changed = {one for one, stand in mine.stand().items() if stand != before[one]}
    assert changed == {label}


async def test_what_is_only_watched_is_never_written(houses: Houses, tmp_path: Path) -> None:
    mine = _moved(houses, tmp_path / "base")
    before = mine.stand()
    async with side_by_side(mine.homes[OWN].top, *mine.besides(watch_only=True)) as engine:
        for label in LABELS[1:]:
            for verb, act in WRITES.items():
                for what in WHAT:
                    with pytest.raises(LedgerWatchOnly) as refused:
                        await act(engine, mine.id(what, label))
                assert refused.value.fields["label"] == label, verb
            with pytest.raises(OnlyInItsOwnWindow):
                await engine.commands.force_stop(mine.id("running", label))
        stopped = await engine.commands.cancel_all([mine.id("waiting", "copy")])
        assert [error.code for error in stopped.refused] == ["ledger_watch_only"]
        assert mine.stand() == before
        engine.ledgers.allow("copy", watch_only=False)
        stopped = await engine.commands.cancel_all(
            mine.id("waiting", one) for one in ("copy", "nas")
        )
        assert [one.task_id for one in stopped.records] == [mine.id("waiting", "copy")]
        assert len(stopped.refused) == 1
        engine.ledgers.allow("copy", watch_only=True)
        with pytest.raises(LedgerWatchOnly):
            await engine.commands.discard(mine.id("waiting", "copy"))
    after = mine.stand()
    assert {one for one in LABELS if after[one] != before[one]} == {"copy"}


async def test_reruns_start_in_the_own_ledger(houses: Houses, tmp_path: Path) -> None:
    mine = _moved(houses, tmp_path / "base")
    before = mine.stand()
    besides = mine.besides(watch_only=True)
    async with side_by_side(mine.homes[OWN].top, *besides, accepts=True) as engine:
        again = await engine.requests.rerun(mine.id("envelope", "nas"))
        assert ledger_label(again.task_id) == ""
        assert again.engine is not None
        assert again.engine.parent_task_id is None
        args = {"objective": "Visit both"}
        child = await engine.requests.start("browser_task", args, parent=mine.id("envelope", "nas"))
        assert child.engine is not None
        assert child.engine.parent_task_id is None
        child = await engine.requests.start("browser_task", args, parent=again.task_id)
        assert child.engine is not None
        assert child.engine.parent_task_id == again.task_id
    after = mine.stand()
    assert {one for one in LABELS if after[one] != before[one]} == {OWN}


async def test_a_folder_beside_that_may_not_be_written_says_so_and_stays_in_sight(
    houses: Houses, tmp_path: Path, read_only: Callable[[Path], None]
) -> None:
    mine = _moved(houses, tmp_path / "base")
    read_only(mine.root("nas") / mine.homes["nas"].ids["waiting"])
    async with side_by_side(mine.homes[OWN].top, *mine.besides(watch_only=False)) as engine:
        with pytest.raises(LedgerReadOnly, match="nas"):
            await engine.commands.cancel(mine.id("waiting", "nas"))
        assert (await engine.tasks.get(mine.id("waiting", "nas"))).ledger == "nas"
