"""A ledger of 100,000 tasks holds common texts once."""

from __future__ import annotations

import json
from pathlib import Path

from engine.ledger import meta
from engine.ledger.listing import for_list
from engine.ledger.meta import compact
from engine.ledger.reader import LedgerReader
from engine.model.records import EngineFields, TaskRecord, Units, Unreadable

IDS = [f"{number:016x}" for number in (1, 2)]
META = {
    "kind": "crawl_of_a_kind",
    "status": "A_STATUS_OF_ITS_OWN",
    "engine": {"host": "a-host", "boot_id": "a-boot", "name": "Nightly"},
}


def test_tasks_share_the_texts_that_many_have_and_say_what_they_said(tmp_path: Path) -> None:
    for task_id in IDS:
        (tmp_path / task_id).mkdir()
        text = json.dumps({"task_id": task_id, **META})
        (tmp_path / task_id / "meta.json").write_text(text, "utf-8")
    one, other = LedgerReader(tmp_path).entries(IDS)
    assert isinstance(one, TaskRecord)
    assert isinstance(other, TaskRecord)
    assert one.engine is not None
    assert other.engine is not None
    assert (one.task_id, one.kind, one.status) == (IDS[0], META["kind"], META["status"])
    assert (one.engine.host, one.engine.boot_id) == ("a-host", "a-boot")
    assert one.task_id is IDS[0]
    for a, b in ((one, other), (one.engine, other.engine)):
        interned = [name for name in ("kind", "status", "host", "boot_id") if hasattr(a, name)]
        assert all(getattr(a, name) is getattr(b, name) for name in interned)


def put(root: Path, task_id: str, **fields: object) -> None:
    (root / task_id).mkdir()
    (root / task_id / "meta.json").write_text(json.dumps({"task_id": task_id, **fields}), "utf-8")


def owned(runner: str, **more: object) -> dict[str, object]:
    return {"runner": runner, "owner_started_at": 1.5, "units": {"done": 3, "total": 4}, **more}


def parts(found: list[TaskRecord | Unreadable]) -> list[EngineFields]:
    ours = [one.engine for one in found if isinstance(one, TaskRecord)]
    return [each for each in ours if each is not None]


def test_ended_tasks_that_say_the_same_of_themselves_share_all_of_it(tmp_path: Path) -> None:
    for number, task_id in enumerate(IDS):
        put(tmp_path, task_id, status="COMPLETED", pid=70_000, engine=owned(f"owner {number}"))
    reader = LedgerReader(tmp_path)
    looked = [for_list(one, compact)[0] for one in reader.read_many(IDS)]
    ways = (reader.entries(IDS, compact), reader.ended(IDS, compact)[0], looked)
    for found in ways:
        one, other = parts([*found])
        assert one is other
        assert one == EngineFields(units=Units(done=3, total=4))
        assert len({id(record.pid) for record in found if isinstance(record, TaskRecord)}) == 1
    assert ways[0] == ways[1] == ways[2]  # or a look at one of them would tell of a change


def test_who_asks_for_a_task_or_a_list_is_told_all_of_an_ended_one(tmp_path: Path) -> None:
    for number, task_id in enumerate(IDS):
        told = {"result_path": f"/{task_id}/result.json", "task_nonce": f"nonce {number}"}
        put(tmp_path, task_id, status="COMPLETED", engine=owned(f"owner {number}"), **told)
    reader = LedgerReader(tmp_path)
    asked = [reader.read(task_id) for task_id in IDS]
    assert [one.runner for one in parts(asked)] == ["owner 0", "owner 1"]
    assert [one.owner_started_at for one in parts(asked)] == [1.5, 1.5]
    assert [getattr(one, "task_nonce", None) for one in asked] == ["nonce 0", "nonce 1"]
    assert [one.entry for one in reader.read_many(IDS)] == asked
    assert sorted(reader.list(), key=lambda one: one.task_id) == asked
    light = [getattr(one, "result_path", None) for one in reader.entries(IDS, compact)]
    assert light == [f"/{task_id}/result.json" for task_id in IDS]


def test_what_differs_stays_apart_and_what_lives_keeps_its_owner(tmp_path: Path) -> None:
    args: dict[str, object] = {"args": {"url": "http://a.test/"}}
    put(tmp_path, IDS[0], status="COMPLETED", engine=owned("one", **args))
    put(tmp_path, IDS[1], status="RUNNING", engine=owned("one"))
    ended, living = parts(LedgerReader(tmp_path).entries(IDS, compact))
    assert (ended.runner, ended.args) == (None, {"url": "http://a.test/"})
    assert (living.runner, living.owner_started_at, living.args) == ("one", 1.5, None)


def test_what_many_share_is_remembered_for_a_few_thousand_only() -> None:
    for number in range(3 * meta._MOST_INTERNED):
        assert meta.compact(TaskRecord(task_id="a", pid=number), "a").pid == number
    assert len(meta._interned_values) <= meta._MOST_INTERNED + 1  # its own comes on top


def test_light_tasks_keep_client_and_route_and_share_them(tmp_path: Path) -> None:
    for number, task_id in enumerate(IDS):
        ours = {**owned(f"owner {number}"), "run_id": str(number), "client": "a-client"}
        more = {"metadata": {"a": 1}} if number else {}
        put(tmp_path, task_id, status="COMPLETED", engine={**ours, **more, "route": "a-route"})
    reader = LedgerReader(tmp_path)
    for found in (reader.entries(IDS, compact), reader.ended(IDS, compact)[0], reader.entries(IDS)):
        one, other = parts([*found])
        assert (one.client, one.route) == ("a-client", "a-route")
        assert (one.client, one.route) == (other.client, other.route)
        assert one.client is other.client
        assert one.route is other.route


def test_a_list_cuts_the_long_client_of_a_large_task(tmp_path: Path) -> None:
    put(tmp_path, IDS[0], kind="crawl", engine={"client": "x" * 100_000, "route": "mcp"})
    (seen,) = LedgerReader(tmp_path).read_many(IDS[:1])
    (one,) = parts([for_list(seen, compact)[0]])
    assert one.client == "x" * 4_096
    assert one.route == "mcp"
