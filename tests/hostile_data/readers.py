"""Every reader of bytes that others write, with good bytes for it and the refusals it may make."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from engine.budgets.envelopes import state_of
from engine.cli.calls import json_text
from engine.export.table import csv_cell
from engine.kinds.commands.command_check import check
from engine.kinds.commands.command_document import task_in
from engine.kinds.commands.command_file import read_document
from engine.ledger import journal, meta
from engine.ledger.files import Folder, Unusable
from engine.ledger.json_stream import Damaged
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.model.redact import value as redacted
from engine.model.status import facets, standing
from engine.query import Filter
from engine.query.attention_reasons import reasons
from engine.results.findings import is_json, unit_rows
from engine.text import words
from engine.verbs.json_answers import view_data
from fixtures.hostile_ledger.traps import base

ID: Final = "0123456789abcdef"
NOW_MS: Final = 1_800_000_000_000
REFUSALS: Final = (EngineError, Unusable, Damaged)


class Reader(NamedTuple):
    """`read` takes `good` bytes in, and any others: it returns, or raises one of REFUSALS."""

    name: str
    good: bytes
    read: Callable[[bytes], object]


def _meta(**fields: Any) -> bytes:
    engine = {"runner": "a" * 16, "units": {"done": 1, "total": 4}, "metadata": {"a": [1]}}
    return json.dumps(base(engine=engine, **fields), indent=2).encode()


def _shown(record: TaskRecord) -> None:
    """What a list makes of a record."""
    view = TaskView(record, units=record.units)
    for text in (words.task_name(view), words.why(view, NOW_MS), words.owner(view)):
        text.encode()
    json_text(view_data(view)).encode()
    facets(view, standing(view), reasons(view, NOW_MS))


def _glance(data: bytes) -> None:
    _shown(meta.decode_record(data, ID))


def _strict(data: bytes) -> None:
    _shown(meta.decode_strict(data, ID))
    meta.encoded(meta.decode_task(data))


def _envelope(data: bytes) -> None:
    json_text(msgspec.to_builtins(state_of(meta.decode_task(data), NOW_MS))).encode()


def _lines(place: Path) -> Iterator[dict[str, Any]]:
    with Folder.at(str(place.parent)) as folder:
        found = journal.read_events(folder, place.name, 0, 2**30, True)
        yield from (msgspec.to_builtins(event) for event in found.events)
        journal.tail(folder, place.name, 0)
        yield from map(journal.page, journal.page_lines(folder, place.name, 0))


def _written(rows: Iterator[dict[str, Any]]) -> None:
    """What an export makes of rows."""
    for row in rows:
        clean = redacted(row)
        msgspec.json.encode(meta.without_surrogates(clean))
        json_text(clean).encode()
        for cell in clean.values():
            csv_cell(meta.without_surrogates(cell)).encode()


def _result(data: bytes) -> None:
    is_json(io.BytesIO(data))
    _written(map(meta.without_surrogates, unit_rows(iter([data]), "pages")))


def _task_file(data: bytes) -> None:
    check(read_document(data, "task.json"), environ={}, living=lambda _: False)


def _query(data: bytes) -> None:
    Filter.of(data.decode("utf-8", "surrogateescape")).shows(TaskView(TaskRecord(ID)), NOW_MS)


_EVENTS: Final = b"".join(
    json.dumps({"ts": 1_700_000_000_000 + n, "kind": "progress", "data": {"unitsDone": n}}).encode()
    + b"\n"
    for n in range(4)
)
_PAGES: Final = (
    b'{"url":"http://site.test/a","title":"One","status":200,"depth":0,"bytes":1234}\n'
    b'{"url":"http://site.test/b","title":"T\\u00e9","error":"none","links":["a","b"]}\n'
)
_RESULT: Final = b'{"summary":{"a":1},"pages":[' + _PAGES.replace(b"\n", b",")[:-1] + b"]}"
_FILE: Final = (
    (Path(__file__).resolve().parents[2] / "fixtures/tasks/open-page.json")
    .read_bytes()
    .replace(b"{{site}}", b"http://site.test")
)
_TASK: Final = (
    b'{"id":"task_1_a","name":"n","createdAt":5,"commands":[{"id":"c","tool_name":"browser_navigate",'
    b'"intention":"i","args":{"url":"x"},"status":"success","startedAt":5,"completedAt":7}]}'
)
READERS: Final = (
    Reader("meta in a list", _meta(), _glance),
    Reader("meta opened", _meta(), _strict),
    Reader("envelope", _meta(kind="browser_task", policy={"maxToolCalls": 3}), _envelope),
    Reader(
        "result",
        b'{"summary":{"a":1},"pages":[' + _PAGES.replace(b"\n", b",")[:-1] + b"]}",
        _result,
    ),
    Reader("command document", _TASK, task_in),
    Reader("task file", _FILE, _task_file),
    Reader("query", b'status:failed -kind:"a b" (url:x* or pages:>5) updated:<2d', _query),
)


def shelves(home: Path) -> Iterator[Reader]:
    """The readers of records that lie in a home: each writes the bytes there, and looks."""
    from engine.contracts.contract_store import Contracts
    from engine.contracts.run_lifecycle import Runs
    from engine.contracts.task_run_folders import RunFolders

    contracts, runs = Contracts(home, lambda: NOW_MS), RunFolders(home, lambda: NOW_MS)
    comet = Runs(home)
    run_id = "01234567-89ab-4def-8123-456789abcdef"
    places = {
        "contract": home / "progress-contracts" / f"{ID}.json",
        "words of a contract": home / "progress-contracts" / f"{ID}.items.jsonl",
        "task run": home / "task-runs" / ID / "meta.json",
        "run": home / "comet-runs" / f"{run_id}.json",
        "events": home / "events.jsonl",
        "pages": home / "pages.jsonl",
    }
    looks: dict[str, Callable[[], object]] = {
        "contract": lambda: (contracts.read(ID), contracts.items(ID)),
        "words of a contract": lambda: (contracts.read(ID), contracts.items(ID)),
        "task run": lambda: runs.read(ID),
        "run": lambda: (comet.get_run(run_id), comet.list_runs()),
        "events": lambda: _written(_lines(places["events"])),
        "pages": lambda: _written(_lines(places["pages"])),
    }
    contract = {"contract_id": ID, "item_key": "url", "expected_total": 3, "completed": ["a"]}
    contract |= {"failed": [{"item": "b", "reason": "r"}], "completed_total": 1, "failed_total": 1}
    contract |= {"created_at": 1, "updated_at": 1}
    goods = {
        "events": _EVENTS,
        "pages": _PAGES,
        "contract": json.dumps(contract).encode(),
        "words of a contract": b'{"log":"0123456789abcdef"}\n{"wanted":"a"}\n'
        b'{"word":"completed","item":"a"}\n{"word":"failed","item":"b","reason":"r"}\n',
        "task run": json.dumps({"run_id": ID, "goal": "g", "status": "RUNNING"}).encode(),
        "run": json.dumps(
            {"runId": run_id, "taskThreadId": "t", "status": "running", "fallbackUsed": False}
            | {"startedAt": "2026-01-01T00:00:00.000Z"}
        ).encode(),
    }
    for name, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(goods[name])
    for name in places:
        for other, place in places.items():  # the one before left its own broken
            place.write_bytes(goods[other])
        yield Reader(name, goods[name], _into(places[name], looks[name]))


def _into(place: Path, look: Callable[[], object]) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        with open(place, "wb") as file:
            file.write(data)
        before = os.stat(place).st_mtime_ns
        answer = look()
        assert os.stat(place).st_mtime_ns == before, "looking wrote"
        return answer

    return read
