"""What a unit found, as text: a page's content or HTML is never rendered, only read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine.model.display import display_lines
from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.results.units import Unit
from engine.service.engine import Engine
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.results.viewer_tab import ViewerTab
from gui.style.fonts import fixed_pitch
from gui.style.theme import plain_label

MOST = 300_000  # characters; an export has all of them
_WRAP = 4_000  # characters of one line; Qt lays out a longer one for seconds
_TEXTS = ("html", "content", "text")


class Source(ViewerTab):
    """The text of the unit that is current among the pages."""

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
            self._tell,
            name=f"source {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"source {id(self)}")
        self._shown = ("", -1)

    def _show(self, text: str) -> None:
        self.text.setPlainText(text)
        if not text:
            self._title.show_text(self.tr("No text was kept of this one."))

    def _tell(self, error: EngineError) -> None:
        self._shown = ("", -1)  # the next look tries again
        self._title.show_text(language.sentence(error))


async def _text(engine: Engine, task_id: str, unit: Unit) -> str:
    row = await engine.reading.unit(task_id, unit)
    return await asyncio.to_thread(source_text, row or {})


def source_text(row: Mapping[str, Any]) -> str:
    """The text that a unit holds, else the unit itself as JSON; safe to look at."""
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
