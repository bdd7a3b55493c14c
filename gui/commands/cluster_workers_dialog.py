"""Workers of clusters: what those that tasks of this window use do now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.model.cluster_workers import WorkerView
from engine.model.display import display
from engine.text import words
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.style.accessibility import InOrder
from gui.style.questions import BUTTON
from gui.style.record_list import Cell, Head, SortableList
from gui.style.theme import plain_label
from gui.style.widgets import arrange

SIZE: Final = QSize(1040, 380)
CLUSTER_CHARS: Final = 120
_STATE_COLUMN: Final = 3


class ClusterWorkersActions(QObject):
    """The action that opens the workers of one window."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._dialog: ClusterWorkersDialog | None = None
        action = ctx.actions.add("cluster_workers", self.tr("Cluster &workers…"), [], "globe")
        action.triggered.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the list beside the window; one that is open comes to the front."""
        if self._dialog is None:
            self._dialog = ClusterWorkersDialog(self._ctx.bridge, self._ctx.parent)
            self._dialog.finished.connect(self._forget)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()

    def _forget(self, _: int) -> None:
        self._dialog = None


class ClusterWorkersDialog(InOrder, QDialog):
    """The workers, with their pages and states, as the engine reports them each second."""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Cluster workers"))
        self.resize(SIZE)
        self._readers = self._make_readers()
        self.summary = plain_label("", self, tone="muted", wrap=True)
        self.list = self._make_list()
        self.why = plain_label("", self, tone="warning", wrap=True)
        self._workers: dict[str, WorkerView] = {}
        self.list.selectionModel().currentChanged.connect(lambda *_: self._show_why())
        close = QPushButton(self.tr("Close"), self)
        close.setMinimumSize(BUTTON)
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        row = arrange(QHBoxLayout(), 1, close)
        parts = (self.summary, (self.list, 1), self.why, row)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)
        bridge.workers.connect(self.show_workers)
        self.show_workers(bridge.cluster_workers)

    def show_workers(self, workers: Sequence[WorkerView] | None) -> None:
        """Show these workers; None: no task uses a cluster."""
        self._workers = {f"{one.cluster} {one.address}": one for one in workers or ()}
        self.list.show_cells({key: partial(self._cell, one) for key, one in self._workers.items()})
        self.list.setVisible(bool(workers))
        self.summary.show_text(self._summary(workers))
        self._show_why()

    def _show_why(self) -> None:
        """Show the whole state of the selected worker: its column has no room for a reason."""
        one = self._workers.get(self.list.chosen_id or "")
        why = self._state(one).text if one is not None and one.reason else ""
        self.why.show_text(why)
        self.why.setVisible(bool(why))

    def _make_list(self) -> SortableList:
        tr = self.tr
        heads = (
            Head(tr("Worker")),
            Head(tr("Host")),
            Head(tr("Cluster")),
            Head(tr("State")),
            Head(tr("Slots"), True, tr("Pages that it loads at once, for all programs")),
            Head(tr("Loading"), True, tr("Pages that it loads now, for this window")),
            Head(tr("Pages/s"), True, tr("Mean of the last 10 seconds")),
            Head(tr("Pages"), True, tr("Loaded for the tasks that run now")),
            Head(tr("Memory"), True, tr("Of the worker’s process, without its browser")),
            Head(tr("Last seen"), True, tr("Since it last reported to the scheduler")),
        )
        return SortableList(tr("Cluster workers"), heads, self, stretched=_STATE_COLUMN)

    def _summary(self, workers: Sequence[WorkerView] | None) -> str:
        if workers is None:
            return self.tr(
                "No task uses a cluster. Choose one in the options of a task or in Settings."
            )
        if not workers:
            return self.tr("The cluster has no worker at the moment. Tasks wait for one.")
        text = self.tr("Workers ready: {0} of {1}. Pages loading: {2}. Pages per second: {3}.")
        numbers = text.format(
            words.count(sum(one.state == "ready" for one in workers)),
            words.count(len(workers)),
            words.count(sum(one.loading for one in workers)),
            words.decimal(sum(one.pages_per_s for one in workers), 1),
        )
        return "\n".join([numbers, *self._away(workers)])

    def _away(self, workers: Sequence[WorkerView]) -> Iterator[str]:
        """Yield a line for each scheduler that does not answer."""
        text = self.tr(
            "The scheduler {0} does not answer. The workers that are known go on; new ones are "
            "found once it answers."
        )
        for cluster in dict.fromkeys(one.cluster for one in workers if one.scheduler_away):
            yield text.format(display(cluster, CLUSTER_CHARS))

    def _cell(self, one: WorkerView, column: int) -> Cell:
        return self._readers[column](one)

    def _make_readers(self) -> tuple[Callable[[WorkerView], Cell], ...]:
        """Return the functions that make the cells of a worker, by column."""
        return (
            lambda one: Cell(one.name, one.name),
            _host,
            lambda one: Cell(one.cluster, one.cluster),
            self._state,
            lambda one: Cell(words.count(one.slots), one.slots),
            lambda one: Cell(words.count(one.loading), one.loading),
            lambda one: Cell(words.decimal(one.pages_per_s, 1), one.pages_per_s),
            lambda one: Cell(words.count(one.pages), one.pages),
            _memory,
            self._seen,
        )

    def _seen(self, one: WorkerView) -> Cell:
        if one.seen_s is None:
            return Cell("", math.inf)
        return Cell(self.tr("{0} ago").format(words.span(one.seen_s * 1_000)), one.seen_s)

    def _state(self, one: WorkerView) -> Cell:
        texts = {
            "connecting": self.tr("Connecting…"),
            "ready": self.tr("Ready"),
            "left": self.tr("Left"),
            "lost": self.tr("Lost: {0}"),
            "unusable": self.tr("Cannot be used: {0}"),
            "no_browser": self.tr("No browser: {0}"),
        }
        text = texts[one.state].format(words.retold(one.reason))
        if one.back_s is None:
            return Cell(text, text)
        wait = self.tr("{0} · tried again in {1} s")
        text = wait.format(text, words.count(math.ceil(one.back_s)))
        return Cell(text, text)


def _host(one: WorkerView) -> Cell:
    host = one.address.partition("://")[2]
    return Cell(host, host)


def _memory(one: WorkerView) -> Cell:
    size = one.memory_bytes
    return Cell("", 0) if size is None else Cell(words.size_words(size), size)
