"""Keyboard shortcuts of all actions: defaults, user settings, and the overview (Ctrl+/)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from gui.context.actions import MENUS, Actions
from gui.context.window_context import WindowContext
from gui.style.accessibility import InOrder
from gui.style.search_field import search_field
from gui.style.widgets import arrange

CHOSEN: Final = "shortcuts.keys"
_PORTABLE = QKeySequence.SequenceFormat.PortableText
_LETTERS: Final = 1  # Length of a single letter key; names such as F5 and Ins are longer


class Shortcuts(QObject):
    """Shortcuts of all actions, saved in Qt's portable spelling; `changed` reports changes."""

    changed = Signal()

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._acts = ctx.actions
        self._preferences = ctx.preferences
        self._first: dict[str, list[str]] = {}
        self._touched: frozenset[str] = frozenset()
        self._preferences.changed.connect(self._hear)

    def apply(self) -> None:
        """Set the configured or default shortcuts, after every part has added its actions."""
        for key in self._acts:
            self._first.setdefault(key, _spelled(self._acts[key]))
        chosen = self._preferences.get(CHOSEN, dict)
        # Other actions stay untouched, because parts of the window may change their shortcuts.
        touched, self._touched = self._touched | chosen.keys(), frozenset(chosen)
        for key in touched & self._first.keys():
            first = self._first[key]
            wanted = chosen.get(key, first)
            wanted = wanted if _are_keys(wanted) else first
            if _spelled(self._acts[key]) != wanted:
                self._acts.set_keys(key, wanted)
        self.changed.emit()

    def keys(self, key: str) -> list[str]:
        """Return the current shortcuts of an action."""
        return _spelled(self._acts[key])

    def is_changed(self, key: str) -> bool:
        return key in self._preferences.get(CHOSEN, dict)

    def owner(self, keys: str, besides: str) -> str:
        """Return the other action that uses these keys, or an empty string."""
        wanted = QKeySequence(keys)
        others = (key for key in self._acts if key != besides)
        return next((key for key in others if wanted in self._acts[key].shortcuts()), "")

    @staticmethod
    def would_be_typed(keys: str) -> bool:
        """Return whether these keys are text input, which text fields consume."""
        return len(keys) == _LETTERS or keys in ("Space", "Backspace", "Return", "Enter", "Tab")

    def choose(self, key: str, keys: Sequence[str]) -> None:
        """Set and save the shortcuts of an action."""
        chosen = dict(self._preferences.get(CHOSEN, dict))
        chosen[key] = list(keys)
        if chosen[key] == self._first.get(key):
            del chosen[key]
        self._preferences.set(CHOSEN, chosen)

    def restore(self, key: str) -> None:
        """Restore the default shortcuts of an action."""
        self.choose(key, self._first.get(key, []))

    def _hear(self, changed: str) -> None:
        if changed == CHOSEN:
            self.apply()


def _spelled(action: QAction) -> list[str]:
    return [one.toString(_PORTABLE) for one in action.shortcuts()]


def _are_keys(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in given)


def shown(keys: Sequence[str]) -> str:
    """Return keys in the notation of this platform."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(one).toString(native) for one in keys)


def plain(text: str) -> str:
    """Return an action's text without mnemonic and ellipsis."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")


SIZE = QSize(560, 560)
NAME_WIDTH = 330
Line = tuple[str, str]


class ShortcutSheet(InOrder, QDialog):
    """Dialog of all shortcuts; `change_wanted` requests the settings page."""

    change_wanted = Signal()

    def __init__(self, acts: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._acts = acts
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self.resize(SIZE)
        self._field = search_field(self, self.tr("Search"), self.tr("Search the shortcuts"))
        self._list = QTreeWidget(self)
        self._list.setHeaderLabels([self.tr("Action"), self.tr("Keys")])
        self._list.setAccessibleName(self.tr("Shortcuts"))
        self._list.setUniformRowHeights(True)
        self._list.setColumnWidth(0, NAME_WIDTH)
        self._lay_out()
        for title, lines in self._groups():
            self._add(title, lines)
        self._list.expandAll()
        self._field.textChanged.connect(self._narrow)
        self._field.left.connect(self._list.setFocus)
        self._field.setFocus()

    def _lay_out(self) -> None:
        change = QPushButton(self.tr("Change…"), self)
        close = QPushButton(self.tr("Close"), self)
        for button in (change, close):
            button.setAutoDefault(False)
        change.clicked.connect(self._change)
        close.clicked.connect(self.accept)
        end = arrange(QHBoxLayout(), change, 1, close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(self._field)
        column.addWidget(self._list, 1)
        column.addLayout(end)

    def _groups(self) -> Iterator[tuple[str, list[Line]]]:
        titles, known = self._acts.titles(), set(self._acts)
        for name, keys in MENUS.items():
            lines = [self._line(key) for key in keys if key in known]
            yield plain(titles[name]), [line for line in lines if line[1]]
        placed = {key for keys in MENUS.values() for key in keys}
        rest = [self._line(key) for key in self._acts if key not in placed]
        yield self.tr("Elsewhere"), [line for line in rest if line[1]]
        yield self.tr("In the list"), self._in_the_list()
        yield self.tr("In details and results"), self._in_the_details()

    def _in_the_list(self) -> list[Line]:
        tr = self.tr
        return [
            (tr("Next and previous task"), tr("J and K")),
            (tr("Next and previous needing attention"), tr("N and Shift+N")),
            (tr("Show the details"), tr("Enter")),
            (tr("Narrow the list to the value of a cell"), tr("Alt+click")),
        ]

    def _in_the_details(self) -> list[Line]:
        tr = self.tr
        both = tr("{0} and {1}")
        walk = both.format(shown(["Alt+Left"]), shown(["Alt+Right"]))
        return [
            (tr("Next and previous match"), both.format(shown(["F3"]), shown(["Shift+F3"]))),
            (tr("Result of the next and previous task"), walk),
            (tr("Start what stands in the form"), shown(["Ctrl+Return"])),
        ]

    def _line(self, key: str) -> Line:
        keys = [one.toString() for one in self._acts[key].shortcuts()]
        return plain(self._acts[key].text()), shown(keys)

    def _add(self, title: str, lines: list[Line]) -> None:
        if not lines:
            return
        group = QTreeWidgetItem([title, ""])
        self._list.addTopLevelItem(group)
        for name, keys in lines:
            group.addChild(QTreeWidgetItem([name, keys]))

    def _narrow(self, typed: str) -> None:
        """Show the lines whose name or keys contain every typed word."""
        words = typed.casefold().split()
        for at in range(self._list.topLevelItemCount()):
            group = self._list.topLevelItem(at)
            assert group is not None
            children = [group.child(number) for number in range(group.childCount())]
            lines = [line for line in children if line is not None]
            for line in lines:
                level = f"{line.text(0)} {line.text(1)}".casefold()
                line.setHidden(not all(word in level for word in words))
            group.setHidden(all(line.isHidden() for line in lines))

    def _change(self) -> None:
        self.accept()
        self.change_wanted.emit()
