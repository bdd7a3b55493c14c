"""High contrast on request of the desktop or the user, applied immediately."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from gui.context.window_context import WindowContext
from gui.style.theme import MORE_CONTRAST, apply_theme


class Contrast(QObject):
    """Apply the theme again whenever the contrast setting changes."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self._app = app
        # Keep a reference, because Qt frees the object otherwise.
        self._hints = app.styleHints().accessibility()
        self._hints.contrastPreferenceChanged.connect(self._dress)
        ctx.preferences.changed.connect(self._follow_preference)
        self._follow_preference(MORE_CONTRAST)

    def _follow_preference(self, key: str) -> None:
        if key != MORE_CONTRAST:
            return
        wanted = self._ctx.preferences.get(key, str) == "more"
        if wanted != bool(self._app.property(MORE_CONTRAST)):
            self._app.setProperty(MORE_CONTRAST, wanted)
            self._dress()

    def _dress(self) -> None:
        apply_theme(self._app, self._ctx.memory.theme)


def attach(ctx: WindowContext) -> Contrast:
    """Follow the contrast settings for the lifetime of the window."""
    return Contrast(ctx)
