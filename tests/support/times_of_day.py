"""Times of day that the clock does not reach while a test runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from engine.schedules.rules import system_zone


def far_time(zone: str = "") -> str:
    """`HH:MM` in half a day, by the clock of `zone`: no schedule that repeats then is due before.

    Without a zone it is that of this computer, as for a rule.
    """
    then = datetime.now(UTC) + timedelta(hours=12)
    return then.astimezone(ZoneInfo(zone or system_zone())).strftime("%H:%M")
