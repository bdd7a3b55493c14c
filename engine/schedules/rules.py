"""Rules of repetition: an interval, a time of day, or a cron line in a named time zone.

Pure functions over instants in ms since 1970. An interval counts elapsed time from its start. A
time of day follows the clock of its zone: a local time that does not exist (the hour that summer
time skips) becomes the next valid instant, one that exists twice counts once. A cron line with a
`*` at the beginning of its minute or hour follows elapsed time instead, as cron does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import msgspec
import tzlocal
from cronsim import CronSim, CronSimError

from engine.model.errors import InvalidArguments, Problem

MINUTE_MS: Final = 60_000
MOST_MINUTES: Final = 366 * 24 * 60
MOST_COUNTED: Final = 1_000  # missed occurrences; further ones are not counted
CRON_FIELDS: Final = 5
MOST_CRON: Final = 200  # characters
_LAST_MS: Final = 4_102_444_800_000  # the year 2100: later instants are a broken clock's
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_WAYS: Final = ("every_minutes", "daily_at", "cron")


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a task repeats: exactly one of `every_minutes`, `daily_at` ("07:30") and `cron` is set.

    `zone` is the IANA name of the time zone of the latter two; `start_at` is the instant from which
    an interval counts.
    """

    every_minutes: int | None = None
    daily_at: str | None = None
    cron: str | None = None
    zone: str = "UTC"
    start_at: int = 0


class Due(NamedTuple):
    """The latest due occurrence, and how many were due (at most 1,000 are counted)."""

    at_ms: int
    number: int


def rule_of(given: Mapping[str, Any], now_ms: int) -> Rule:
    """Validate a rule; without a zone it follows that of this computer.

    Raises:
        InvalidArguments: with every mistake.
    """
    ways = [name for name in _WAYS if given.get(name) is not None]
    zone = given.get("zone") or system_zone()
    problems = [
        Problem(str(name), "unknown_argument", "is no part of a rule")
        for name in given
        if name not in (*_WAYS, "zone", "start_at")
    ]
    if len(ways) != 1:
        message = "give one of an interval, a time of day and a cron line"
        problems.append(Problem("rule", "missing" if not ways else "one_of_several", message))
    problems += _zone_problem(zone)
    for name in ways:
        problems += _CHECKS[name](given[name])
    if problems:
        raise InvalidArguments(tuple(problems))
    rule = Rule(**{name: given[name] for name in ways}, zone=zone, start_at=now_ms)
    if rule.daily_at is not None:
        rule = msgspec.structs.replace(rule, daily_at=rule.daily_at.zfill(len("00:00")))
    if next_after(rule, now_ms) is None:
        never = Problem("cron", "never", "never comes: no month has this day")
        raise InvalidArguments((never,))
    return rule


def next_after(rule: Rule, at_ms: int) -> int | None:
    """Return the first occurrence after `at_ms`; None where there is none."""
    if not 0 <= at_ms < _LAST_MS:
        return None
    if rule.every_minutes is not None:
        step = rule.every_minutes * MINUTE_MS
        return max(rule.start_at + step, at_ms + step - (at_ms - rule.start_at) % step)
    return next(_clock_times(rule, at_ms), None)


def latest(rule: Rule, after_ms: int, until_ms: int) -> Due | None:
    """Return the latest occurrence after `after_ms` and at or before `until_ms`; None without."""
    until_ms = min(until_ms, _LAST_MS - 1)
    first = next_after(rule, after_ms) if after_ms < until_ms else None
    if first is None or first > until_ms:
        return None
    if rule.every_minutes is not None:
        steps = (until_ms - first) // (rule.every_minutes * MINUTE_MS)
        last = first + steps * rule.every_minutes * MINUTE_MS
        return Due(last, min(MOST_COUNTED, steps + 1))
    last = first
    for count, at_ms in enumerate(_clock_times(rule, after_ms)):
        if at_ms > until_ms:
            return Due(last, count)
        last = at_ms
        if count + 1 == MOST_COUNTED:
            break
    return Due(_latest_clock_time(rule, last, until_ms), MOST_COUNTED)


def system_zone() -> str:
    """Return the IANA name of this computer's time zone; UTC where it has none."""
    try:
        name = tzlocal.get_localzone_name()
        ZoneInfo(name)
    except (LookupError, ValueError, OSError, TypeError):
        return "UTC"
    return name


def zones() -> list[str]:
    """Return the names of all time zones, sorted."""
    return sorted(one for one in available_timezones() if not one.startswith(("posix", "right")))


def _latest_clock_time(rule: Rule, known_ms: int, until_ms: int) -> int:
    """Return the latest occurrence up to `until_ms`, at least `known_ms`: near the end first."""
    span = MINUTE_MS
    while until_ms - span > known_ms:
        found = next(_clock_times(rule, until_ms - span), None)
        if found is not None and found <= until_ms:
            known_ms = found
            break
        span *= 2
    for at_ms in _clock_times(rule, known_ms):
        if at_ms > until_ms:
            break
        known_ms = at_ms
    return known_ms


def _clock_times(rule: Rule, after_ms: int) -> Iterator[int]:
    """Yield the occurrences of a time of day or a cron line after an instant."""
    zone = ZoneInfo(rule.zone)
    line = rule.cron
    if line is None:
        hour, _, minute = (rule.daily_at or "00:00").partition(":")
        line = f"{int(minute)} {int(hour)} * * *"
    last_ms = after_ms
    for moment in CronSim(line, datetime.fromtimestamp(after_ms // 1000, zone)):
        at_ms = int(moment.astimezone(UTC).timestamp()) * 1000
        if at_ms > _LAST_MS:
            return
        if at_ms > last_ms:  # in an hour that repeats, the line gives its first times again
            last_ms = at_ms
            yield at_ms


def _every_problem(given: object) -> list[Problem]:
    if isinstance(given, bool) or not isinstance(given, int):
        return [Problem("every_minutes", "wrong_type", "must be a whole number of minutes")]
    if not 1 <= given <= MOST_MINUTES:
        message = f"must be from 1 minute to 366 days ({MOST_MINUTES:,} minutes)"
        return [Problem("every_minutes", "out_of_range", message)]
    return []


def _time_problem(given: object) -> list[Problem]:
    if isinstance(given, str) and _TIME.fullmatch(given):
        return []
    return [Problem("daily_at", "invalid_value", "must be a time such as 07:30")]


def _cron_problem(given: object) -> list[Problem]:
    if not isinstance(given, str) or len(given) > MOST_CRON:
        return [Problem("cron", "wrong_type", "must be a cron line such as 30 7 * * 1-5")]
    if len(given.split()) != CRON_FIELDS:
        message = (
            "needs five fields: minute, hour, day of the month, month, day of the week; "
            "30 7 * * 1-5 is 07:30 from Monday to Friday"
        )
        return [Problem("cron", "invalid_value", message)]
    try:
        CronSim(given, datetime(2024, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError) as wrong:
        message = f"is no cron line ({str(wrong).lower()}); 30 7 * * 1-5 is one"
        return [Problem("cron", "invalid_value", message)]
    return []


def _zone_problem(given: object) -> list[Problem]:
    try:
        if isinstance(given, str) and len(given) <= MOST_CRON:
            ZoneInfo(given)
            return []
    except (LookupError, ValueError, OSError):
        pass
    return [Problem("zone", "unknown_zone", "is no time zone; give a name such as Europe/Berlin")]


_CHECKS: Final = {
    "every_minutes": _every_problem,
    "daily_at": _time_problem,
    "cron": _cron_problem,
}
