"""A query about a task goes to its own ledger and returns with its label."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.export.exporter import Order
from engine.export.exports import Exports
from engine.export.output import ExportRefused
from engine.model.config import Settings
from engine.model.errors import LedgerUnusable, NotATaskId, TaskNotFound
from engine.model.ledger_ids import ledger_label, plain_id, qualified
from engine.model.records import TaskRecord
from engine.results.file_reader import TaskFileReader
from engine.service.commands import TaskCommands
from engine.service.contracts import ContractService
from engine.service.engine import Engine
from engine.service.queries import Past, TaskQueries
from engine.service.requests import TaskRequests
from engine.service.router.ledger_paths import Beside, LedgerNotOpen, NoSuchLedger
from tests.ledgers.world import Home, furnished, side_by_side, until

IDS = {"task_id", "given", "subject", "run_id", "contract_id", "before", "order"}
# What takes an id and is not routed by its decorator, with the way it goes instead.
BY_OTHER_WAYS = {
    "learn": "remembers a task that was just written in the own ledger",
    "nudge": "nothing of another ledger is watched by the own lists",
    "join": "nothing of another ledger is this process' own",
    **dict.fromkeys(("is_run", "folder_of"), "answered from memory: a disk may be slow"),
    **dict.fromkeys(("rerun", "retry", "resume", "start_after"), "starts in the own ledger"),
    "remainder": "asks `asked`, `get`, `get` of contracts and `reading` of it",
    **dict.fromkeys(("to_file", "to_stream"), "the order holds the id; a routed part follows"),
    **dict.fromkeys(
        ("save_events", "recording_to_file"), "looks at the place first; a routed part follows"
    ),
    **dict.fromkeys(("differences", "open"), "of two ledgers, or no coroutine"),
    "text_difference": "asks `unit_text` of each ledger",
    "inner": "for its own methods",
}
PARTS = (TaskQueries, TaskCommands, TaskRequests, ContractService, TaskFileReader, Past, Exports)


def _operations(part: type) -> Iterator[str]:
    for name, operation in inspect.getmembers(part, inspect.isfunction):
        first = list(inspect.signature(operation).parameters)[1:2]
        if not name.startswith("_") and set(first) & IDS:
            yield name


@pytest.mark.parametrize("part", PARTS)
def test_every_operation_that_takes_an_id_is_routed(part: type) -> None:
    names = [name for name in _operations(part) if name not in BY_OTHER_WAYS]
    assert names or part is Exports
    assert [name for name in names if not hasattr(getattr(part, name), "access")] == []


def test_a_part_is_found_in_another_engine_by_its_name(tmp_path: Path) -> None:
    engine = Engine(Settings.at(home=tmp_path), accepts=False)
    for part in PARTS:
        assert type(getattr(engine, vars(part)["part_name"])) is part


@pytest.fixture
def tops(tmp_path: Path) -> tuple[Path, Path, Path]:
    return tmp_path / "own", tmp_path / "copy", tmp_path / "nas"


async def _three(tops: tuple[Path, Path, Path]) -> tuple[Home, Home, Home]:
    own = await furnished(tops[0])
    return own, own.copied(tops[1]), await furnished(tops[2])


def _mark(home: Home, what: str, text: str) -> None:
    """Write into a task's record what only this folder says."""
    meta = home.root / home.ids[what] / "meta.json"
    meta.write_text(meta.read_text().replace("http://site.test/", f"http://{text}.test/"))


async def test_copies_of_one_folder_stay_apart(tops: tuple[Path, Path, Path]) -> None:
    own, copy, nas = await _three(tops)
    _mark(copy, "ended", "copied")
    (copy.root / copy.ids["ended"] / "result.json").write_text('{"summary": "of the copy"}')
    besides = Beside(copy.root, "copy"), Beside(nas.root, "nas")
    async with side_by_side(own.top, *besides) as engine:
        plain = own.ids["ended"]
        here, there = await engine.tasks.get(plain), await engine.tasks.get(f"{plain}@copy")
        assert isinstance(here.entry, TaskRecord)
        assert isinstance(there.entry, TaskRecord)
        assert (here.entry.url, there.entry.url) == ("http://site.test/", "http://copied.test/")
        assert (here.ledger, there.ledger) == ("", "copy")
        assert there.task_id == f"{plain}@copy"
        assert (await engine.tasks.head(f"{plain}@copy")) == {"summary": "of the copy"}
        assert engine.tasks.folder_of(f"{plain}@copy") == copy.root / plain
        assert engine.tasks.folder_of(plain) == own.root / plain
        with pytest.raises(TaskNotFound):
            await engine.tasks.get(f"{plain}@nas")


