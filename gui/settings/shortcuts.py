"""The keys of all actions: what they are at first, and what a person chose instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction, QKeySequence

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

CHOSEN: Final = "shortcuts.keys"
_PORTABLE = QKeySequence.SequenceFormat.PortableText
_LETTERS: Final = 1  # a key alone is one sign; F5 and Ins are names


def attach(window: MainWindow) -> Shortcuts:
    """Give the actions the keys that were chosen, once every part has added its own."""
    return Shortcuts(window)


class Shortcuts(QObject):
    """`changed` tells that some action has other keys. Keys are kept as Qt spells them anywhere."""

    changed = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._acts = window.acts
        self._preferences = window.desk.preferences
        self._first: dict[str, list[str]] = {}
        self._touched: frozenset[str] = frozenset()
        self._preferences.changed.connect(self._hear)
        QTimer.singleShot(0, self, self.apply)

    def apply(self) -> None:
        """Let every action have its own keys, or those that were chosen for it."""
        for key in self._acts:
            self._first.setdefault(key, _spelled(self._acts[key]))
        chosen = self._preferences.get(CHOSEN, dict)
        # Of the others, parts of the window may move keys about as they need.
        touched, self._touched = self._touched | chosen.keys(), frozenset(chosen)
        for key in touched & self._first.keys():
            first = self._first[key]
            wanted = chosen.get(key, first)
            wanted = wanted if _are_keys(wanted) else first
            if _spelled(self._acts[key]) != wanted:
                self._acts.set_keys(key, wanted)
        self.changed.emit()

    def keys(self, key: str) -> list[str]:
        """The keys of one action now."""
        return _spelled(self._acts[key])

    def is_changed(self, key: str) -> bool:
        return key in self._preferences.get(CHOSEN, dict)

    def owner(self, keys: str, besides: str) -> str:
        """The other action that these keys belong to; empty when they are free."""
        wanted = QKeySequence(keys)
        others = (key for key in self._acts if key != besides)
        return next((key for key in others if wanted in self._acts[key].shortcuts()), "")

    @staticmethod
    def would_be_typed(keys: str) -> bool:
        """A letter alone never comes through where somebody types."""
        return len(keys) == _LETTERS or keys in ("Space", "Backspace", "Return", "Enter", "Tab")

    def choose(self, key: str, keys: Sequence[str]) -> None:
        """Give one action these keys, for good."""
        chosen = dict(self._preferences.get(CHOSEN, dict))
        chosen[key] = list(keys)
        if chosen[key] == self._first.get(key):
            del chosen[key]
        self._preferences.set(CHOSEN, chosen)

    def restore(self, key: str) -> None:
        """Give one action the keys back that it had at first."""
        self.choose(key, self._first.get(key, []))

    def _hear(self, changed: str) -> None:
        if changed == CHOSEN:
            self.apply()


def _spelled(action: QAction) -> list[str]:
    return [one.toString(_PORTABLE) for one in action.shortcuts()]


def _are_keys(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in given)


def shown(keys: Sequence[str]) -> str:
    """Keys as this system writes them."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(one).toString(native) for one in keys)


def plain(text: str) -> str:
    """An action's words without the sign for its letter and the dots of a dialog."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
