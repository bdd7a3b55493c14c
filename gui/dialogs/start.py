"""The dialog that starts a crawl: one field is needed, the rest has good values already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.errors import EngineError, InvalidArguments, Problem
from engine.records import TaskRecord
from gui.dialogs.address import address_in, complete
from gui.dialogs.field import Field, Patterns, choice, number
from gui.dialogs.question import BUTTON
from gui.icons import icon
from gui.states import Banner
from gui.theme import heading, plain_label, plain_tip

KIND = "crawl"
Check = Callable[[str, Mapping[str, Any]], tuple[Problem, ...]]


class StartDialog(QDialog):
    """Asks for a crawl. `wanted` carries the request; the answer comes by `accept_task`,
    `show_problems` or `show_error`, and only the first closes it."""

    wanted = Signal(str, object)

    def __init__(self, check: Check, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._check = check
        self._touched = False
        self.setWindowTitle(self.tr("New task"))
        self.setModal(True)
        self._fields: dict[str, Field] = {}
        self._banner = Banner(self)
        self._summary = plain_label(tone="muted", wrap=True)
        self._offer = QPushButton(self)
        self._offer.setVisible(False)
        self._offer.setAutoDefault(False)
        self._offer.clicked.connect(self._take_offer)
        self._offered = ""
        self._buttons = self._make_buttons()
        self._advanced = self._make_advanced()
        self._toggle = self._make_toggle()
        self._lay_out()
        self._follow_fields()
        self._judge()

    # what the window calls

    def fill(self, args: Mapping[str, Any]) -> None:
        """Show these arguments; what is no argument of a crawl is left out."""
        for key, value in args.items():
            if key in self._fields:
                self._fields[key].value = value
        self._judge()

    def offer_clipboard(self, text: str) -> None:
        """Offer the address that `text` is, if it is one and nothing was typed yet."""
        self._offered = address_in(text)
        shown = self._offered if len(self._offered) < 60 else f"{self._offered[:57]}…"
        self._offer.setText(self.tr("Paste {0}").format(shown.replace("&", "&&")))
        self._offer.setVisible(bool(self._offered) and not self._fields["url"].value)

    def show_problems(self, problems: tuple[Problem, ...]) -> None:
        """Show each mistake under its field, those of no field above; nothing was started."""
        self._busy(False)
        self._touched = True
        self._place(problems)

    def show_refusal(self, mistakes: InvalidArguments) -> None:
        """The engine would not take it after all."""
        self.show_problems(mistakes.problems)

    def show_error(self, error: EngineError) -> None:
        """Something else went wrong; what was typed stays."""
        self._busy(False)
        self._banner.tell(error.title, f"{error} {error.advice}".strip(), tone_name="bad")

    def accept_task(self, record: TaskRecord) -> None:
        """The task is on disk: done."""
        self.accept()

    @property
    def request(self) -> dict[str, Any]:
        """The arguments as they stand, the address completed; only those that say something."""
        args = {key: field.value for key, field in self._fields.items()}
        args["url"] = complete(args["url"])
        return {key: value for key, value in args.items() if value not in ("", [])}

    # layout

    def _lay_out(self) -> None:
        url = self._add(
            "url", self.tr("Address"), QLineEdit(), self.tr("https:// is added when it is missing.")
        )
        assert isinstance(url.editor, QLineEdit)
        url.editor.setPlaceholderText(self.tr("example.com/docs"))
        url.editor.setMinimumWidth(420)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(heading(self.tr("Crawl a site"), grow=1.3))
        column.addWidget(self._banner)
        column.addLayout(self._grid("url", columns=1))
        column.addWidget(self._offer, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(self._make_limits())
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._advanced, 1)
        column.addStretch(0)
        footer = QHBoxLayout()
        footer.addWidget(self._summary, 1)
        footer.addWidget(self._buttons)
        column.addLayout(footer)
        url.editor.setFocus()

    def _make_limits(self) -> QGridLayout:
        engines = (
            ("browser", self.tr("Browser (Chromium)")),
            ("auto", self.tr("Automatic: browser where needed")),
            ("static", self.tr("Static: no scripts, fastest")),
        )
        formats = (
            ("markdown", self.tr("Markdown")),
            ("text", self.tr("Plain text")),
            ("structured", self.tr("Structured (JSON)")),
        )
        self._add("max_pages", self.tr("Pages, at most"), number(1, 1_000_000, 20))
        self._add("max_depth", self.tr("Links deep, at most"), number(0, 100, 2))
        self._add("engine", self.tr("Engine"), choice(engines))
        self._add("output_format", self.tr("Content as"), choice(formats))
        return self._grid("max_pages", "max_depth", "engine", "output_format")

    def _make_advanced(self) -> QScrollArea:
        screenshots = (
            ("none", self.tr("None")),
            ("failed", self.tr("Of failed pages")),
            ("all", self.tr("Of every page")),
        )
        stars = self.tr("One pattern a line. ** stands for anything, * for anything but a slash.")
        robots = QCheckBox(self.tr("Obey robots.txt"))
        robots.setChecked(True)
        scope = QLineEdit()
        scope.setPlaceholderText(self.tr("the address's own site"))
        selector = QLineEdit()
        selector.setPlaceholderText(self.tr("main article"))
        self._add("scope", self.tr("Stay within"), scope)
        self._add("include_patterns", self.tr("Only addresses like"), Patterns(), stars)
        self._add("exclude_patterns", self.tr("Never addresses like"), Patterns())
        self._add("delay_ms", self.tr("Pause per host"), number(0, 600_000, 1000, " ms"))
        self._add("concurrency", self.tr("Pages at once"), number(1, 16, 3))
        self._add("timeout_ms", self.tr("Time per page"), number(1, 600_000, 30_000, " ms"))
        self._add("screenshot", self.tr("Screenshots"), choice(screenshots))
        self._add("wait_for", self.tr("Wait for element"), selector)
        self._add("respect_robots", "", robots)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(10)
        column.addLayout(self._grid("delay_ms", "concurrency", "timeout_ms", "screenshot"))
        column.addLayout(self._grid("scope", "wait_for"))
        column.addLayout(self._grid("include_patterns", "exclude_patterns"))
        column.addWidget(self._fields["respect_robots"])
        area = QScrollArea(self)
        area.setWidget(inner)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setVisible(False)
        return area

    def _grid(self, *keys: str, columns: int = 2) -> QGridLayout:
        """Fields side by side, each name above its editor."""
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(10)
        for place, key in enumerate(keys):
            cell = QVBoxLayout()
            cell.setSpacing(4)
            cell.addWidget(self._fields[key].name)
            cell.addWidget(self._fields[key])
            cell.addStretch()
            grid.addLayout(cell, place // columns, place % columns)
            grid.setColumnStretch(place % columns, 1)
        return grid

    def _make_toggle(self) -> QToolButton:
        toggle = QToolButton(self)
        toggle.setText(self.tr("Advanced"))
        toggle.setIcon(icon("more"))
        toggle.setCheckable(True)
        toggle.setAutoRaise(True)
        toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        toggle.toggled.connect(self._show_advanced)
        return toggle

    def _make_buttons(self) -> QDialogButtonBox:
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, parent=self)
        self._start = QPushButton(self.tr("Start"), self)
        box.addButton(self._start, QDialogButtonBox.ButtonRole.AcceptRole)
        for button in (self._start, box.button(QDialogButtonBox.StandardButton.Cancel)):
            button.setMinimumSize(BUTTON)
        self._start.setDefault(True)
        self._start.clicked.connect(self._ask)
        box.rejected.connect(self.reject)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self._ask)
        return box

    def _add(self, key: str, name: str, editor: QWidget, hint: str = "") -> Field:
        self._fields[key] = field = Field(key, name, editor, hint)
        return field

    # behaviour

    def _follow_fields(self) -> None:
        for field in self._fields.values():
            field.changed.connect(self._judge)
        url = self._fields["url"]
        url.left.connect(self._leave_url)
        url.changed.connect(lambda: self._offer.setVisible(False))

    def _leave_url(self) -> None:
        typed = self._fields["url"].value
        if typed:
            self._touched = True
            self._fields["url"].value = complete(typed)
            self._judge()

    def _take_offer(self) -> None:
        self._fields["url"].value = self._offered
        self._fields["url"].editor.setFocus()

    def _show_advanced(self, shown: bool) -> None:
        self._toggle.setIcon(icon("less" if shown else "more"))
        self._advanced.setVisible(shown)
        self.adjustSize()

    def _judge(self) -> None:
        """Ask the engine what it would say, and show it without getting in the way of typing."""
        problems = self._check(KIND, self.request)
        first = str(problems[0].message) if problems else ""
        if not self._fields["url"].value:
            first = self.tr("Type the address of the site first.")
        self._start.setEnabled(not problems)
        self._start.setToolTip(plain_tip(first or self.tr("Start this crawl (Ctrl+Enter)")))
        self._place(problems if self._touched else ())
        self._summary.show_text(self._estimate() if not problems else "")

    def _place(self, problems: tuple[Problem, ...]) -> None:
        rest = []
        by_key: dict[str, list[str]] = {}
        for problem in problems:
            key = problem.path.split("[")[0].split(".")[0]
            if key in self._fields:
                by_key.setdefault(key, []).append(problem.message)
            else:
                rest.append(str(problem))
        for key, field in self._fields.items():
            field.show_mistake("; ".join(by_key.get(key, ())))
        if any(self._advanced.isAncestorOf(self._fields[key]) for key in by_key):
            self._toggle.setChecked(True)
        if rest:
            self._banner.tell(self.tr("This cannot be started"), "; ".join(rest), tone_name="bad")
        else:
            self._banner.setVisible(False)

    def _estimate(self) -> str:
        pages = self._fields["max_pages"].value
        delay_ms = self._fields["delay_ms"].value
        seconds = (pages - 1) * delay_ms / 1000
        if seconds < 60:
            return self.tr("Up to {0} pages.").format(f"{pages:,}")
        minutes = round(seconds / 60)
        return self.tr("Up to {0} pages, at least {1} min with this pause.").format(
            f"{pages:,}", f"{minutes:,}"
        )

    def _ask(self) -> None:
        self._touched = True
        self._judge()
        if self._start.isEnabled():
            self._busy(True)
            self.wanted.emit(KIND, self.request)

    def _busy(self, busy: bool) -> None:
        self._start.setText(self.tr("Starting…") if busy else self.tr("Start"))
        self._start.setEnabled(not busy)

    def sizeHint(self) -> QSize:
        wanted = super().sizeHint()
        screen = QGuiApplication.primaryScreen().availableSize()
        height = 720 if self._advanced.isVisibleTo(self) else wanted.height()
        return QSize(max(560, wanted.width()), min(height, screen.height() - 80))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fields["url"].editor.setFocus()
