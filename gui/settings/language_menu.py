"""Language menu, and the offer to reopen the window in the chosen language."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QActionGroup

from gui.context.window_context import WindowContext
from gui.i18n.language import NAMES, chosen, current_language
from gui.style.banners import Choice

LANGUAGE: Final = "general.language"


def attach(ctx: WindowContext) -> LanguageMenu:
    """Add the language menu."""
    return LanguageMenu(ctx)


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
            words = self.tr("The window speaks {0} when it is opened again.")
            bar.tell(self.tr("Language"), words.format(NAMES.get(wanted, wanted)), (again,))
        elif bar.title == self.tr("Language"):
            bar.hide()
