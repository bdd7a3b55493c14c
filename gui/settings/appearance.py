"""Theme, text size and row height from the preferences, applied immediately."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from gui.context.window_context import WindowContext
from gui.style.fonts import choose_size
from gui.style.theme import DISTINCT, Theme, apply_theme

THEME, LETTERS, DENSITY = "appearance.theme", "appearance.letters", "appearance.density"
DENSITIES: Final = {"compact": -5, "normal": 0, "roomy": 8}  # Pixels added to the row height


def attach(ctx: WindowContext) -> Appearance:
    """Apply the appearance preferences now and after each change."""
    return Appearance(ctx)


class Appearance(QObject):
    """Apply the appearance preferences, which the theme menu changes too."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._preferences = ctx, ctx.preferences
        if ctx.memory.text("theme"):  # The theme was saved by an older version or another window
            self._preferences.set(THEME, ctx.memory.theme.value)
        else:
            self._show_theme()
        for theme, act in ctx.actions.themes.items():
            act.triggered.connect(lambda _=False, theme=theme: self._choose(theme))
        self._preferences.changed.connect(self._apply)
        for key in (DISTINCT, LETTERS, DENSITY):
            self._apply(key)

    def _choose(self, theme: Theme) -> None:
        self._preferences.set(THEME, theme.value)

    def _apply(self, key: str) -> None:
        if key == THEME:
            self._show_theme()
        elif key == DISTINCT:
            self._show_colours()
        elif key == LETTERS:
            self._size_letters()
        if key in (LETTERS, DENSITY):
            QTimer.singleShot(0, self, self._size_rows)  # After the table has applied the new font

    def _show_theme(self) -> None:
        try:
            theme = Theme(self._preferences.get(THEME, str))
        except ValueError:
            return  # The value comes from another version
        self._ctx.actions.themes[theme].setChecked(True)
        if self._ctx.memory.theme is not theme:
            self._ctx.memory.theme = theme
            app = QApplication.instance()
            assert isinstance(app, QApplication)
            apply_theme(app, theme)

    def _show_colours(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        wanted = self._preferences.get(DISTINCT, bool)
        if wanted != bool(app.property(DISTINCT)):
            app.setProperty(DISTINCT, wanted)
            apply_theme(app, self._ctx.memory.theme)

    def _size_letters(self) -> None:
        choose_size(self._preferences.get(LETTERS, int))

    def _size_rows(self) -> None:
        self._ctx.table.space_rows(DENSITIES.get(self._preferences.get(DENSITY, str), 0))
