"""Banners for problems in the engine's health, with solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from engine.model.errors import BrowserMissing, EngineError, TaskNotFound
from engine.model.records import Health
from engine.text.messages import retold
from engine.text.words import count
from gui.i18n import language
from gui.style.banners import Banner, Choice

MOST_LISTED = 5


class Trouble(QObject):
    """Show the problems of the ledger; a problem closed by the user stays hidden.

    `browser_wanted` requests the setting of the browser.
    """

    browser_wanted = Signal()

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
        self._health: Health | None = None
        self._passing = self._closed = False
        banner.closed.connect(self._close)

    def show_health(self, health: Health) -> None:
        """Show the current problem, or hide a resolved one."""
        lasting = self._name_of(health)
        if lasting == self._lasting:
            return
        self._lasting, self._health, self._closed = lasting, health, False
        if lasting or not self._passing:
            self._passing = False
            self._tell_lasting()

    def show_error(self, error: EngineError) -> None:
        """Show an error in the banner."""
        self._tell_passing(language.title(error), language.told(error))

    def show_missing(self, error: TaskNotFound) -> None:
        """Report a missing task of a link or another start, with places to look."""
        words = self.tr("It was removed, or it stands in another ledger: open that one’s folder.")
        choices = (Choice(self.tr("Open another folder…"), self._open_folder),)
        said = f"{language.sentence(error)} {words}"
        self._tell_passing(language.title(error), said, choices)

    def show_refusals(self, errors: Sequence[EngineError]) -> None:
        """Report several tasks that could not be cancelled."""
        if len(errors) == 1:
            self.show_error(errors[0])
            return
        title = self.tr("{0} tasks could not be cancelled").format(count(len(errors)))
        lines = [language.told(error) for error in errors[:MOST_LISTED]]
        if more := len(errors) - len(lines):
            lines.append(self.tr("…and {0} more.").format(count(more)))
        self._tell_passing(title, "\n".join(lines))

    def _tell_passing(self, title: str, words: str, choices: tuple[Choice, ...] = ()) -> None:
        self._passing = True
        self._banner.tell(title, words, choices, tone_name="bad")

    def _close(self) -> None:
        """Hide the problem, and return to a lasting one below a passing error."""
        self._closed = self._closed or not self._passing
        self._passing = False
        self._tell_lasting()

    def _tell_lasting(self) -> None:
        health = self._health
        if not self._lasting or self._closed or health is None:
            self._banner.setVisible(False)
        elif self._lasting == "read-only":
            self._tell_read_only(health)
        elif self._lasting.startswith("warning"):
            self._tell_unwritten(health)
        elif self._lasting == "silent":
            words = self.tr(
                "Its drive or network may be away. The list stays as it was last read, and is live "
                "again as soon as the folder answers."
            )
            self._banner.tell(self.tr("The ledger folder does not answer"), words)
        elif self._lasting.startswith("deaf"):
            words = self.tr("The list is looked at often instead, so it may be up to 2 s behind.")
            self._banner.tell(
                self.tr("Changes are not heard"), f"{retold(health.watcher_reason)} {words}"
            )
        else:
            self._tell_browser(health)

    @staticmethod
    def _name_of(health: Health) -> str:
        if health.watcher == "silent":
            return "silent"
        if health.read_only:
            return "read-only"
        if health.warnings:
            return f"warning {health.warnings[0]}"
        if health.browser in ("missing", "failed"):
            return health.browser
        return f"deaf {health.deaf}" if health.deaf else ""

    def _tell_unwritten(self, health: Health) -> None:
        words = self.tr(
            "Make room, or mend the folder. What is finished is kept; a task that could not go on "
            "ends as failed as soon as that can be written."
        )
        if health.away:
            waits = self.tr(
                "Running tasks take no new pages and wait for it. What is finished is kept."
            )
            self._banner.tell(self.tr("The ledger folder is away"), waits)
            return
        said = f"{retold(health.warnings[0]).rstrip('.')}. {words}"
        self._banner.tell(self.tr("The ledger cannot be written now"), said)

    def _tell_read_only(self, health: Health) -> None:
        words = self.tr("{0} Tasks can be watched; nothing new is started.")
        choices = (Choice(self.tr("Open another folder…"), self._open_folder),)
        said = words.format(retold(health.read_only).rstrip(".") + ".")
        title = self.tr("This ledger is read-only")
        if health.no_room:
            title = self.tr("The ledger cannot be written now")
        self._banner.tell(title, said, choices)

    def _tell_browser(self, health: Health) -> None:
        missing = health.browser == "missing"
        title = self.tr("No browser was found") if missing else self.tr("The browser fails")
        advice = language.advice_of(BrowserMissing) if missing else ""
        words = f"{retold(health.browser_reason)} {advice}".strip()
        again = Choice(self.tr("Look again"), self._look_again)
        choose = Choice(self.tr("Choose a browser…"), self.browser_wanted.emit)
        self._banner.tell(title, words, (again, choose))
