"""Theme, contrast, text size and row height, applied immediately, and the language menu."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QActionGroup

from gui.context.window_context import WindowContext
from gui.i18n.language import NAMES, chosen, current_language
from gui.style.banners import Choice
from gui.style.theme import DISTINCT, MORE_CONTRAST, Theme, application, apply_theme, choose_size


class Contrast(QObject):
    """Apply the theme again whenever the contrast setting changes."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._app = app = application()
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


THEME, LETTERS, DENSITY = "appearance.theme", "appearance.letters", "appearance.density"
DENSITIES: Final = {"compact": -5, "normal": 0, "roomy": 8}  # Pixels added to the row height


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
            choose_size(self._preferences.get(LETTERS, int))
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
            apply_theme(application(), theme)

    def _show_colours(self) -> None:
        app = application()
        wanted = self._preferences.get(DISTINCT, bool)
        if wanted != bool(app.property(DISTINCT)):
            app.setProperty(DISTINCT, wanted)
            apply_theme(app, self._ctx.memory.theme)

    def _size_rows(self) -> None:
        self._ctx.table.space_rows(DENSITIES.get(self._preferences.get(DENSITY, str), 0))


LANGUAGE: Final = "general.language"


class LanguageMenu(QObject):
    """Save the chosen language, which applies to the next window.

    Texts on the screen keep their language, so a banner offers to reopen the window.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._preferences = ctx, ctx.preferences
        menu = ctx.actions.add_menu("language", self.tr("&Language"))
        group = QActionGroup(self)
        self._actions = {}
        for code, name in (("system", self.tr("As the &system")), *NAMES.items()):
            self._actions[code] = action = group.addAction(name)
            action.setCheckable(True)
            action.triggered.connect(lambda _=False, code=code: self._choose(code))
            menu.addAction(action)
        self._preferences.changed.connect(self._hear)
        self._show()

    def open_again(self) -> None:
        """Reopen the window on the same ledger."""
        self._ctx.open_folder(Path(self._ctx.bridge.look_at_health().root))

    def _choose(self, code: str) -> None:
        self._preferences.set(LANGUAGE, code)

    def _hear(self, key: str) -> None:
        if key == LANGUAGE:
            self._show()
            self._offer()

    def _show(self) -> None:
        action = self._actions.get(self._preferences.get(LANGUAGE, str))
        if action is not None:
            action.setChecked(True)

    def _offer(self) -> None:
        """Offer to reopen the window, or withdraw the offer for the current language."""
        wanted, bar = chosen(self._preferences.get(LANGUAGE, str)), self._ctx.news_bar
        if wanted != current_language():
            again = Choice(self.tr("Open it again now"), self.open_again)
            words = self.tr("Restart the program to switch to {0}.")
            bar.tell(self.tr("Language"), words.format(NAMES.get(wanted, wanted)), (again,))
        elif bar.title == self.tr("Language"):
            bar.hide()
