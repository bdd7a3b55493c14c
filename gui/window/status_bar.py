"""The engine's health: the status bar, and banners for problems with their solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStatusBar, QToolButton, QWidget

from engine.browser.chromium.locate import Found
from engine.model.cluster_workers import WorkerView
from engine.model.display import display, elide_middle
from engine.model.errors import EngineError, TaskNotFound
from engine.model.records import Health
from engine.text.messages import retold
from engine.text.words import count
from gui.engine_link.program_server import ServerState, ServerStatus
from gui.i18n import language
from gui.style.banners import Banner, Choice
from gui.style.icons import wear
from gui.style.theme import MOST_CHARS, TonedLabel, from_home, plain_keys, plain_label, plain_tip
from gui.style.widgets import arrange

ROOT_CHARS, ROOM_CHARS, LEAST_CHARS = 60, 30, 14  # ROOM_CHARS: beside the meters
SPACING = 8  # Pixels around each part
BROWSER_CHARS = 60


class _Sign(QWidget):
    """A coloured dot with its meaning as text, so that colour is not the only sign."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot = TonedLabel("●", "muted")
        self._words = plain_label()
        arrange(QHBoxLayout(self), self._dot, self._words, margins=0, spacing=5)

    @property
    def text(self) -> str:
        return self._words.text()

    def show_state(self, tone_name: str, words: str, hint: str = "") -> None:
        self._dot.show_tone(tone_name)
        self._words.show_text(words)
        self.setToolTip(plain_tip(hint))
        self.setAccessibleName(self._words.text())
        self.setAccessibleDescription(display(hint, MOST_CHARS))


class _Link(QToolButton):
    """Link to a folder, reachable by keyboard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_path(self, path: str, hint: str) -> None:
        self.setText(plain_keys(path))
        self.setToolTip(plain_tip(hint))
        self.setAccessibleName(display(hint, MOST_CHARS))


class _Beside(QWidget):
    """Summary of further ledgers with a link, hidden without any."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot, self.link = TonedLabel("●", "muted"), _Link(self)
        arrange(QHBoxLayout(self), self._dot, self.link, margins=0, spacing=1)
        self.hide()

    def show_state(self, tone_name: str, words: str, hint: str) -> None:
        self._dot.show_tone(tone_name)
        self.link.show_path(words, hint)
        self.link.setAccessibleName(words)
        self.link.setAccessibleDescription(display(hint, MOST_CHARS))
        self.setVisible(bool(hint))


