"""The commands of a task as a table, and the form of one: tool, intention and arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLineEdit, QVBoxLayout, QWidget

from engine.model.display import display
from engine.model.errors import Problem
from engine.model.typed_address import complete
from engine.service.forms import Input, actions
from engine.text.words import count
from gui.start.field import Field, grid_of, number_or_none
from gui.style.editors import Patterns, Prose, SecretLine
from gui.style.tables import COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone
from gui.style.widgets import arrange

NUMBER, TOOL, INTENTION, ARGS = range(4)
CELL_CHARS: Final = 200


def tool_of(command: Any) -> tuple[str, str]:
    """Return tool and action of a command, empty where missing."""
    if not isinstance(command, Mapping):
        return "", ""
    args = command.get("args")
    action = args.get("action") if isinstance(args, Mapping) else ""
    return str(command.get("tool_name") or ""), str(action or "")


class CommandRows(QAbstractTableModel):
    """Commands in their given form; unedited parts stay unchanged."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.commands: list[Any] = []
        self._mistakes: dict[int, str] = {}

    def show(self, commands: Sequence[Any]) -> None:
        """Replace all commands."""
        self.beginResetModel()
        self.commands = list(commands)
        self._mistakes = {}
        self.endResetModel()

    def insert(self, at: int, command: Mapping[str, Any]) -> None:
        self.beginInsertRows(ROOT, at, at)
        self.commands.insert(at, dict(command))
        self.endInsertRows()

    def remove(self, at: int) -> None:
        self.beginRemoveRows(ROOT, at, at)
        del self.commands[at]
        self.endRemoveRows()

    def move(self, at: int, by: int) -> int:
        """Move a command by one row and return its new row."""
        to = at + by
        if not (0 <= at < len(self.commands) and 0 <= to < len(self.commands)):
            return at
        self.beginMoveRows(ROOT, at, at, ROOT, to + (1 if by > 0 else 0))
        self.commands.insert(to, self.commands.pop(at))
        self.endMoveRows()
        self._repaint(min(at, to), max(at, to))  # Repaint the row numbers
        return to

    def replace(self, at: int, command: Mapping[str, Any]) -> None:
        self.commands[at] = dict(command)
        self._repaint(at, at)

    def show_mistakes(self, mistakes: Mapping[int, str]) -> None:
        """Show problems by row."""
        if mistakes == self._mistakes:
            return
        self._mistakes = dict(mistakes)
        if self.commands:
            self._repaint(0, len(self.commands) - 1)

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.commands)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else 4

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if role != DISPLAY or orientation != Qt.Orientation.Horizontal:
            return None
        titles = ("#", self.tr("Tool"), self.tr("Intention"), self.tr("Arguments"))
        return titles[section]

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        row = index.row()
        mistake = self._mistakes.get(row, "")
        if role == DISPLAY:
            return self._cell(row, index.column(), mistake)
        if role == TOOL_TIP:
            return plain_tip(mistake or self._cell(row, index.column(), ""))
        if role == COLOUR and mistake and index.column() == NUMBER:
            return tone("bad", QApplication.palette())
        if role == SPOKEN:
            said = " ".join(self._cell(row, column, "") for column in (TOOL, INTENTION))
            return f"{row + 1}. {said}. {mistake}".strip()
        return None

    def _cell(self, row: int, column: int, mistake: str) -> str:
        command = self.commands[row]
        if column == NUMBER:
            return f"{row + 1} ⚠" if mistake else str(row + 1)
        if column == TOOL:
            called = " ".join(filter(None, tool_of(command)))
            return display(called.removeprefix(_PREFIX), CELL_CHARS)
        if not isinstance(command, Mapping):
            return ""
        if column == INTENTION:
            return display(str(command.get("intention") or ""), CELL_CHARS)
        args = command.get("args")
        said = args.items() if isinstance(args, Mapping) else ()
        parts = (f"{key} {_short(value)}" for key, value in said if key != "action")
        return display(", ".join(parts), CELL_CHARS)

    def _repaint(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first, 0), self.index(last, ARGS))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


_PREFIX: Final = "browser_"
ACTIONS: Final = {(tool, action): args for tool, action, args in actions()}
FLAGS: Final = ("keep_text", "append", "headed", "windows")
LONG: Final = ("script",)
SEVERAL: Final = ("files", "alternatives", "target_alternatives")
OPENING: Final = ("goto", "new_tab")  # actions that open their `url`


