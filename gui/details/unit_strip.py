"""Strip below a list of units: the selected unit in full, with its screenshot and its source."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from engine.model.display import ELLIPSIS, display, display_lines
from engine.results.units import Unit, custom_fields, whole_name
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import count
from gui.context.window_context import Desk
from gui.details.screenshots import decoded
from gui.details.unit_columns import (
    PAGE_COLUMNS,
    PAGE_FACTS,
    earlier_of,
    fact_title,
    said_of,
    state_word,
    title_of,
)
from gui.style.editors import read_only_text
from gui.style.theme import plain_tip
from gui.style.widgets import LinkButton, arrange

_FACTS = ("code", "depth", "response", "render", "size", "attempts", "redacted", "links_over")
_LINES = 4  # of text in the strip
_MOST_CHARS = 8_000  # of an address or a reason
_FACT_CHARS = 512
_THUMB = QSize(120, 80)


class UnitStrip(QWidget):
    """The unit of the current row in full, as text that can be selected and copied.

    `picture_wanted` and `source_wanted` carry the unit whose screenshot or source is to be shown.
    """

    picture_wanted = Signal(object)
    source_wanted = Signal(object)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk, self._task_id = desk, ""
        self._unit: Unit | None = None
        self.text: QPlainTextEdit = read_only_text(self, self.tr("The selected item in full"))
        self.picture = QToolButton(self)
        self.source = LinkButton(self.tr("Source"), self)
        self._lay_out()
        self.picture.clicked.connect(lambda: self.picture_wanted.emit(self._unit))
        self.source.clicked.connect(lambda: self.source_wanted.emit(self._unit))
        self.hide()

    def _lay_out(self) -> None:
        line, frame = self.fontMetrics().lineSpacing(), 2 * self.text.frameWidth() + 8
        self.text.setMinimumHeight(2 * line + frame)
        self.text.setMaximumHeight(_LINES * line + frame)
        self.picture.setIconSize(_THUMB)
        self.picture.setAutoRaise(True)
        self.picture.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.picture.setAccessibleName(self.tr("Show screenshot"))
        self.picture.setToolTip(plain_tip(self.tr("Show screenshot")))
        self.source.setToolTip(plain_tip(self.tr("Show what was stored of this item")))
        side = arrange(QVBoxLayout(), self.source, 1, margins=0)
        arrange(QHBoxLayout(self), (self.text, 1), self.picture, side, margins=0)

    def show_unit(self, task_id: str, unit: Unit | None) -> None:
        """Show this unit; None hides the strip."""
        if (task_id, unit) == (self._task_id, self._unit):
            return
        self._task_id, self._unit = task_id, unit
        for what in ("row", "picture"):
            self._desk.bridge.call_off(self._name(what))
        self.picture.hide()
        self.setVisible(unit is not None)
        if unit is None:
            return
        self._show_text(unit, {})
        if _is_cut(unit) or is_address(unit):
            self._desk.bridge.ask(
                lambda engine: engine.reading.unit(task_id, unit),
                lambda row: self._show_text(unit, row or {}),
                name=self._name("row"),
            )
        if unit.shot:
            self._desk.bridge.ask(
                lambda engine: _thumbnail(engine, task_id, unit.shot),
                self._show_picture,
                lambda _: None,
                name=self._name("picture"),
            )

    def _name(self, what: str) -> str:
        return f"strip {what} {id(self)}"

    def _show_text(self, unit: Unit, row: Mapping[str, Any]) -> None:
        self.text.setPlainText("\n".join(filter(None, _lines(unit, row))))

    def _show_picture(self, image: QImage) -> None:
        self.picture.setVisible(not image.isNull())
        self.picture.setIcon(QIcon(QPixmap.fromImage(image)))


def full_name(unit: Unit, row: Mapping[str, Any]) -> str:
    """Return the unit's name from its record, where the list holds the start of it only."""
    found = display(whole_name(row), _MOST_CHARS) if unit.is_cut else ""
    return found or unit.name


def is_address(unit: Unit) -> bool:
    """Return whether the unit is a page with an address."""
    return unit.name.startswith(("http://", "https://"))


def _is_cut(unit: Unit) -> bool:
    return unit.is_cut or unit.reason.endswith(ELLIPSIS)


def _lines(unit: Unit, row: Mapping[str, Any]) -> Iterator[str]:
    yield full_name(unit, row)
    facts = [
        f"{title_of(column.key)}: {column.text(unit)}"
        for column in PAGE_COLUMNS
        if column.key in _FACTS and column.text(unit) and (column.key != "code" or unit.code)
    ]
    yield " · ".join((state_word(unit), *facts))
    yield unit.title
    yield _whole_reason(unit, row)
    if unit.earlier:
        yield f"{title_of('earlier')}: {earlier_of(unit)}"
    yield redirect_line(row)
    yield display(custom_fields(row), _MOST_CHARS)
    yield from page_fact_lines(row)


def _whole_reason(unit: Unit, row: Mapping[str, Any]) -> str:
    error = row.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    if unit.reason.endswith(ELLIPSIS) and isinstance(error, str):
        return display_lines(retold(error), _MOST_CHARS)
    return said_of(unit)


def redirect_line(row: Mapping[str, Any]) -> str:
    """Return the addresses that led to a page, each with its status; "" without any."""
    hops = row.get("redirects")
    said = [
        f"{display(str(hop['url']), _FACT_CHARS)} ({hop.get('status')})"
        for hop in (hops if isinstance(hops, list) else ())
        if isinstance(hop, dict) and isinstance(hop.get("url"), str)
    ]
    if not said:
        return ""
    final = row.get("final_url")
    led = display(final, _FACT_CHARS) if isinstance(final, str) else ""
    return f"{title_of('redirects')}: {' → '.join((*said, led))}"


def page_fact_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts of a crawled page, `Language: de · Words: 12`; counts of 0 are left out."""
    facts = row.get("facts")
    if not isinstance(facts, Mapping):
        return
    for names in PAGE_FACTS:
        said = [(fact_title(name), _fact(facts.get(name))) for name in names]
        if line := " · ".join(f"{title}: {text}" for title, text in said if text):
            yield line


def _fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(display(one, _FACT_CHARS) for one in value if isinstance(one, str))
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value) if value else ""
    return display(value, _FACT_CHARS) if isinstance(value, str) else ""


async def _thumbnail(engine: Engine, task_id: str, shot: str) -> QImage:
    data = await engine.reading.picture(task_id, f"artifacts/{shot}")
    image, _ = await asyncio.to_thread(decoded, data or b"", _THUMB)
    return image
