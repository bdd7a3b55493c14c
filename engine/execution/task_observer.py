"""Observer of a running task (a budget, a contract): the interface between them and the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.kinds.context import StopReason
from engine.model.records import ErrorInfo, Units


class TaskObserver(Protocol):
    """Notified of every step of one task, on worker threads, one call at a time.

    Its errors are logged and stop nothing: a task's work is never lost because of a failure to
    count.
    """

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """Handle a stored unit; return the reason why the task has to stop now, mostly none."""
        ...

    def on_tick(self) -> StopReason:
        """Handle the passing of time (about four times a second); returns as `on_unit` does."""
        ...

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Return why a task that would be COMPLETED now has to be FAILED, or None.

        `head` is that of its result (the summary of a crawl), where the body produced one.
        """
        ...

    def on_end(self) -> None:
        """Handle the end of the work; the terminal meta comes next."""
        ...
