"""The arguments of a crawl as a form: the address, the limits, and the rest folded away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGridLayout,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.errors import Problem
from gui.dialogs.address import complete
from gui.dialogs.field import Field, Patterns, choice, number
from gui.icons import icon


class CrawlForm(QWidget):
    """Holds one `Field` for each argument; knows no rule about them, the engine does."""

    changed = Signal()
    url_left = Signal()
    unfolded = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fields: dict[str, Field] = {}
        self._add_url()
        self._add_limits()
        self._add_advanced()
        self._more = self._make_more()
        self._toggle = self._make_toggle()
        self.under_url = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(self._grid("url", columns=1))
        column.addLayout(self.under_url)
        column.addLayout(self._grid("max_pages", "max_depth", "engine", "output_format"))
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._more, 1)
        QWidget.setTabOrder(self["output_format"].editor, self._toggle)
        QWidget.setTabOrder(self._toggle, self["delay_ms"].editor)
        for field in self._fields.values():
            field.changed.connect(self.changed)
        self["url"].left.connect(self.url_left)
        self.setFocusProxy(self["url"].editor)

    def __getitem__(self, key: str) -> Field:
        return self._fields[key]

    @property
    def is_unfolded(self) -> bool:
        return self._toggle.isChecked()

    @property
    def request(self) -> dict[str, Any]:
        """The arguments as they stand, the address completed; only those that say something."""
        args = {key: field.value for key, field in self._fields.items()}
        args["url"] = complete(args["url"])
        return {key: value for key, value in args.items() if value not in ("", [])}

    def fill(self, args: Mapping[str, Any]) -> None:
        """Show these arguments; what is no argument of a crawl is left out."""
        for key, value in args.items():
            if key in self._fields:
                self._fields[key].value = value

    def show_problems(self, problems: Iterable[Problem]) -> list[str]:
        """Show each mistake under its field; returns those that belong to none."""
        rest: list[str] = []
        by_key: dict[str, list[str]] = {}
        for problem in problems:
            key = problem.path.split("[")[0].split(".")[0]
            if key in self._fields:
                by_key.setdefault(key, []).append(problem.message)
            else:
                rest.append(str(problem))
        for key, field in self._fields.items():
            field.show_mistake("; ".join(by_key.get(key, ())))
        if any(self._more.isAncestorOf(self._fields[key]) for key in by_key):
            self._toggle.setChecked(True)
        return rest

    def _add_url(self) -> None:
        url = QLineEdit()
        url.setPlaceholderText(self.tr("example.com/docs"))
        url.setMinimumWidth(460)
        self._add("url", self.tr("Address"), url, self.tr("https:// is added when it is missing."))

    def _add_limits(self) -> None:
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

    def _add_advanced(self) -> None:
        screenshots = (
            ("none", self.tr("None")),
            ("failed", self.tr("Of failed pages")),
            ("all", self.tr("Of every page")),
        )
        stars = self.tr("One pattern a line. ** stands for anything, * for anything but a slash.")
        robots = QCheckBox(self.tr("Obey robots.txt"))
        robots.setChecked(True)
        scope, selector = QLineEdit(), QLineEdit()
        scope.setPlaceholderText(self.tr("the address’s own site"))
        selector.setPlaceholderText(self.tr("main article"))
        self._add("delay_ms", self.tr("Pause per host"), number(0, 600_000, 1000, " ms"))
        self._add("concurrency", self.tr("Pages at once"), number(1, 16, 3))
        self._add("timeout_ms", self.tr("Time per page"), number(1, 600_000, 30_000, " ms"))
        self._add("screenshot", self.tr("Screenshots"), choice(screenshots))
        self._add("scope", self.tr("Stay within"), scope)
        self._add("wait_for", self.tr("Wait for element"), selector)
        self._add("include_patterns", self.tr("Only addresses like"), Patterns(), stars)
        self._add("exclude_patterns", self.tr("Never addresses like"), Patterns())
        self._add("respect_robots", "", robots)

    def _make_more(self) -> QScrollArea:
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(10)
        column.addLayout(self._grid("delay_ms", "concurrency", "timeout_ms", "screenshot"))
        column.addLayout(self._grid("scope", "wait_for", "include_patterns", "exclude_patterns"))
        column.addWidget(self["respect_robots"])
        column.addStretch()
        area = QScrollArea(self)
        area.setWidget(inner)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setVisible(False)
        return area

    def _make_toggle(self) -> QToolButton:
        toggle = QToolButton(self)
        toggle.setText(self.tr("Advanced"))
        toggle.setIcon(icon("more"))
        toggle.setCheckable(True)
        toggle.setAutoRaise(True)
        toggle.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        toggle.toggled.connect(self._unfold)
        return toggle

    def _grid(self, *keys: str, columns: int = 2) -> QGridLayout:
        """Fields side by side, each name above its editor."""
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(10)
        for place, key in enumerate(keys):
            cell = QVBoxLayout()
            cell.setSpacing(4)
            cell.addWidget(self[key].name)
            cell.addWidget(self[key])
            cell.addStretch()
            grid.addLayout(cell, place // columns, place % columns)
            grid.setColumnStretch(place % columns, 1)
        return grid

    def _unfold(self, shown: bool) -> None:
        self._toggle.setIcon(icon("less" if shown else "more"))
        self._more.setVisible(shown)
        self.unfolded.emit(shown)

    def _add(self, key: str, name: str, editor: QWidget, hint: str = "") -> None:
        self._fields[key] = Field(key, name, editor, hint)
