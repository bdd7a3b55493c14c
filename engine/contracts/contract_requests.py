"""Validation of requests for contracts and task runs: every mistake at once, each with its field.

All texts are redacted here, before they are stored or compared, so two items that differ only in a
secret are one item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from engine.contracts.bulk_progress import POLICIES, SCOPES, Contract, Note, Word
from engine.kinds.arguments import (
    Argument,
    Reading,
    each,
    flag,
    missing,
    one_of,
    optional,
    read_all,
)
from engine.ledger.meta import without_surrogates
from engine.model import redact
from engine.model.errors import InvalidArguments, Problem

TEXT: Final = 2_048  # characters of an item, a cursor, a stop condition (as OpenChrome)
REASON: Final = 1_024
BATCH: Final = 10_000  # items in one request
ITEMS: Final = 1_000_000  # of a contract; the first 10,000 are kept by name
LARGEST: Final = 2**53 - 1
FORCE_REASON: Final = 10  # minimum length of a force reason


class Start(NamedTuple):
    """Terms of a new contract: its fields and the named items."""

    fields: dict[str, Any]
    items: tuple[str, ...] | None


class Update(NamedTuple):
    """Update of a contract: item states in order, and changed fields."""

    notes: tuple[Note, ...]
    fields: dict[str, Any]


def text(limit: int, least: int = 1) -> Reading:
    """Read a text of `least` to `limit` characters, stripped and redacted."""

    def read(given: object) -> str:
        if not isinstance(given, str):
            raise ValueError("must be a text")
        found = without_surrogates(given).strip()
        if len(found) < least:
            wrong = "must not be blank" if least == 1 else f"must have at least {least} characters"
            raise ValueError(wrong)
        if len(found) > limit:
            raise ValueError(f"must not be longer than {limit:,} characters")
        return redact.text(found)

    return read


def count(given: object) -> int:
    """Read a whole number from 0 on; whole fractions (3.0) are accepted, as in JSON."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError("must be a whole number")
    if not 0 <= given <= LARGEST:
        raise ValueError(f"must be between 0 and {LARGEST:,}")
    return given


def several(read: Reading, limit: int) -> Reading:
    """Read a list of at most `limit` entries with `read`; an error names the first bad entry."""

    def read_list(given: object) -> tuple[Any, ...]:
        if not isinstance(given, (list, tuple)):
            raise ValueError("must be a list")
        if len(given) > limit:
            raise ValueError(f"must not have more than {limit:,} entries")
        return each(read, given)

    return read_list


def noted(word: Word) -> Callable[[object], Note]:
    """Read one item with its reason, which failed and skipped items require."""

    def read(given: object) -> Note:
        if not isinstance(given, Mapping):
            raise ValueError("must be an object with item and reason")
        if unknown := set(given) - {"item", "reason", *(["retryable"] * (word == "failed"))}:
            raise ValueError(f"has an unknown field {sorted(map(str, unknown))[0][:40]}")
        item, reason = (part_of(given, name, limit) for name, limit in _NOTED)
        retryable = given.get("retryable")
        if retryable is not None and not isinstance(retryable, bool):
            raise ValueError("retryable must be true or false")
        return Note(word, item, reason, retryable)

    return read


_NOTED: Final = (("item", TEXT), ("reason", REASON))


def part_of(given: Mapping[str, Any], name: str, limit: int) -> str:
    """Read the text field `name` of an object. Raises ValueError that names the field."""
    try:
        found: str = text(limit)(given.get(name))
    except ValueError as wrong:
        raise ValueError(f"{name} {wrong}") from None
    return found


def done(given: object) -> Note:
    """Read one completed item."""
    found: str = text(TEXT)(given)
    return Note("completed", found)


_TERMS: Final = {
    "expected_total": Argument(optional(count)),
    "min_completed": Argument(optional(count)),
    "stop_condition": Argument(text(TEXT)),
    "stop_satisfied": Argument(flag),
    "failed_policy": Argument(one_of(*POLICIES)),
    "cursor": Argument(optional(text(TEXT))),
}
_WORDS: Final = {
    "completed": Argument(several(done, BATCH)),
    "failed": Argument(several(noted("failed"), BATCH)),
    "skipped": Argument(several(noted("skipped"), BATCH)),
}
_START: Final = {
    **_TERMS,
    "scope": Argument(one_of(*SCOPES)),
    "item_key": Argument(text(200)),
    "items": Argument(several(text(TEXT), ITEMS)),
    "run_id": Argument(optional(text(64))),
}
_UPDATE: Final = {**_TERMS, **_WORDS}


def start_of(given: object) -> Start:
    """Validate the terms of a new contract.

    Raises:
        InvalidArguments: with every mistake, each with its field.
    """
    fields, problems = fields_of(given, _START, "a contract")
    items = fields.pop("items", None)
    if items is not None:
        items = tuple(dict.fromkeys(items))  # duplicates count once
        if fields.setdefault("expected_total", len(items)) != len(items):
            said = f"is {fields['expected_total']}, but items names {len(items)}"
            problems.append(Problem("expected_total", "contradiction", said))
    problems += _unreachable(fields.get("min_completed"), fields.get("expected_total"))
    unknown = fields.get("expected_total") is None and "stop_condition" not in fields
    if unknown and not any(each.path in _ENDS for each in problems):
        problems.append(missing("stop_condition", "what ends the work where no total is known"))
    refuse(problems)
    return Start(fields, items)


