"""Phrases about schedules: when one repeats, and why an occurrence did not run."""

from __future__ import annotations

from typing import Final

from engine.model.display import display
from engine.schedules.rules import Rule
from engine.schedules.schedule import Schedule, Skip
from engine.text.messages import say
from engine.text.words import clock, count, kind_name

_HOUR: Final = 60
_DAY: Final = 24 * _HOUR
_CHARS: Final = 120


def rule_words(rule: Rule) -> str:
    """Format `every 6 hours`, `daily at 07:30 (Europe/Berlin)` or `cron 0 7 * * 1-5 (UTC)`."""
    zone = display(rule.zone, _CHARS)
    if rule.cron is not None:
        return say("schedule.cron", line=display(rule.cron, _CHARS), zone=zone)
    if rule.daily_at is not None:
        return say("schedule.daily", time=display(rule.daily_at, _CHARS), zone=zone)
    minutes = rule.every_minutes or 1
    if minutes % _DAY == 0:
        length, one, many = _DAY, "schedule.every.day", "schedule.every.days"
    elif minutes % _HOUR == 0:
        length, one, many = _HOUR, "schedule.every.hour", "schedule.every.hours"
    else:
        length, one, many = 1, "schedule.every.minute", "schedule.every.minutes"
    number = minutes // length
    return say(one) if number == 1 else say(many, count=count(number))


def skip_words(skip: Skip, now_ms: float) -> str:
    """Format why occurrences did not run, and when."""
    at, number = clock(skip.due_at, now_ms), count(skip.number)
    if skip.why == "running":
        task_id = display(skip.task_id or "", _CHARS)
        return say("schedule.skip.running", count=number, at=at, task_id=task_id)
    return say("schedule.skip.missed", count=number, at=at)


def name_words(schedule: Schedule) -> str:
    """Return the name of a schedule, else the address or the kind of its task."""
    args = schedule.request.document.get("args")
    url = args.get("url") if isinstance(args, dict) else None
    shown = schedule.name or (url if isinstance(url, str) else "")
    return display(shown, _CHARS) or kind_name(schedule.kind)
