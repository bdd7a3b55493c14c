"""Validation of task run requests: their fields, with OpenChrome's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.contracts.contract_requests import (
    BATCH,
    REASON,
    TEXT,
    done,
    fields_of,
    noted,
    part_of,
    refuse,
    several,
    text,
)
from engine.kinds.arguments import Argument, missing, one_of

GOAL: Final = 4_096  # characters
SUMMARY: Final = 8_192
CRITERIA: Final = 50  # entries
EVIDENCE: Final = 50
LINKS: Final = 500
EVIDENCE_KINDS: Final = (
    *("journal", "screenshot", "contract", "ledger_task", "workflow", "url", "handoff"),
)


def evidence(given: object) -> dict[str, Any]:
    """Read an evidence reference: kind, ref, and an optional summary."""
    if not isinstance(given, Mapping):
        raise ValueError("must be an object with kind and ref")
    if given.get("kind") not in EVIDENCE_KINDS:
        raise ValueError(f"kind must be one of {', '.join(EVIDENCE_KINDS)}")
    found = {"kind": given["kind"], "ref": part_of(given, "ref", TEXT)}
    if given.get("summary") is not None:
        found["summary"] = part_of(given, "summary", REASON)
    return found


_RUN: Final = {
    "progress_summary": Argument("progress_summary", text(SUMMARY)),
    "completed_items": Argument("completed_items", several(done, BATCH)),
    "failed_items": Argument("failed_items", several(noted("failed"), BATCH)),
    "skipped_items": Argument("skipped_items", several(noted("skipped"), BATCH)),
    "current_cursor": Argument("current_cursor", text(TEXT)),
    "last_evidence": Argument("last_evidence", several(evidence, EVIDENCE)),
}
_LINKS: Final = {
    "ledger_task_ids": Argument("ledger_task_ids", several(text(64), LINKS)),
    "workflow_id": Argument("workflow_id", text(200)),
}
RUN_START: Final = {
    **_LINKS,
    "goal": Argument("goal", text(GOAL)),
    "success_criteria": Argument("success_criteria", several(text(REASON), CRITERIA)),
    "session_id": Argument("session_id", text(200)),
}
RUN_UPDATE: Final = {
    **_RUN,
    **_LINKS,
    "status": Argument("status", text(40)),
    "resume_reason": Argument("resume_reason", text(TEXT)),
}
RUN_CHECKPOINT: Final = {
    "summary": Argument("summary", text(SUMMARY)),
    "current_cursor": Argument("current_cursor", text(TEXT)),
    "evidence": Argument("evidence", several(evidence, EVIDENCE)),
}
RUN_HELP: Final = {
    "reason": Argument("reason", text(TEXT)),
    "resume_hint": Argument("resume_hint", text(TEXT)),
    "current_cursor": Argument("current_cursor", text(TEXT)),
    "last_evidence": Argument("last_evidence", several(evidence, EVIDENCE)),
}
RUN_COMPLETE: Final = {
    **_RUN,
    "status": Argument("status", one_of("COMPLETED", "FAILED", "CANCELLED")),
}


def run_request(
    given: object, table: Mapping[str, Argument], of: str, needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Read the fields of a request about a task run.

    Raises:
        InvalidArguments: with every mistake, each with its field.
    """
    fields, problems = fields_of(given, table, of)
    known = {each.path for each in problems}
    problems += [
        missing(name, "a text") for name in needed if name not in fields and name not in known
    ]
    refuse(problems)
    return fields
