"""The budgets of a task with a body: one unit counts as one call of a tool (seed 004)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine import budget
from engine.budget import Standing, ToolCall
from engine.envelopes import apply, edge_events
from engine.records import ErrorInfo, Units
from engine.store.ledger import Ledger
from engine.work.context import StopReason

WRITE_S: Final = 1.0  # meta.json is written at most so often; the events tell each edge at once
KEPT: Final = ("counters", "budget_status", "budget_exceeded", "recommended_next")


class Meter:
    """Counts along with one task, as its companion; only a task with a policy has one.

    With `enforce` it asks the task to stop as soon as a budget is exceeded; without, going
    over is only told. Source: seed 004.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: str,
        enforce: bool,
        *,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._task_id = task_id
        self._enforce = enforce
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._meta: dict[str, Any] = {}
        self._failed = 0
        self._dirty = False
        self._written = float("-inf")

    def kept(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """A unit was done: count it, and say if the task has to end now."""
        address = unit.get("final_url") or unit.get("url")
        args = {"url": address} if isinstance(address, str) and address else {}
        ok, self._failed = units.failed <= self._failed, units.failed
        meta = self._known()
        old, now = budget.before(meta), self._now_ms()
        apply(meta, budget.fold(meta, ToolCall(str(meta.get("kind")), args, ok), now))
        self._dirty = True
        return self._judged(old, budget.at(meta, now))

    def tick(self) -> StopReason:
        """Time passed: it may have run out, and what was counted may be due to be written."""
        meta = self._known()
        old, now = budget.before(meta), self._now_ms()
        new = budget.at(meta, now)
        meta["last_activity_at"] = now
        if (new.exceeded, new.warning) != (old.exceeded, old.warning):
            apply(meta, budget.verdict(new))
            self._dirty = True
        return self._judged(old, new)

    def refuses(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """A budget never refuses what is done."""
        return None

    def ended(self) -> None:
        """The last count, before the terminal record."""
        if self._meta:
            self._write()

    def _judged(self, old: Standing, new: Standing) -> StopReason:
        edge = edge_events(old, new)
        if edge:
            self._ledger.note(self._task_id, edge)
        if self._dirty and self._monotonic() - self._written >= WRITE_S:
            self._write()
        return "budget" if self._enforce and new.status == "exceeded" else ""

    def _known(self) -> dict[str, Any]:
        """The record as this task began; from then on it is counted here."""
        if not self._meta:
            self._meta = self._ledger.read_raw(self._task_id)
        return self._meta

    def _write(self) -> None:
        told = {name: self._meta.get(name) for name in KEPT}
        self._dirty, self._written = False, self._monotonic()
        self._ledger.mutate(self._task_id, lambda raw: apply(raw, told))
