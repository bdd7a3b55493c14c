"""Which banner the engine's health calls for: what is wrong, and the way out of it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.errors import BrowserMissing, EngineError
from engine.records import Health
from gui.states import Banner, Choice


class Trouble(QObject):
    """Owns the banner's words. A trouble that was closed by hand is not told again."""

    def __init__(
        self,
        banner: Banner,
        open_folder: Callable[[], object],
        look_again: Callable[[], object],
    ) -> None:
        super().__init__(banner)
        self._banner = banner
        self._open_folder, self._look_again = open_folder, look_again
        self._lasting = ""

    def show_health(self, health: Health) -> None:
        """Show what keeps the window from working as it should; hide what is over."""
        lasting = self._name_of(health)
        if lasting == self._lasting:
            return
        self._lasting = lasting
        if not lasting:
            self._banner.setVisible(False)
        elif lasting == "read-only":
            self._tell_read_only(health)
        elif lasting.startswith("warning"):
            self._banner.tell(self.tr("The ledger cannot be written now"), health.warnings[0])
        else:
            self._tell_browser(health)

    def show_error(self, error: EngineError) -> None:
        """One step did not work: a banner, never a box in the way."""
        self._lasting = ""
        words = f"{error} {error.advice}".strip()
        self._banner.tell(error.title, words, tone_name="bad")

    @staticmethod
    def _name_of(health: Health) -> str:
        if health.read_only:
            return "read-only"
        if health.warnings:
            return f"warning {health.warnings[0]}"
        return health.browser if health.browser in ("missing", "failed") else ""

    def _tell_read_only(self, health: Health) -> None:
        words = self.tr("{0} Tasks can be watched; nothing new is started.")
        choices = (Choice(self.tr("Open another folder…"), self._open_folder),)
        self._banner.tell(
            self.tr("This ledger is read-only"), words.format(health.read_only), choices
        )

    def _tell_browser(self, health: Health) -> None:
        missing = health.browser == "missing"
        title = self.tr("No browser was found") if missing else self.tr("The browser fails")
        advice = BrowserMissing.advice_text if missing else ""
        words = f"{health.browser_reason} {advice}".strip()
        self._banner.tell(title, words, (Choice(self.tr("Look again"), self._look_again),))
