"""Form of a command task: name, command table, the edited command, variables and browser."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import Problem
from engine.service.forms import COMMANDS, Placeholder, inputs, placeholders_in
from engine.service.rerun import holds_mark
from engine.text.words import count
from gui.start.command_fields import INTENTION, NUMBER, TOOL, CommandFields, CommandRows
from gui.start.field import EDITOR_HEIGHT, Field, Fold, grid_of
from gui.start.kind_form import FormWords, Sections, field_of_line, says_something
from gui.style.editors import NameLine, Patterns, Rows
from gui.style.icons import wear
from gui.style.theme import MOST_CHARS, plain_label, plain_tip

# Variables of a command task as lines with name, value and a secret switch. No value is saved,
# hidden or not: a preset keeps the names only.

PATH: Final = "variables"
MOST: Final = 200  # A task with more variables is edited as JSON
_NAME_CHARS: Final = 24
_LABEL_CHARS: Final = 40


class VariableTable(QWidget):
    """Table of variables; `edited` reports changed names or values."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: list[VariableLine] = []
        self._rest: dict[str, Any] = {}
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setColumnStretch(2, 1)
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
        """The variables as the request expects them, without unnamed and unfilled lines."""
        lines = (line for line in self.lines if not line.is_offered)
        found = {line.name.text().strip(): line.given for line in lines}
        found.pop("", None)
        return {**found, **self._rest}

    @property
    def first_empty(self) -> NameLine | None:
        """The value to be typed next, if any is missing."""
        return next((line.value for line in self.lines if not line.value.text()), None)

    def fill(self, values: Mapping[str, Any], needed: Sequence[Placeholder] = ()) -> None:
        """Show these variables, and empty lines for the others that are `needed`.

        Redacted values must be typed again.
        """
        for line in tuple(self.lines):
            self._drop(line)
        known = {one.name: one for one in needed}
        named = list(values.items())
        for name, value in named[:MOST]:
            self.add().show_value(str(name), value, known.get(str(name)))
        self._rest = dict(named[MOST:])
        self.offer(needed)

    def offer(self, needed: Sequence[Placeholder]) -> None:
        """Show an empty line for each needed variable that has none, and no other empty ones."""
        names = {one.name for one in needed}
        for line in tuple(self.lines):
            if line.is_offered and line.name.text().strip() not in names:
                self._drop(line)
        there = {line.name.text().strip() for line in self.lines} | {*map(str, self._rest)}
        missing = [one for one in needed if one.name not in there]
        for one in missing[: max(0, MOST - len(self.lines))]:
            self.add().offer(one)

    def add(self) -> VariableLine:
        line = VariableLine(self)
        self.lines.append(line)
        row = self._grid.rowCount()
        for place, part in enumerate(line.parts):
            self._grid.addWidget(part, row, place)
        line.edited.connect(self._tell)
        line.removed.connect(lambda: self._remove(line))
        return line

    def show_problems(self, problems: Iterable[Problem]) -> None:
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
    """Widgets of one line, placed in the grid of the table."""

    edited = Signal()
    removed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()  # Only its parts are visible
        self._before: tuple[str, Any] = ("", "")
        self.is_offered = False  # True until the value that the task needs is typed
        self.name, self.value = NameLine(parent), NameLine(parent)
        self.label = plain_label("", parent, tone="muted")
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
            edit.textChanged.connect(self._tell)
        self.secret.toggled.connect(self._hide_value)
        self.remove.clicked.connect(self.removed)

    @property
    def parts(self) -> tuple[QWidget, ...]:
        return self.name, self.label, self.value, self.secret, self.remove

    @property
    def given(self) -> Any:
        """The value, unchanged until the user edits it."""
        shown, value = self._before
        return value if self.value.text() == shown else self.value.text()

    @property
    def lacks_value(self) -> bool:
        """True while a value that was not kept, or never given, has to be typed."""
        return self.is_offered or (holds_mark(self.given) and not self.value.text())

    def offer(self, needed: Placeholder) -> None:
        """Show a variable that the task needs and that has no value yet."""
        self.name.setText(display(needed.name, MOST_CHARS))
        self._describe(needed)
        self.is_offered = True

    def show_value(self, name: str, value: Any, needed: Placeholder | None = None) -> None:
        self.name.setText(display(name, MOST_CHARS))
        if needed is not None:
            self._describe(needed)
        if holds_mark(value):
            # Without a recorded field the mark alone tells nothing: the value may be a secret.
            self.secret.setChecked(needed is None or needed.secret or not needed.label)
            self.value.setPlaceholderText(self.tr("has to be typed again"))
            # Keep the redaction mark, so that the task cannot start with an empty value.
            self._before = ("", value)
            return
        self.value.setText(display(value if isinstance(value, str) else f"{value}", MOST_CHARS))
        self._before = (self.value.text(), value)

    def _describe(self, needed: Placeholder) -> None:
        """Show the label of the variable's field, and hide a secret value."""
        label = display(needed.label, _LABEL_CHARS)
        self.label.show_text(label)
        self.value.setAccessibleName(
            self.tr("Value of the variable {0}").format(label or display(needed.name, _LABEL_CHARS))
        )
        self.secret.setChecked(needed.secret)

    def _tell(self) -> None:
        self.is_offered = False
        self.edited.emit()

    def _hide_value(self, hidden: bool) -> None:
        modes = QLineEdit.EchoMode
        self.value.setEchoMode(modes.Password if hidden else modes.Normal)


