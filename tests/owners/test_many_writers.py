"""One task, many processes: every acknowledged change counts, and ends are final."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contracts.run_lifecycle import LifecycleTransitionError, Runs
from engine.ledger.files import Folder
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.lock import TaskLock
from engine.model.errors import EngineError, LockTimeout
from engine.model.records import Status, Units
from tests.hard import many_writers
from tests.hard.many_writers import Size
from tests.hard.peer import node_modules
from tests.support.lock_clock import given_clock
from tests.support.lock_retries import patiently
from tests.support.processes import LEDGER, ended, heard, told

FEW = Size(processes=8, mutations=12, node_updates=6, plants=3, aged_s=9.5)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """npm's own locking packages, as OpenChrome uses them."""
    found, why_not = node_modules(tmp_path_factory.mktemp("npm"))
    if found is None:
        pytest.skip(why_not)
    return found


@pytest.mark.case("R07")
def test_increments_of_eight_processes_are_all_counted() -> None:
    turn = many_writers.together(FEW, None, nodes=0)
    assert (turn.acknowledged, turn.counted, turn.crashed) == (96, 96, 0)
    assert turn.litter == ()


@pytest.mark.case("R08")
def test_killed_writers_lose_nothing_that_was_acknowledged_and_hold_up_nobody() -> None:
    turn = many_writers.half_killed(FEW)
    assert turn.in_flight == 4
    assert turn.acknowledged <= turn.counted <= turn.acknowledged + turn.in_flight
    assert turn.crashed == 0
    assert turn.litter == ()


@pytest.mark.case("R15")
def test_locks_of_dead_peers_are_taken_over_by_one_at_a_time(modules: Path) -> None:
    turn = many_writers.together(FEW, modules, nodes=1, plants=FEW.plants)
    assert (turn.lost, turn.node_lost, turn.crashed) == (0, 0, 0)
    assert turn.counted == turn.acknowledged == 96
    assert turn.litter == ()


@pytest.mark.case("R17")
def test_a_node_program_gets_the_lock_that_one_of_ours_died_in(modules: Path) -> None:
    waited_s = many_writers.after_our_death(FEW, modules)
    assert waited_s is not None
    assert waited_s < math.inf, "it gave up"  # how long is the machine's to say; the rig holds it


CHANGES = """
from engine.model.errors import EngineError, TransitionError
from engine.model.records import ErrorInfo, Status
ended = sys.argv[2]
said = []
for change in (
    lambda: ledger.claim(ended),
    lambda: ledger.finish(ended, Status.COMPLETED),
    lambda: ledger.finish(ended, Status.FAILED, error=ErrorInfo(message="late", code="late")),
    lambda: ledger.write_result(ended, [b"{}"]),
    lambda: ledger.mutate(ended, lambda raw: raw.update(status="RUNNING")),
    lambda: ledger.mutate(ended, lambda raw: raw.update(ended_at=1)),
    lambda: ledger.mutate(ended, lambda raw: raw.pop("kind")),
    lambda: ledger.mutate(ended, lambda raw: raw.clear() or raw.update(status="COMPLETED")),
):
    try:
        change()
        said.append("done")
    except TransitionError as error:
        said.append(str(error))
say(said=said, cancelled=ledger.request_cancel(ended, "too late").status)
lease.release()
"""


@pytest.mark.case("R09")
def test_ended_tasks_are_final(ledger: Ledger, task_id: str, beside: Callable[..., Any]) -> None:
    ledger.write_result(task_id, [b'{"pages": []}'])
    ledger.finish(task_id, Status.COMPLETED, units=Units(done=1, total=1))
    folder = ledger.root / task_id
    before = {name: (folder / name).read_bytes() for name in ("meta.json", "result.json")}
    (word,) = ended(beside(LEDGER + CHANGES, ledger.root, task_id))
    steps = ["RUNNING", "COMPLETED", "FAILED", "result", "RUNNING", "COMPLETED", "COMPLETED"]
    assert word["said"] == [
        f"task {task_id}: COMPLETED -> {step} is not an allowed step"
        for step in [*steps, "COMPLETED"]
    ]
    assert word["cancelled"] == "COMPLETED"
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.case("R09")
def test_a_run_that_has_ended_is_never_begun_again(home: Path) -> None:
    runs = Runs(home)
    run = runs.start_run("a thread")
    runs.complete_run(run.run_id)
    place = home / "comet-runs" / f"{run.run_id}.json"
    before = place.read_bytes()
    with pytest.raises(LifecycleTransitionError) as refused:
        Runs(home).start_run("a thread", run_id=run.run_id)
    assert str(refused.value) == (
        f"Invalid lifecycle transition for run {run.run_id}: completed → running"
    )
    assert place.read_bytes() == before


