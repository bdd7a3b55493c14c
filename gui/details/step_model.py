"""The commands of a command task as a table: number, state, tool, what for, and how long."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QObject, Qt
from PySide6.QtWidgets import QApplication

from engine.model.display import display
from engine.text.catalogue import retold
from engine.text.words import took
from gui.details.unit_columns import TONES, kind_word
from gui.style.item_roles import COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone

Step = Mapping[str, Any]

_CHARS = 300
_KINDS = {"success": "done", "error": "failed", "pending": "waiting"}
_KIND_AT = 1


class StepModel(QAbstractTableModel):
    """`show_steps` tells only what differs, so that what is marked stays marked."""

    widths = (3, 11, 19, 26, 10, 0)
    least = (2, 9, 7, 8, 5, 8)  # where room is short

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: list[Step] = []
        self._cells: list[tuple[str, ...]] = []

    def show_steps(
        self, steps: Sequence[Step], wanted: Callable[[Step], bool] = lambda _: True
    ) -> None:
        """Show those that are `wanted`, each with its number among all of them."""
        shown = [(number, step) for number, step in enumerate(steps, 1) if wanted(step)]
        steps, cells = [step for _, step in shown], [_cells(*one) for one in shown]
        if len(cells) != len(self._cells):
            self.beginResetModel()
            self._steps, self._cells = list(steps), cells
            self.endResetModel()
            return
        before, self._cells = self._cells, cells
        self._steps = list(steps)
        for row, (old, new) in enumerate(zip(before, cells, strict=True)):
            if old != new:
                self.dataChanged.emit(self.index(row, 0), self.index(row, len(new) - 1))

    def step_at(self, row: int) -> Step:
        return self._steps[row]

    def most_telling(self) -> int:
        """The step that went wrong, else the first."""
        kinds = [step.get("status") for step in self._steps]
        return kinds.index("error") if "error" in kinds else 0

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._cells)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.widths)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        cells = self._cells[index.row()]
        if role == DISPLAY:
            return cells[index.column()]
        if role == TOOL_TIP:
            return plain_tip(cells[index.column()])
        if role == COLOUR and index.column() == _KIND_AT:
            kind = _kind(self._steps[index.row()])
            return tone(TONES.get(kind, "muted"), QApplication.palette())
        return ", ".join(filter(None, cells)) if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or role not in (DISPLAY, TOOL_TIP):
            return None
        titles = (
            *(self.tr("#"), self.tr("State"), self.tr("Tool"), self.tr("What for")),
            *(self.tr("Time"), self.tr("Arguments or error")),
        )
        return titles[section]


def _kind(step: Step) -> str:
    status = step.get("status")
    return _KINDS.get(status, status) if isinstance(status, str) else "waiting"


def _lasted(began: object, ended: object) -> str:
    if isinstance(began, int | float) and isinstance(ended, int | float):
        return took(ended - began)
    return ""


def _in_words(args: object) -> str:
    """The action first, because a narrow cell shows the beginning: `check, selector #agree`."""
    if not isinstance(args, Mapping):
        return json.dumps(args, ensure_ascii=False, default=str)
    told = [str(args["action"])] if "action" in args else []
    for name, value in args.items():
        if name != "action":
            text = value if isinstance(value, str) else None
            told.append(f"{name} {text or json.dumps(value, ensure_ascii=False, default=str)}")
    return ", ".join(told)


def _cells(number: int, step: Step) -> tuple[str, ...]:
    error, warning = step.get("error"), step.get("warning")
    if isinstance(error, Mapping):
        said = f"{retold(str(error.get('message', '')))} [{error.get('code', '')}]"
    elif isinstance(warning, str):
        said = f"⚠ {retold(warning)}"
    else:
        said = _in_words(step.get("args", {}))
    return (
        str(number),
        display(kind_word(_kind(step)), 40),
        display(str(step.get("tool_name", "")), 80),
        display(str(step.get("intention", "")), _CHARS),
        _lasted(step.get("startedAt"), step.get("completedAt")),
        display(said, _CHARS),
    )
