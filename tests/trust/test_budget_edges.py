"""Each budget of an envelope at one below its limit, at it and above, with a restart in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from engine.budgets import ToolCall
from engine.budgets.envelopes import EnvelopeRequest, Envelopes
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger

LIMIT: Final = 4
VISIT: Final = ToolCall("navigate", {"url": "http://site.test/"})
ACT: Final = (ToolCall("act"), ToolCall("interact"))
# Calls by which the budget of this name, and none before it, is used up one by one.
CALLS: Final[dict[str, Callable[[int], ToolCall]]] = {
    "maxToolCalls": lambda number: ACT[number % 2],
    "maxConsecutiveSameTool": lambda number: ACT[0],
    "maxObservationStreak": lambda number: ToolCall(("read_page", "find")[number % 2]),
    "maxFailureStreak": lambda number: ToolCall(ACT[number % 2].tool, ok=False),
    "maxSameUrlNavigations": lambda number: VISIT,
}


def restarted(root: Path, now_ms: Callable[[], int] = lambda: 1_000_000) -> Envelopes:
    """The envelopes as a program that was just started finds them."""
    lease = Lease.acquire(root)
    try:
        ledger = Ledger(root, lease=lease)
    finally:
        lease.release()
    return Envelopes(ledger, now_ms=now_ms)


def started(root: Path, policy: dict[str, int]) -> str:
    lease = Lease.acquire(root)
    try:
        envelopes = Envelopes(Ledger(root, lease=lease), now_ms=lambda: 1_000_000)
        return envelopes.start(EnvelopeRequest("to the edge", policy=policy)).task_id
    finally:
        lease.release()


@pytest.mark.case("R90")
@pytest.mark.parametrize("key", CALLS)
def test_the_call_budget_survives_a_restart(home: Path, key: str) -> None:
    root = home / "tasks"
    task_id = started(root, {key: LIMIT})
    found = []
    for number in range(LIMIT + 1):
        restarted(root).record(task_id, CALLS[key](number))
        state = restarted(root).state(task_id)
        found.append((state.budget_status, key in state.budget_exceeded))
    ok, warning, over = ("ok", False), ("warning", False), ("exceeded", True)
    assert found == [ok, ok, warning, warning, over]


@pytest.mark.case("R90")
def test_the_time_budget_survives_a_restart(home: Path) -> None:
    root = home / "tasks"
    task_id = started(root, {"maxWallMs": 1_000})
    for passed, status in ((749, "ok"), (750, "warning"), (1_000, "warning"), (1_001, "exceeded")):
        envelopes = restarted(root, partial(int, 1_000_000 + passed))
        assert envelopes.state(task_id).budget_status == status
