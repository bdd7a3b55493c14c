"""Any sequence of calls, updates, cancels and ends matches a model of ten lines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.budgets import ToolCall
from engine.budgets.envelopes import EnvelopeEnded, EnvelopeRequest, Envelopes
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger

ENDS = {"completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED"}
STEPS = st.one_of(
    st.tuples(st.just("call"), st.booleans()),
    st.tuples(st.just("phase"), st.sampled_from(["explore", "act", "verify", "recover", "done"])),
    st.tuples(st.just("note"), st.text(max_size=5)),
    st.tuples(st.just("finish"), st.sampled_from(sorted(ENDS))),
    st.tuples(st.just("cancel"), st.none()),
)


class Model:
    """What an envelope is, without a file: terminal is final, and done is its last phase."""

    def __init__(self) -> None:
        self.status, self.phase, self.calls, self.failures = "RUNNING", "explore", 0, 0
        self.ends: list[str] = []

    def step(self, name: str, value: Any) -> bool:
        """Take a step; False where it is refused."""
        if self.status != "RUNNING":
            return name == "cancel"  # an ended task is returned as it is
        if name == "call":
            self.calls, self.failures = self.calls + 1, self.failures + (not value)
        elif name == "phase":
            self.phase = value
        elif name in ("finish", "cancel"):
            self.status, self.phase = ENDS.get(value, "CANCELLED"), "done"
            self.ends.append(self.status.lower())
        return True


def asked(envelopes: Envelopes, ledger: Ledger, task_id: str, name: str, value: Any) -> bool:
    with suppress(EnvelopeEnded):
        match name:
            case "call":
                envelopes.record(task_id, ToolCall("act", ok=value))
            case "phase":
                envelopes.update(task_id, phase=value)
            case "note":
                envelopes.update(task_id, note=value)
            case "finish":
                envelopes.finish(task_id, value)
            case "cancel":
                ledger.request_cancel(task_id)
        return True
    return False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(story=st.lists(STEPS, max_size=10))
def test_envelopes_match_the_model(tmp_path_factory: Any, story: list[tuple[str, Any]]) -> None:
    root: Path = tmp_path_factory.mktemp("home") / "tasks"
    lease = Lease.acquire(root)
    try:
        ledger = Ledger(root, lease=lease)
        envelopes, model = Envelopes(ledger), Model()
        task_id = envelopes.start(EnvelopeRequest("a story")).task_id
        for name, value in story:
            before = (root / task_id / "meta.json").read_bytes()
            was_open = model.status == "RUNNING"
            assert asked(envelopes, ledger, task_id, name, value) is model.step(name, value)
            if not was_open:
                assert (root / task_id / "meta.json").read_bytes() == before
        raw = ledger.read_raw(task_id)
        assert (raw["status"], raw["phase"]) == (model.status, model.phase)
        assert raw["counters"]["toolCalls"] == model.calls
        assert raw["counters"]["failureCalls"] == model.failures
        kinds = [event.kind for event in ledger.read_events(task_id).events]
        assert [kind for kind in kinds if kind in ENDS] == model.ends
        assert kinds.count("tool_call") == model.calls
    finally:
        lease.release()
