"""Settings dialog with search; changes apply immediately."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QListWidget,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gui.context.window_context import WindowContext
from gui.settings.setting_controls import (
    FIELD_WIDTH,
    BrowserTest,
    Choice,
    Clock,
    File,
    FileEditor,
    Lines,
    Number,
    Switch,
    TallPart,
    WidePart,
    Word,
    control_for,
)
from gui.settings.setting_pages import Item, Page, SettingPages
from gui.settings.setting_parts import ShortcutEditor
from gui.settings.shortcuts import Shortcuts
from gui.style.accessibility import InOrder
from gui.style.fuzzy_match import score
from gui.style.search_field import search_field
from gui.style.theme import heading, plain_label
from gui.style.widgets import arrange

SIZE = QSize(780, 520)
NAME_HEIGHT, NAME_GAP = 26, 10  # Pixels of a name of a page, and of those around its letters
LIST_WIDTH, NAME_PAD = 180, 24  # NAME_PAD: frame, margins and scroll bar
LABEL_WIDTH, LABEL_CHARS = 150, 20
FRAME = 5  # Pixels above the text of a field


class SettingsDialog(InOrder, QDialog):
    """Dialog with one page for each subject; Esc closes it without confirmation."""

    def __init__(self, ctx: WindowContext, shortcuts: Shortcuts) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self.setWindowTitle(self.tr("Settings"))
        self.resize(SIZE)
        self._pages = SettingPages(partial(ShortcutEditor, shortcuts=shortcuts), self).pages()
        self._search = search_field(self, self.tr("Search the settings"))
        self._names = QListWidget(self)
        self._names.setAccessibleName(self.tr("Pages"))
        self._nothing = plain_label(self.tr("No setting is called so."), self, tone="muted")
        self._stack = QStackedWidget(self)
        self._sheets = [_Sheet(page, ctx, self) for page in self._pages]
        for sheet in self._sheets:
            self._names.addItem(sheet.page.title)
            self._stack.addWidget(sheet)
        self._fit_names()
        self._restore = QPushButton(self.tr("Restore this page’s defaults"), self)
        self._lay_out()
        self._names.currentRowChanged.connect(self._turn_to)
        self._search.textChanged.connect(self._find)
        self._search.left.connect(self._names.setFocus)
        self._restore.clicked.connect(self._restore_page)
        self._names.setCurrentRow(0)
        self._find("")
        self._search.setFocus()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self._fit_names)  # after the list has the new font

    def _fit_names(self) -> None:
        """Give each name of a page its room in the current font."""
        names, metrics = self._names, self._names.fontMetrics()
        widest = max(metrics.horizontalAdvance(page.title) for page in self._pages)
        names.setFixedWidth(max(LIST_WIDTH, widest + NAME_PAD))
        height = max(NAME_HEIGHT, metrics.height() + NAME_GAP)
        for at in range(names.count()):
            names.item(at).setSizeHint(QSize(0, height))

    def _lay_out(self) -> None:
        middle = arrange(QHBoxLayout(), self._names, (self._stack, 1), spacing=12)
        end = QHBoxLayout()
        close = QPushButton(self.tr("Close"), self)
        close.clicked.connect(self.accept)
        for button in (self._restore, close):
            button.setAutoDefault(False)
        end.addWidget(self._restore)
        end.addStretch(1)
        end.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(self._search)
        column.addWidget(self._nothing)
        column.addLayout(middle, 1)
        column.addLayout(end)

    def show_page(self, name: str) -> None:
        """Show the page of this name or key prefix."""
        for at, page in enumerate(self._pages):
            if name in (page.name, *page.prefixes):
                self._names.setCurrentRow(at)

    def _turn_to(self, at: int) -> None:
        if at >= 0:
            self._stack.setCurrentIndex(at)
            self._restore.setVisible(bool(self._pages[at].prefixes))

    def _restore_page(self) -> None:
        for prefix in self._pages[self._stack.currentIndex()].prefixes:
            self._ctx.preferences.restore(prefix)

    def _find(self, typed: str) -> None:
        """Show the settings that match the search, and the first page that has any."""
        found = [at for at, sheet in enumerate(self._sheets) if sheet.narrow(typed)]
        for at in range(len(self._sheets)):
            self._names.item(at).setHidden(at not in found)
        self._nothing.setVisible(not found)
        self._stack.setVisible(bool(found))
        self._names.setVisible(bool(found))
        page = self._pages[self._stack.currentIndex()]
        self._restore.setVisible(bool(found and page.prefixes))
        if found and self._names.currentRow() not in found:
            self._names.setCurrentRow(found[0])


class _Sheet(QScrollArea):
    """One page: label, control and hint for each item."""

    def __init__(self, page: Page, ctx: WindowContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.page = page
        self.setAccessibleName(page.title)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        sheet = QWidget(self)
        column = QVBoxLayout(sheet)
        column.setContentsMargins(4, 0, 12, 0)
        column.setSpacing(10)
        column.addWidget(heading(page.title, sheet))
        self._lines = [_Line(item, ctx, sheet) for item in page.items]
        for line in self._lines:
            column.addWidget(line)
        program = sheet.findChild(FileEditor, "browser.path")
        for test in sheet.findChildren(BrowserTest):
            if isinstance(program, FileEditor):
                test.watch(program)
        column.addStretch(1)
        self.setWidget(sheet)
        # Translated texts may be long, and horizontal scrolling is not acceptable.
        self.setMinimumWidth(
            sheet.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width()
        )

    def narrow(self, typed: str) -> int:
        """Show the lines that match `typed`, or all if the page title does; return their number."""
        whole = not typed.strip() or score(typed, self.page.title) is not None
        shown = [line for line in self._lines if whole or line.answers(typed)]
        for line in self._lines:
            line.setVisible(line in shown)
        return len(shown)


class _Line(QWidget):
    """One setting."""

    def __init__(self, item: Item, ctx: WindowContext, parent: QWidget) -> None:
        super().__init__(parent)
        control, preferences = item.control, ctx.preferences
        if isinstance(control, Switch | Choice | Number | Clock | Word | Lines | File):
            self._editor = control_for(control, item.key, preferences, self)
            field = self._editor.focusProxy() or self._editor
            field.setAccessibleName(item.label or getattr(control, "words", ""))
            field.setAccessibleDescription(self._hint(item))
            self._editor.setEnabled(item.needs())
        else:
            self._editor = control(ctx)
        self._lay_out(item)
        self._words = " ".join(self._terms(item))

    def _lay_out(self, item: Item) -> None:
        label = plain_label(item.label, self)
        label.setBuddy(self._editor)
        letter = label.fontMetrics().averageCharWidth()
        label.setFixedWidth(max(LABEL_WIDTH, LABEL_CHARS * letter))
        label.setWordWrap(True)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        if isinstance(self._editor, WidePart):
            label.hide()
            grid.addWidget(self._editor, 0, 0, 1, 2)
        else:
            has_more = isinstance(item.control, Lines | File)  # below its first line
            tall = has_more or isinstance(self._editor, TallPart)
            align = Qt.AlignmentFlag.AlignTop if tall else Qt.AlignmentFlag.AlignVCenter
            label.setContentsMargins(0, FRAME if has_more else 0, 0, 0)
            grid.addWidget(label, 0, 0, align)
            grid.addWidget(self._editor, 0, 1)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(2, 0 if self._editor.maximumWidth() > FIELD_WIDTH else 1)
        if hint := self._hint(item):
            grid.addWidget(plain_label(hint, self, tone="muted", wrap=True), 1, 1)

    def _hint(self, item: Item) -> str:
        when = self.tr("Takes effect when a folder is opened.") if item.waits else ""
        return f"{item.hint} {when}".strip()

    def _terms(self, item: Item) -> list[str]:
        """Return all search terms of the line."""
        control = item.control
        words = [item.label, item.hint, getattr(control, "words", "")]
        words += [said for _, said in getattr(control, "values", ())]
        words += [button.text() for button in self.findChildren(QPushButton)]
        return words + (self._editor.terms() if isinstance(self._editor, WidePart) else [])

    def answers(self, typed: str) -> bool:
        return all(word in self._words.casefold() for word in typed.casefold().split())
