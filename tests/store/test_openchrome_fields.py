"""Every write of ours keeps what OpenChrome stored in a task, to the letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine.budgets import ToolCall
from engine.budgets.envelopes import Envelopes
from engine.contracts.completing import Force
from engine.contracts.contract_service import Goals
from engine.ledger import machine
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.records import ENVELOPE, ErrorInfo, Status, TaskRecord
from engine.service.maintenance import Tidier

TASK = "0123456789abcdef"
CUT = "\ud83d"  # half of a pair, as OpenChrome leaves it where it cuts a text
TEMP = "meta.json.3724810021"  # a name that write-file-atomic gives
DEAD = 2_000_000_000
LANES = [
    {
        "lane_id": "lane_0a1b2c3d4e",
        "task_id": TASK,
        "name": f"prices {CUT}",
        "status": "open",
        "profile": "scratch",
        "sessionId": "s-1",
        "workerId": f"task:{TASK}:lane:lane_0a1b2c3d4e",
        "targetIds": ["A1", "B2"],
        "targetStatuses": [{"targetId": "A1", "status": "target_missing"}],
        "counters": {"toolCalls": 3, "failures": 1},
        "recovery": "target_missing",
    },
    {"lane_id": "lane_closed", "status": "closed", "targetIds": []},
]
KEPT: dict[str, Any] = {
    "task_id": TASK,
    "created_at": 1_790_000_000_000,
    "task_nonce": "4711:1790000000000:1",
    "owner": {"session_id": "s-1", "tenant_id": "t", "key_id": None, "mode": "disabled"},
    "lanes": LANES,
    "cost_curve": [{"step": 1, "p": 0.35000000000000003, "delta": -1e-7}],
    "_mu_state": {"totalSteps": 1, "window": [{"step": 1, "ts": 1.5, "p": 0.5}], "lastP": 1},
    "policy": {"maxFailureStreak": 4, "allowedDomains": ["site.test"], "later": [CUT]},
    "later": {"words": ["é", "\u2028", f"half {CUT}"], "numbers": [0, -1.5, 1e21, 2**53]},
    f"field {CUT}": None,
}


class Write(NamedTuple):
    """A write of ours: the task as OpenChrome left it, and the status after the write."""

    act: Callable[[Ledger, Path], object]
    after: str
    kind: str = "crawl"
    status: str = "RUNNING"
    pid: int = 0


def force(ledger: Ledger, home: Path) -> None:
    """Ask a running crawl with a contract for completion."""
    goals = Goals(home, lambda: ledger)
    made = goals.contracts.start({"expected_total": 3}).contract.contract_id
    ledger.mutate(TASK, lambda raw: raw.update(engine={"contract_id": made, "theirs": CUT}))
    forced = Force("enough of them are there", "ann@desk")
    goals.completing.task(TASK, Status.COMPLETED, forced, lambda: pytest.fail("it is a crawl"))


def force_envelope(ledger: Ledger, home: Path) -> None:
    goals = Goals(home, lambda: ledger)
    made = goals.contracts.start({"expected_total": 3}).contract.contract_id
    ledger.mutate(TASK, lambda raw: raw.update(engine={"contract_id": made, "theirs": CUT}))
    forced = Force("enough of them are there", "ann@desk")

    def finish(*before: Any) -> TaskRecord:
        return Envelopes(ledger).finish(TASK, "completed", before=before)

    goals.completing.task(TASK, Status.COMPLETED, forced, finish)


def count(ledger: Ledger, _: Path) -> None:
    ledger.mutate(TASK, lambda raw: raw.update(n=1))


def fail(ledger: Ledger, _: Path) -> None:
    ledger.finish(TASK, Status.FAILED, error=ErrorInfo(message="it broke", code="broken"))


WRITES = {
    "a change": Write(
        lambda ledger, _: ledger.mutate(TASK, lambda raw: raw.update(n=1)), "RUNNING"
    ),
    "a claim": Write(lambda ledger, _: ledger.claim(TASK), "RUNNING", status="PENDING"),
    "a cancel request": Write(lambda ledger, _: ledger.request_cancel(TASK, "enough"), "RUNNING"),
    "a cancel of what waits": Write(
        lambda ledger, _: ledger.request_cancel(TASK), "CANCELLED", status="PENDING"
    ),
    "a cancel of an envelope": Write(
        lambda ledger, _: ledger.request_cancel(TASK), "CANCELLED", ENVELOPE
    ),
    "a completion": Write(lambda ledger, _: ledger.finish(TASK, Status.COMPLETED), "COMPLETED"),
    "a failure": Write(fail, "FAILED"),
    "a reaping": Write(lambda ledger, _: Reaper(ledger).reap(), "FAILED", pid=DEAD),
    "a reaping of what waits": Write(
        lambda ledger, _: Reaper(ledger).reap(), "FAILED", status="PENDING", pid=DEAD
    ),
    "a forced completion": Write(force, "RUNNING"),
    "a phase and a note": Write(
        lambda ledger, _: Envelopes(ledger).update(TASK, phase="verify", note=f"so far {CUT}"),
        "RUNNING",
        ENVELOPE,
    ),
    "a counted call": Write(
        lambda ledger, _: Envelopes(ledger).record(
            TASK, ToolCall("navigate", {"url": "x"}, session="s-1")
        ),
        "RUNNING",
        ENVELOPE,
    ),
    "an envelope's end": Write(
        lambda ledger, _: Envelopes(ledger).finish(TASK, "failed", note=f"no {CUT}"),
        "FAILED",
        ENVELOPE,
    ),
    "an envelope's forced end": Write(force_envelope, "COMPLETED", ENVELOPE),
}


def put(root: Path, write: Write) -> Path:
    """Write the task as OpenChrome does, with a temp file that a killed Node left."""
    raw = {
        **KEPT,
        "kind": write.kind,
        "status": write.status,
        "pid": write.pid or machine.own_process()[0],
        "started_at": machine.wall_ms(),
        "args_summary": {"url": "http://site.test/", "note": CUT},
    }
    folder = root / TASK
    folder.mkdir(parents=True)
    text = json.dumps(raw, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    (folder / "meta.json").write_bytes(text)
    (folder / TEMP).write_bytes(text[: len(text) // 2])
    return folder


@pytest.mark.parametrize("name", WRITES)
def test_a_write_of_ours_keeps_the_fields_of_openchrome(
    ledger: Ledger, home: Path, name: str
) -> None:
    write = WRITES[name]
    folder = put(ledger.root, write)
    before = (folder / TEMP).read_bytes()
    order = list(json.loads((folder / "meta.json").read_bytes()))
    write.act(ledger, home)
    data = (folder / "meta.json").read_bytes()
    raw = json.loads(data)
    assert raw["status"] == write.after
    assert {field: raw[field] for field in KEPT} == KEPT
    assert json.dumps({field: raw[field] for field in KEPT}) == json.dumps(KEPT)
    assert raw["args_summary"]["note"] == CUT
    assert [field for field in raw if field in order] == order
    assert raw.get("engine", {}).get("theirs") in (None, CUT)
    # Its JSON form: two spaces, raw UTF-8, a lone surrogate as an escape, no last line end.
    assert data == json.dumps(raw, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    assert (folder / TEMP).read_bytes() == before


def test_its_temp_files_are_neither_read_nor_shown_nor_removed(ledger: Ledger, home: Path) -> None:
    folder = put(ledger.root, WRITES["a change"])
    (folder / "result.json.17").write_bytes(b"{")
    (folder / "result.json").write_bytes(b"{}")
    (ledger.root / "index.json.17").write_bytes(b"{")
    (listed,) = ledger.list(limit=None)
    assert isinstance(listed, TaskRecord)
    assert listed.task_id == TASK
    shown = [name for name, _, _ in ledger.files(TASK)]
    assert shown == ["meta.json", "result.json"]
    Tidier(ledger.root, ()).tidy(old_s=0)
    assert (folder / TEMP).exists()
    assert (folder / "result.json.17").exists()
