"""Banner for problems of the ledger, of the browser and of requests, with their solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal

from engine.browser.chromium.locate import Found
from engine.model.errors import EngineError, InvalidArguments, TaskNotFound
from engine.model.records import Health
from engine.text.messages import retold
from engine.text.words import count
from gui.i18n import language
from gui.style.banners import Banner, Choice

MOST_LISTED = 5
MOST_OFFERED = 2  # Browsers with a button in the banner


class Trouble(QObject):
    """Show the problems of the ledger; a problem closed by the user stays hidden.

    A closed message about a missing browser does not return in this session. `download_wanted`,
    `browser_wanted` (choose a program) and `use_wanted` (a path) request another browser.
    `schedules_wanted` requests their list.
    """

    download_wanted = Signal()
    browser_wanted = Signal()
    use_wanted = Signal(str)
    schedules_wanted = Signal()

    def __init__(
        self, banner: Banner, open_folder: Callable[[], object], look_again: Callable[[], object]
    ) -> None:
        super().__init__(banner)
        self._banner = banner
        self._open_folder, self._look_again = open_folder, look_again
        self._lasting = ""
        self._health: Health | None = None
        self._passing = self._closed = self._missing = self._unstartable = False
        self._installed: Sequence[Found] = ()
        self._downloading = self._browser_closed = False
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
        self._tell_passing(language.title(error), language.told(error))
        self._unstartable = isinstance(error, InvalidArguments) and language.is_about_content(error)

    def hide_unstartable(self) -> None:
        """Hide the report of content with nothing to start, after one that can be started."""
        if self._unstartable and self._passing:
            self._passing = False
            self._tell_lasting()

    def offer_browsers(self, installed: Sequence[Found]) -> None:
        """Offer these browsers where none is found."""
        self._installed = installed
        if self._lasting == "missing" and not self._passing:
            self._tell_lasting()

    def begin_download(self) -> None:
        """Hide the message about a browser while one is downloaded."""
        self._downloading, self._passing = True, False
        self._tell_lasting()

    def end_download(self, error: EngineError | None) -> None:
        """Show the error of a download, or return to the lasting problem."""
        self._downloading = False
        if error is None:
            self._tell_lasting()
        else:
            self.show_browser_error(error)

    def show_browser_error(self, error: EngineError) -> None:
        """Show why there is no browser, with the ways to one."""
        self._tell_passing(language.title(error), language.told(error), self._ways_to_browser())

    def show_missing(self, error: TaskNotFound) -> None:
        """Report a missing task of a link or another start, with places to look."""
        words = self.tr("It was removed, or it stands in another ledger: open that one’s folder.")
        choices = (Choice(self.tr("Open another folder…"), self._open_folder),)
        said = f"{language.sentence(error)} {words}"
        self._tell_passing(language.title(error), said, choices)
        self._missing = True

    def hide_missing(self) -> None:
        """Hide the report of `show_missing`, because another task is shown or started."""
        if self._missing and self._passing:
            self._passing = False
            self._tell_lasting()

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
        self._passing, self._missing, self._unstartable = True, False, False
        self._banner.tell(title, words, choices, tone_name="bad")

    def _close(self) -> None:
        """Hide the problem, and return to a lasting one below a passing error."""
        if not self._passing:
            self._closed = True
            self._browser_closed = self._browser_closed or self._lasting == "missing"
        self._passing = False
        self._tell_lasting()

    def _tell_lasting(self) -> None:
        health = self._health
        is_hidden = self._lasting == "missing" and (self._browser_closed or self._downloading)
        if not self._lasting or self._closed or is_hidden or health is None:
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
        elif self._lasting.startswith("schedules"):
            self._tell_schedules(health.stuck_schedules)
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
        if health.deaf:
            return f"deaf {health.deaf}"
        return f"schedules {health.stuck_schedules}" if health.stuck_schedules else ""

    def _tell_schedules(self, names: tuple[str, ...]) -> None:
        """Report runs that did not start: nobody looks at the list of schedules for that."""
        lines = [*names[:MOST_LISTED]]
        if more := len(names) - len(lines):
            lines.append(self.tr("…and {0} more.").format(count(more)))
        title = self.tr("A scheduled run cannot start")
        after = self.tr("The list of schedules has the reason. The run starts once it can.")
        if len(names) > 1:
            title = self.tr("{0} scheduled runs cannot start").format(count(len(names)))
            after = self.tr("The list of schedules has the reasons. The runs start once they can.")
        lines.append(after)
        choices = (Choice(self.tr("Schedules…"), self.schedules_wanted.emit),)
        self._banner.tell(title, "\n".join(lines), choices)

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
        words = retold(health.browser_reason)
        again = Choice(self.tr("Look again"), self._look_again)
        ways = self._ways_to_browser()
        self._banner.tell(title, words, (*ways, again) if missing else (again, *ways[-1:]))

    def _ways_to_browser(self) -> tuple[Choice, ...]:
        """Return the buttons that lead to another browser."""

        def use(found: Found) -> Choice:
            act = partial(self.use_wanted.emit, found.path)
            return Choice(self.tr("Use {0}").format(found.name), act)

        return (
            Choice(self.tr("Download Chromium…"), self.download_wanted.emit),
            *(use(found) for found in self._installed[:MOST_OFFERED]),
            Choice(self.tr("Choose a browser…"), self.browser_wanted.emit),
        )
