"""Tabs of the result viewer: contract, preview, source; HTML is shown as text, never rendered."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QPlainTextEdit, QSplitter, QVBoxLayout, QWidget

from engine.contracts.contract_views import ContractView
from engine.model.display import display, display_lines
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.records import TaskRecord, TaskView
from engine.model.status import moment
from engine.results.file_parts import FileFacts
from engine.results.units import Unit
from engine.service.engine import Engine
from engine.text.catalogue import retold
from engine.text.words import clock, count
from gui.details.screenshots import PicturePane
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.style.fonts import fixed_pitch
from gui.style.theme import PlainLabel, plain_label

# Base class of the result viewer's tabs.


class ViewerTab(QWidget):
    """Viewer tab, updated only while it is current. It reads through `desk.bridge`, never on the
    loop.
    """

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk

    @abstractmethod  # checked by mypy: Qt's metaclass excludes ABC
    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        """Show this task, and this one of its units."""

    def leave(self) -> None:
        """Cancel running reads when the tab is hidden."""


# Contract tab: counts, guard and named items of a task's contract.

_CHARS = 500


class ContractTab(ViewerTab):
    """Contract of the task, or a note that there is none."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.facts = plain_label("", self, wrap=True)
        self.items = QPlainTextEdit(self)
        self.items.setReadOnly(True)
        self.items.setTabChangesFocus(True)
        self.items.setAccessibleName(self.tr("Items of the contract"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self.facts)
        column.addWidget(self.items, 1)
        self.setFocusProxy(self.items)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        entry = view.entry
        engine_fields = entry.engine if isinstance(entry, TaskRecord) else None
        link = engine_fields.contract_id if engine_fields is not None else None
        self.items.setVisible(link is not None)
        if link is None:
            self.facts.show_text(self.tr("This task has no contract: nothing was promised of it."))
            return
        self.desk.bridge.ask(
            lambda engine: engine.contracts.get(link), self._show, self._show_error, name=self._name
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(self._name)

    @property
    def _name(self) -> str:
        return f"contract {id(self)}"

    def _show(self, found: ContractView) -> None:
        self.facts.show_text("\n".join(_facts(found)))
        text = "\n".join(_items(found))
        if self.items.toPlainText() != text:
            self.items.setPlainText(text)

    def _show_error(self, error: EngineError) -> None:
        self.facts.show_text(language.sentence(error))


def _tr(text: str) -> str:
    return QCoreApplication.translate("ContractTab", text)


def _facts(found: ContractView) -> Iterator[str]:
    one, guard = found.contract, found.guard
    expected = _tr("unknown") if one.expected_total is None else count(one.expected_total)
    counts = _tr("Expected {0} · done {1} · failed {2} · skipped {3}")
    numbers = map(count, (one.completed_total, one.failed_total, one.skipped_total))
    yield counts.format(expected, *numbers)
    yield display(retold(guard.reason), _CHARS)
    if guard.suggested_next_action:
        yield display(retold(guard.suggested_next_action), _CHARS)
    if one.forced is not None:
        text = _tr("⚑ Forced by {0} at {1}: {2}")
        at = clock(moment(one.forced.at))
        yield text.format(display(one.forced.by, 80), at, display(one.forced.reason, _CHARS))


def _items(found: ContractView) -> Iterator[str]:
    one = found.contract
    for item in found.missing:
        yield _tr("missing: {0}").format(display(item, _CHARS))
    for failed in one.failed:
        text = _tr("failed: {0} ({1})")
        yield text.format(display(failed.item, _CHARS), display(failed.reason, _CHARS))
    for skipped in one.skipped:
        text = _tr("skipped: {0} ({1})")
        yield text.format(display(skipped.item, _CHARS), display(skipped.reason, _CHARS))
    for item in one.completed:
        yield _tr("done: {0}").format(display(item, _CHARS))


# Preview tab: the screenshot of the current unit; for commands also the previous one.


class Preview(ViewerTab):
    """Screenshot of the current unit; without one, the task's first screenshot."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._shown: tuple[str, str] = ("", "")
        self._wanted = ""
        self.title = plain_label("", self, tone="muted", wrap=True)
        self.before, self.now = PicturePane(desk, self), PicturePane(desk, self)
        both = QSplitter(self)
        both.addWidget(_titled(self.tr("Before"), self.before))
        after = _titled(self.tr("After"), self.now)
        self._after = after.findChild(PlainLabel)
        both.addWidget(after)
        both.setChildrenCollapsible(False)
        self._both = both
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self.title)
        column.addWidget(both, 1)
        self.setFocusProxy(self.now)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        task_id, wanted = view.task_id, unit.shot if unit is not None else ""
        name = unit.name if unit is not None else ""
        if self._shown == (task_id, f"{wanted} {name}"):
            return
        self._shown, self._wanted = (task_id, f"{wanted} {name}"), wanted
        self.title.show_text(name)
        steps = traits_of(getattr(view.entry, "kind", "")).steps
        self.desk.bridge.ask(
            lambda engine: engine.reading.files(task_id),
            lambda files: self._show(task_id, files, steps=steps),
            self._show_error,
            name=f"preview {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"preview {id(self)}")
        self._shown = ("", "")

    def _show(self, task_id: str, files: tuple[FileFacts, ...], *, steps: bool) -> None:
        pictures = [one.name for one in files if one.is_picture]
        wanted = f"artifacts/{self._wanted}"
        at = pictures.index(wanted) if wanted in pictures else -1
        holder = self.before.parentWidget()
        assert holder is not None
        holder.setVisible(steps and at > 0)
        if self._after is not None:
            self._after.setVisible(steps and at > 0)
        if steps and at > 0:
            self.before.show_picture(task_id, pictures[at - 1])
        self._both.setVisible(bool(pictures))
        if not pictures:
            self.title.show_text(self.tr("This task has kept no pictures."))
        elif at >= 0:
            self.now.show_picture(task_id, wanted)
        elif self._wanted or not self.title.text():
            self.now.show_picture(task_id, pictures[0])
        else:
            self.title.show_text(self.tr("There is no picture of {0}").format(self.title.text()))
            self._both.hide()

    def _show_error(self, error: EngineError) -> None:
        self.title.show_text(language.sentence(error))


def _titled(text: str, pane: QWidget) -> QWidget:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(plain_label(text, box, tone="muted"))
    column.addWidget(pane, 1)
    return box


MOST = 300_000  # characters; an export is not limited
_WRAP = 4_000  # characters of one line; Qt needs seconds to lay out a longer one
_TEXTS = ("html", "content", "text")


class Source(ViewerTab):
    """Text of the current unit."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._shown: tuple[str, int] = ("", -1)
        self._title = plain_label("", self, tone="muted", wrap=True)
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        fixed_pitch(self.text)
        self.text.setAccessibleName(self.tr("Source as text"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self._title)
        column.addWidget(self.text, 1)
        self.setFocusProxy(self.text)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        if unit is None:
            self.leave()
            self._title.show_text(self.tr("Choose a page among the pages first."))
            self.text.clear()
            return
        if self._shown == (view.task_id, unit.number):
            return
        self._shown, task_id = (view.task_id, unit.number), view.task_id
        self._title.show_text(unit.name)
        self.desk.bridge.ask(
            lambda engine: _text(engine, task_id, unit),
            self._show,
            self._show_error,
            name=f"source {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"source {id(self)}")
        self._shown = ("", -1)

    def _show(self, text: str) -> None:
        self.text.setPlainText(text)
        if not text:
            self._title.show_text(self.tr("No text was kept of this one."))

    def _show_error(self, error: EngineError) -> None:
        self._shown = ("", -1)  # so that the next call retries
        self._title.show_text(language.sentence(error))


async def _text(engine: Engine, task_id: str, unit: Unit) -> str:
    row = await engine.reading.unit(task_id, unit)
    return await asyncio.to_thread(source_text, row or {})


def source_text(row: Mapping[str, Any]) -> str:
    """Return a unit's text, else the unit as JSON, sanitised."""
    inner = row.get("result")
    places = (row, inner) if isinstance(inner, Mapping) else (row,)
    found = (place.get(name) for place in places for name in _TEXTS)
    text = next((one for one in found if isinstance(one, str) and one), None)
    if text is None:
        text = json.dumps(row, ensure_ascii=False, indent=2, default=str) if row else ""
    lines = display_lines(text, MOST).split("\n")
    return "\n".join(
        line[at : at + _WRAP] for line in lines for at in range(0, max(1, len(line)), _WRAP)
    )
