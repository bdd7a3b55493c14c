"""A task run as a row beside the tasks: the same record, so that lists, filters and words fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.contracts import task_run_steps
from engine.contracts.contract_views import ContractView, RunView
from engine.contracts.task_runs import contract_of
from engine.ledger.meta import shown
from engine.model.records import TASK_RUN, EngineFields, TaskRecord, Units
from engine.model.status import moment

SHOWN = (
    *("goal", "success_criteria", "progress_summary", "current_cursor", "needs_help", "forced"),
    *("session_id", "workflow_id", "ledger_task_ids"),
)


def record_of(view: RunView) -> TaskRecord:
    """The run as a record of kind `task_run`; nothing in its file is trusted."""
    raw: dict[str, Any] = shown(view.raw)
    created = moment(raw.get("created_at")) or 0
    forced = raw.get("forced")
    return TaskRecord(
        task_id=view.run_id,
        kind=TASK_RUN,
        status=_text(raw, "status"),
        created_at=created,
        started_at=created or None,
        ended_at=moment(raw.get("completed_at")),
        last_activity_at=moment(raw.get("updated_at")),
        objective=_text(raw, "goal") or None,
        args_summary={name: raw[name] for name in SHOWN if raw.get(name) not in (None, [], "")},
        engine=EngineFields(
            contract_id=contract_of(raw),
            units=_units(raw, view.progress),
            forced_at=moment(forced.get("at")) if isinstance(forced, Mapping) else None,
        ),
    )


def _units(raw: Mapping[str, Any], progress: ContractView | None) -> Units:
    """How many items somebody has said a word on; all of them only where a contract says so."""
    message = _text(raw, "progress_summary") or None
    if progress is not None:
        one = progress.contract
        return Units(one.observed, one.expected_total, message, one.failed_total)
    counts = task_run_steps.counts(raw)
    failed = counts["failed_count"]
    return Units(counts["completed_count"] + failed, None, message, failed)


def _text(raw: Mapping[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""
