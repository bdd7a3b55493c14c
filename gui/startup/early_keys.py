"""Shortcuts pressed before the window was ready, run once it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence

from engine.model.records import Health

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

STARTS: Final = ("new", "paste")  # Actions that wait for the engine


def attach(window: MainWindow) -> EarlyKeys:
    """Run early shortcuts as soon as their actions are enabled."""
    return EarlyKeys(window)


class EarlyKeys(QObject):
    """Run each early shortcut once; disabled actions are dropped."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        # At the first health signal the bridge runs, close requests are connected, and user
        # shortcuts apply.
        window.bridge.health.connect(self._hear)
        window.bridge.unusable.connect(self._end)

    def _hear(self, health: Health) -> None:
        pressed, acts = self._window.pressed_early, self._window.acts
        waiting = [acts[key] for key in STARTS]
        if pressed is None or not self._window.furnished:
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
        wanted, acts = QKeySequence(keys), self._window.acts
        found = (acts[key] for key in acts if wanted in acts[key].shortcuts())
        whole = Qt.ShortcutContext.WindowShortcut
        return next((one for one in found if one.shortcutContext() == whole), None)

    def _end(self, *_: object) -> None:
        self._window.forget_early_keys()
        self._window.bridge.health.disconnect(self._hear)
        self._window.bridge.unusable.disconnect(self._end)