def _unreachable(least: int | None, expected: int | None) -> list[Problem]:
    """Refuse a minimum above the total: the guard could never allow completion."""
    if least is None or expected is None or least <= expected:
        return []
    said = f"is {least}, but expected_total is {expected}"
    return [Problem("min_completed", "contradiction", said)]


_ENDS: Final = frozenset({"", "expected_total", "items", "stop_condition"})


def update_of(given: object) -> Update:
    """Validate item states and changed fields; an item may have one state in a request.

    Raises:
        InvalidArguments: with every mistake, each with its field.
    """
    fields, problems = fields_of(given, _UPDATE, "a contract's update")
    notes = tuple(note for word in _WORDS for note in fields.pop(word, ()))
    words: dict[str, Word] = {}
    for note in notes:
        if words.setdefault(note.item, note.word) != note.word:
            said = f"names an item that {words[note.item]} names, too"
            problems.append(Problem(note.word, "contradiction", said))
            break
    if not (notes or fields or problems):
        problems.append(Problem("", "nothing_said", "there is nothing to change in this update"))
    refuse(problems)
    return Update(notes, fields)


def check_not_weaker(contract: Contract, update: Update) -> None:
    """Reject an update that weakens the contract, which would make the guard a formality.

    Raises:
        InvalidArguments: a total or minimum would be lowered, or the policy "block" dropped.
    """
    problems = []
    for name in ("expected_total", "min_completed"):
        old, new = getattr(contract, name), update.fields.get(name)
        if name in update.fields and old is not None and (new is None or new < old):
            said = f"may only be raised (it is {old}); force completion with a reason instead"
            problems.append(Problem(name, "weaker", said))
    if contract.failed_policy == "block" and update.fields.get("failed_policy") == "allow":
        said = "may not be given up; force completion with a reason instead"
        problems.append(Problem("failed_policy", "weaker", said))
    if {"min_completed", "expected_total"} & set(update.fields):
        whole = {"min_completed": contract.min_completed, "expected_total": contract.expected_total}
        whole |= {name: update.fields[name] for name in whole if name in update.fields}
        problems += _unreachable(whole["min_completed"], whole["expected_total"])
    refuse(problems)


def check_named(names: Collection[str], notes: Iterable[Note], suffix: str = "") -> None:
    """Reject items that a contract does not name, which would count in place of those it names.

    Args:
        names: all expected items; empty where they are not known by name.

    Raises:
        InvalidArguments: with each of these items.
    """
    known = frozenset(names)
    refuse(
        [
            Problem(f"{note.word}{suffix}", "unknown_item", f"{note.item}: {_NOT_NAMED}")
            for note in notes
            if known and note.item not in known
        ]
    )


_NOT_NAMED: Final = "is no item of this contract; for further items raise expected_total first"


def below(name: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Prefix the paths of the mistakes with the part's name."""
    return tuple(
        Problem(f"{name}.{each.path}".rstrip("."), each.code, each.message) for each in problems
    )


def force_reason(given: str | None) -> str:
    """Validate the reason of a force.

    Raises:
        InvalidArguments: it is blank, or shorter than 10 characters.
    """
    try:
        found: str = text(TEXT, FORCE_REASON)(given or "")
    except ValueError as wrong:
        raise InvalidArguments(
            (Problem("reason", "too_short", f"force needs a reason: it {wrong}"),)
        ) from None
    return found


def fields_of(
    given: object, table: Mapping[str, Argument], of: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Read the fields of a request and collect every mistake."""
    if not isinstance(given, Mapping):
        return {}, [Problem("", "wrong_type", f"{of} must be an object")]
    return read_all(given, table, of)


def refuse(problems: list[Problem]) -> None:
    """Raise InvalidArguments unless the list is empty."""
    if problems:
        raise InvalidArguments(tuple(problems))


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
    "progress_summary": Argument(text(SUMMARY)),
    "completed_items": Argument(several(done, BATCH)),
    "failed_items": Argument(several(noted("failed"), BATCH)),
    "skipped_items": Argument(several(noted("skipped"), BATCH)),
    "current_cursor": Argument(text(TEXT)),
    "last_evidence": Argument(several(evidence, EVIDENCE)),
}
_LINKS: Final = {
    "ledger_task_ids": Argument(several(text(64), LINKS)),
    "workflow_id": Argument(text(200)),
}
RUN_START: Final = {
    **_LINKS,
    "goal": Argument(text(GOAL)),
    "success_criteria": Argument(several(text(REASON), CRITERIA)),
    "session_id": Argument(text(200)),
}
RUN_UPDATE: Final = {
    **_RUN,
    **_LINKS,
    "status": Argument(text(40)),
    "resume_reason": Argument(text(TEXT)),
}
RUN_CHECKPOINT: Final = {
    "summary": Argument(text(SUMMARY)),
    "current_cursor": Argument(text(TEXT)),
    "evidence": Argument(several(evidence, EVIDENCE)),
}
RUN_HELP: Final = {
    "reason": Argument(text(TEXT)),
    "resume_hint": Argument(text(TEXT)),
    "current_cursor": Argument(text(TEXT)),
    "last_evidence": Argument(several(evidence, EVIDENCE)),
}
RUN_COMPLETE: Final = {
    **_RUN,
    "status": Argument(one_of("COMPLETED", "FAILED", "CANCELLED")),
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
