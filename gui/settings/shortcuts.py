"""Keyboard shortcuts of all actions: defaults and user settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence

from gui.context.window_context import WindowContext

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
