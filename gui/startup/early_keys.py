"""Shortcuts pressed before the window was ready, run once it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence

from engine.model.records import Health
from gui.context.window_context import WindowContext

Pressed = Callable[[], dict[int, None] | None]

STARTS: Final = ("new", "paste")  # Actions that wait for the engine


def attach(ctx: WindowContext, pressed: Pressed, forget: Callable[[], object]) -> EarlyKeys:
    """Run early shortcuts as soon as their actions are enabled."""
    return EarlyKeys(ctx, pressed, forget)


class EarlyKeys(QObject):
    """Run each early shortcut once; disabled actions are dropped.

    `pressed` returns the keys, or None while no action can run; `forget` drops them.
    """

    def __init__(self, ctx: WindowContext, pressed: Pressed, forget: Callable[[], object]) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._pressed, self._forget = ctx, pressed, forget
        # At the first health signal the bridge runs, close requests are connected, and user
        # shortcuts apply.
        ctx.bridge.health.connect(self._hear)
        ctx.bridge.unusable.connect(self._end)

    def _hear(self, health: Health) -> None:
        pressed, acts = self._pressed(), self._ctx.actions
        waiting = [acts[key] for key in STARTS]
        if pressed is None:
            return
        for keys in list(pressed):
            action = self._action_of(keys)
            if action is not None and action.isEnabled():
                QTimer.singleShot(0, action, action.trigger)
            elif action in waiting:
                continue
            del pressed[keys]
        if health.engine == "ready" or health.read_only:
            self._end()

    def _action_of(self, keys: int) -> QAction | None:
        """Return the window action with this shortcut."""
        wanted, acts = QKeySequence(keys), self._ctx.actions
        found = (acts[key] for key in acts if wanted in acts[key].shortcuts())
        whole = Qt.ShortcutContext.WindowShortcut
        return next((one for one in found if one.shortcutContext() == whole), None)

    def _end(self, *_: object) -> None:
        self._forget()
        self._ctx.bridge.health.disconnect(self._hear)
        self._ctx.bridge.unusable.disconnect(self._end)
