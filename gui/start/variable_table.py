"""The variables of a command task as lines of a form: a name, a value, and whether to hide it.

No value is ever kept, hidden or not: a preset has the names, and asks for the values again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import Problem
from engine.service.rerun import holds_mark
from gui.start.field import EDITOR_HEIGHT
from gui.style.editors import NameLine
from gui.style.theme import MOST_CHARS, plain_label, plain_tip
from gui.style.themed_icons import wear

PATH: Final = "variables"
MOST: Final = 200  # lines; a task with more is edited as JSON
_NAME_CHARS: Final = 24


class VariableTable(QWidget):
    """`edited` tells that other names or values stand there now."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: list[VariableLine] = []
        self._rest: dict[str, Any] = {}
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        hint = self.tr("{{name}} in an argument stands for the value. No value is kept.")
        self._mistake = plain_label(tone="bad", wrap=True)
        self._mistake.hide()
        self.more = QPushButton(self.tr("Add variable"), self)
        self.more.setAutoDefault(False)
        wear(self.more, "new")
        self.more.clicked.connect(self._begin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(plain_label(hint, tone="muted", wrap=True))
        column.addLayout(self._grid)
        column.addWidget(self._mistake)
        column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)

    @property
    def values(self) -> dict[str, Any]:
        """Names and values as the request wants them; a line without a name says nothing."""
        found = {line.name.text().strip(): line.given for line in self.lines}
        found.pop("", None)
        return {**found, **self._rest}

    def fill(self, values: Mapping[str, Any]) -> None:
        """Show these; what was taken out of a kept request has to be typed again."""
        for line in tuple(self.lines):
            self._drop(line)
        named = list(values.items())
        for name, value in named[:MOST]:
            self.add().show_value(str(name), value)
        self._rest = dict(named[MOST:])

    def add(self) -> VariableLine:
        """One more line, at the end."""
        line = VariableLine(self)
        self.lines.append(line)
        row = self._grid.rowCount()
        for place, part in enumerate(line.parts):
            self._grid.addWidget(part, row, place)
        line.edited.connect(self._tell)
        line.removed.connect(lambda: self._remove(line))
        return line

    def show_problems(self, problems: Iterable[Problem]) -> None:
        """Say what is wrong with them."""
        names = Counter(line.name.text().strip() for line in self.lines)
        twice = self.tr("{0}: this name is there twice")
        said = [twice.format(name) for name, number in names.items() if name and number > 1]
        said += [f"{one.path.removeprefix(PATH).strip('.')}: {one.message}" for one in problems]
        self._mistake.show_text("\n".join(one.removeprefix(": ") for one in said))
        self._mistake.setVisible(bool(said))

    def _begin(self) -> None:
        self.add().name.setFocus()

    def _remove(self, line: VariableLine) -> None:
        self._drop(line)
        self._tell()

    def _drop(self, line: VariableLine) -> None:
        self.lines.remove(line)
        for part in line.parts:
            self._grid.removeWidget(part)
            part.hide()
            part.deleteLater()
        line.deleteLater()

    def _tell(self) -> None:
        self.show_problems(())
        self.edited.emit()


class VariableLine(QWidget):
    """The parts of one line; they stand in the table's grid."""

    edited = Signal()
    removed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()  # only its parts are seen
        self._before: tuple[str, Any] = ("", "")
        self.name, self.value = NameLine(parent), NameLine(parent)
        self.secret = QCheckBox(self.tr("Secret"), parent)
        self.remove = QToolButton(parent)
        self.name.setPlaceholderText(self.tr("name"))
        self.name.setAccessibleName(self.tr("Name of the variable"))
        self.name.setMaximumWidth(_NAME_CHARS * self.fontMetrics().averageCharWidth())
        self.value.setPlaceholderText(self.tr("value"))
        self.value.setAccessibleName(self.tr("Value of the variable"))
        self.secret.setToolTip(plain_tip(self.tr("Hide what is typed")))
        self.remove.setAccessibleName(self.tr("Remove the variable"))
        self.remove.setToolTip(plain_tip(self.tr("Remove the variable")))
        self.remove.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        wear(self.remove, "close")
        for edit in (self.name, self.value):
            edit.setMinimumHeight(EDITOR_HEIGHT)
            edit.textChanged.connect(lambda _: self.edited.emit())
        self.secret.toggled.connect(self._hide_value)
        self.remove.clicked.connect(self.removed)

    @property
    def parts(self) -> tuple[QWidget, ...]:
        return self.name, self.value, self.secret, self.remove

    @property
    def given(self) -> Any:
        """The value: as it was given while nobody has typed another one."""
        shown, value = self._before
        return value if self.value.text() == shown else self.value.text()

    def show_value(self, name: str, value: Any) -> None:
        self.name.setText(display(name, MOST_CHARS))
        if holds_mark(value):
            self.secret.setChecked(True)
            self.value.setPlaceholderText(self.tr("has to be typed again"))
            self._before = ("", value)  # the mark, so that nobody starts with nothing instead
            return
        self.value.setText(display(value if isinstance(value, str) else f"{value}", MOST_CHARS))
        self._before = (self.value.text(), value)

    def _hide_value(self, hidden: bool) -> None:
        modes = QLineEdit.EchoMode
        self.value.setEchoMode(modes.Password if hidden else modes.Normal)
