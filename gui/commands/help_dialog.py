"""Help dialog (F1) with topics and search, and the About dialog with facts for bug reports."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from typing import Final

import PySide6
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale, QSize, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.logging.logs import log_path
from engine.model.config import VERSION
from engine.model.display import display
from engine.model.records import Health
from engine.service.router.ledger_paths import LedgerState
from engine.text.messages import retold
from gui.i18n.ledger_names import line_of
from gui.style.accessibility import InOrder, search_field
from gui.style.editors import read_only_text
from gui.style.question import Question
from gui.style.theme import plain_label

# Help topics as title and plain text, basics first.

CONTEXT: Final = "Help"
TOPICS: Final = (
    (
        QT_TRANSLATE_NOOP("Help", "What is shown"),
        QT_TRANSLATE_NOOP(
            "Help",
            "The list shows every task in one folder, the ledger, whoever started it: "
            "this window, the command line octask, or another program. The folder is "
            "the only truth; what another program changes appears here by itself.\n\n"
            "Below the list stands the selected task in full. On the left the list can "
            "be narrowed. The line at the bottom says whether the engine is ready, "
            "whether the list is live, and which folder is shown.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Finding tasks"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Type into the field above the list: a word finds tasks by name, address, "
            "id and error. Fields make it exact, as in\n\n"
            "    status:failed kind:crawl host:example.com age:<1h\n\n"
            "Words side by side all have to be true; OR, NOT and parentheses work as "
            "expected. What cannot be understood is said below the field.\n\n"
            "Ctrl+K finds commands and tasks by a few letters, wherever you are.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "What needs attention"),
        QT_TRANSLATE_NOOP(
            "Help",
            "The first column marks tasks that need somebody: those that failed within "
            "the last day, whose owner is gone, that do not move on, that used up a "
            "budget, that wait for help, or that cannot be read. In the list, N and "
            "Shift+N lead from one to the next.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Starting tasks"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Ctrl+N opens the form for a new task. An address that was copied starts "
            "there with Ctrl+V. Mistakes are named before anything begins, and a task "
            "that has to wait for its turn is Pending until then.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Cancelling"),
        QT_TRANSLATE_NOOP(
            "Help",
            "A cancel is a request: a running task ends after what it is doing now, and "
            "what it has finished is kept. A task that had not begun ends at once, and "
            "this can be undone for a few seconds. A task of another program is asked "
            "in the same way; that program ends it.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Running again"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Re-run starts the same request as a new task that names the old one as its "
            "parent. Before many are started, a dry run says how many can be. What was "
            "secret is never kept, so tasks that needed it ask for it again.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Completing by force"),
        QT_TRANSLATE_NOOP(
            "Help",
            "A task with a contract completes when its items are there. To complete it "
            "although some are missing, a reason has to be written down; it stays with "
            "the task, which is marked as forced for ever.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Watching a page"),
        QT_TRANSLATE_NOOP(
            "Help",
            "While a task of this window works in a browser, the Page tab shows what its "
            "page looks like. What was typed there is covered. Nothing is asked of the "
            "browser while the tab is not seen. Tasks of other programs, and recordings, "
            "which have a window of their own, are not shown.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Several ledgers"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Add a folder of tasks beside this one (in the menu File, or by dropping it on "
            "the window), and its tasks stand in the same list, with the ledger that each is "
            "in. New tasks always start in the window’s own ledger.\n\n"
            "A ledger is only watched unless you allow changes. The settings list all of "
            "them; taking one out of the window touches nothing in its folder.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "By keyboard"),
        QT_TRANSLATE_NOOP(
            "Help",
            "F6 goes from one part of the window to the next, Tab from one control to "
            "the next, arrows from row to row. Ctrl+/ shows all shortcuts; others can "
            "be chosen in the settings (Ctrl+,).",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "When something is wrong"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Tools, Doctor looks at everything a task needs and says what is missing. "
            "Help, Show the log’s folder leads to the program’s own log. Help, Copy what "
            "to tell about a problem copies versions and places, and nothing secret.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "The command line"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Everything here can also be done with octask, on the same folder and at the "
            "same time:\n\n"
            "    octask list\n"
            "    octask start crawl https://example.com\n"
            "    octask watch\n\n"
            "octask --help names all commands.",
        ),
    ),
)


SIZE = QSize(760, 520)
LIST_WIDTH = 200
NAME_HEIGHT = 26
Topic = tuple[str, str]


def topics() -> list[Topic]:
    """Return (title, text) in the language of the window."""
    say = QCoreApplication.translate
    return [(say(CONTEXT, str(title)), say(CONTEXT, str(text))) for title, text in TOPICS]


class HelpDialog(InOrder, QDialog):
    """Dialog with topics on the left and selectable plain text on the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._topics = topics()
        self.setWindowTitle(self.tr("Help"))
        self.resize(SIZE)
        self._field = search_field(self, self.tr("Search the help"))
        self._names = QListWidget(self)
        self._names.setAccessibleName(self.tr("Subjects"))
        self._names.setFixedWidth(LIST_WIDTH)
        self._nothing = plain_label(self.tr("Nothing is said about that."), self, tone="muted")
        self._text = read_only_text(self, self.tr("Text"))
        for number, (title, _) in enumerate(self._topics):
            self._names.addItem(title)
            self._names.item(number).setSizeHint(QSize(0, NAME_HEIGHT))
        self._lay_out()
        self._names.currentRowChanged.connect(self._show)
        self._field.textChanged.connect(self._find)
        self._find("")
        self._names.setCurrentRow(0)
        self._field.setFocus()

    def _lay_out(self) -> None:
        middle = QHBoxLayout()
        middle.setSpacing(12)
        middle.addWidget(self._names)
        middle.addWidget(self._text, 1)
        close = QPushButton(self.tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        end = QHBoxLayout()
        end.addStretch(1)
        end.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(self._field)
        column.addWidget(self._nothing)
        column.addLayout(middle, 1)
        column.addLayout(end)

    def _show(self, number: int) -> None:
        if number >= 0:
            self._text.setPlainText(self._topics[number][1])

    def _find(self, typed: str) -> None:
        words = typed.casefold().split()
        found = []
        for number, (title, text) in enumerate(self._topics):
            level = f"{title} {text}".casefold()
            answers = all(word in level for word in words)
            self._names.item(number).setHidden(not answers)
            found += [number] if answers else []
        self._nothing.setVisible(not found)
        if found and self._names.currentRow() not in found:
            self._names.setCurrentRow(found[0])


def facts(health: Health | None, beside: Sequence[LedgerState] = ()) -> str:
    """Return versions and paths for a bug report, one per line."""
    lines = [
        f"OpenChrome Monitor {VERSION}",
        f"Python {platform.python_version()}, PySide6 {PySide6.__version__}, Qt {qVersion()}",
        f"{platform.system()} {platform.release()} ({platform.machine()}), "
        f"{QGuiApplication.platformName()}",
        f"Log: {log_path()}",
    ]
    screen = QGuiApplication.primaryScreen()
    if screen is not None:
        size, ratio = screen.size(), screen.devicePixelRatio()
        shown = f"Screen: {size.width()} x {size.height()}, scale {ratio:g}"
        lines.append(f"{shown}; {QLocale().bcp47Name()}")
    if health is not None:
        lines += _of_the_engine(health)
    lines += [f"Beside: {line_of(one)} {one.reason}".strip() for one in beside]
    if getattr(sys, "frozen", False):
        lines.append("Packaged")
    return "\n".join(lines)


def _of_the_engine(health: Health) -> list[str]:
    watcher = f"{health.watcher} {health.watcher_reason}".strip()
    browser = f"{health.browser_name or health.browser} {health.browser_reason}".strip()
    lines = [
        f"Ledger: {health.root}",
        f"Engine: {health.engine}, {health.running} running, {health.queued} waiting, "
        f"{health.slots} slots",
        f"Watching: {watcher}",
        f"Browser: {browser}",
    ]
    if health.read_only:
        lines.append(f"Read-only: {health.read_only}")
    lines += [f"Warning: {one}" for one in (*health.warnings, *health.concerns)]
    return [display(line) for line in lines]


class About(Question):
    """Dialog with the facts and a copy button."""

    def __init__(
        self,
        health: Health | None,
        parent: QWidget | None = None,
        beside: Sequence[LedgerState] = (),
    ) -> None:
        super().__init__(parent)
        self.ask(self.tr("About"), "OpenChrome Monitor")
        self.add_text(self.tr("Watches and runs browser tasks that live in a shared folder."))
        told = "\n".join(map(retold, facts(health, beside).split("\n")))
        self.add_text(told, tone="muted")
        copy = self.add_button("copy", self.tr("Copy these facts"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(facts(health, beside)))
        self.add_button("close", self.tr("Close"), default=True)
