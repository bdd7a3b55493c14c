"""What goes along with a running task: a budget, a contract. The seam between them and the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.kinds.context import StopReason
from engine.model.records import ErrorInfo, Units


class Companion(Protocol):
    """Told of every step of one task, on worker threads, one call at a time.

    Whatever it raises is logged and stands in nobody's way: a task's work is never lost
    because something could not be counted.
    """

    def kept(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """A unit was kept on disk; returns why the task has to stop now, mostly nothing."""
        ...

    def tick(self) -> StopReason:
        """Time passed (about four times a second); returns as `kept` does."""
        ...

    def refuses(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Why a task that would be COMPLETED now has to be FAILED, or None.

        `head` is that of its result (the summary of a crawl), where the body brought one.
        """
        ...

    def ended(self) -> None:
        """The task's work is over; its terminal meta comes next."""
        ...
