"""Undo action (Ctrl+Z) for everything that the banners offer to undo.

A focused text field keeps the shortcut, because Qt sends it there first.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence

from gui.context.window_context import WindowContext


def attach(ctx: WindowContext) -> UndoAction:
    """Add the `undo` action and connect all undo offers."""
    return UndoAction(ctx)


class UndoAction(QObject):
    """Action that is enabled while an undo is offered, named after the latest."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._name = self.tr("Und&o")
        self._act = ctx.actions.add("undo", self._name, [QKeySequence.StandardKey.Undo])
        self._act.triggered.connect(self._undo)
        self._offers: dict[str, tuple[str, Callable[[], None]]] = {}
        ctx.services.wishes.undo.connect(self._hear)
        self._show()

    def _hear(self, what: str, words: str, undo: Callable[[], None]) -> None:
        """Add an undo offer, or remove it with empty `words`."""
        self._offers.pop(what, None)
        if words:
            self._offers[what] = (words, undo)  # Moved to the end, so that it is undone first
        self._show()

    def _undo(self) -> None:
        if self._offers:
            _, undo = next(reversed(self._offers.values()))
            undo()

    def _show(self) -> None:
        words = [words for words, _ in self._offers.values()]
        self._act.setEnabled(bool(words))
        self._act.setText(words[-1] if words else self._name)
