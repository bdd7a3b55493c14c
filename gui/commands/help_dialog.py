"""Dialogs of the help menu: topics (F1), facts for bug reports, licenses, and the doctor."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import PySide6
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale, QSize, Qt, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QListWidget,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.doctor import Finding, Report, beside, looks
from engine.doctor.third_party_licenses import Component, components
from engine.logging.logs import log_path
from engine.model.build_info import build_info, bundle
from engine.model.display import display
from engine.model.errors import EngineError, LicensesUnreadable
from engine.model.records import Health
from engine.service.router.ledger_paths import LedgerState
from engine.text.messages import ENGLISH, retold, say
from gui.commands.updates import CheckNow
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.i18n.names import line_of
from gui.style.accessibility import InOrder
from gui.style.editors import Roomy, read_only_text
from gui.style.questions import Question
from gui.style.search_field import search_field
from gui.style.theme import TonedLabel, heading, plain_label, plain_tip
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from engine.service.engine import Engine


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
        QT_TRANSLATE_NOOP("Help", "Re-run, resume and retry"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Re-run starts the same request as a new task that names the old one as its "
            "parent. Resume crawl keeps the pages of a crawl that was stopped and goes on "
            "where it ended. Retry failed requests what failed once more, as one task.\n\n"
            "Before many are started, a dry run says how many can be. What was secret is never "
            "kept on disk, so tasks that needed it ask for it again after a restart.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Recording and replay"),
        QT_TRANSLATE_NOOP(
            "Help",
            "A recording opens a browser window and stores what you do there; a red line along "
            "the top of each page shows it. Stop recording, or close the window. Replay "
            "recording shows its commands and asks for the values that were typed. A command "
            "that fails has a picture of its page.",
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Help", "Schedules and held starts"),
        QT_TRANSLATE_NOOP(
            "Help",
            "Repeat by a rule, in the form of a new task or in the menu Task, starts a task "
            "again after an interval, daily, or by a cron line. Each run is compared with the "
            "one before it, in the column Changes.\n\n"
            "Hold new starts lets running tasks go on and keeps all others waiting, in every "
            "program that uses the folder, until you release them.",
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
            "Tools, Diagnostics checks everything a task needs and says what is missing. "
            "Help, Open log folder leads to the program’s own log. Help, Copy debug info "
            "copies versions and places, and nothing secret.",
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
        self._field.left.connect(self._names.setFocus)
        self._find("")
        self._names.setCurrentRow(0)
        self._field.setFocus()

    def _lay_out(self) -> None:
        middle = arrange(QHBoxLayout(), self._names, (self._text, 1), spacing=12)
        close = QPushButton(self.tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        end = arrange(QHBoxLayout(), 1, close)
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
        f"OpenChrome Monitor {build_info()}",
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
    if bundle() is not None:
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
    """Dialog with the facts, the licenses and, where there are updates, the check for them."""

    def __init__(
        self,
        health: Health | None,
        bridge: Bridge,
        parent: QWidget | None = None,
        beside: Sequence[LedgerState] = (),
    ) -> None:
        super().__init__(parent)
        self.ask(self.tr("About"), "OpenChrome Monitor")
        self.add_text(self.tr("Watches and runs browser tasks that live in a shared folder."))
        told = "\n".join(map(retold, facts(health, beside).split("\n")))
        self.add_text(told, tone="muted")
        if build_info().offers_updates:
            check = CheckNow(bridge, self)
            self.body.addWidget(check)
            check.changed.connect(self.fit_height)
            self.finished.connect(lambda _: check.stop())
        licenses = QPushButton(self.tr("Licenses…"), self)
        licenses.setAutoDefault(False)
        licenses.clicked.connect(lambda: LicensesDialog(bridge, self).open())
        self.body.addLayout(arrange(QHBoxLayout(), licenses, 1))
        copy = self.add_button("copy", self.tr("Copy these facts"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(facts(health, beside)))
        self.add_button("close", self.tr("Close"), default=True)


LICENSES_SIZE = QSize(860, 560)
_READING: Final = "read the licenses"
_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class _Entry:
    component: Component
    searched: str  # everything that a search looks at, case-folded


def _license_entries() -> list[_Entry]:
    return [
        _Entry(one, f"{one.name}\n{one.version}\n{one.license}\n{one.text}".casefold())
        for one in components()
    ]


class LicensesDialog(InOrder, QDialog):
    """Components above, the license text of the selected one below; words filter both."""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._entries: list[_Entry] = []
        self.setWindowTitle(self.tr("Licenses"))
        self.resize(LICENSES_SIZE)
        self._field = search_field(self, self.tr("Search names, licenses and texts"))
        self._state = plain_label(self.tr("Reading the licenses…"), self, tone="muted", wrap=True)
        self._list = self._make_list()
        self._text = read_only_text(self, self.tr("License text"), fixed=True)
        self._lay_out()
        self._field.textChanged.connect(self._find)
        self._field.left.connect(self._list.setFocus)
        self._list.currentItemChanged.connect(lambda *_: self._show())
        self.finished.connect(lambda _: bridge.call_off(_READING))
        bridge.spawn_once(self._read(), name=_READING)

    def _make_list(self) -> QTreeWidget:
        made = QTreeWidget(self)
        made.setRootIsDecorated(False)
        made.setUniformRowHeights(True)
        made.setTabKeyNavigation(False)
        made.setItemDelegate(Roomy(made))
        made.setHeaderLabels([self.tr("Component"), self.tr("Version"), self.tr("License")])
        made.setAccessibleName(self.tr("Components"))
        for column in (0, 1):
            made.header().setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        return made

    def _lay_out(self) -> None:
        both = QSplitter(Qt.Orientation.Vertical, self)
        both.addWidget(self._list)
        both.addWidget(self._text)
        both.setSizes([LICENSES_SIZE.height() // 2] * 2)
        both.setChildrenCollapsible(False)
        close = QPushButton(self.tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        end = arrange(QHBoxLayout(), 1, close)
        parts = (self._field, self._state, (both, 1), end)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)
        self._field.setFocus()

    async def _read(self) -> None:
        try:
            self._entries = await asyncio.to_thread(_license_entries)
        except LicensesUnreadable as error:
            self._state.show_text(language.told(error))
            return
        self._list.addTopLevelItems([_component_item(entry.component) for entry in self._entries])
        self._find(self._field.text())

    def _find(self, typed: str) -> None:
        """Show the components that contain every typed word."""
        words, first = typed.casefold().split(), None
        for number, entry in enumerate(self._entries):
            item = self._list.topLevelItem(number)
            is_found = all(word in entry.searched for word in words)
            if item is not None:
                item.setHidden(not is_found)
                first = first or (item if is_found else None)
        self._state.show_text(self.tr("No component contains these words."))
        self._state.setVisible(first is None)
        current = self._list.currentItem()
        if first is not None and (current is None or current.isHidden()):
            self._list.setCurrentItem(first)

    def _show(self) -> None:
        number = self._list.currentIndex().row()
        without = self.tr("This component is listed without a text.")
        found = self._entries[number].component.text if number >= 0 else ""
        self._text.setPlainText(found or without)


def _component_item(one: Component) -> QTreeWidgetItem:
    cells = [display(cell, _NAME_CHARS) for cell in (one.name, one.version, one.license)]
    item = QTreeWidgetItem(cells)
    for column, cell in enumerate(cells):
        item.setToolTip(column, plain_tip(cell))
    return item


DOCTOR_SIZE = QSize(720, 520)
ERRAND = "doctor"
TONES = {"ok": "good", "warning": "warning", "problem": "bad"}


class DoctorDialog(InOrder, QDialog):
    """Dialog that starts the checks when shown and stops them when closed."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._found: list[Finding] = []
        self.setWindowTitle(self.tr("Diagnostics"))
        self.resize(DOCTOR_SIZE)
        self._verdict = heading("", self)
        self._bar = QProgressBar(self)
        self._beside = ctx.ledgers.states
        self._bar.setRange(0, len(looks()) + len(self._beside))
        self._bar.setAccessibleName(self.tr("How far the look is"))
        self._sheet = QWidget(self)
        self._grid = QGridLayout(self._sheet)
        self._again = QPushButton(self.tr("Look again"), self)
        self._stop = QPushButton(self.tr("Stop"), self)
        self._copy = QPushButton(self.tr("Copy the report"), self)
        self._close = QPushButton(self.tr("Close"), self)
        self._lay_out()
        self._again.clicked.connect(self.look)
        self._stop.clicked.connect(self._call_off)
        self._copy.clicked.connect(self._copy_report)
        self._close.clicked.connect(self.accept)
        self.finished.connect(lambda _: ctx.bridge.call_off(ERRAND))
        self.look()

    def _lay_out(self) -> None:
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        whole = QWidget(area)
        arrange(QVBoxLayout(whole), self._sheet, 1, margins=(0, 0, 8, 0))
        area.setWidget(whole)
        end = arrange(QHBoxLayout(), self._copy, self._again, self._stop, 1, self._close)
        self._close.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(self._verdict)
        column.addWidget(self._bar)
        column.addWidget(area, 1)
        column.addLayout(end)

    @property
    def report(self) -> Report:
        """The findings so far."""
        return Report(tuple(self._found))

    def look(self) -> None:
        """Run all checks again."""
        self._found = []
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._show_progress(0)

        async def examine(engine: Engine) -> None:
            for number, one in enumerate(looks(), 1):
                self._add(await asyncio.to_thread(one, engine.settings))
                self._show_progress(number)
            for number, state in enumerate(self._beside, len(looks()) + 1):
                found = await asyncio.to_thread(beside, state.path, watch_only=state.watch_only)
                self._add([_of(state.label, one) for one in found])
                self._show_progress(number)

        self._ctx.bridge.ask(examine, lambda _: self._end(), self._fail, name=ERRAND)

    def _show_progress(self, number: int) -> None:
        total = self._bar.maximum()
        self._bar.setValue(number)
        self._bar.setVisible(number < total)
        self._stop.setVisible(number < total)
        self._again.setVisible(number >= total)
        self._copy.setEnabled(number > 0)
        self._verdict.show_text(self.tr("Looking at everything a task needs…"))

    def _add(self, found: Sequence[Finding]) -> None:
        names = {
            "ok": self.tr("✓ Fine"),
            "warning": self.tr("⚠ Take care"),
            "problem": self.tr("✖ Problem"),
        }
        top = Qt.AlignmentFlag.AlignTop
        for one in found:
            self._found.append(one)
            row = self._grid.rowCount()
            state = names.get(one.state, one.state)
            self._grid.addWidget(TonedLabel(state, TONES.get(one.state, "muted")), row, 0, top)
            self._grid.addWidget(plain_label(_subject(one)), row, 1, top)
            words = f"{one.text}\n{one.advice}" if one.advice else one.text
            said = plain_label(words, wrap=True)
            said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(said, row, 2)

    def _end(self) -> None:
        worst = [one for one in self._found if one.state == "problem"]
        cares = [one for one in self._found if one.state == "warning"]
        if worst:
            self._verdict.show_text(self.tr("Something keeps tasks from running."))
        elif cares:
            self._verdict.show_text(self.tr("Tasks can run; some things want care."))
        else:
            self._verdict.show_text(self.tr("Everything a task needs is there."))

    def _fail(self, error: EngineError) -> None:
        self._show_progress(self._bar.maximum())
        self._verdict.show_text(language.sentence(error))

    def _call_off(self) -> None:
        self._ctx.bridge.call_off(ERRAND)
        self._show_progress(self._bar.maximum())
        self._verdict.show_text(self.tr("Stopped before everything was looked at."))

    def _copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self.report.text())


def _of(label: str, one: Finding) -> Finding:
    """Return a finding of a further ledger, at most a warning, since it blocks no task here."""
    state = "warning" if one.state == "problem" else one.state
    return replace(one, subject=f"{label}: {_subject(one)}", state=state)


def _subject(one: Finding) -> str:
    """Return the display name of the subject of a finding, if it has one."""
    known = f"subject.{one.subject}"
    return say(known) if known in ENGLISH else one.subject