FIRST: Final = {
    "tool_name": "browser_navigate",
    "intention": "",
    "args": {"action": "goto", "url": ""},
}
TABLE_HEIGHT: Final = 170
_PLACE: Final = re.compile(r"commands\[(\d+)\](?:\.(.*))?", re.DOTALL)
_WORDS: Final = ("task_name", "task_intention")
REDACT: Final = "redact_content"


class CommandForm(QWidget):
    """Form that keeps everything it cannot edit."""

    changed = Signal()
    left = Signal(str)
    kind = COMMANDS
    others = ()

    def __init__(self, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._given: dict[str, Any] = {}
        self._problems: tuple[Problem, ...] = ()
        self._fields = {
            "task_name": Field("task_name", self.tr("Task"), QLineEdit()),
            "task_intention": Field("task_intention", self.tr("Objective"), QLineEdit()),
            REDACT: self._make_redact(),
        }
        facts = inputs(COMMANDS)
        lines = words.lines(COMMANDS)
        self._browser = {line.key: field_of_line(line, facts[line.key], words) for line in lines}
        self._fields |= self._browser
        self._sections = Sections(words, lines, self._browser, self)
        self.rows = CommandRows(self)
        self.table = self._make_table()
        self._row_buttons: list[QPushButton] = []
        self.one = CommandFields(self)
        self.variables = VariableTable(self)
        self._fold = Fold(self.tr("Variables"), self)
        self._fold.column.addWidget(self.variables)
        self.under_first = QVBoxLayout()
        self._lay_out()
        self._connect()
        self._show_one()

    @property
    def is_unfolded(self) -> bool:
        return self._sections.is_unfolded

    @property
    def needed(self) -> QWidget:
        """The widget for the first input: the name, or the first value that is missing."""
        return self.variables.first_empty or self._fields["task_name"].editor

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(grid_of(*(self._fields[key] for key in _WORDS)))
        column.addLayout(self.under_first)
        column.addWidget(self._fold)
        column.addWidget(self.table)
        column.addLayout(self._make_buttons())
        column.addWidget(self.one)
        column.addLayout(grid_of(self._fields[REDACT], columns=1))
        column.addLayout(self._sections)

    def _make_redact(self) -> Field:
        hint = self.tr("Private keys, signed tokens and keys of well-known services.")
        box = QCheckBox(self.tr("Redact keys in page content"))
        field = Field(REDACT, "", box, hint)
        field.value = True
        box.setAccessibleName(box.text())
        return field

    def _connect(self) -> None:
        for field in self._fields.values():
            field.changed.connect(self.changed)
            field.left.connect(lambda key=field.key: self.left.emit(key))
        self.one.edited.connect(self._write)
        self.variables.edited.connect(self.changed)

    def __getitem__(self, key: str) -> Field:
        return self._fields[key]

    def __contains__(self, key: object) -> bool:
        return key in self._fields

    @property
    def args(self) -> dict[str, Any]:
        """The document of the task."""
        words = {key: self._fields[key].value for key in _WORDS}
        kept = {key: value for key, value in words.items() if value or key in self._given}
        redact = self._fields[REDACT].value
        if redact is not True or REDACT in self._given:
            kept[REDACT] = redact
        values = self.variables.values
        known = {PATH: values} if values or self._given.get(PATH) == {} else {}
        given = self._given.items()
        rest = {
            key: value
            for key, value in given
            if key not in self._browser and (key != PATH or self._is_odd)
        }
        browser = self._browser.items()
        kept |= {key: field.value for key, field in browser if says_something(field)}
        return {**rest, **kept, **known, "commands": list(self.rows.commands)}

    def missing_value(self, problems: Iterable[Problem]) -> str:
        """Return the first variable that lacks its value; "" if none does.

        Without variables, braces are plain text, unless one of `problems` asks for a variable.
        """
        asked = any(one.code == "unknown_variable" for one in problems)
        if PATH not in self.args and not asked:
            return ""
        lacking = (line for line in self.variables.lines if line.lacks_value)
        return next((line.label.text() or line.name.text() for line in lacking), "")

    @property
    def _is_odd(self) -> bool:
        """True for given variables that are no mapping, which are kept unchanged."""
        return not isinstance(self._given.get(PATH, {}), Mapping)

    def fill(self, args: Mapping[str, Any], *, whole: bool = False) -> None:
        """Show the document of a task."""
        self._given = dict(args) if whole or "commands" in args else {}
        for key in _WORDS:
            self._fields[key].hold(args.get(key) or "")
        self._fields[REDACT].hold(args.get(REDACT, True))
        for key, field in self._browser.items():
            field.value = [] if isinstance(field.editor, Patterns) else ""
            if key in self._given:
                field.hold(self._given[key])
        commands = args.get("commands")
        self.rows.show(commands if isinstance(commands, list | tuple) else ())
        values = self._given.get(PATH)
        needed = [] if self._is_odd else placeholders_in({**self._given, "commands": commands})
        self.variables.fill(values if isinstance(values, Mapping) else {}, needed)
        if self.variables.lines:
            self._fold.unfold()
        self._select(0)
        self.changed.emit()

    def problem_fields(self, problems: Iterable[Problem]) -> list[Problem]:
        """Show each problem in its row and at its field; return those without a field."""
        self._problems = tuple(problems)
        by_row: dict[int, list[str]] = {}
        rest: list[Problem] = []
        ours = [one for one in self._problems if one.path.startswith(PATH)]
        self.variables.show_problems(ours)
        if ours:
            self._fold.unfold()
        for problem in self._problems:
            found = _PLACE.fullmatch(problem.path)
            if found:
                by_row.setdefault(int(found[1]), []).append(f"{found[2] or ''} {problem.message}")
            elif problem.path not in self._fields and problem not in ours:
                rest.append(problem)
        for key, field in self._fields.items():
            said = [one.message for one in self._problems if one.path == key]
            field.show_mistake("; ".join(said))
            if said:
                self._sections.reveal(field)
        self.rows.show_mistakes({at: "; ".join(said) for at, said in by_row.items()})
        self._show_problems_of_one()
        return rest

    def field_of(self, path: str) -> QWidget | None:
        """Return the widget for a problem path: a field, the command table or the variables."""
        found = _PLACE.fullmatch(path)
        if found and int(found[1]) == self.current:
            return self.one.field_of(found[2] or "")
        if path.startswith("commands"):
            return self.table
        return self.variables if path.startswith(PATH) else self._fields.get(path)

    def label_of(self, path: str) -> str:
        """Return the name of what a problem path leads to: of a command, with its number."""
        found = _PLACE.fullmatch(path)
        if not found:
            field = self._fields.get(path)
            return field.label if field is not None else ""
        at = int(found[1])
        number = self.tr("Command {0}").format(count(at + 1))
        command = self.rows.commands[at] if at < len(self.rows.commands) else None
        name = self.one.name_of(command, found[2] or "")
        return f"{number}, {name}" if name else number

    def reveal(self, path: str) -> QWidget | None:
        """Return the same widget, expanded and with its command selected."""
        found = _PLACE.fullmatch(path)
        if found:
            self._select(int(found[1]))
        if path.startswith(PATH):
            self._fold.unfold()
        if path in self._browser:
            self._sections.reveal(self._browser[path])
        return self.field_of(path)

    @property
    def current(self) -> int:
        """The edited row, or -1."""
        index = self.table.currentIndex()
        return index.row() if index.isValid() else -1

    def add(self) -> None:
        """Insert a command after the edited one."""
        at = self.current + 1
        self.rows.insert(at, FIRST)
        self._select(at)
        self.one.intention.editor.setFocus()
        self.changed.emit()

    def duplicate(self) -> None:
        at = self.current
        if at >= 0 and isinstance(self.rows.commands[at], Mapping):
            self.rows.insert(at + 1, self.rows.commands[at])
            self._select(at + 1)
            self.changed.emit()

    def remove(self) -> None:
        at = self.current
        if at >= 0:
            self.rows.remove(at)
            self._offer_variables()
            self._select(min(at, self.rows.rowCount() - 1))
            self.changed.emit()

    def shift(self, by: int) -> None:
        """Move the edited command up or down."""
        at = self.current
        if at >= 0:
            self._select(self.rows.move(at, by))
            self.changed.emit()

    def _make_table(self) -> QTableView:
        table = Rows(self)
        table.setModel(self.rows)
        table.setAccessibleName(self.tr("Commands, in the order in which they run"))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.setWordWrap(False)
        header = table.horizontalHeader()
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(NUMBER, QHeaderView.ResizeMode.Fixed)
        table.setColumnWidth(NUMBER, 52)
        table.setColumnWidth(TOOL, 190)
        table.setColumnWidth(INTENTION, 150)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setMinimumHeight(TABLE_HEIGHT)
        table.selectionModel().currentRowChanged.connect(lambda *_: self._show_one())
        return table

    def _make_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        wanted = (
            (self.tr("Add command"), "new", self.add, ""),
            (self.tr("Duplicate"), "", self.duplicate, ""),
            (self.tr("Remove"), "", self.remove, "Del"),
            (self.tr("Up"), "up", lambda: self.shift(-1), "Alt+Up"),
            (self.tr("Down"), "down", lambda: self.shift(1), "Alt+Down"),
        )
        for words, sign, act, keys in wanted:
            button = QPushButton(words, self)
            if act != self.add:
                self._row_buttons.append(button)
            button.setAutoDefault(False)
            if sign:
                wear(button, sign)
            button.clicked.connect(lambda _=False, act=act: act())
            row.addWidget(button)
            if keys:
                sequence = QKeySequence(keys)
                button.setToolTip(sequence.toString(QKeySequence.SequenceFormat.NativeText))
                shortcut = QShortcut(sequence, self.table, act)
                shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        row.addStretch()
        return row

    def _select(self, at: int) -> None:
        flags = QItemSelectionModel.SelectionFlag
        index = self.rows.index(at, 0) if 0 <= at < self.rows.rowCount() else self.rows.index(-1, 0)
        self.table.selectionModel().setCurrentIndex(
            index, flags.ClearAndSelect | flags.Rows if index.isValid() else flags.Clear
        )
        self._show_one()

    def _show_one(self) -> None:
        at = self.current
        self.one.setVisible(at >= 0)
        for button in self._row_buttons:
            button.setEnabled(at >= 0)
        if at >= 0:
            self.one.show_command(self.rows.commands[at])
            self._show_problems_of_one()

    def _show_problems_of_one(self) -> None:
        mine = []
        for problem in self._problems:
            found = _PLACE.fullmatch(problem.path)
            if found and int(found[1]) == self.current:
                mine.append(Problem(found[2] or "tool_name", problem.code, problem.message))
        self.one.show_problems(mine)

    def _write(self, command: Mapping[str, Any]) -> None:
        at = self.current
        if at >= 0:
            self.rows.replace(at, command)
            self._offer_variables()
            self.changed.emit()

    def _offer_variables(self) -> None:
        """Show a line for each variable that the commands name now."""
        if not self._is_odd:
            args = {**self._given, "commands": self.rows.commands}
            self.variables.offer(placeholders_in(args))
