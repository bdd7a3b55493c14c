"""Contracts and task runs as lines for users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from engine.cli.calls import json_text
from engine.cli.show import now_ms
from engine.model.display import display
from engine.model.records import TERMINAL
from engine.text import words
from engine.text.cli_messages import say

_LONGEST: Final = 200  # characters of an external text on one line
_Lines = Callable[[Mapping[str, Any]], Iterator[str]]


def contract_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a contract with its counts, its cursor and its guard."""
    contract = found["bulk_progress_contract"]
    yield _contract_line(contract)
    yield from _field("contract.cursor", contract.get("cursor"))
    yield from _guard(found)
    if "completed" in contract:
        yield from _named(contract, found.get("missing_items", ()))


def _contract_line(contract: Mapping[str, Any]) -> str:
    counts = {word: contract[f"{word}_total"] for word in ("completed", "failed", "skipped")}
    total = contract.get("expected_total")
    return say(
        "contract.line",
        id=contract["contract_id"],
        key=_plain(contract["item_key"]),
        done=sum(counts.values()),
        total="?" if total is None else total,
        **counts,
    )


def _guard(found: Mapping[str, Any]) -> Iterator[str]:
    guard = found.get("completion_guard")
    if guard is not None:
        yield "  " + display(guard["reason"])
        over = found.get("task_run", {}).get("status") in TERMINAL
        if not guard["allowed"] and not over:
            yield "  " + display(guard["suggested_next_action"])
    forced = found.get("bulk_progress_contract", {}).get("forced")
    if forced is not None:
        yield _forced(forced)


def _forced(forced: Mapping[str, Any]) -> str:
    ago = words.ago(float(forced["at"]), now_ms())
    return say("forced", by=_plain(forced["by"]), ago=ago, reason=_plain(forced["reason"]))


def _named(contract: Mapping[str, Any], missing: Any) -> Iterator[str]:
    for item in contract["completed"]:
        yield f"  ✓ {_plain(item)}"
    for sign, word in (("✗", "failed"), ("–", "skipped")):
        for entry in contract[word]:
            yield f"  {sign} {_plain(entry['item'])}: {_plain(entry['reason'])}"
    for item in missing:
        yield f"  … {_plain(item)}"
    for word in ("completed", "failed", "skipped"):
        if cut := contract[f"{word}_truncated"]:
            yield say("contract.cut", count=cut, word=word)


def _run(found: Mapping[str, Any]) -> Iterator[str]:
    run = found["task_run"]
    yield _run_line(run)
    for name in ("progress_summary", "current_cursor"):
        yield from _field(f"task_run.{name}", run.get(name))
    help_ = run.get("needs_help")
    if isinstance(help_, Mapping):
        yield from _field("task_run.needs_help", help_.get("reason"))
        yield from _field("task_run.resume_hint", help_.get("resume_hint"))
    if isinstance(run.get("forced"), Mapping) and "bulk_progress_contract" not in found:
        yield _forced(run["forced"])
    if "bulk_progress_contract" in found:
        contract = dict(found["bulk_progress_contract"])
        if contract.get("cursor") == run.get("current_cursor"):
            contract.pop("cursor", None)  # printed above
        first, *rest = contract_lines({**found, "bulk_progress_contract": contract})
        yield from (f"  {first}", *rest)
    if "checkpoint" in found:
        yield from _field("task_run.checkpoint", found["checkpoint"].get("checkpoint_id"))
    for event in found.get("events", ()):
        yield f"  {event['kind']}  {display(json_text(event.get('data', {}), None), _LONGEST)}"


def _run_line(run: Mapping[str, Any]) -> str:
    if "reason" in run and "goal" not in run:  # unreadable
        return f"{run['task_id']}  {display(run['reason'], _LONGEST)}"
    return say(
        "task_run.line",
        id=run["run_id"],
        status=_plain(run.get("status", "")) + (" (forced)" if run.get("forced") else ""),
        completed=run["completed_count"],
        failed=run["failed_count"],
        goal=_plain(run.get("goal", "")),
    )


def _completed(found: Mapping[str, Any]) -> Iterator[str]:
    if "task_run" in found:
        yield from _run(found)
        return
    task = found["task"]
    asked = task["status"] == "RUNNING"
    name = "complete.asked" if asked else "complete.ended"
    yield say(name, task_id=task["task_id"], status=task["status"])


def _check(found: Mapping[str, Any]) -> Iterator[str]:
    for line in _guard(found):
        yield line.strip()


def _contracts(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["count"]:
        yield say("contract.none")
    for one in found["bulk_progress_contracts"]:
        if "reason" in one:  # unreadable
            yield f"{one['task_id']}  {display(one['reason'], _LONGEST)}"
        else:
            yield _contract_line(one["bulk_progress_contract"])


def _runs(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["count"]:
        yield say("task_run.none")
    yield from map(_run_line, found["task_runs"])


def _field(name: str, value: object) -> Iterator[str]:
    if value:
        yield say(name, value=_plain(value))


def _plain(given: object) -> str:
    return display(str(given), _LONGEST)


LINES: Final[dict[str, _Lines]] = {
    "complete": _completed,
    "contract check": _check,
    "contract list": _contracts,
    "task-run list": _runs,
    **dict.fromkeys(("contract start", "contract update", "contract show"), contract_lines),
    **{f"task-run {verb}": _run for verb in ("start", "get", "update", "checkpoint", "needs-help")},
}