@pytest.mark.case("R10")
def test_of_two_who_complete_at_once_one_does_and_one_event_tells_it(ledger: Ledger) -> None:
    ids = [ledger.claim(ledger.create("crawl", {}).task_id).task_id for _ in range(100)]
    other = Ledger(ledger.root, lease=ledger.lease)
    gate = threading.Barrier(2)
    refused: list[str] = []

    def complete(by: Ledger) -> None:
        for task_id in ids:
            gate.wait(100)
            try:
                patiently(partial(by.finish, task_id, Status.COMPLETED))
            except EngineError as error:
                refused.append(error.code)

    threads = [threading.Thread(target=complete, args=(by,)) for by in (ledger, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert refused == ["illegal_transition"] * 100
    for task_id in ids:
        kinds = [event.kind for event in ledger.read_events(task_id).events]
        assert kinds == ["started", "completed"]


TWINS = """
from engine.model.errors import EngineError
sys.stdin.readline()
ids = [ledger.create("crawl", {"url": "http://x.test/"}, now_ms=1_700_000_000_000).task_id
       for _ in range(int(sys.argv[2]))]
say(ids=ids)
lease.release()
"""


@pytest.mark.case("R12")
def test_equal_concurrent_starts_are_distinct(ledger: Ledger, beside: Callable[..., Any]) -> None:
    each = 1_000
    twins = [beside(LEDGER + TWINS, ledger.root, each) for _ in range(2)]
    for twin in twins:
        told(twin)
    ids = [task_id for twin in twins for task_id in heard(twin)["ids"]]
    assert len(set(ids)) == len(ids) == 2 * each
    entries = ledger.list(limit=None)
    assert {entry.task_id for entry in entries} == set(ids)
    assert {getattr(entry, "created_at", 0) for entry in entries} == {1_700_000_000_000}


names = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
KNOWN = {"task_id", "status", "kind", "created_at", "started_at", "ended_at", "engine", "pid"} | {
    *("last_activity_at", "cancel_requested_at", "error", "result_path", "args_summary", "phase")
}


@pytest.mark.case("R14")
@settings(max_examples=12)
@given(
    unknown=st.dictionaries(names.filter(lambda name: name not in KNOWN), values, max_size=6),
    ours=st.dictionaries(names.map(lambda name: f"x_{name}"), values, max_size=3),
)
def test_what_we_do_not_know_survives_every_update_in_its_place(
    tmp_path_factory: pytest.TempPathFactory, unknown: dict[str, Any], ours: dict[str, Any]
) -> None:
    root = tmp_path_factory.mktemp("home") / "tasks"
    lease = Lease.acquire(root)
    try:
        ledger = Ledger(root, lease=lease)
        task_id = ledger.create("crawl", {}).task_id
        ledger.mutate(task_id, lambda raw: raw.update(unknown, engine={**raw["engine"], **ours}))
        order = list(_on_disk(root, task_id))
        ledger.claim(task_id)
        ledger.request_cancel(task_id, "enough")
        ledger.finish(task_id, Status.CANCELLED, units=Units(done=1))
    finally:
        lease.release()
    raw = _on_disk(root, task_id)
    assert {name: raw[name] for name in unknown} == unknown
    assert {name: raw["engine"][name] for name in ours} == ours
    assert [name for name in raw if name in order] == order
    assert json.dumps({name: raw[name] for name in unknown}) == json.dumps(unknown)


def _on_disk(root: Path, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / task_id / "meta.json").read_text("utf-8"))
    return found


def test_a_peer_that_took_the_lock_right_after_us_may_be_slow_with_it(
    ledger: Ledger, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is younger than our last use, and yet none of ours died in making it."""
    peers = ledger.root / task_id / ".lock.lock"
    clock = given_clock(monkeypatch)
    ledger.mutate(task_id, lambda raw: raw.update(n=1))
    peers.mkdir()
    clock.aged(peers, -0.01)
    held = peers.stat().st_ino
    with Folder.at(str(peers.parent)) as folder:
        for _ in range(2):  # nor after one of us gave up waiting
            with pytest.raises(LockTimeout), TaskLock(folder, task_id, timeout_s=1.3):
                pass
    assert peers.stat().st_ino == held