def _whole(typed: str) -> str:
    """Add a missing scheme, unless a variable may bring it."""
    text = typed.strip()
    return text if text.startswith("{{") else complete(text)


class CommandFields(QWidget):
    """Editor of one command; `edited` carries its new state, `rebuilt` reports new fields."""

    edited = Signal(object)
    rebuilt = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._command: dict[str, Any] = {}
        self._fields: dict[str, Field] = {}
        self._showing = False
        tools = QComboBox()
        for tool, action in ACTIONS:
            # Without the prefix that all have, so that the first letters select one.
            tools.addItem(f"{tool.removeprefix(_PREFIX)} {action}", f"{tool} {action}")
        self.tool = Field("tool_name", self.tr("Tool"), tools)
        self.intention = Field("intention", self.tr("Intention"), QLineEdit())
        self._rest = QWidget(self)
        self._column = arrange(
            QVBoxLayout(self), grid_of(self.tool, self.intention), self._rest, margins=0, spacing=10
        )
        self.tool.changed.connect(self._choose_tool)
        self.intention.changed.connect(self._write_intention)

    def __getitem__(self, key: str) -> Field:
        return self._fields[key]

    def field_of(self, path: str) -> Field:
        """Return the field of an argument; `path` starts after `commands[3].`."""
        key = path.removeprefix("args.").split("[")[0].split(".")[0]
        return self.intention if key == "intention" else self._fields.get(key, self.tool)

    def name_of(self, command: Any, path: str) -> str:
        """Return the name of an argument of any command; `path` as for `field_of`."""
        key = path.removeprefix("args.").split("[")[0].split(".")[0]
        if key == "intention":
            return self.intention.label
        if key in ACTIONS.get(tool_of(command), {}):
            return self._words(key, tool_of(command)[1])
        return self.tool.label if key in ("tool_name", "action") else ""

    def show_command(self, command: Any) -> None:
        """Show a command without emitting changes of the previous one."""
        self._showing = True
        self._command = dict(command) if isinstance(command, Mapping) else {}
        combo = self.tool.editor
        assert isinstance(combo, QComboBox)
        combo.setCurrentIndex(combo.findData(" ".join(tool_of(self._command))))
        words = self._command.get("intention")
        self.intention.value = words if isinstance(words, str) else ""
        self._build()
        self._showing = False

    def show_problems(self, problems: Iterable[Problem]) -> None:
        """Show each problem at its field; paths start after `commands[3].`."""
        found: dict[str, list[str]] = {}
        for problem in problems:
            key = problem.path.removeprefix("args.").split("[")[0].split(".")[0]
            key = "tool_name" if key == "action" else key
            found.setdefault(key, []).append(problem.message)
        known = {"tool_name": self.tool, "intention": self.intention, **self._fields}
        rest = [said for key, all_said in found.items() if key not in known for said in all_said]
        for key, field in known.items():
            said = found.get(key, []) + (rest if key == "tool_name" else [])
            field.show_mistake("; ".join(said))

    @property
    def _args(self) -> dict[str, Any]:
        args = self._command.get("args")
        return dict(args) if isinstance(args, Mapping) else {}

    def _build(self) -> None:
        """Create and fill the fields of the selected tool."""
        old, self._rest = self._rest, QWidget(self)
        self._fields = {}
        for name, facts in ACTIONS.get(tool_of(self._command), {}).items():
            self._fields[name] = self._field(name, facts)
        layout = grid_of(*self._fields.values())
        layout.setContentsMargins(0, 0, 0, 0)
        self._rest.setLayout(layout)
        self._column.replaceWidget(old, self._rest)
        old.hide()
        old.deleteLater()
        self.rebuilt.emit()

    def _field(self, name: str, facts: Input) -> Field:
        words = self._words(name, tool_of(self._command)[1])
        label = "" if name in FLAGS else words
        field = Field(name, label, self._editor(name, facts, words))
        field.editor.setAccessibleName(words)
        if name in self._args:
            field.hold(self._args[name])
        field.changed.connect(lambda: self._write(name, facts))
        if self._opens(name):
            field.left.connect(lambda: self._complete(field))
        return field

    def _opens(self, name: str) -> bool:
        """Whether an argument is an address that the command opens, not a pattern."""
        return name == "url" and tool_of(self._command)[1] in OPENING

    def _complete(self, field: Field) -> None:
        """Show a typed address with the scheme that its command has."""
        if isinstance(field.value, str) and not field.is_strange:
            whole = _whole(field.value)
            if whole != field.value:
                field.retype(whole)

    def _editor(self, name: str, facts: Input, words: str) -> QWidget:
        if name in FLAGS:
            return QCheckBox(words)
        if facts.choices:
            box = QComboBox()
            for value in facts.choices if facts.required else ("", *facts.choices):
                box.addItem(value, value)
            return box
        if facts.low is not None and facts.high is not None:
            usual = self.tr("not given")
            if facts.default is not None:
                usual = self.tr("{0} ms (as usual)").format(count(facts.default))
            return number_or_none(facts.low, facts.high, usual)
        if name in SEVERAL:
            return Patterns(2)
        if name in LONG:
            return Prose(4)
        edit = SecretLine() if facts.secret else QLineEdit()
        if facts.secret and name in ("text", "value"):
            edit.setPlaceholderText('{"secret": "env:NAME"}')
        return edit

    def _choose_tool(self) -> None:
        if self._showing or not self.tool.value:
            return
        tool, _, action = str(self.tool.value).partition(" ")
        takes = ACTIONS[tool, action]
        kept = {name: value for name, value in self._args.items() if name in takes}
        for name, facts in takes.items():
            if facts.required and facts.choices:
                kept.setdefault(name, facts.choices[0])
        args = {"action": action, **kept}
        self._command = {**self._command, "tool_name": tool, "args": args}
        self._build()
        self.edited.emit(self._command)

    def _write_intention(self) -> None:
        if not self._showing:
            self._command = {**self._command, "intention": self.intention.value}
            self.edited.emit(self._command)

    def _write(self, name: str, facts: Input) -> None:
        if self._showing:
            return
        args, value = self._args, self._fields[name].value
        if self._opens(name) and isinstance(value, str):
            value = _whole(value)
        args[name] = value
        if not facts.required and value in ("", None, False, []):
            del args[name]
        self._command = {**self._command, "args": args}
        self.edited.emit(self._command)

    def _words(self, name: str, action: str) -> str:
        types = action == "type"
        words = {
            "url": self.tr("Address")
            if action in OPENING
            else self.tr("Address (** for anything)"),
            "selector": self.tr("Element (CSS selector)"),
            "text": self.tr("Text to type") if types else self.tr("Text"),
            "key": self.tr("Key, such as Enter or Control+A"),
            "direction": self.tr("Direction"),
            "amount": self.tr("Pixels"),
            "state": self.tr("State"),
            "contains": self.tr("Text that it contains"),
            "title": self.tr("Title of the page"),
            "gone": self.tr("Element that must disappear (CSS selector)"),
            "load_state": self.tr("State of loading"),
            "label": self.tr("Label to select"),
            "index": self.tr("Place in the list, from 0"),
            "target": self.tr("Target (CSS selector)"),
            "target_alternatives": self.tr("Other selectors of the target, one per line"),
            "x": self.tr("Pixels to the right"),
            "y": self.tr("Pixels down"),
            "frame": self.tr("Frame (CSS selector of the iframe)"),
            "count": self.tr("Clicks") if action == "click" else self.tr("Number of elements"),
            "button": self.tr("Mouse button"),
            "modifiers": self.tr("Keys held, such as Control+Shift"),
            "value": self.tr("Value"),
            "script": self.tr("Script"),
            "instanceId": self.tr("Instance"),
            "alternatives": self.tr("Other selectors, one per line"),
            "append": self.tr("Append to what the field holds"),
            "keep_text": self.tr("Keep what is typed"),
            "headed": self.tr("With a visible window"),
            "windows": self.tr("Keep windows that pages open, as tabs"),
            "tab": self.tr("Tab: number from 0, title or address"),
            "files": self.tr("Files in the allowed folder, one per line"),
            "answer": self.tr("Answer to dialogs"),
            "width": self.tr("Width"),
            "height": self.tr("Height"),
            "timeout": self.tr("Time for it"),
        }
        return words.get(name, name)
