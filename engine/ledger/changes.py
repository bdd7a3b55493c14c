"""What a state change does to the whole dict of a meta.json; no file, no lock, no clock here.

Each function changes `raw` in place and leaves every field alone that it does not name,
so that what other programs wrote survives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.ledger import machine
from engine.ledger.lease import Lease
from engine.model.records import ENVELOPE, LIVE, EngineFields, ErrorInfo, Status, Units
from engine.model.redact import Summary
from engine.model.status import moment

BULK_INCOMPLETE: Final = "bulk_incomplete"  # the code of a crawl that its contract refused
BUDGET_EXCEEDED: Final = "BUDGET_EXCEEDED"  # of one that was started to end with its budget
OVERRULED: Final = frozenset({BULK_INCOMPLETE, BUDGET_EXCEEDED})  # by a force
RERUN_CAP: Final = 256 * 1024  # bytes; above it a re-run asks again


def derived_id(kind: str, args: dict[str, Any], nonce: str, created_at: int) -> str:
    """16 hex digits over what was asked; `args` are redacted, so no secret can be guessed by it."""
    asked = json.dumps({**args, "__task_nonce": nonce}, separators=(",", ":"), default=str)
    text = f"{kind}\0{asked}\0{created_at}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def new_meta(
    kind: str, summary: Summary, engine: EngineFields, lease: Lease, created_at: int
) -> dict[str, Any]:
    """A PENDING task of `lease`, still without its id and nonce (they come first in the file)."""
    rerun = summary.whole if summary.was_cut and not summary.was_redacted else None
    if rerun is not None and len(json.dumps(rerun, default=str)) > RERUN_CAP:
        rerun = None
    withheld = engine.withheld or summary.was_redacted
    owned = msgspec.structs.replace(engine, args=rerun, withheld=withheld, **owner_fields(lease))
    return {
        "kind": kind,
        "status": Status.PENDING.value,
        "pid": lease.pid,
        "created_at": created_at,
        "args_summary": summary.stored,
        "last_activity_at": created_at,
        "engine": msgspec.to_builtins(owned),
    }


def preset(raw: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Give a new record `fields`; one with another's pid does not end with our lease."""
    raw.update(fields)
    if "pid" in fields:
        for name in ("runner", "owner_started_at", "pid_space"):
            engine_of(raw).pop(name, None)


def owner_fields(lease: Lease) -> dict[str, Any]:
    """Who runs a task, under the names of `EngineFields`."""
    return {
        "host": lease.host,
        "boot_id": lease.boot_id,
        "runner": lease.nonce,
        "owner_started_at": lease.started_at,
        "pid_space": machine.pid_space(),
    }


def begin(raw: dict[str, Any], lease: Lease, now_ms: int) -> None:
    """PENDING → RUNNING for the process of `lease`."""
    raw["status"] = Status.RUNNING.value
    raw["started_at"] = max(now_ms, *instants(raw, "created_at"))
    raw["pid"] = lease.pid
    raw["last_activity_at"] = raw["started_at"]
    engine_of(raw).update(owner_fields(lease))


def ask_to_stop(raw: dict[str, Any], now_ms: int, reason: str | None = None) -> None:
    """Cancel at once what nobody works on, else leave a request; the first one stands.

    `reason` is redacted already.
    """
    if raw.get("status") not in LIVE:
        return
    at_once = raw["status"] == Status.PENDING or raw.get("kind") == ENVELOPE
    if raw.get("cancel_requested_at") is None:
        raw["cancel_requested_at"] = now_ms
        if reason:
            engine_of(raw)["cancel_reason"] = reason
    if not at_once:
        return
    raw["status"] = Status.CANCELLED.value
    raw["ended_at"] = latest(raw, now_ms)
    raw["last_activity_at"] = raw["ended_at"]
    if raw.get("kind") == ENVELOPE:
        raw["phase"] = "done"


def end(
    raw: dict[str, Any],
    status: Status,
    now_ms: int,
    *,
    error: ErrorInfo | None,
    units: Units | None,
    result_path: str | None,
) -> None:
    """The last change of a task; a request to stop that is there by now wins over any other.

    So does a force over the refusal of a contract, which it came to overrule, and over a
    budget that ran out at the same moment.
    """
    if raw.get("cancel_requested_at") is not None:
        status = Status.CANCELLED
    elif error is not None and error.code in OVERRULED and engine_of(raw).get("forced_at"):
        status, error = Status.COMPLETED, None
    raw["status"] = status.value
    raw["ended_at"] = latest(raw, now_ms)
    raw["last_activity_at"] = raw["ended_at"]
    if error is not None:
        raw["error"] = msgspec.to_builtins(error)
    if units is not None:
        engine_of(raw)["units"] = msgspec.to_builtins(units)
    if status is Status.COMPLETED and result_path is not None:
        raw["result_path"] = result_path


def orphan(raw: dict[str, Any], message: str, now_ms: int, units: Units | None) -> None:
    """FAILED because its owner is dead; a dead owner ends it whatever was asked for.

    `units` is the last progress that it told, if any.
    """
    raw["status"] = Status.FAILED.value
    raw["ended_at"] = latest(raw, now_ms)
    raw["error"] = {"message": message, "code": "orphaned"}
    if units is not None:
        engine_of(raw)["units"] = msgspec.to_builtins(units)


def engine_of(raw: dict[str, Any]) -> dict[str, Any]:
    """Our own part of `raw`, made where there is none that can be used."""
    ours = raw.get("engine")
    if not isinstance(ours, dict):
        ours = raw["engine"] = {}
    return ours


def latest(raw: dict[str, Any], now_ms: int) -> float:
    """Now, but never before the task began: a clock may have been set back."""
    return max(now_ms, *instants(raw, "created_at", "started_at"))


def instants(raw: dict[str, Any], *names: str) -> list[float]:
    """The fields among `names` that can be a time (ms since 1970), and 0."""
    return [0, *(raw[name] for name in names if moment(raw.get(name)) is not None)]
