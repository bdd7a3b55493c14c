"""Questions with their answers, the choice of a folder, and folders in the file manager."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import (
    QCoreApplication,
    QObject,
    QSize,
    QStandardPaths,
    Qt,
    QTimer,
    QUrl,
)
from PySide6.QtGui import (
    QDesktopServices,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QBoxLayout,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.text.words import count
from gui.style.accessibility import InOrder
from gui.style.tables import show_plain_columns
from gui.style.theme import heading, plain_label, plain_tip, plain_title
from gui.style.widgets import DangerButton, arrange

WIDTH = 440
BUTTON = QSize(96, 30)
OPENER_LOOK_MS, OPENER_LOOKS = 250, 40  # xdg-open tries one program after another
_AROUND = 80  # Pixels at both sides of the buttons: margins and window frame


class Question(InOrder, QDialog):
    """Dialog whose `answer` is the key of the pressed button, or of the default when closed.

    Open it with `open()`, never `exec()`, whose nested loop would block coroutines for ever.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self.answer = ""
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        self._row = arrange(QHBoxLayout(), 0, spacing=8)
        column = arrange(QVBoxLayout(self), margins=(20, 18, 20, 16), spacing=14)
        self._headline = heading("", self, grow=1.2)
        self._headline.setWordWrap(True)
        column.addWidget(self._headline)
        column.addLayout(self.body)
        column.addStretch()
        column.addLayout(self._row)

    def ask(self, title: str, headline: str) -> None:
        self.setWindowTitle(plain_title(title))
        self._headline.show_text(headline)
        self.setAccessibleName(self._headline.text())

    def add_text(self, text: str, tone: str = "") -> None:
        """Add a paragraph of selectable text."""
        label = plain_label(text, self, tone=tone, wrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.body.addWidget(label)

    def add_button(
        self, key: str, text: str, *, default: bool = False, destroys: bool = False
    ) -> QPushButton:
        """Add a button that ends the dialog with `key`; Esc means the default one.

        What acts comes first and what leaves all as it is last. `destroys` marks a loss.
        """
        button = DangerButton(text, self) if destroys else QPushButton(text, self)
        button.setMinimumSize(BUTTON.expandedTo(button.sizeHint()))  # Never narrower than its text
        button.setAutoDefault(True)  # Enter presses the focused button
        button.setDefault(default)
        button.clicked.connect(lambda: self._end(key))
        self._row.addWidget(button)
        if default:
            self.answer = key
            button.setFocus()
        return button

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._stack_buttons()
        self.fit_height()

    def _stack_buttons(self) -> None:
        """Arrange the buttons in a row, or in a column on a narrow screen."""
        places = (self._row.itemAt(at) for at in range(self._row.count()))
        buttons = [widget for item in places if item and (widget := item.widget())]
        seen = [one for one in buttons if not one.isHidden()]
        wide = sum(one.minimumWidth() + self._row.spacing() for one in seen)
        room = self.screen().availableGeometry().width() - _AROUND
        ways = QBoxLayout.Direction
        way = ways.LeftToRight if wide <= room else ways.TopToBottom
        if self._row.direction() != way:
            self._row.setDirection(way)
            self.adjustSize()

    def fit_height(self) -> None:
        """Fit the height to the wrapped text: Qt assumes narrower lines and leaves a gap."""
        layout = self.layout()
        if layout is None:
            return
        layout.activate()  # it knows a text that has just changed only then
        if layout.hasHeightForWidth():
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))

    def when_answered(self, act: Callable[[str], object]) -> None:
        """Call `act` once with the answer, however the dialog ends."""
        self.finished.connect(lambda _: act(self.answer))

    def open_for(self, **acts: Callable[[], object]) -> None:
        """Open the dialog, call the act named like the answer, if any, and delete the dialog."""

        def act(answer: str) -> None:
            self.deleteLater()
            if answer in acts:
                acts[answer]()

        self.when_answered(act)
        self.open()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to the next field on Enter, since the default button would discard the input."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and isinstance(self.focusWidget(), QLineEdit):
            self.focusNextChild()
        else:
            super().keyPressEvent(event)

    def _end(self, key: str) -> None:
        self.answer = key
        self.accept()


MOST = 100  # Most rows shown; "Copy all" includes the others
LINES = 7
NAME_CHARS, WORD_CHARS = 120, 300


