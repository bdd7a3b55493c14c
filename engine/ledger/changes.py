"""State changes on the whole dict of a meta.json, without file, lock or clock.

Each function changes `raw` in place and keeps every field that it does not name, so that the fields
of other programs survive.
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

BULK_INCOMPLETE: Final = "bulk_incomplete"  # error code of a crawl that its contract refused
BUDGET_EXCEEDED: Final = "BUDGET_EXCEEDED"  # error code of a crawl started with "end on budget"
# Error codes that a force overrules.
OVERRULED: Final = frozenset({BULK_INCOMPLETE, BUDGET_EXCEEDED})
# Bytes; larger arguments are not kept for a re-run. The record may have 1 MiB, in indented lines.
RERUN_CAP: Final = 640 * 1024


def derived_id(kind: str, args: dict[str, Any], nonce: str, created_at: int) -> str:
    """Derive 16 hex digits from the request; `args` are redacted, so the id reveals no secret."""
    asked = json.dumps({**args, "__task_nonce": nonce}, separators=(",", ":"), default=str)
    text = f"{kind}\0{asked}\0{created_at}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def new_meta(
    kind: str, summary: Summary, engine: EngineFields, lease: Lease, created_at: int
) -> dict[str, Any]:
    """Build a PENDING task of `lease`, without its id and nonce (they come first in the file)."""
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
    """Set `fields` in a new record; a foreign pid drops our lease from it."""
    raw.update(fields)
    if "pid" in fields:
        for name in ("runner", "owner_started_at", "pid_space"):
            engine_of(raw).pop(name, None)


def owner_fields(lease: Lease) -> dict[str, Any]:
    """Owner of a task, under the field names of `EngineFields`."""
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


def request_stop(raw: dict[str, Any], now_ms: int, reason: str | None = None) -> None:
    """Cancel a PENDING task or an envelope at once, else record a request; the first one is kept.

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
    """Write the terminal state; a stop request that is recorded by now overrides `status`.

    A force overrides the refusal of a contract, and a budget that ran out at the same moment.
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


def orphan(
    raw: dict[str, Any], message: str, now_ms: int, units: Units | None, last_ms: float | None
) -> None:
    """Set FAILED because the owner is dead, whatever stop request exists.

    `units` is its last reported progress and `last_ms` the time of its last event, if any.
    """
    raw["status"] = Status.FAILED.value
    raw["ended_at"] = latest(raw, now_ms)
    raw["error"] = {"message": message, "code": "orphaned"}
    if units is not None:
        engine_of(raw)["units"] = msgspec.to_builtins(units)
    if last_ms is not None:
        raw["last_activity_at"] = max(last_ms, *instants(raw, "last_activity_at"))


def engine_of(raw: dict[str, Any]) -> dict[str, Any]:
    """Engine part of `raw`; created where no usable one exists."""
    ours = raw.get("engine")
    if not isinstance(ours, dict):
        ours = raw["engine"] = {}
    return ours


def latest(raw: dict[str, Any], now_ms: int) -> float:
    """Return now, but never a time before the task began: a clock may have been set back."""
    return max(now_ms, *instants(raw, "created_at", "started_at"))


def instants(raw: dict[str, Any], *names: str) -> list[float]:
    """Values of the fields `names` that are valid times (ms since 1970), and 0."""
    return [0, *(raw[name] for name in names if moment(raw.get(name)) is not None)]
