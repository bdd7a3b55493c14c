"""Keys that were pressed before the window could do anything: done once it can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence

from engine.model.records import Health

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

STARTS: Final = ("new", "paste")  # they wait for the engine; nothing else is worth waiting for


def attach(window: MainWindow) -> EarlyKeys:
    """Do what was asked for by key since the first paint, as soon as it can be done."""
    return EarlyKeys(window)


class EarlyKeys(QObject):
    """Each key counts once, however often it was pressed; what cannot be done is forgotten."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        # With its first word on its health the bridge is at work, whoever leaves is heard, and
        # the keys that a person has chosen hold.
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
        """The action of the whole window that these keys belong to."""
        wanted, acts = QKeySequence(keys), self._window.acts
        found = (acts[key] for key in acts if wanted in acts[key].shortcuts())
        whole = Qt.ShortcutContext.WindowShortcut
        return next((one for one in found if one.shortcutContext() == whole), None)

    def _end(self, *_: object) -> None:
        self._window.pressed_early = None
        self._window.bridge.health.disconnect(self._hear)
        self._window.bridge.unusable.disconnect(self._end)
