"""Ways to a browser: download Chromium with progress, use an installed one, or choose a program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QWidget,
)

from engine.browser.chromium.locate import Found, downloads, installed_browsers, locate
from engine.model.errors import BrowserMissing, EngineError
from engine.model.records import Health, TaskRecord
from engine.service.feed import Batch
from engine.text.words import size_words
from gui.context.window_context import WindowContext
from gui.style.accessibility import announce
from gui.style.questions import Question
from gui.style.theme import plain_label
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from engine.browser.chromium.browser_download import InstalledBrowser, Progress
    from engine.service.engine import Engine

KEY: Final = "browser.path"
_DOWNLOAD, _LOOK, _USE = "download the browser", "look for browsers", "use a browser"
MB: Final = 1_000_000


class DownloadBar(QWidget):
    """Progress of a download with its cancel button, hidden otherwise."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = plain_label(parent=self)
        self._bar = QProgressBar(self)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Download of Chromium"))
        cancel = QPushButton(self.tr("Cancel"), self)
        cancel.clicked.connect(self.cancelled)
        arrange(QHBoxLayout(self), self._words, (self._bar, 1), cancel, margins=(12, 4, 8, 4))
        self._stage = ""
        self.hide()

    @property
    def text(self) -> str:
        return self._words.text()

    def show_progress(self, progress: Progress) -> None:
        """Show a stage, and the received bytes of a download."""
        words = {
            "waiting": self.tr("Another program downloads Chromium; waiting for its end…"),
            "connecting": self.tr("Connecting to the download server…"),
            "downloading": self.tr("Downloading Chromium: {0} of {1}"),
            "extracting": self.tr("Extracting Chromium…"),
            "checking": self.tr("Starting Chromium once…"),
        }[progress.stage]
        done, total = progress.done_bytes, progress.total_bytes
        if progress.stage == "downloading" and not total:  # the server did not tell it
            words = self.tr("Downloading Chromium: {0}")
        self._words.show_text(words.format(size_words(done), size_words(total)))
        known = progress.stage == "downloading" and total > 0
        self._bar.setRange(0, 1_000 if known else 0)
        self._bar.setValue(done * 1_000 // total if known else 0)
        self.show()
        if progress.stage != self._stage:  # screen readers would read every number
            announce(self, self.text)
        self._stage = progress.stage


class BrowserSetup(QObject):
    """Offer what this machine has when a browser is missing, and carry out the choice.

    `offered` carries the installed browsers that may be used, and `missing` the error of a task of
    this window that found none. `began` and `ended` (the error or None) frame a download.
    """

    offered = Signal(object)
    missing = Signal(EngineError)
    began = Signal()
    ended = Signal(object)
    refused = Signal(EngineError)

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._was_missing = False
        self._told: set[str] = set()  # tasks whose missing browser was reported
        self.bar = DownloadBar(ctx.parent)
        self.bar.cancelled.connect(self.cancel)
        action = ctx.actions.add("download_browser", self.tr("Download C&hromium…"))
        action.triggered.connect(self.ask_download)
        ctx.bridge.health.connect(self._hear)
        ctx.bridge.news.connect(self._take_news)

    def _hear(self, health: Health) -> None:
        is_missing = health.browser == "missing"
        if is_missing and not self._was_missing:
            self._look(self.offered.emit)
        self._was_missing = is_missing

    def _look(self, then: Callable[[list[Found]], object]) -> None:
        async def look() -> None:
            then(await asyncio.to_thread(installed_browsers))

        self._ctx.bridge.spawn_once(look(), name=_LOOK)

    def _take_news(self, batch: Batch) -> None:
        """Report a task of this window that found no browser while others have one.

        A recording needs a browser with windows, so the status of the engine says nothing of it.
        """
        for view in batch.views:
            record = view.entry
            if not isinstance(record, TaskRecord) or record.error is None:
                continue
            is_new = record.task_id not in self._told
            ours = is_new and self._ctx.bridge.remembers(record.task_id)
            if ours and record.error.code == BrowserMissing.code and not self._was_missing:
                self._told.add(record.task_id)
                self._ctx.bridge.spawn(self._explain(), name=_LOOK)

    async def _explain(self) -> None:
        path = self._ctx.bridge.engine.settings.browser_path
        try:
            await asyncio.to_thread(locate, path, headless=False)
        except BrowserMissing as missing:
            self.missing.emit(missing)

    # The download.

    def ask_download(self) -> None:
        """Ask for a confirmation with sizes and place, then download."""

        async def ask() -> None:
            self._ask(wants_full=await asyncio.to_thread(_lacks_windows))

        self._ctx.bridge.spawn_once(ask(), name=_LOOK)

    def _ask(self, *, wants_full: bool) -> None:
        from engine.browser.chromium.browser_download import FULL_MB, SHELL_MB

        shell, full = size_words(SHELL_MB * MB), size_words(FULL_MB * MB)
        question = Question(self._ctx.parent)
        question.ask(self.tr("Download Chromium"), self.tr("Download Chromium for this program?"))
        question.add_text(
            self.tr("About {0} from Playwright's server. No other browser is changed.").format(
                shell
            )
        )
        question.add_text(self.tr("It is stored in {0}").format(downloads()))
        box = QCheckBox(
            self.tr("With windows, for recordings (about {0} instead)").format(full), question
        )
        box.setChecked(wants_full)
        question.body.addWidget(box)
        question.add_button("yes", self.tr("Download"), default=True)
        question.add_button("no", self.tr("Not now"))
        question.answer = "no"  # Esc downloads nothing
        question.open_for(yes=lambda: self.download(full=box.isChecked()))

    def download(self, *, full: bool) -> None:
        """Start the download; a running one continues."""
        if self.bar.isVisible():
            return
        self._ctx.actions["download_browser"].setEnabled(False)
        self.bar.show()
        self.began.emit()
        self._ctx.bridge.spawn(self._download(full), name=_DOWNLOAD)

    def cancel(self) -> None:
        """End a running download; nothing of it stays."""
        self._ctx.bridge.call_off(_DOWNLOAD)

    async def _download(self, full: bool) -> None:
        from engine.browser.chromium import browser_download  # 15 ms, for a download only

        failed: EngineError | None = None
        try:
            installed = await browser_download.install_browser(
                full=full, report=self.bar.show_progress
            )
            await self._use_downloaded(installed, full)
        except EngineError as error:
            failed = error
        finally:
            self.bar.hide()
            self._ctx.actions["download_browser"].setEnabled(True)
            self.ended.emit(failed)

    async def _use_downloaded(self, installed: InstalledBrowser, full: bool) -> None:
        """Use the new browser unless the chosen one works."""
        bridge, engine = self._ctx.bridge, self._ctx.bridge.engine
        try:
            await asyncio.to_thread(locate, engine.settings.browser_path, headless=not full)
        except BrowserMissing:
            self._ctx.preferences.set(KEY, "")
            await engine.use_browser(None)
        else:
            await engine.warm()
        bridge.show_health()
        words = self.tr("Chromium {0} is installed.").format(installed.version)
        self._ctx.news_bar.tell(words, "", tone_name="good")

    # Other browsers.

    def choose(self) -> None:
        """Choose the program of a browser in a file dialog."""
        dialog = QFileDialog(self._ctx.parent, self.tr("Choose the program of a browser"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.use)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def use(self, path: str) -> None:
        """Start the program once, then use it and keep it in the settings."""

        async def use(engine: Engine) -> None:
            from engine.browser.chromium.browser_download import start_once

            await asyncio.to_thread(start_once, path)
            await engine.use_browser(path)

        def then(_: object) -> None:
            self._ctx.preferences.set(KEY, path)
            self._ctx.bridge.show_health()

        self._ctx.bridge.ask(use, then, self.refused.emit, name=_USE)


def _lacks_windows() -> bool:
    """Return whether only recordings, which need a browser with windows, have none."""
    return _is_found(headless=True) and not _is_found(headless=False)


def _is_found(*, headless: bool) -> bool:
    try:
        locate(headless=headless)
    except BrowserMissing:
        return False
    return True
