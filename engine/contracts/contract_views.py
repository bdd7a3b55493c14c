"""Replies about contracts and task runs: counts always, items only on request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from engine.contracts import task_run_steps
from engine.contracts.bulk_progress import Contract, Guard, Hint
from engine.ledger.meta import without_surrogates
from engine.model.records import TaskEvent, Unreadable
from engine.model.status import moment

_NAMES: Final = ("completed", "failed", "skipped")
_RUN_NAMES: Final = ("completed_items", "failed_items")


class ContractView(msgspec.Struct, frozen=True):
    """Contract with its guard; `items` and `missing` on request.

    `missing` holds the first 100 named items without a state.
    """

    contract: Contract
    guard: Guard
    items: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class RunView(msgspec.Struct, frozen=True):
    """Task run as stored (`raw`, every field), with its contract if it has one."""

    raw: dict[str, Any]
    progress: ContractView | None = None
    events: tuple[TaskEvent, ...] = ()
    checkpoint: dict[str, Any] | None = None
    hint: Hint | None = None

    @property
    def run_id(self) -> str:
        return str(self.raw["run_id"])

    @property
    def status(self) -> str:
        return str(self.raw.get("status", ""))


View = TypeVar("View", ContractView, RunView)


def newest_first(views: Iterable[View | Unreadable]) -> list[View | Unreadable]:
    """Sort by creation time, newest first; unreadable entries go last."""
    return sorted(views, key=made_at, reverse=True)


def made_at(view: ContractView | RunView | Unreadable) -> float:
    """Return the creation time (ms since 1970); 0 where it is unknown."""
    if isinstance(view, ContractView):
        return view.contract.created_at
    if isinstance(view, RunView):
        return moment(view.raw.get("created_at")) or 0
    return 0


def contract_data(view: ContractView, *, include_items: bool = False) -> dict[str, Any]:
    """Encode a contract for other programs; source: seed 001 ("keep output compact")."""
    contract = {
        name: value
        for name, value in msgspec.to_builtins(view.contract).items()
        if value is not None and (include_items or name not in _NAMES)
    }
    if include_items and view.items:
        contract["items"] = list(view.items)
    answer = {
        "bulk_progress_contract": contract,
        "completion_guard": msgspec.to_builtins(view.guard),
    }
    if view.missing:
        answer["missing_items"] = list(view.missing)
    return answer


def run_data(view: RunView, *, include_items: bool = False) -> dict[str, Any]:
    """Encode a task run for other programs."""
    raw = without_surrogates(view.raw)
    run = {name: raw[name] for name in raw if include_items or name not in _RUN_NAMES}
    answer: dict[str, Any] = {"task_run": {**run, **task_run_steps.counts(raw)}}
    if view.progress is not None:
        answer.update(contract_data(view.progress, include_items=include_items))
    if view.checkpoint is not None:
        answer["checkpoint"] = view.checkpoint
    if view.hint is not None:
        answer["hint"] = msgspec.to_builtins(view.hint)
    if view.events:
        answer["events"] = msgspec.to_builtins(view.events)
    return answer
