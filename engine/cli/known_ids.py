"""Ids of tasks, contracts, task runs and runs on the command line: unique prefixes, completion.

Only names of files are read: neither depends on readable records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import AmbiguousId, EngineError, IdTooShort, LedgerMissing, TaskNotFound
from engine.model.kind_traits import TRAITS, kinds_by_word
from engine.model.records import (
    CONTRACTS_FOLDER,
    ENVELOPE,
    RUN_ID,
    RUNS_FOLDER,
    SCHEDULES_FOLDER,
    TASK_RUN,
    TASK_RUNS_FOLDER,
    Status,
    TaskRecord,
)

MOST_NAMED: Final = 10  # candidates in an error
MOST_OFFERED: Final = 200  # ids in a completion
MOST_DESCRIBED: Final = 200  # tasks whose state is read for a completion: some 20 ms

# A shorter prefix is more likely a slip than an id.
_PREFIX: Final = re.compile(r"[0-9a-f][0-9a-f-]{3,35}", re.ASCII)
BARE: Final = "bare_"  # begins the name of an option that is also given as an argument
_TOO_SHORT: Final = re.compile(r"[0-9a-f]{1,3}", re.ASCII)
_HEX16: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Store:
    """Where the ids of a noun are file names; `ending` follows each."""

    noun: str
    folder: str  # in the home, or in the ledger; empty for the tasks
    shape: re.Pattern[str] = _HEX16
    ending: str = ""
    in_ledger: bool = False

    def path(self, settings: Settings) -> Path:
        if self.in_ledger or not self.folder:
            return settings.root / self.folder
        return settings.home / self.folder

    def ids(self, settings: Settings, prefix: str) -> Iterator[str]:
        with suppress(OSError), os.scandir(self.path(settings)) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(prefix) and name.endswith(self.ending):
                    found = name.removesuffix(self.ending)
                    if self.shape.fullmatch(found):
                        yield found


_TASKS: Final = _Store("task", "")
_CONTRACTS: Final = _Store("contract", CONTRACTS_FOLDER, ending=".json")
_TASK_RUNS: Final = _Store("task run", TASK_RUNS_FOLDER)
_RUNS: Final = _Store("run", RUNS_FOLDER, RUN_ID, ".json")
_SCHEDULES: Final = _Store("schedule", SCHEDULES_FOLDER, ending=".json", in_ledger=True)

# By the name of a parameter; `run_id` depends on the command.
_OF_PARAM: Final[Mapping[str, tuple[_Store, ...]]] = {
    "task_id": (_TASKS,),
    "task_ids": (_TASKS,),
    "ledger_task_ids": (_TASKS,),
    **dict.fromkeys(("before", "after"), (_TASKS,)),
    "contract_id": (_CONTRACTS,),
    "task_run_id": (_TASK_RUNS,),
    "schedule_id": (_SCHEDULES,),
}
# Command -> whether it may do something with a task.
_FITTING: Final[Mapping[str, Callable[[TaskRecord], bool]]] = {
    "cancel": lambda record: record.is_live,
    "wait": lambda record: record.is_live,
    "resume": lambda record: record.is_terminal,
}
_RUN_OF_COMMAND: Final[Mapping[str, tuple[_Store, ...]]] = {
    "complete": (_TASK_RUNS, _TASKS),
    "contract start": (_TASK_RUNS,),
    **{f"task-run {verb}": (_TASK_RUNS,) for verb in ("get", "update", "checkpoint", "needs-help")},
    **{f"runs {verb}": (_RUNS,) for verb in ("show", "update", "complete", "abort", "fail")},
}


def _stores(param: str, command: str) -> tuple[_Store, ...]:
    return _RUN_OF_COMMAND.get(command, ()) if param == "run_id" else _OF_PARAM.get(param, ())


def whole_ids(command: str, settings: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with whole ids for unique prefixes.

    Raises:
        IdTooShort, AmbiguousId, TaskNotFound, RecordNotFound.
    """
    found = dict(given)
    for name, value in given.items():
        stores = _stores(name, command)
        if stores and isinstance(value, str):
            found[name] = _whole(stores, settings, value)
        elif stores and isinstance(value, tuple | list):
            found[name] = tuple(_whole(stores, settings, one) for one in value)
    return found


def whole_task_id(settings: Settings, given: str) -> str:
    """Return the id of the task whose id begins with `given`. Raises as `whole_ids`."""
    return _whole((_TASKS,), settings, given)


