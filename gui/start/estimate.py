"""Estimated duration of a task, from recent tasks of its kind and host."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, QTimer

from engine.model.records import Status, TaskRecord, TaskView
from engine.model.status import moment
from engine.service.feed import Batch
from engine.service.rerun import Asked
from engine.text.words import count, span, unit_word
from gui.engine_link.bridge import Bridge

MOST_HOSTS: Final = 2_000
MOST_RUNS: Final = 7  # Latest runs kept for each host
REST_MS: Final = 500  # Pause after which loading counts as finished or stalled
AT_ONCE: Final = 200  # Tasks, which take about a millisecond


class Run(NamedTuple):
    """A completed task with its units (pages) and its duration in ms."""

    task_id: str
    units: int
    took_ms: float


class Estimate(QObject):
    """Keep the last completed tasks of each kind and host.

    Tasks of a loading ledger are processed afterwards, because the list comes first.
    """

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs: dict[tuple[str, str], deque[Run]] = {}
        self._unread: deque[TaskView] = deque()  # Newest first
        self._whole = False
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._read_on)
        bridge.news.connect(self.hear)

    def hear(self, batch: Batch) -> None:
        """Record completed tasks, later for those of a loading ledger."""
        if batch.complete and self._whole:
            for view in batch.views:
                self._note(view, newest=True)
        elif batch.views:
            self._unread.extend(batch.views)
            self._rest.start(REST_MS)
        self._whole = batch.complete

    def _read_on(self) -> None:
        for _ in range(min(AT_ONCE, len(self._unread))):
            self._note(self._unread.popleft(), newest=False)
        if self._unread:
            self._rest.start(0)  # Qt processes events

    def words(self, asked: Asked, number: int = 1) -> str:
        """Return the estimate for this request or `number` such requests, empty if unknown."""
        if number > 1:
            return self._of_list(asked, number)
        url = asked.args.get("url") or asked.args.get("sitemap_url")
        runs = self._runs.get((asked.kind, _host(url)), ()) if isinstance(url, str) else ()
        if not runs:
            return self._by_pause(asked)
        took = _middle([run.took_ms for run in runs])
        most = asked.args.get("max_pages")
        paces = [run.took_ms / run.units for run in runs if run.units]
        if not isinstance(most, int) or not paces:
            return self.tr("The last ones at this host took {0}.").format(span(took))
        words = self.tr("Up to {0} {1}: about {2} at the pace that this host had lately.")
        unit = unit_word(asked.kind, most)
        return words.format(count(most), unit, span(max(1000.0, most * _middle(paces))))

    def _of_list(self, asked: Asked, number: int) -> str:
        """Return the total size only, because a list may address many hosts."""
        most = asked.args.get("max_pages")
        if not isinstance(most, int):
            return ""
        words = self.tr("{0} tasks, each of up to {1} {2}: {3} at most.")
        total = count(number * most)
        return words.format(count(number), count(most), unit_word(asked.kind, most), total)

    def _by_pause(self, asked: Asked) -> str:
        """Return the minimum duration, from the delay between pages of a host."""
        pages, pause = asked.args.get("max_pages"), asked.args.get("delay_ms")
        if not isinstance(pages, int) or not isinstance(pause, int):
            return ""
        if pages == 1:
            return self.tr("1 page at most.")
        seconds = (pages - 1) * pause / 1000
        if seconds < 60:
            return self.tr("Up to {0} pages.").format(count(pages))
        words = self.tr("Up to {0} pages, at least {1} min with this pause.")
        return words.format(count(pages), count(round(seconds / 60)))

    def _note(self, view: TaskView, *, newest: bool) -> None:
        record = view.entry
        if not isinstance(record, TaskRecord) or record.status != Status.COMPLETED:
            return
        began, ended = moment(record.started_at), moment(record.ended_at)
        host = _host(record.url)
        if not host or began is None or ended is None or ended < began:
            return
        key = (record.kind, host)
        runs = self._runs.get(key)
        if runs is None:
            if len(self._runs) >= MOST_HOSTS:
                return
            runs = self._runs[key] = deque(maxlen=MOST_RUNS)
        if any(run.task_id == record.task_id for run in runs):
            return
        run = Run(record.task_id, view.units.done if view.units else 0, ended - began)
        if newest:
            runs.appendleft(run)
        elif len(runs) < MOST_RUNS:
            runs.append(run)


def _host(url: str) -> str:
    """Return the host of a URL, ten times as fast as `urlsplit`, for loading ledgers."""
    rest = url.partition("://")[2] or url
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2].lower()


def _middle(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]
