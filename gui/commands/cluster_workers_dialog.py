"""Workers of clusters: what those that crawls of this window use do now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.model.cluster_workers import WorkerView
from engine.text import words
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.style.accessibility import InOrder
from gui.style.questions import BUTTON
from gui.style.sortable_list import Cell, Head, SortableList
from gui.style.theme import plain_label
from gui.style.widgets import arrange

SIZE: Final = QSize(1040, 380)
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
        self.summary = plain_label("", self, tone="muted", wrap=True)
        self.list = self._make_list()
        close = QPushButton(self.tr("Close"), self)
        close.setMinimumSize(BUTTON)
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        row = arrange(QHBoxLayout(), 1, close)
        parts = (self.summary, (self.list, 1), row)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)
        bridge.workers.connect(self.show_workers)
        self.show_workers(bridge.cluster_workers)

    def show_workers(self, workers: Sequence[WorkerView] | None) -> None:
        """Show these workers; None: no crawl uses a cluster."""
        self.list.show_cells(
            {f"{one.cluster} {one.address}": self._cells(one) for one in workers or ()}
        )
        self.list.setVisible(bool(workers))
        self.summary.show_text(self._summary(workers))

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
            Head(tr("Pages"), True, tr("Loaded for the crawls that run now")),
            Head(tr("Memory"), True, tr("Of the worker’s process, without its browser")),
            Head(tr("Last seen"), True, tr("Since it last reported to the scheduler")),
        )
        return SortableList(tr("Cluster workers"), heads, self, stretched=_STATE_COLUMN)

    def _summary(self, workers: Sequence[WorkerView] | None) -> str:
        if workers is None:
            return self.tr(
                "No crawl uses a cluster. Choose one in the options of a crawl or in Settings."
            )
        if not workers:
            return self.tr("The cluster has no worker at the moment. Crawls wait for one.")
        text = self.tr("Workers ready: {0} of {1}. Pages loading: {2}. Pages per second: {3}.")
        return text.format(
            words.count(sum(one.state == "ready" for one in workers)),
            words.count(len(workers)),
            words.count(sum(one.loading for one in workers)),
            words.decimal(sum(one.pages_per_s for one in workers), 1),
        )

    def _cells(self, one: WorkerView) -> tuple[Cell, ...]:
        state = self._state(one)
        memory, seen_s = one.memory_bytes, one.seen_s
        seen = "" if seen_s is None else self.tr("{0} ago").format(words.span(seen_s * 1_000))
        host = one.address.partition("://")[2]
        return (
            Cell(one.name, one.name),
            Cell(host, host),
            Cell(one.cluster, one.cluster),
            Cell(state, state),
            Cell(words.count(one.slots), one.slots),
            Cell(words.count(one.loading), one.loading),
            Cell(words.decimal(one.pages_per_s, 1), one.pages_per_s),
            Cell(words.count(one.pages), one.pages),
            Cell("" if memory is None else words.size_words(memory), memory or 0),
            Cell(seen, math.inf if seen_s is None else seen_s),
        )

    def _state(self, one: WorkerView) -> str:
        texts = {
            "connecting": self.tr("Connecting…"),
            "ready": self.tr("Ready"),
            "lost": self.tr("Lost: {0}"),
            "no_browser": self.tr("No browser: {0}"),
        }
        text = texts[one.state].format(words.retold(one.reason))
        if one.back_s is None:
            return text
        wait = self.tr("{0} · tried again in {1} s")
        return wait.format(text, words.count(math.ceil(one.back_s)))
