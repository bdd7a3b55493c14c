"""Steps of a task run on the whole dict of its meta.json: no file, lock or clock.

Each function changes `raw` in place, or raises `InvalidRunStep` and leaves it unchanged. The
sentences are OpenChrome's, whose agents match them. Source: seed 001; the flow of its task runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.contracts.bulk_progress import KEPT, Contract, Note
from engine.contracts.errors import InvalidRunStep
from engine.model.lifecycle import TASK_RUN

KEPT_EVIDENCE: Final = 50
PLAIN: Final = ("progress_summary", "current_cursor", "workflow_id")
LISTS: Final = {"completed": "completed_items", "failed": "failed_items"}


def new_run(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build a RUNNING run (PENDING is declared and never written)."""
    links = list(fields.get("ledger_task_ids", ()))
    plain = {name: _plain(value) for name, value in fields.items()}
    return {"status": "RUNNING", **plain, "ledger_task_ids": links}


def check_open(raw: Mapping[str, Any], run_id: str) -> None:
    """Raise unless the run can still be changed."""
    status = raw.get("status")
    if isinstance(status, str) and TASK_RUN.is_terminal(status):
        _refuse(f"TaskRun {run_id} is terminal ({status}) and cannot be modified")


def check_target(raw: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise unless an update may request this status."""
    target = fields.get("status")
    if target is None or target == "RUNNING":
        if target and raw.get("status") == "NEEDS_HELP" and not fields.get("resume_reason"):
            _refuse("TaskRun needs a resume_reason to go from NEEDS_HELP back to RUNNING")
        return
    if target == "NEEDS_HELP":
        _refuse("Use oc_task_run_needs_help to enter NEEDS_HELP")
    if target == "PENDING":
        _refuse("TaskRun cannot transition back to PENDING")
    if TASK_RUN.is_terminal(target):
        _refuse("Use oc_task_run_complete to enter a terminal state")
    _refuse(f"Unknown TaskRun status: {target}")


def update(raw: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Apply changed fields; only an explicit status RUNNING ends NEEDS_HELP."""
    if fields.get("status") == "RUNNING":
        raw["status"] = "RUNNING"
        raw.pop("needs_help", None)
    for name in PLAIN:
        if name in fields:
            raw[name] = fields[name]
    if "last_evidence" in fields:
        raw["last_evidence"] = list(fields["last_evidence"])[-KEPT_EVIDENCE:]
    if "ledger_task_ids" in fields:
        known = _texts(raw.get("ledger_task_ids"))
        raw["ledger_task_ids"] = list(dict.fromkeys([*known, *fields["ledger_task_ids"]]))


def notes_of(fields: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return the item states in a request about a run."""
    names = ("completed_items", "failed_items", "skipped_items")
    return tuple(note for name in names for note in fields.get(name, ()))


def listed_items(raw: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return a run's listed items as notes."""
    failures = _failures(raw.get("failed_items"))
    return (
        *(Note("failed", one["item"], str(one.get("reason", ""))) for one in failures),
        *(Note("completed", item) for item in _texts(raw.get("completed_items"))),
    )


def record_items(raw: dict[str, Any], notes: Iterable[Note]) -> None:
    """Record items of a run without a contract: newest 500 of each list, latest state wins."""
    completed = dict.fromkeys(_texts(raw.get("completed_items")))
    failed = {one["item"]: one for one in _failures(raw.get("failed_items"))}
    for note in notes:
        completed.pop(note.item, None)
        failed.pop(note.item, None)
        if note.word == "completed":
            completed[note.item] = None
        elif note.word == "failed":
            failed[note.item] = {"item": note.item, "reason": note.reason or ""}
    _keep(raw, "completed_items", list(completed))
    _keep(raw, "failed_items", list(failed.values()))


def mirror(raw: dict[str, Any], contract: Contract) -> None:
    """Copy lists, counts and cursor of the contract into its run."""
    raw["completed_items"] = list(contract.completed)
    raw["failed_items"] = [{"item": one.item, "reason": one.reason} for one in contract.failed]
    for word, name in LISTS.items():
        cut = getattr(contract, f"{word}_truncated")
        raw[f"{name}_truncated"] = cut
        if not cut:
            del raw[f"{name}_truncated"]
    if contract.cursor is not None:
        raw["current_cursor"] = contract.cursor


def from_checkpoint(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a checkpoint to the fields of an update."""
    found = {"progress_summary": fields["summary"]}
    for name, source in (("current_cursor", "current_cursor"), ("last_evidence", "evidence")):
        if source in fields:
            found[name] = fields[source]
    return found


def request_help(raw: dict[str, Any], fields: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Set NEEDS_HELP, from any state that is not terminal, and return the help request."""
    asked = {"reason": fields["reason"], "requested_at": now_ms}
    if "resume_hint" in fields:
        asked["resume_hint"] = fields["resume_hint"]
    raw["status"] = "NEEDS_HELP"
    raw["needs_help"] = asked
    update(raw, {name: fields[name] for name in fields if name not in ("status", "reason")})
    return asked


def complete(
    raw: dict[str, Any], status: str, now_ms: int, forced: Mapping[str, Any] | None
) -> None:
    """Set the terminal status; `forced` is kept permanently."""
    raw["status"] = status
    raw["completed_at"] = now_ms
    raw.pop("needs_help", None)
    if forced is not None:
        raw["forced"] = dict(forced)


def counts(raw: Mapping[str, Any]) -> dict[str, int]:
    """Return how many items a run counts as completed and failed."""
    found = {}
    for word, name in LISTS.items():
        kept = raw.get(name)
        cut = raw.get(f"{name}_truncated")
        known = isinstance(cut, int) and not isinstance(cut, bool) and cut > 0
        found[f"{word}_count"] = (len(kept) if isinstance(kept, list) else 0) + (
            cut if known and isinstance(cut, int) else 0
        )
    return found


def _keep(raw: dict[str, Any], name: str, items: list[Any]) -> None:
    if cut := max(0, len(items) - KEPT):
        before = raw.get(f"{name}_truncated")
        raw[f"{name}_truncated"] = cut + (before if isinstance(before, int) else 0)
    raw[name] = items[-KEPT:]


def _texts(given: object) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _failures(given: object) -> list[dict[str, Any]]:
    kept = given if isinstance(given, list) else []
    return [one for one in kept if isinstance(one, dict) and isinstance(one.get("item"), str)]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _refuse(message: str) -> None:
    raise InvalidRunStep(message=message)
