"""Updates: the question about the daily check, the check itself, and the banner with its result."""

from __future__ import annotations

import logging
import time
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.model.addresses import parse
from engine.model.build_info import build_info
from engine.model.errors import UpdateCheckFailed
from engine.service.update_check import Update, find_update, secure_page
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.banners import Banner, Choice
from gui.style.theme import TonedLabel
from gui.style.widgets import arrange

log = logging.getLogger(__name__)

KEY: Final = "updates.check"
DAY_S: Final = 24 * 3600
LOOK_MS: Final = 3600 * 1000  # a window may stay open for days
# Kept between two starts in the state of the window.
STARTED, ASKED = "updates-started", "updates-asked"
CHECKED_AT, SKIPPED = "updates-checked-at", "updates-skipped"
_DAILY, _BY_HAND = "check for updates", "check for updates now"


class UpdateNotices(QObject):
    """Check once a day if the person agreed; ask once, on the second start, whether to.

    `bar` shows the question and a newer version. A check that fails leaves a line in the log.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._build = ctx, build_info()
        self._is_question = False
        self.bar = Banner(ctx.parent)
        self.bar.closed.connect(self._end_question)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.check_if_due)
        ctx.bridge.loaded.connect(self._begin)
        ctx.preferences.changed.connect(self._apply)

    @property
    def _is_wanted(self) -> bool:
        return self._ctx.preferences.get(KEY, bool)

    def _begin(self) -> None:
        memory = self._ctx.memory
        self._ctx.bridge.loaded.disconnect(self._begin)
        is_first = not memory.flag(STARTED, False)
        memory.keep_flag(STARTED, True)
        if self._is_wanted:
            self._apply(KEY)
        elif not is_first and not memory.flag(ASKED, False):
            self._ask()

    def _ask(self) -> None:
        address = parse(self._build.updates_url)
        sentence = self.tr("One request to {0}, with the name and version of this program only.")
        self._is_question = True
        self.bar.tell(
            self.tr("Check for new versions once a day?"),
            sentence.format("" if address is None else address.place),
            (Choice(self.tr("Yes"), self._agree), Choice(self.tr("No"), self._end_question)),
            "accent",
        )

    def _agree(self) -> None:
        self._end_question()
        self._ctx.preferences.set(KEY, True)

    def _end_question(self) -> None:
        """Hide the bar; the question is not asked again."""
        if self._is_question:
            self._is_question = False
            self._ctx.memory.keep_flag(ASKED, True)
        self.bar.hide()

    def _apply(self, key: str) -> None:
        """Start or end the daily check, as chosen here, in the settings or in another window."""
        if key != KEY:
            return
        if self._is_wanted:
            if self._is_question:
                self._end_question()
            self._timer.start()
            self.check_if_due()
        else:
            self._timer.stop()
            self._ctx.bridge.call_off(_DAILY)

    def check_if_due(self) -> None:
        """Check unless this or another window did within the last day."""
        memory, now = self._ctx.memory, time.time()
        memory.save()  # reads what other windows wrote
        last = memory.text(CHECKED_AT)
        age_s = now - float(last) if last.isdecimal() else DAY_S
        if 0 <= age_s < DAY_S:  # a date in the future comes from a wrong clock
            return
        memory.keep_text(CHECKED_AT, str(int(now)))
        memory.save()
        self._ctx.bridge.spawn_once(self._check(), name=_DAILY)

    async def _check(self) -> None:
        try:
            update = await find_update(self._build)
        except UpdateCheckFailed as error:
            log.info("%s", error)
            return
        if update is not None and update.version != self._ctx.memory.text(SKIPPED):
            self._show(update)

    def _show(self, update: Update) -> None:
        def skip() -> None:
            self._ctx.memory.keep_text(SKIPPED, update.version)
            self.bar.hide()

        choices = (
            Choice(self.tr("Open page"), lambda: self._open(update)),
            Choice(self.tr("Skip this version"), skip),
        )
        self._is_question = False
        self.bar.tell(available(update), _own_version(), choices, "accent")

    def _open(self, update: Update) -> None:
        if not open_page(update):
            self.bar.tell(available(update), _no_browser(update), tone_name="accent")


class CheckNow(QWidget):
    """Button that checks at once, and the result below it; `changed` reports another height."""

    changed = Signal()

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._update: Update | None = None
        self._button = QPushButton(self.tr("Check for a new version"), self)
        self._page = QPushButton(self.tr("Open page"), self)
        self._said = TonedLabel("", "muted", self)
        self._said.setWordWrap(True)
        self._said.hide()
        self._page.hide()
        for button in (self._button, self._page):
            button.setAutoDefault(False)
        row = arrange(QHBoxLayout(), self._button, self._page, 1, spacing=8)
        arrange(QVBoxLayout(self), row, self._said, margins=0, spacing=6)
        self._button.clicked.connect(self.check)
        self._page.clicked.connect(self._open)

    def check(self) -> None:
        """Start a check; the button is disabled until it ends."""
        self._button.setEnabled(False)
        self._page.hide()
        self._say(self.tr("Checking…"), "muted")
        self._bridge.spawn_once(self._check(), name=_BY_HAND)

    def stop(self) -> None:
        """End a running check."""
        self._bridge.call_off(_BY_HAND)

    async def _check(self) -> None:
        try:
            self._update = await find_update(build_info())
        except UpdateCheckFailed as error:
            self._say(language.sentence(error), "warning")
        else:
            self._show(self._update)
        self._button.setEnabled(True)

    def _show(self, update: Update | None) -> None:
        if update is None:
            self._say(self.tr("There is no newer version."), "good")
            return
        self._say(available(update), "accent")
        self._page.show()

    def _open(self) -> None:
        if self._update is not None and not open_page(self._update):
            self._say(_no_browser(self._update), "warning")

    def _say(self, words: str, tone: str) -> None:
        self._said.show_text(words)
        self._said.show_tone(tone)
        self._said.show()
        QTimer.singleShot(0, self, self.changed.emit)  # after the layout has noticed


def available(update: Update) -> str:
    """Return the headline of a newer version."""
    text = QCoreApplication.translate("Updates", "Version {0} is available")
    return text.format(update.version)


def _own_version() -> str:
    return QCoreApplication.translate("Updates", "You have {0}.").format(build_info().version)


def _no_browser(update: Update) -> str:
    return QCoreApplication.translate("Updates", "No browser opened {0}").format(update.page)


def open_page(update: Update) -> bool:
    """Open the page of an update in the person's browser; False if none opened it."""
    page = secure_page(update.page)
    return page is not None and QDesktopServices.openUrl(QUrl(page))
