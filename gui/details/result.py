"""Result tab: a summary in one line, and the result as a tree."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE, RESULT_NAME, TaskRecord, TaskView
from engine.model.status import moment
from engine.service.engine import Engine
from engine.text.words import archive_text, clock, count, size_words, took
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab
from gui.details.facts import ended_by
from gui.details.json_view import JsonView
from gui.engine_link.scheduling import Throttle
from gui.i18n import language
from gui.style.theme import plain_label
from gui.style.widgets import arrange, centre

AGAIN_MS = 1_000
_MOST = 24  # facts of an unknown result
_CHARS = 160
_STATES = ("failed", "cancelled")  # these are shown as the task's state


class Result(DetailTab):
    """Result of a task, or the reason why there is none."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._there = self._ended = False
        self._view: TaskView | None = None
        self.summary = plain_label("", self, wrap=True)
        self.tree = JsonView(desk, self)
        self._nothing = plain_label("", self, tone="muted")
        centre(self._nothing)
        self.open = QPushButton(self.tr("Open the result"), self)
        self.export = QPushButton(self.tr("Export…"), self)
        self._again = Throttle(self, AGAIN_MS, self._look)
        self._lay_out()
        self.open.clicked.connect(lambda: desk.wishes.result.emit(self._task_id, None))
        self.export.clicked.connect(lambda: desk.wishes.export.emit(self._task_id))

    def _lay_out(self) -> None:
        row = arrange(QHBoxLayout(), (self.summary, 1), self.open, self.export)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self._nothing)
        self._stack.addWidget(self.tree)
        arrange(QVBoxLayout(self), row, (self._stack, 1), margins=EDGES, spacing=6)
        self.setFocusProxy(self.tree)

    def show_task(self, view: TaskView) -> None:
        self._view = view
        ended = isinstance(view.entry, TaskRecord) and view.entry.is_terminal
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._there = view.task_id, False
            self.summary.show_text("")
            self._show_nothing(self.tr("Reading…"))
            self._ended = ended
            self._look()
        elif not self._there and not self._again.is_pending:
            self._ended = ended
            self._again.request()

    def leave(self) -> None:
        self._again.cancel()
        self.desk.bridge.call_off(self._name)
        self.tree.leave()
        self._task_id = ""

    @property
    def _name(self) -> str:
        return f"result {id(self)}"

    def _look(self) -> None:
        task_id = self._task_id
        self.desk.bridge.ask(
            lambda engine: _found(engine, task_id), self._show, self._show_error, name=self._name
        )

    def _show(self, found: Mapping[str, Any] | None) -> None:
        self._there = found is not None
        self._offer()
        if found is None:
            self._show_nothing(self._why_nothing())
            return
        entry = self._view.entry if self._view is not None else None
        kind = entry.kind if isinstance(entry, TaskRecord) else ""
        self.summary.show_text(summary_text(found, kind))
        self._stack.setCurrentWidget(self.tree)
        self.tree.show_file(self._task_id, RESULT_NAME)

    def _offer(self) -> None:
        """Enable the buttons only when a result or finished units can be opened."""
        units = self._view.units if self._view is not None else None
        there = self._there or (units is not None and units.done > 0)
        self.open.setEnabled(there)
        self.export.setEnabled(there)

    def _why_nothing(self) -> str:
        if not self._ended or self._view is None:
            return self.tr("There is no result before the task has ended.")
        entry, units = self._view.entry, self._view.units
        done = units.done if units is not None else 0
        if not done and isinstance(entry, TaskRecord) and entry.started_at is None:
            return self.tr("This task ended before it began. It has no result and kept nothing.")
        if units is None:
            return self.tr("This task ended without a result.")
        if not done:
            return self.tr("This task ended without a result, before anything of it was finished.")
        kind = getattr(entry, "kind", "")
        if kind == ENVELOPE:
            return self.tr("This task ended without a result. What it did is under Events.")
        if traits_of(kind).steps:
            return self.tr("This task ended without a result. What it did is under Commands.")
        return self.tr("This task ended without a result. What it kept is under Items.")

    def _show_nothing(self, text: str) -> None:
        self._nothing.show_text(text)
        self._stack.setCurrentWidget(self._nothing)
        self._offer()

    def _show_error(self, error: EngineError) -> None:
        self._show_nothing(language.sentence(error))


