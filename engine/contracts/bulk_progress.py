"""Bulk progress contract: item counts of a repetitive task, and its completion guard.

Pure rules (seed 001) without file, lock or clock. An item is completed, failed or skipped, and its
latest state wins. The lists keep the newest 500 items and the counts stay exact, because the caller
supplies the previous state of each item from its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from engine.model.errors import EngineError

KEPT: Final = 500  # entries of each list (seed 001: bounded storage)
KEPT_ITEMS: Final = 10_000  # named items kept by a contract

OR_FORCE: Final = "or use force with a reason if the task must end early."

Scope = Literal["task_run", "workflow", "batch", "crawl"]
Policy = Literal["allow", "block"]
Word = Literal["completed", "failed", "skipped"]
SCOPES: Final[tuple[str, ...]] = get_args(Scope)
POLICIES: Final[tuple[str, ...]] = get_args(Policy)
WORDS: Final[tuple[Word, ...]] = get_args(Word)


class Failed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Item that failed; `retryable` is None where the caller did not set it."""

    item: str
    reason: str = ""
    retryable: bool | None = None


class Skipped(msgspec.Struct, frozen=True, omit_defaults=True):
    """Item that was skipped on purpose."""

    item: str
    reason: str = ""


class Forced(msgspec.Struct, frozen=True):
    """Override of the guard: reason, user and time (ms since 1970). It is never removed."""

    reason: str
    by: str
    at: int | float


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """New state of one item."""

    word: Word
    item: str
    reason: str | None = None
    retryable: bool | None = None


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """Contract as stored in `progress-contracts/`; times in ms since 1970.

    `expected_total` is None while the total is unknown. `*_total` count every item, `*_truncated`
    the items that the lists no longer hold. Source: seed 001 and its checklists.
    """

    contract_id: str
    run_id: str | None = None
    task_id: str | None = None
    scope: str = "task_run"
    expected_total: int | None = None
    min_completed: int | None = None
    stop_condition: str = ""
    stop_satisfied: bool = False
    item_key: str = "item"
    failed_policy: str = "allow"
    cursor: str | None = None
    completed: tuple[str, ...] = ()
    failed: tuple[Failed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    completed_total: int = 0
    failed_total: int = 0
    skipped_total: int = 0
    completed_truncated: int = 0
    failed_truncated: int = 0
    skipped_truncated: int = 0
    forced: Forced | None = None
    last_progress_at: int | float = 0
    created_at: int | float = 0
    updated_at: int | float = 0

    @property
    def observed(self) -> int:
        """The number of items that have a state."""
        return self.completed_total + self.failed_total + self.skipped_total


class Guard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Completion guard: whether COMPLETED is allowed, counts, reason and next action."""

    allowed: bool
    reason: str
    suggested_next_action: str
    completed_count: int
    failed_count: int
    skipped_count: int
    stop_satisfied: bool
    expected_total: int | None = None
    min_completed: int | None = None
    missing_count: int | None = None


RULE = "bulk-progress-premature-completion"
TOOL = "oc_bulk_progress_update"


def guard(contract: Contract) -> Guard:
    """Return the first rule that blocks completion, or a guard that allows it.

    Source: seed 001, with the sentences of OpenChrome, which shares these files; rule 4 and skipped
    items come from its checklist.
    """
    key, done, stop = contract.item_key, contract.completed_total, contract.stop_condition.strip()
    expected, least = contract.expected_total, contract.min_completed or 0
    if expected is not None and contract.observed < expected:
        reason = f"{contract.observed}/{expected} {key} items observed."
        action = f"Continue processing {key} items from cursor {contract.cursor or '(none)'}."
        return _refusal(contract, reason, action, expected - contract.observed)
    if done < least:
        action = f"Complete at least {least - done} more {key} item(s), {OR_FORCE}"
        return _refusal(contract, f"min_completed {least} not met.", action, least - done)
    if expected is None and not (stop and contract.stop_satisfied):
        return _unstopped(contract, stop)
    if contract.failed_policy == "block" and contract.failed_total:
        reason = f"{contract.failed_total} {key} item(s) failed, and its policy is to block."
        return _refusal(contract, reason, f"Retry or skip the failed {key} item(s), {OR_FORCE}")
    return _answer(contract, _finished(contract, stop), "Complete it.", allowed=True)


def _unstopped(contract: Contract, stop: str) -> Guard:
    if not stop:
        reason = "neither a total nor a stop condition is known."
        action = "Say expected_total, or a stop_condition and, once it is met, stop_satisfied."
        return _refusal(contract, reason, action)
    reason = f"stop condition is not satisfied ({stop})."
    return _refusal(contract, reason, f"Continue until stop condition is satisfied: {stop}.")


def _refusal(contract: Contract, reason: str, action: str, missing: int | None = None) -> Guard:
    return _answer(contract, f"Bulk progress incomplete: {reason}", action, missing)


def _finished(contract: Contract, stop: str) -> str:
    if contract.expected_total is None:
        found = f"stop condition is satisfied ({stop})"
    else:
        found = f"{contract.observed}/{contract.expected_total} {contract.item_key} items observed"
    return f"Bulk progress complete: {found}."


def _answer(
    contract: Contract,
    reason: str,
    suggestion: str,
    missing: int | None = None,
    *,
    allowed: bool = False,
) -> Guard:
    return Guard(
        allowed=allowed,
        reason=reason,
        suggested_next_action=suggestion,
        completed_count=contract.completed_total,
        failed_count=contract.failed_total,
        skipped_count=contract.skipped_total,
        stop_satisfied=contract.stop_satisfied,
        expected_total=contract.expected_total,
        min_completed=contract.min_completed,
        missing_count=missing,
    )


class Tables:
    """Update the three lists and their counts; `state_of` returns the previous state of an item.

    An item that is named again moves to the end of its list, so the lists are ordered by the latest
    state.
    """

    def __init__(self, contract: Contract, state_of: Callable[[str], Word | None]) -> None:
        self._contract = contract
        self._state_of = state_of
        self._states: dict[str, Word] = {}
        self._totals = {word: int(getattr(contract, f"{word}_total")) for word in WORDS}
        self._kept: dict[Word, dict[str, Any]] = {
            "completed": dict.fromkeys(contract.completed),
            "failed": {one.item: one for one in contract.failed},
            "skipped": {one.item: one for one in contract.skipped},
        }

    def apply(self, note: Note) -> None:
        before = self._states.get(note.item) or self._state_of(note.item)
        if before is not None:
            self._totals[before] -= 1
            self._kept[before].pop(note.item, None)
        self._states[note.item] = note.word
        self._totals[note.word] += 1
        kept = self._kept[note.word]
        kept[note.item] = _entry(note)
        if len(kept) > KEPT:
            del kept[next(iter(kept))]

    def contract(self) -> Contract:
        """Build the contract from the lists and counts; its times are unchanged."""
        kept = self._kept
        cut = {f"{word}_truncated": max(0, self._totals[word] - len(kept[word])) for word in WORDS}
        return msgspec.structs.replace(
            self._contract,
            completed=tuple(kept["completed"]),
            failed=tuple(kept["failed"].values()),
            skipped=tuple(kept["skipped"].values()),
            **{f"{word}_total": self._totals[word] for word in WORDS},
            **cut,
        )


def recorded(
    contract: Contract, notes: Iterable[Note], state_of: Callable[[str], Word | None]
) -> Contract:
    """Apply `notes` to `contract` in order; `state_of(item)` is the previous state of the item."""
    tables = Tables(contract, state_of)
    for note in notes:
        tables.apply(note)
    return tables.contract()


def _entry(note: Note) -> Failed | Skipped | None:
    if note.word == "failed":
        return Failed(note.item, note.reason or "", note.retryable)
    return Skipped(note.item, note.reason or "") if note.word == "skipped" else None


class Suggestion(msgspec.Struct, frozen=True):
    """Suggested tool and the reason for it."""

    tool: str
    reason: str


class Hint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Completion hint; `fire_count` counts its occurrences for this task or run.

    Source: seed 001 (a warning-level hint with the missing count and the next action).
    """

    severity: str = "warning"
    rule: str = RULE
    fire_count: int = 1
    missing_count: int | None = None
    suggestion: Suggestion


def premature(guard: Guard, fire_count: int) -> Hint:
    """Build the hint for a refused completion."""
    return Hint(
        fire_count=fire_count,
        missing_count=guard.missing_count,
        suggestion=Suggestion(TOOL, guard.suggested_next_action),
    )


class ContractNotFound(EngineError):
    """No contract has this id."""

    code = "bulk_progress_not_found"
    title = "No such contract"
    sentence = "There is no contract {id} in {path}."
    advice_text = "Look at {step}, or point --home at another folder."
    step_verb, step = "contract list", "`octask contract list`"


class TaskRunNotFound(EngineError):
    """No task run has this id."""

    code = "task_run_not_found"
    title = "No such task run"
    sentence = "There is no task run {id} in {path}."
    advice_text = "Look at {step}, or point --home at another folder."
    step_verb, step = "task-run list", "`octask task-run list`"


class InvalidRunStep(EngineError):
    """The state of the task run does not allow this step; nothing was written.

    With a `step_verb`, the message recommends that operation in the place of `{step}`. Its usual
    name is OpenChrome's, with the name of the tool.
    """

    code = "invalid_task_run_transition"
    title = "That step is not allowed now"
    sentence = "{message}"
    advice_text = "Look at the task run's state first."

    def __init__(self, message: str, step_verb: str = "", step: str = "") -> None:
        self.step_verb, self.step = step_verb, step
        self._template = message
        super().__init__(message=message.format(step=step) if step_verb else message)

    def name_step(self, names: Mapping[str, str]) -> None:
        if name := names.get(self.step_verb):
            self.fields["message"] = self._template.format(step=name)
        super().name_step(names)


class CannotComplete(EngineError):
    """This task or task run cannot be completed by a user now."""

    code = "cannot_complete"
    title = "That cannot be completed"
    sentence = "{subject} cannot be completed: {reason}"
    advice_text = "{way_out}"


class BulkCompletionRefused(EngineError):
    """The guard of a contract blocks COMPLETED; only an event was written.

    `guard` has the counts and the next action, `hint` the warning for the agent.
    """

    code = "bulk_completion_guard_failed"
    title = "Not complete yet"
    sentence = "{reason}"
    advice_text = "{suggested_next_action}"

    def __init__(self, guard: Guard, hint: Hint) -> None:
        self.guard = guard
        self.hint = hint
        self.items: dict[str, Any] = {}  # the contract with its items, where it was asked for
        super().__init__(reason=guard.reason, suggested_next_action=guard.suggested_next_action)

    def data(self) -> dict[str, Any]:
        """Return the guard and the hint for other programs."""
        return {
            "completion_guard": msgspec.to_builtins(self.guard),
            "hint": msgspec.to_builtins(self.hint),
            **self.items,
        }