async def _answers(engine: Engine, home: Home, label: str) -> dict[str, Any]:
    """What every looking verb says of this home's tasks, its ids as they stand there."""

    def of(name: str) -> str:
        return qualified(home.ids[name], label)

    ended, reading, past = of("ended"), engine.reading, engine.past
    contract = await engine.contracts.get(of("contract"))
    return {
        "id": plain_id(await engine.tasks.ledger_id(ended)),
        "meta": await engine.tasks.meta(ended),
        "head": await engine.tasks.head(ended),
        "events": (await engine.tasks.events(ended)).events,
        "of a run": (await engine.tasks.events(of("run"))).events,
        "history": await engine.tasks.history(ended, lambda event, at: (event.kind, at)),
        "asked": await engine.requests.asked(ended),
        "waited": plain_id((await engine.tasks.wait(ended, 100)).task_id),
        "prospect": (await engine.contracts.prospect(of("envelope"), named=True)).missing,
        "of the run": (await engine.contracts.prospect(of("run"), named=True)).missing,
        "contract": (plain_id(contract.contract.contract_id), contract.missing),
        "budgets": await engine.contracts.budgets(ended),
        "command task": await engine.tasks.command_task(ended),
        "units": [part async for part in reading.units(ended)],
        "refusals": len(await reading.refusals(ended)),
        "files": await reading.files(ended),
        "part": (await reading.part(ended, "meta.json", 0, 50)).data,
        "found": await reading.find(ended, "meta.json", "crawl", 0, lambda *_: None),
        "searched": [part.hits async for part in reading.search(ended, "meta.json", "crawl")],
        "place": await reading.place(ended, "result.json"),
        "text": await past.find(ended, "created"),
        "times": await past.unit_times(ended),
    }


async def test_queries_equal_those_of_the_owning_engine(tops: tuple[Path, Path, Path]) -> None:
    own, _, nas = await _three(tops)
    async with (
        side_by_side(nas.top) as alone,
        side_by_side(own.top, Beside(nas.root, "nas")) as engine,
    ):
        expected, found = await _answers(alone, nas, ""), await _answers(engine, nas, "nas")
        assert found == expected


async def test_ids_in_an_answer_name_their_ledger(tops: tuple[Path, Path, Path]) -> None:
    own, _, nas = await _three(tops)
    async with side_by_side(own.top, Beside(nas.root, "nas")) as engine:
        view = await engine.tasks.get(f"{nas.ids['envelope']}@nas")
        assert isinstance(view.entry, TaskRecord)
        assert view.entry.engine is not None
        assert view.entry.engine.contract_id == f"{nas.ids['contract']}@nas"
        contract = await engine.contracts.get(view.entry.engine.contract_id)
        assert contract.contract.task_id == view.task_id
        assert (await engine.contracts.prospect(view.task_id)).subject == view.task_id
        listed = await engine.tasks.list(limit=None)
        assert {one.task_id for one in listed if one.ledger == "nas"} == {
            f"{nas.ids[name]}@nas" for name in ("envelope", "waiting", "running", "ended")
        }
        assert all(one.ledger == ledger_label(one.task_id) for one in listed)
        only = await engine.tasks.list(query="root:nas status:completed")
        assert [one.task_id for one in only] == [f"{nas.ids['ended']}@nas"]
        here = await engine.tasks.list(query="root:here status:completed")
        assert [one.task_id for one in here] == [own.ids["ended"]]


async def test_two_runs_of_two_ledgers_can_be_compared(tops: tuple[Path, Path, Path]) -> None:
    own, copy, _ = await _three(tops)
    pages = copy.root / copy.ids["running"] / "pages.jsonl"
    pages.write_text(pages.read_text().replace("200", "404"))
    async with side_by_side(own.top, Beside(copy.root, "copy")) as engine:
        plain = own.ids["running"]
        for before, after in ((plain, f"{plain}@copy"), (f"{plain}@copy", plain)):
            found = await engine.reading.differences(before, after, lambda _: None)
            assert (found.changed, found.same, found.added, found.removed) == (1, 0, 0, 0)
        same = await engine.reading.differences(f"{plain}@copy", f"{plain}@copy", lambda _: None)
        assert (same.changed, same.same) == (0, 1)


async def test_exports_stay_outside_ledgers(tops: tuple[Path, Path, Path], tmp_path: Path) -> None:
    own, copy, nas = await _three(tops)
    besides = Beside(copy.root, "copy"), Beside(nas.root, "nas")
    async with side_by_side(own.top, *besides) as engine:
        order = Order(f"{nas.ids['running']}@nas", "csv")
        done = await engine.exports.to_file(order, tmp_path / "out.csv")
        assert done.task_id == order.task_id
        assert done.rows == 1
        for root in (own.root, copy.root, nas.root):
            with pytest.raises(ExportRefused):
                await engine.exports.to_file(order, root / "out.csv")
            with pytest.raises(ExportRefused):
                await engine.past.save_lines(["x"], root / "out.txt")
            assert not (root / "out.csv").exists()


async def test_unknown_ledgers_are_refused(tops: tuple[Path, Path, Path], tmp_path: Path) -> None:
    own = await furnished(tops[0])
    async with side_by_side(own.top, Beside(tmp_path / "no" / "such" / "tasks", "lost")) as engine:
        with pytest.raises(NoSuchLedger, match="'nas'"):
            await engine.tasks.get(f"{own.ids['ended']}@nas")
        with pytest.raises(LedgerNotOpen, match="no such folder"):
            await engine.tasks.get(f"{own.ids['ended']}@lost")
        with pytest.raises(NotATaskId):
            await engine.tasks.get("../../etc")
        (state,) = engine.ledgers.states
        assert state.state == "unusable"
        assert isinstance(state.error, LedgerUnusable)
        engine.ledgers.remove("lost")
        with pytest.raises(NoSuchLedger):
            await engine.tasks.get(f"{own.ids['ended']}@lost")
        assert (await engine.tasks.get(own.ids["ended"])).ledger == ""
        await until(lambda: not engine.ledgers.states)
