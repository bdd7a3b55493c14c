"""Report when the page of a tab is idle: nothing happens in it, and only time is waited for.

Such a page needs neither its site nor the processor, so a crawl may load another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.pages.fetch import IdleState, OnIdle


class IdleReport:
    """The reports of one tab, for one page after another; `over` and `again` follow `idle` only."""

    def __init__(self) -> None:
        self._is_idle = False
        self._on_idle: OnIdle | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the present page is reported."""
        return self._on_idle is not None

    def begin(self, on_idle: OnIdle | None) -> None:
        """Report the next page to `on_idle`; see `Fetcher.fetch`."""
        self.end()
        self._on_idle = on_idle

    def end(self) -> None:
        """Report nothing more of the page."""
        self.record("over")
        self._on_idle = None

    def record(self, state: IdleState) -> None:
        """Record the state of the page, and report a change."""
        is_idle = state == "idle"
        if self._on_idle is None or is_idle == self._is_idle:
            return
        self._is_idle = is_idle
        self._on_idle(state)
