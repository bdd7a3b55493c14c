"""Retention rules by age, number or size: over records, without files.

`keep` alone is a limit: all but the newest are removed. With an age or a size it is a minimum: the
newest of them stay, however old or large.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from engine.model.errors import InvalidArguments, Problem
from engine.model.records import TERMINAL, Stamp

_SPAN = re.compile(r"(\d{1,6})\s*([mhdw])", re.IGNORECASE | re.ASCII)
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rules for removal; without any nothing is removed. `status` restricts all of them."""

    older_than_ms: int | None = None
    keep: int | None = None
    max_bytes: int | None = None
    status: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.older_than_ms is None and self.keep is None and self.max_bytes is None


class Ended(msgspec.Struct, frozen=True):
    """Ended task as the rules need it: the time of its end (ms since 1970), the folder's size."""

    task_id: str
    kind: str
    status: str
    name: str
    ended_at: float
    size_bytes: int
    stamp: Stamp


def rules_of(
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    status: Collection[str],
) -> Rules:
    """Parse rules as people write them: `30d`, `12h`, `2GB`.

    Raises:
        InvalidArguments: names every mistake, also that no rule was given at all.
    """
    problems: list[Problem] = []
    words = tuple(word.upper() for word in status)
    for word in words:
        if word not in TERMINAL:
            known = ", ".join(sorted(TERMINAL))
            message = f"'{word}' is no state of an ended task (there are: {known})"
            problems.append(Problem("status", "unknown_status", message))
    age_ms, size = _span(older_than, problems), _size(max_size, problems)
    rules = Rules(older_than_ms=age_ms, keep=keep, max_bytes=size, status=words)
    if rules.is_empty and not problems:
        message = "say what may go: --older-than 30d, --keep 100 or --max-size 2GB"
        problems.append(Problem("", "missing", message))
    if problems:
        raise InvalidArguments(tuple(problems))
    return rules


def chosen(ended: Sequence[Ended], rules: Rules, now_ms: float) -> list[Ended]:
    """Select the tasks to remove, oldest first."""
    if rules.is_empty:
        return []
    newest = sorted(ended, key=lambda one: (-one.ended_at, one.task_id))
    if rules.status:
        newest = [one for one in newest if one.status in rules.status]
    keep = rules.keep or 0
    late = newest[keep:]
    if rules.older_than_ms is None and rules.max_bytes is None:
        return late[::-1]
    gone = _too_old(late, rules, now_ms) | _too_large(newest, late, rules)
    return [one for one in late[::-1] if one.task_id in gone]


def _too_old(late: list[Ended], rules: Rules, now_ms: float) -> set[str]:
    if rules.older_than_ms is None:
        return set()
    before = now_ms - rules.older_than_ms
    return {one.task_id for one in late if one.ended_at < before}


def _too_large(newest: list[Ended], late: list[Ended], rules: Rules) -> set[str]:
    """Select the oldest tasks until the rest fits the limit."""
    if rules.max_bytes is None:
        return set()
    left = sum(one.size_bytes for one in newest)
    gone: set[str] = set()
    for one in reversed(late):
        if left <= rules.max_bytes:
            break
        gone.add(one.task_id)
        left -= one.size_bytes
    return gone


def _span(given: str | None, problems: list[Problem]) -> int | None:
    if given is None:
        return None
    found = _SPAN.fullmatch(given.strip())
    if found is None:
        message = f"'{given}' is no length of time (30d, 12h, 90m, 2w)"
        problems.append(Problem("older_than", "wrong_form", message))
        return None
    return int(found[1]) * _MS[found[2].lower()]


def _size(given: str | None, problems: list[Problem]) -> int | None:
    if given is None:
        return None
    found = _SIZE.fullmatch(given.strip())
    if found is None:
        message = f"'{given}' is no size (500MB, 2GB)"
        problems.append(Problem("max_size", "wrong_form", message))
        return None
    return int(float(found[1]) * 1_000 ** _POWERS[found[2].lower()])