async def _found(engine: Engine, task_id: str) -> Mapping[str, Any] | None:
    """Return the result's fields before its units; None without a result."""
    names = [one.name for one in await engine.reading.files(task_id)]
    return await engine.tasks.head(task_id) if RESULT_NAME in names else None


def summary_text(head: Mapping[str, Any], kind: str = "") -> str:
    """Format a summary in one line: `pages 12 · failed 1 · stopped by its budget`."""
    summary = head.get("summary")
    facts = dict(summary if isinstance(summary, Mapping) else head)
    by = str(facts.get("stopped_by"))
    if by in _STATES:
        del facts["stopped_by"]
    elif said := ended_by(kind, by):
        facts["stopped_by"] = said.text
    told = []
    for name, value in facts.items():
        if isinstance(value, Mapping | list) or value in (None, ""):
            continue
        told.append(f"{_named(str(name))} {_words(str(name), value)}")
    line = " · ".join(told[:_MOST])
    if facts.get("links_fragments"):
        line += f"\n{_tr('As pages of their own, addresses with #/ or #! are followed too.')}"
    if archive := archive_text(facts):
        line += f"\n{_tr('Web archive: {0}').format(archive)}"
    if head.get("pages_file"):
        line += f"\n{_tr('The pages are under Items, and in the file pages.jsonl.')}"
    return line


def _named(name: str) -> str:
    """Return a field's label; an unknown field keeps its name."""
    known = _facts() | _links()
    return known.get(name) or display(name, 40).removesuffix("_ms").replace("_", " ")


def _facts() -> dict[str, str]:
    return {
        "total_pages": _tr("pages"),
        "succeeded": _tr("done"),
        "failed": _tr("failed"),
        "http_errors": _tr("answered with an error"),
        "not_loaded": _tr("not loaded"),
        "retried": _tr("tried more than once"),
        "redacted": _tr("redacted in content"),
        "compared": _tr("taken by both engines"),
        "empty_pages": _tr("empty pages"),
        "unsettled_pages": _tr("not come to rest"),
        "skipped": _tr("skipped"),
        "max_depth_reached": _tr("deepest link"),
        "duration_ms": _tr("duration"),
        "scope": _tr("scope"),
        "stopped_by": _tr("stopped by"),
        "snapshot_id": _tr("snapshot ID"),
        "captured_at": _tr("captured at"),
        "recording_id": _tr("recording ID"),
        "bundle_id": _tr("bundle ID"),
        "size_bytes": _tr("size"),
        "final_url": _tr("final address"),
        "settled": _tr("came to rest"),
        "title": _tr("title"),
        "connection": _tr("browser connection"),
        "path": _tr("folder"),
        "id": _tr("task ID"),
        "instanceId": _tr("instance ID"),
        "name": _tr("name"),
        "intention": _tr("purpose"),
        "status": _tr("status"),
        "currentCommandIndex": _tr("current command"),
        "createdAt": _tr("created at"),
        "startedAt": _tr("began at"),
        "completedAt": _tr("ended at"),
        "keep_text": _tr("texts kept"),
        "headed": _tr("in a window"),
        "started_at": _tr("began at"),
        "action_count": _tr("actions"),
        "dropped": _tr("left out"),
        "windows_refused": _tr("windows that did not open"),
        "label": _tr("label"),
        "url": _tr("address"),
    }


def _links() -> dict[str, str]:
    """Return the labels of links that a crawl did not follow."""
    return {
        "links_outside": _tr("links to elsewhere"),
        "links_too_deep": _tr("links too deep"),
        "links_repeating": _tr("links that repeat themselves"),
        "links_not_web": _tr("links to no web page"),
        "links_over_limit": _tr("links beyond the limit of a page"),
        "links_fragments": _tr("links with #/ or #!"),
        "links_sign_out": _tr("links that sign out"),
        "links_host_errors": _tr("pages of a host that was given up"),
    }


def _tr(text: str) -> str:
    return QCoreApplication.translate("Result", text)


def _words(name: str, value: object) -> str:
    if isinstance(value, bool):
        return _tr("yes") if value else _tr("no")
    if not isinstance(value, int | float):
        return display(str(value), _CHARS)
    if name.endswith("_ms"):
        return took(value)
    if name == "size_bytes":
        return size_words(value)
    if name.endswith(("At", "_at")) and (at := moment(value)) is not None:
        return clock(at, time.time() * 1000)
    return count(value) if isinstance(value, int) else str(value)