class TaskList(QTreeWidget):
    """The first hundred of `rows` (task, text); `copy_all` copies every row."""

    def __init__(
        self, titles: Sequence[str], rows: Sequence[Sequence[str]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._rows = rows
        self.setHeaderLabels(list(titles))
        show_plain_columns(self)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setAccessibleName(self.tr("Tasks that this is about"))
        height = self.fontMetrics().height() + 8
        for row in rows[:MOST]:
            self._add(_shown(row), height)
        if len(rows) > MOST:
            more = self.tr("…and {0} more").format(count(len(rows) - MOST))
            self._add([more], height)
        self.setColumnWidth(0, 230)
        shown = height * min(LINES, self.topLevelItemCount())
        self.setFixedHeight(shown + self.header().sizeHint().height() + 6)
        copy = QShortcut(QKeySequence.StandardKey.Copy, self)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_chosen)

    def _add(self, cells: list[str], height: int) -> None:
        item = QTreeWidgetItem(cells)
        item.setSizeHint(0, QSize(0, height))
        for column, cell in enumerate(cells):
            item.setToolTip(column, plain_tip(cell))
        self.addTopLevelItem(item)

    def copy_all(self) -> None:
        """Copy every row, hidden ones included, separated by tabs."""
        _copy(self._rows)

    def copy_chosen(self) -> None:
        """Copy the selected rows, or all without a selection."""
        places = [self.indexOfTopLevelItem(item) for item in self.selectedItems()]
        chosen = [self._rows[at] for at in sorted(places) if at < len(self._rows)]
        _copy(chosen or self._rows)


def _shown(row: Sequence[str]) -> list[str]:
    name, *words = row
    return [display(name, NAME_CHARS), *(display(word, WORD_CHARS) for word in words)]


def _copy(rows: Sequence[Sequence[str]]) -> None:
    lines = ("\t".join(display(cell, 2_000) for cell in row) for row in rows)
    QGuiApplication.clipboard().setText("\n".join(lines))


def ask_folder(parent: QWidget, title: str, start: str, then: Callable[[Path], object]) -> None:
    """Open a folder dialog at `start` and pass the chosen folder to `then`."""
    dialog = QFileDialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda path: then(Path(path)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def documents(last: str = "") -> str:
    """Return the default folder for a file: the last one, the documents or the home folder.

    The first existing one: some systems name a documents folder without creating it.
    """
    named = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    known = (one for one in (last, named) if one and os.path.isdir(one))
    return next(
        known, QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
    )


def show_folder(folder: Path) -> None:
    """Open `folder` in the desktop's file manager, or show its path if there is none."""
    opener = _failing_opener()
    if opener:
        _FolderOpening(opener, folder)
    elif not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
        _tell_place(folder)


def _failing_opener() -> str:
    """Return the program whose failure Qt does not report: xdg-open, of X11 desktops.

    Elsewhere Qt reports it, or hands over the leave to come to the front, which a start of ours
    would lose.
    """
    if QGuiApplication.platformName() != "xcb":
        return ""
    return QStandardPaths.findExecutable("xdg-open")


class _FolderOpening(QObject):
    """Wait some seconds for a failure of the opener, which may be the file manager itself."""

    def __init__(self, opener: str, folder: Path) -> None:
        super().__init__(QApplication.instance())
        self._folder = folder
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [opener, str(folder)],
            stdin=silent,
            stdout=silent,
            stderr=silent,
            start_new_session=True,  # a file manager outlives this window
        )
        self._looks = OPENER_LOOKS
        self._timer = QTimer(self, interval=OPENER_LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        self._looks -= 1
        code = self._process.poll()
        if code is None and self._looks:
            return
        self._timer.stop()
        if code is None:
            self._process.returncode = 0  # it goes on by design: no warning on deletion
        elif code:
            _tell_place(self._folder)
        self.deleteLater()


def open_in_browser(address: str) -> None:
    """Open a web page in the desktop's browser; other schemes are refused with a message."""
    page = QUrl(address, QUrl.ParsingMode.StrictMode)
    if page.scheme() in ("http", "https") and QDesktopServices.openUrl(page):
        return
    translate = QCoreApplication.translate
    question = Question(QApplication.activeWindow())
    question.ask(translate("Folders", "Open in browser"), translate("Folders", "No browser opened"))
    question.add_text(address)
    question.add_button("close", translate("Folders", "Close"), default=True)
    question.open_for()


def _tell_place(folder: Path) -> None:
    translate = QCoreApplication.translate
    question = Question(QApplication.activeWindow())
    question.ask(
        translate("Folders", "Show in folder"),
        translate("Folders", "No program here shows folders."),
    )
    question.add_text(str(folder))
    question.add_button("copy", translate("Folders", "Copy the path"))
    question.add_button("close", translate("Folders", "Close"), default=True)
    question.open_for(copy=lambda: QGuiApplication.clipboard().setText(str(folder)))
