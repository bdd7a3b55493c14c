"""The dialog that starts a crawl: one field is needed, the rest has good values already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.again import Asked
from engine.display import elide_right
from engine.errors import EngineError, InvalidArguments, Problem
from engine.records import TaskRecord
from engine.words import count
from gui.dialogs.address import address_in, complete
from gui.dialogs.crawl_form import CrawlForm
from gui.dialogs.question import BUTTON
from gui.states import Banner
from gui.theme import heading, plain_keys, plain_label, plain_tip

KIND = "crawl"
LONGEST_OFFER = 60
WIDTH, TALL = 580, 740
MARGIN = 60  # pixels of the screen that stay free

Check = Callable[[Asked], tuple[Problem, ...]]


class StartDialog(QDialog):
    """Asks for a crawl. `wanted` carries the request; the answer comes by `accept_task`,
    `show_refusal` or `show_error`, and only the first closes it."""

    wanted = Signal(object)

    def __init__(self, check: Check, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._check = check
        self._judging = self._waiting = False
        self._offered = ""
        self.setWindowTitle(self.tr("New task"))
        self.setModal(True)
        self.form = CrawlForm(self)
        self.banner = Banner(self)
        self._summary = plain_label(tone="muted", wrap=True)
        self.offer, self.start = QPushButton(self), QPushButton(self.tr("Start"), self)
        self._lay_out()
        self.form.changed.connect(self._judge)
        self.form.url_left.connect(self._leave_url)
        self.form.unfolded.connect(lambda _: self.resize(self.sizeHint()))
        self.form["url"].changed.connect(lambda: self.offer.setVisible(False))
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self.ask).setAutoRepeat(False)
        self.form.setFocus()
        self._judge()

    def show_request(self, asked: Asked, note: str = "") -> None:
        """Show this request."""
        self.fill(asked.args)

    def fill(self, args: Mapping[str, Any]) -> None:
        """Show these arguments; what is no argument of a crawl is left out."""
        self.form.fill(args)
        self._judge()

    def offer_clipboard(self, text: str) -> None:
        """Offer the address that `text` is, if it is one and nothing was typed yet."""
        self._offered = address_in(text)
        shown = plain_keys(elide_right(self._offered, LONGEST_OFFER))
        self.offer.setText(self.tr("Paste {0}").format(shown))
        self.offer.setVisible(bool(self._offered) and not self.form["url"].value)

    def accept_task(self, record: TaskRecord) -> None:
        """The task is on disk: done."""
        self.accept()

    def show_refusal(self, mistakes: InvalidArguments) -> None:
        """Show each mistake under its field, those of no field above; nothing was started."""
        self._busy(False)
        self._judging = True
        self._place(mistakes.problems)

    def show_error(self, error: EngineError) -> None:
        """Something else went wrong; what was typed stays."""
        self._busy(False)
        self.banner.tell(error.title, f"{error} {error.advice}".strip(), tone_name="bad")

    def ask(self) -> None:
        """Start it, once, or show what is still wrong."""
        if self._waiting:
            return
        self._judging = True
        self._judge()
        if self.start.isEnabled():
            self._busy(True)
            self.wanted.emit(Asked(KIND, self.form.request))

    def sizeHint(self) -> QSize:
        wanted, screen = super().sizeHint(), QGuiApplication.primaryScreen().availableSize()
        height = TALL if self.form.is_unfolded else wanted.height()
        return QSize(max(WIDTH, wanted.width()), min(height, screen.height() - MARGIN))

    def _lay_out(self) -> None:
        cancel = QPushButton(self.tr("Cancel"), self)
        cancel.clicked.connect(self.reject)
        self.start.setDefault(True)
        self.start.clicked.connect(self.ask)
        self.offer.clicked.connect(self._take_offer)
        self.offer.setVisible(False)
        for button in (cancel, self.offer):
            button.setAutoDefault(False)
        footer = QHBoxLayout()
        footer.addWidget(self._summary, 1)
        for button in (self.start, cancel):
            button.setMinimumSize(BUTTON)
            footer.addWidget(button)
        self.form.under_url.addWidget(self.offer, 0, Qt.AlignmentFlag.AlignLeft)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(heading(self.tr("Crawl a site"), grow=1.3))
        column.addWidget(self.banner)
        column.addWidget(self.form, 1)
        column.addStretch(0)
        column.addLayout(footer)

    def _leave_url(self) -> None:
        typed = self.form["url"].value
        if typed:
            self._judging = True
            self.form["url"].value = complete(typed)
            self._judge()

    def _take_offer(self) -> None:
        self.form["url"].value = self._offered
        self.form.setFocus()

    def _judge(self) -> None:
        """Ask the engine what it would say, and show it without getting in the way of typing."""
        problems = self._check(Asked(KIND, self.form.request))
        reason = str(problems[0]) if problems else self.tr("Start this crawl (Ctrl+Enter)")
        if not self.form["url"].value:
            reason = self.tr("Type the address of the site first.")
        self.start.setEnabled(not problems and not self._waiting)
        self.start.setToolTip(plain_tip(reason))
        self._place(problems if self._judging else ())
        self._summary.show_text("" if problems else self._estimate())

    def _place(self, problems: tuple[Problem, ...]) -> None:
        rest = self.form.show_problems(problems)
        if rest:
            self.banner.tell(self.tr("This cannot be started"), "; ".join(rest), tone_name="bad")
        else:
            self.banner.setVisible(False)

    def _estimate(self) -> str:
        pages = self.form["max_pages"].value
        seconds = (pages - 1) * self.form["delay_ms"].value / 1000
        if seconds < 60:
            return self.tr("Up to {0} pages.").format(count(pages))
        words = self.tr("Up to {0} pages, at least {1} min with this pause.")
        return words.format(count(pages), count(round(seconds / 60)))

    def _busy(self, busy: bool) -> None:
        self._waiting = busy
        self.start.setText(self.tr("Starting…") if busy else self.tr("Start"))
        self.start.setEnabled(not busy)
