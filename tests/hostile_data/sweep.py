"""Every way to read a task or a home, tried; results are answers or typed errors."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from engine.cli import show, task_commands
from engine.cli.calls import json_text
from engine.cli.goal_lines import LINES
from engine.cli.runs import _cells
from engine.export.exporter import FORMATS, Order
from engine.ledger.json_stream import Damaged
from engine.ledger.listing import is_task_id
from engine.ledger.reader import LedgerReader
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.model.status import facets, standing
from engine.query import Filter
from engine.query.attention_reasons import changes_at, reasons, seen
from engine.results.findings import Findings
from engine.service.engine import Engine
from engine.service.rerun import repeatable
from engine.text import words
from engine.verbs.json_answers import task_data, view_data
from engine.verbs.verb_table import VERBS

NOW_MS = 1_800_000_000_000.0
HASHED_BYTES = 1024 * 1024
QUERIES = (
    *("status:failed", "-kind:crawl", "url:site", "name:*x*", "error:m", "created:>2020-01-01"),
    *("updated:<1d", "progress:>50%", "is:orphaned", "word", '"two words"', "(a or b) -c"),
)


@dataclass
class Seen:
    """What a sweep found: `broken` must stay empty, `slowest` tells what took longest (s)."""

    broken: list[str] = field(default_factory=list)
    errors: int = 0
    looks: int = 0
    slowest: tuple[float, str] = (0.0, "")

    async def look(self, what: str, call: Callable[[], Any]) -> Any:
        """Do it; an EngineError is an answer, everything else is broken."""
        began = time.monotonic()
        self.looks += 1
        try:
            found = call()
            return await found if isinstance(found, Awaitable) else found
        except EngineError as error:
            self.errors += 1
            self.tell(what, error)
        except Exception as error:  # noqa: BLE001 - the very thing that is looked for
            self.broken.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")
        finally:
            self.slowest = max(self.slowest, (time.monotonic() - began, what))
        return None

    def tell(self, what: str, error: EngineError) -> None:
        """A refusal must be words that every output can take."""
        try:
            f"{error} {error.advice} {error.title}".encode()
        except UnicodeEncodeError:
            self.broken.append(f"{what}: its refusal cannot be written")


async def look_at_all(home: Path, *, formats: Iterable[str] = FORMATS) -> tuple[Seen, Any]:
    """Look at a whole home as the command line and the window do; also the views of its list."""
    seen = Seen()
    engine = Engine(Settings.at(home=home), accepts=False)
    await engine.open()
    try:
        views = await seen.look("list", lambda: engine.tasks.list(limit=None)) or []
        await seen.look("list as JSON", lambda: [json_text(view_data(v)) for v in views])
        await seen.look("list as a table", lambda: show.rich_table(views, 120))
        for query in QUERIES:
            await seen.look(f"list {query}", partial(_matching, query, views))
        await seen.look("the live list", lambda: _first(engine))
        for view in views:
            await look_at_one(seen, engine, view, formats)
        await look_beside(seen, engine)
        return seen, views
    finally:
        await engine.close()


async def look_at_one(
    seen: Seen, engine: Engine, view: TaskView, formats: Iterable[str] = FORMATS
) -> None:
    """One task by every verb that looks."""
    task_id = view.task_id
    look = LedgerReader(engine.settings.root)
    await seen.look(f"{task_id} words", lambda: _words(view))
    fresh = await seen.look(f"{task_id} get", lambda: engine.tasks.get(task_id))
    await seen.look(f"{task_id} read", lambda: look.read(task_id))
    await seen.look(f"{task_id} meta", lambda: _meta(engine, task_id))
    await seen.look(f"{task_id} events", lambda: _events(engine, task_id))
    await seen.look(f"{task_id} tail", lambda: look.tail_units(task_id))
    await seen.look(f"{task_id} pages", lambda: [json_text(p) for p in look.read_pages(task_id)])
    await seen.look(f"{task_id} result", lambda: _result(engine, task_id))
    await seen.look(f"{task_id} head", lambda: engine.tasks.head(task_id))
    await seen.look(f"{task_id} rows", lambda: _rows(look, view))
    await seen.look(f"{task_id} command task", lambda: engine.tasks.command_task(task_id))
    await seen.look(f"{task_id} budgets", lambda: engine.contracts.budgets(task_id))
    await seen.look(f"{task_id} asked", lambda: engine.requests.asked(task_id))
    await seen.look(f"{task_id} artifact", lambda: look.read_artifact(task_id, "inside"))
    if fresh is not None:
        await seen.look(f"{task_id} told", lambda: _told(engine, fresh))
    for form in formats:
        order = Order(task_id=task_id, format=form)
        what = f"{task_id} export {form}"
        await seen.look(what, partial(engine.exports.to_stream, order, io.BytesIO()))


async def look_beside(seen: Seen, engine: Engine) -> None:
    """Contracts, task runs and records of runs, as the command line shows them."""
    for contract_id in await seen.look("contracts", lambda: contract_ids(engine)) or ():
        for verb in ("contract show", "contract check"):
            await _asked(seen, engine, verb, contract_id=contract_id, include_items=True)
        await seen.look(f"terms {contract_id}", partial(engine.goals.terms_of, contract_id))
    for run_id in await seen.look("task runs", lambda: run_ids(engine)) or ():
        await _asked(seen, engine, "task-run get", run_id=run_id, include_items=True, events=True)
    for verb in ("contract list", "task-run list", "runs list"):
        await _asked(seen, engine, verb, limit=100)


async def _asked(seen: Seen, engine: Engine, name: str, **given: Any) -> None:
    verb = VERBS[name]
    asked = {p.name: given.get(p.name, p.default) for p in verb.params}

    async def call() -> None:
        found = await verb.call(engine, asked)
        json_text(found).encode()
        for line in LINES[name](found) if name in LINES else map(str, map(_cells, found)):
            line.encode()

    await seen.look(f"{name} {given}", call)


def contract_ids(engine: Engine) -> list[str]:
    folder = engine.settings.home / "progress-contracts"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [name.removesuffix(".json") for name in names if name.count(".") == 1]


def run_ids(engine: Engine) -> list[str]:
    folder = engine.settings.home / "task-runs"
    return (
        sorted(name for name in os.listdir(folder) if is_task_id(name)) if folder.is_dir() else []
    )


def _matching(query: str, views: list[TaskView]) -> int:
    wanted = Filter.of(query)
    return sum(wanted.shows(view, NOW_MS) for view in views)


async def _first(engine: Engine) -> int:
    number = 0
    async for batch in engine.tasks.changes():
        number += len(batch.views)
        if batch.complete:
            break
    return number


def _words(view: TaskView) -> None:
    said = [words.task_name(view), words.why(view, NOW_MS), words.status_word(view)]
    said += [words.row_sentence(view, "x"), words.owner(view), *show.cells(view)]
    said.append(json_text(view_data(view)))
    needs = reasons(view, NOW_MS)
    facets(view, standing(view), needs)
    changes_at(view, NOW_MS)
    said += [seen(view, reason) for reason in needs]
    if isinstance(view.entry, TaskRecord):
        said.append(words.error_text(view.entry))
        repeatable(view.entry)
    for text in said:
        text.encode()


async def _meta(engine: Engine, task_id: str) -> None:
    json_text(await engine.tasks.meta(task_id)).encode()


async def _events(engine: Engine, task_id: str) -> None:
    events: AsyncIterator[Any] = show.every_event(engine, task_id)
    async for event in events:
        show.event_line(event).encode()
        json_text(msgspec.to_builtins(event), indent=None).encode()


async def _result(engine: Engine, task_id: str) -> None:
    source = await engine.tasks.result(task_id)
    if source is not None:
        with source:
            show._is_json(source)


def _rows(look: LedgerReader, view: TaskView) -> int:
    kind = view.entry.kind if isinstance(view.entry, TaskRecord) else ""
    try:
        return sum(1 for _ in Findings(look, view.task_id, kind).rows())
    except Damaged:
        return 0


async def _told(engine: Engine, view: TaskView) -> None:
    lines = await task_commands.fact_lines(engine, view)
    for line in [*lines, *show._task_lines(view, lines)]:
        line.encode()
    json_text(await task_data(engine, view)).encode()


def tree(top: Path) -> dict[str, tuple[Any, ...]]:
    """Every entry below `top` with its kind, size, time and (of a small file) its bytes."""
    found: dict[str, tuple[Any, ...]] = {}
    for path, facts_ in _walk(os.fsencode(top)):
        told: tuple[Any, ...] = (stat.S_IFMT(facts_.st_mode), facts_.st_mode, facts_.st_mtime_ns)
        if stat.S_ISREG(facts_.st_mode):
            told += (facts_.st_ino, facts_.st_size, _hash(path, facts_.st_size))
        elif stat.S_ISLNK(facts_.st_mode):
            told += (os.readlink(path),)
        found[repr(path)] = told
    return found


def _walk(top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    yield top, os.lstat(top)
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            place = os.path.join(folder, name)
            yield place, os.lstat(place)


def _hash(path: bytes, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(min(size, HASHED_BYTES))).hexdigest()


def run(home: Path, **given: Any) -> tuple[Seen, Any]:
    return asyncio.run(look_at_all(home, **given))
