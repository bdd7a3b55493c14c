"""The workers of the clusters that running tasks use: what an operator sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal

import msgspec

WorkerState = Literal["connecting", "ready", "left", "lost", "unusable", "no_browser"]
_BY_TROUBLE: Final = ("connecting", "ready", "left", "lost", "unusable", "no_browser")


class WorkerView(msgspec.Struct, frozen=True):
    """One worker as one task, or all tasks of an engine, use it now.

    `cluster` is its cluster as the task names it; `address` is unique in it. `pages` are those that
    it loaded for these tasks, `pages_per_s` the mean of the last seconds. `memory_bytes` (of its
    process, without its browser) and `seen_s` (since it last reported to the scheduler) come from
    the scheduler; None: unknown. `reason` tells why it is not ready, and `back_s` in how many
    seconds it is tried again. A worker is "unusable" that answers, but not as one of this program
    that loads pages: it was not lost. `scheduler_away`: the scheduler does not answer, so that no
    new worker is found, and what came from it is old.
    """

    cluster: str
    address: str
    name: str
    state: WorkerState = "connecting"
    slots: int = 0
    loading: int = 0
    pages: int = 0
    pages_per_s: float = 0.0
    memory_bytes: int | None = None
    seen_s: float | None = None
    reason: str = ""
    back_s: float | None = None
    scheduler_away: bool = False


ReadWorkers = Callable[[], Sequence[WorkerView]]


class OpenClusters:
    """The clusters that tasks of one engine use now, each for the duration of its task."""

    def __init__(self) -> None:
        self._readers: list[ReadWorkers] = []

    @contextmanager
    def used(self, read: ReadWorkers) -> Iterator[None]:
        """List the workers that `read` returns, during the block."""
        self._readers.append(read)
        try:
            yield
        finally:
            self._readers.remove(read)

    def workers(self) -> tuple[WorkerView, ...] | None:
        """Return all workers; one that several tasks use is one worker with their sums.

        None: no task uses a cluster.
        """
        if not self._readers:
            return None
        found: dict[tuple[str, str], WorkerView] = {}
        for read in self._readers:
            for view in read():
                key = view.cluster, view.address
                found[key] = _together(found[key], view) if key in found else view
        return tuple(found.values())


def _together(one: WorkerView, other: WorkerView) -> WorkerView:
    """Return the view of a worker that two tasks use: the worse state, and the sums."""
    worse = max(one, other, key=lambda view: _BY_TROUBLE.index(view.state))
    return msgspec.structs.replace(
        worse,
        slots=max(one.slots, other.slots),
        loading=one.loading + other.loading,
        pages=one.pages + other.pages,
        pages_per_s=one.pages_per_s + other.pages_per_s,
        scheduler_away=one.scheduler_away or other.scheduler_away,
    )