def _whole(stores: tuple[_Store, ...], settings: Settings, given: str) -> str:
    """Return a whole id as given, and text that can be none unchanged: its reader refuses it."""
    if _TOO_SHORT.fullmatch(given) and _TASKS in stores:
        raise IdTooShort(given=given)
    if not _PREFIX.fullmatch(given) or _HEX16.fullmatch(given):
        return given
    found = sorted({one for store in stores for one in store.ids(settings, given)})
    if given in found or len(found) == 1:  # a run may have any id: a whole one is never a prefix
        return given if given in found else found[0]
    if not found:
        first = stores[0]
        if first is _TASKS:
            missing = TaskNotFound if settings.root.is_dir() else LedgerMissing
            raise missing(task_id=given, root=str(settings.root))
        if first is _RUNS:
            return given  # no other pattern than the file's name: its reader knows
        from engine.ledger.record_store import RecordNotFound  # no help needs the ledger

        raise RecordNotFound(noun=first.noun, id=given, path=str(first.path(settings)))
    more = f", … ({len(found) - MOST_NAMED})" if len(found) > MOST_NAMED else ""
    candidates = ", ".join(found[:MOST_NAMED]) + more
    raise AmbiguousId(number=len(found), given=given, candidates=candidates)


# Completion in the shell: click calls these with what was typed so far.


def complete_param(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete ids, kinds, states and conditions of a query; other parameters have nothing."""
    name = (param.name or "").removeprefix(BARE)
    command = " ".join(ctx.command_path.split()[1:])
    stores = _stores(name, command)
    if stores:
        return _ids(ctx, stores, incomplete, command)
    if name == "format" and command == "export":
        from engine.export.exporter import FORMATS  # imports the writers of each

        return _plain(FORMATS, incomplete)
    if name == "report":
        from engine.results.site_audit import REPORT_NAMES

        return _plain(REPORT_NAMES, incomplete)
    if name == "kind":
        known = kinds_by_word() if command == "list" else (*_kinds(), ENVELOPE)
        return _plain(known, incomplete)
    if name == "status" and command in ("list", "prune"):
        return _plain([status.lower() for status in Status], incomplete.lower())
    if name in ("query", "all_matching"):
        return _conditions(incomplete)
    return []


def _kinds() -> list[str]:
    """Return the kinds that can be started here, by their traits: the registry imports them all."""
    return [name for name in TRAITS if name not in (ENVELOPE, TASK_RUN)]


def _plain(values: Any, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(one) for one in dict.fromkeys(values) if one.startswith(incomplete)]


def _ids(
    ctx: click.Context, stores: tuple[_Store, ...], incomplete: str, command: str
) -> list[CompletionItem]:
    """Offer the ids that begin so; `cancel` and `resume` take only some tasks."""
    settings = _settings(ctx)
    if settings is None:
        return []
    found = sorted({one for store in stores for one in store.ids(settings, incomplete)})
    records = _records(settings, found) if _TASKS in stores else {}
    if (fits := _FITTING.get(command)) is not None:
        found = [one for one in found if one not in records or fits(records[one])]
    told = {
        one: f"{display(record.status, 20)} {display(record.kind, 40)}"
        for one, record in records.items()
    }
    return [CompletionItem(one, help=told.get(one)) for one in found[:MOST_OFFERED]]


def _settings(ctx: click.Context) -> Settings | None:
    """Return the settings for the options before and after the command; None if they are wrong."""
    whole = {**ctx.find_root().params, **{k: v for k, v in ctx.params.items() if v is not None}}
    try:
        return Settings.chosen(os.environ, home=whole.get("home"), root=whole.get("root"))
    except EngineError:
        return None


def _records(settings: Settings, ids: list[str]) -> dict[str, TaskRecord]:
    """Return the records of a few tasks; none where there are many."""
    if len(ids) > MOST_DESCRIBED:
        return {}
    from engine.ledger.reader import LedgerReader  # as above

    try:
        found = LedgerReader(settings.root).read_many(ids)
    except EngineError:
        return {}
    return {one.task_id: one.entry for one in found if isinstance(one.entry, TaskRecord)}


def _conditions(incomplete: str) -> list[CompletionItem]:
    from engine.query import completion  # no other completion needs the filter language

    done = completion(incomplete, len(incomplete), {"kind": _kinds()}, offer_all=True)
    before = incomplete[: done.start]
    return [CompletionItem(before + one.text, help=one.help or None) for one in done.offers]