class StatusBar(QStatusBar):
    """Status bar for one `Health` and a summary of further ledgers."""

    root_clicked = Signal()
    beside_clicked = Signal()
    programs_clicked = Signal()
    workers_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.engine, self.watcher, self.ground = _Sign(self), _Sign(self), _Sign(self)
        self.work, self.root = plain_label(parent=self), _Link(self)
        self.beside, self.programs = _Beside(self), _Link(self)
        self.workers = _Link(self)
        self._root = ""
        self.setSizeGripEnabled(False)
        self.setContentsMargins(8, 0, 8, 0)
        for number, part in enumerate((self.engine, self.work, self.watcher)):
            if number:
                self.addWidget(_rule(self))
            self.addWidget(part)
        self._meters: QWidget | None = None
        self.addPermanentWidget(self.ground)
        self.addPermanentWidget(self.workers)
        self.addPermanentWidget(self.programs)
        self.addPermanentWidget(self.beside)
        self.addPermanentWidget(self.root)
        self.ground.hide()
        for link in (self.workers, self.programs):
            link.hide()
            link.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.workers.clicked.connect(self.workers_clicked)
        self.programs.clicked.connect(self.programs_clicked)
        self.root.clicked.connect(self.root_clicked)
        self.beside.link.clicked.connect(self.beside_clicked)

    def add_meters(self, meters: QWidget) -> None:
        """Show figures after the state of the watch, while the bar has room for them."""
        self._meters = meters
        self.addWidget(meters)
        self.fit()

    def show_health(self, health: Health) -> None:
        self.engine.show_state(*self._engine(health))
        self.watcher.show_state(*self._watcher(health))
        self.ground.show_state(
            "warning", self.tr("Ledger at risk"), "\n".join(map(retold, health.concerns))
        )
        self.ground.setVisible(bool(health.concerns))
        self.work.show_text(self._work(health))
        hint = self.tr("What this window runs itself. The list also has what other programs run.")
        self.work.setToolTip(plain_tip(hint))
        self.work.setAccessibleDescription(hint)
        self._root = health.root
        self.fit()

    def show_beside(self, tone_name: str, words: str, hint: str) -> None:
        """Show the summary from `ledger_words.summed_up`; an empty `hint` hides it."""
        self.beside.show_state(tone_name, words, hint)
        self.fit()

    def show_programs(self, status: ServerStatus) -> None:
        """Show that other programs may connect, or why they cannot."""
        runs, failed = status.state is ServerState.RUNNING, status.error is not None
        if runs:
            words = self.tr("Open to programs")
            hint = self.tr("Programs on this machine may start and watch tasks at {0}.")
            hint = hint.format(status.url)
        else:
            words = self.tr("Closed to programs")
            hint = language.told(status.error) if status.error is not None else ""
        wear(self.programs, "warning" if failed else "agent")
        self.programs.setText(words)
        self.programs.setToolTip(plain_tip(hint))
        self.programs.setAccessibleName(words)
        self.programs.setAccessibleDescription(display(hint, MOST_CHARS))
        self.programs.setVisible(runs or failed)
        self.fit()

    def show_workers(self, workers: Sequence[WorkerView] | None) -> None:
        """Show how many workers of clusters load pages, and how many cannot; None: no cluster."""
        self.workers.setVisible(workers is not None)
        if workers is None:
            self.fit()
            return
        lost = sum(one.state in ("lost", "no_browser") for one in workers)
        ready = sum(one.state == "ready" for one in workers)
        words = self.tr("1 worker") if ready == 1 else self.tr("{0} workers").format(count(ready))
        if lost:
            words += " · " + self.tr("{0} lost").format(count(lost))
        if words != self.workers.text():
            wear(self.workers, "warning" if lost or not ready else "globe")
            hint = self.tr("Workers of a cluster load pages of tasks of this window.")
            self.workers.show_path(words, hint)
            self.workers.setAccessibleName(words)
            self.workers.setAccessibleDescription(hint)
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Fit the path into the remaining width, so that no part is pushed out.

        The meters are hidden where the path would become too short.
        """
        if not self._root:
            return
        beside = self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        parts = (self.root, self._meters)
        others = [one for one in beside if one not in parts and not one.isHidden()]
        left = self.width() - sum(one.sizeHint().width() + SPACING for one in others)
        letter = self.fontMetrics().averageCharWidth()
        if self._meters is not None:
            wide = self._meters.sizeHint().width() + SPACING
            has_room = left - wide >= ROOM_CHARS * letter
            self._meters.setVisible(has_room)
            left -= wide if has_room else 0
        chars = left // letter
        path = elide_middle(short_path(self._root), max(LEAST_CHARS, min(chars, ROOT_CHARS)))
        self.root.show_path(path, self.tr("Open {0}").format(self._root))

    def _engine(self, health: Health) -> tuple[str, str, str]:
        browser = display(health.browser_name, BROWSER_CHARS) or self.tr("browser")
        words = {
            "idle": ("muted", self.tr("Engine ready · {0} not started").format(browser)),
            "starting": ("warning", self.tr("Engine ready · starting {0}…").format(browser)),
            "ready": ("good", self.tr("Engine ready · {0}").format(browser)),
            "missing": ("bad", self.tr("No browser found")),
            "failed": ("bad", self.tr("The browser does not start")),
        }
        if health.engine == "closing":
            return "warning", self.tr("Closing…"), ""
        if health.engine != "ready" and health.watcher == "gone":
            return "bad", self.tr("The ledger cannot be opened"), retold(health.watcher_reason)
        if health.engine != "ready":
            return "muted", self.tr("Opening the ledger…"), ""
        if health.read_only:
            return "warning", self.tr("Read-only: nothing new is started"), retold(health.read_only)
        return *words.get(health.browser, words["idle"]), retold(health.browser_reason)

    def _watcher(self, health: Health) -> tuple[str, str, str]:
        words = {
            "live": ("good", self.tr("Live")),
            "polling": ("warning", self.tr("Polling")),
            "gone": ("bad", self.tr("Folder gone")),
            "silent": ("bad", self.tr("No answer")),
        }
        tone_name, text = words.get(health.watcher, words["live"])
        hint = retold(health.watcher_reason) or self.tr("Changes in the ledger are seen at once.")
        return tone_name, text, hint

    def _work(self, health: Health) -> str:
        words = self.tr("{0} running here · {1} slots")
        if health.slots == 1:
            words = self.tr("{0} running here · 1 slot")
        words = words.format(health.running, health.slots)
        if health.queued:
            words += " · " + self.tr("{0} waiting").format(health.queued)
        if health.hold is not None:
            words += " · " + self.tr("starts held")
        return words


def short_path(path: str) -> str:
    """Return `path` with ~ for the home folder, elided in the middle."""
    return elide_middle(display(from_home(path)), ROOT_CHARS)


def _rule(parent: QWidget) -> QFrame:
    rule = QFrame(parent)
    rule.setFrameShape(QFrame.Shape.VLine)
    rule.setForegroundRole(rule.foregroundRole().Mid)
    return rule


MOST_LISTED = 5
MOST_OFFERED = 2  # Browsers with a button in the banner


class Trouble(QObject):
    """Show the problems of the ledger; a problem closed by the user stays hidden.

    A closed message about a missing browser does not return in this session. `download_wanted`,
    `browser_wanted` (choose a program) and `use_wanted` (a path) request another browser.
    """

    download_wanted = Signal()
    browser_wanted = Signal()
    use_wanted = Signal(str)

    def __init__(
        self, banner: Banner, open_folder: Callable[[], object], look_again: Callable[[], object]
    ) -> None:
        super().__init__(banner)
        self._banner = banner
        self._open_folder, self._look_again = open_folder, look_again
        self._lasting = ""
        self._health: Health | None = None
        self._passing = self._closed = self._missing = False
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
        self._passing, self._missing = True, False
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
