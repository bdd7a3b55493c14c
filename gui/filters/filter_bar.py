"""The filter bar above the list: input line, chips of conditions, errors with fixes, help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, elide_right
from engine.query import FIELDS, Offer, QueryError, as_words, completion, corrected
from engine.text import words
from engine.text.messages import retold
from gui.context.window_context import WindowContext
from gui.engine_link.scheduling import Debounce
from gui.i18n import language
from gui.style.accessibility import InOrder, announce, clearable
from gui.style.editors import CompletionPopup, Roomy
from gui.style.icons import icon
from gui.style.search_field import SearchLine
from gui.style.theme import heading, plain_keys, plain_label, plain_tip
from gui.style.widgets import arrange
from gui.tasks.facets import ROOT

_CHARS = 40
_GAP = 4
_ICON = 12
_TAKE_AWAY = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_Return, Qt.Key.Key_Enter)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition with its display `name` and its `query` in the filter language."""

    name: str
    query: str
    remove: Callable[[], object]


class FilterChips(QWidget):
    """One chip for each condition, hidden without conditions.

    `save_wanted` requests to save them as a view, `clear_wanted` to remove all.
    """

    save_wanted = Signal()
    clear_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Conditions of the filter"))
        self._chips: list[_Chip] = []
        self._shown: tuple[tuple[str, str], ...] = ()
        self._stale = False
        self._clear = self._button(self.tr("Clear all"), self.clear_wanted.emit)
        self._save = self._button(self.tr("Save view…"), self.save_wanted.emit)
        self.hide()

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Show exactly these conditions, and keep the focus position where possible."""
        shown = tuple((one.name, one.query) for one in conditions)
        if shown == self._shown:
            return
        self._shown = shown
        held = next((at for at, chip in enumerate(self._chips) if chip.hasFocus()), -1)
        for chip in self._chips:
            chip.hide()
            chip.deleteLater()
        self._chips = [self._chip(condition) for condition in conditions]
        self.setVisible(bool(conditions))
        self._place()
        if held >= 0 and self._chips:
            self._chips[min(held, len(self._chips) - 1)].setFocus()

    def show_stale(self, stale: bool) -> None:
        """Grey the chips of a query that is no longer the typed one, except one with the focus."""
        self._stale = stale
        for part in (*self._chips, self._save):
            part.setEnabled(not stale or part.hasFocus())  # Qt moves the focus of a disabled one

    @property
    def names(self) -> tuple[str, ...]:
        """The texts of the chips."""
        return tuple(name for name, _ in self._shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            for chip in self._chips:
                chip.setIcon(icon("close"))

    def _chip(self, condition: Condition) -> _Chip:
        chip = _Chip(condition, self)
        chip.stepped.connect(self._step)
        chip.setEnabled(not self._stale)
        chip.show()
        return chip

    def _button(self, text: str, act: Callable[[], object]) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda _=False: act())
        return button

    def _step(self, by: int) -> None:
        here = next((at for at, chip in enumerate(self._chips) if chip.hasFocus()), 0)
        self._chips[max(0, min(len(self._chips) - 1, here + by))].setFocus()

    def _place(self) -> None:
        x = y = line = 0
        parts: list[QToolButton] = [*self._chips, self._clear, self._save]
        for before, part in zip([None, *parts], parts, strict=False):
            size = part.sizeHint()
            if x and x + size.width() > self.width():
                x, y, line = 0, y + line + _GAP, 0
            part.setGeometry(x, y, min(size.width(), max(1, self.width())), size.height())
            x, line = x + size.width() + _GAP, max(line, size.height())
            if before is not None:
                QWidget.setTabOrder(before, part)
        self.setFixedHeight(y + line)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())


class _Chip(QToolButton):
    """Chip of one condition: a click, Enter or Del removes it, arrows move between chips."""

    stepped = Signal(int)

    def __init__(self, condition: Condition, parent: QWidget) -> None:
        super().__init__(parent)
        name = elide_right(display(condition.name), _CHARS)
        self.setText(plain_keys(name))
        self.setIcon(icon("close"))
        self.setIconSize(QSize(_ICON, _ICON))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("Take away the condition {0}").format(name))
        self.setToolTip(plain_tip(self.tr("Take away: {0}").format(display(condition.query))))
        self.clicked.connect(lambda _=False: condition.remove())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _TAKE_AWAY:
            self.click()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(1 if event.key() == Qt.Key.Key_Right else -1)
        else:
            super().keyPressEvent(event)


# Input line of the filter with completions; Esc clears it, a second Esc leaves it.

Known = Mapping[str, Iterable[str]]


class FilterBox(SearchLine):
    """Input line in which arrows and Tab choose a completion; Down leaves it for the list."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known: Callable[[], Known] = dict
        self._offers: CompletionPopup | None = None
        self.textEdited.connect(lambda _: self._offer())

    def offer_values(self, known: Callable[[], Known]) -> None:
        """Set the callback for known values of fields that have no fixed list."""
        self._known = known

    @property
    def offers(self) -> tuple[str, ...]:
        """The completions shown now."""
        return self._offers.shown if self._offers is not None else ()

    def event(self, event: QEvent) -> bool:
        # Qt moves the focus by Tab before it creates a key event.
        tab = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Tab
        if tab and event.type() == QEvent.Type.KeyPress and self.offers:
            assert self._offers is not None
            self._offers.take(first=True)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._chooses(event):
            event.accept()
        elif event.key() == Qt.Key.Key_Down:
            self.left.emit()
        elif event.key() == Qt.Key.Key_Space and _with_control(event):
            self._offer(offer_all=True)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._close()

    def _chooses(self, event: QKeyEvent) -> bool:
        """Handle a key for the completions and return whether it was used."""
        offers, key = self._offers, event.key()
        if offers is None or offers.isHidden():
            return False
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            offers.step(1 if key == Qt.Key.Key_Down else -1)
            return True
        if key == Qt.Key.Key_Escape:
            offers.hide()
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            taken = offers.take()
            offers.hide()
            return taken
        return False

    def _offer(self, *, offer_all: bool = False) -> None:
        found = completion(self.text(), self.cursorPosition(), self._known(), offer_all=offer_all)
        if self._offers is None:
            if not found.offers:
                return
            self._offers = CompletionPopup(self.window())
            self._offers.taken.connect(self._put)
        self._offers.offer(found, self.mapTo(self.window(), QPoint(0, self.height() + 1)))

    def _put(self, offer: Offer) -> None:
        assert self._offers is not None
        text, cursor = self._offers.completion.put(self.text(), offer)
        self.setText(text)
        self.setCursorPosition(cursor)
        self.setFocus()
        if offer.text.endswith(":"):
            self._offer()

    def _close(self) -> None:
        if self._offers is not None:
            self._offers.hide()


def _with_control(event: QKeyEvent) -> bool:
    return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)


# Delay in ms between the last key and filtering, so that typing stays fluent.
TYPING_MS = 120
# Longer delay in ms before an error is shown, because incomplete input is mostly correct.
MISTAKE_MS = 700
MOST_TOLD = 4  # Most errors shown for one query, for lack of room


class FilterBar(QWidget):
    """Filter line with delayed input.

    `text_changed` follows typing after a delay; `left` requests the focus for the list.
    `stale_changed` reports that the list shows an older query, because the typed one is wrong.
    """

    text_changed = Signal(str)
    stale_changed = Signal(bool)
    left = Signal()
    help_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._told = ""
        self._mistakes: tuple[QueryError, ...] = ()
        self._applied = self._stale = self._pending = False
        self._box = FilterBox(self)
        self._box.setPlaceholderText(words.say("filter.placeholder"))
        self._box.setAccessibleName(words.say("filter.name"))
        clearable(self._box)
        self._box.textChanged.connect(self._type)
        self._box.returnPressed.connect(self._leave)
        self._box.left.connect(self._escape)
        self._help = QToolButton(self)
        self._numbers = plain_label(tone="muted", parent=self)
        self._numbers.hide()
        self.chips = FilterChips(self)
        self._trouble = QWidget(self)
        self._sentence = plain_label(tone="bad", wrap=True, parent=self._trouble)
        self._unchanged = plain_label(tone="muted", wrap=True, parent=self._trouble)
        self._mend = QPushButton(self._trouble)
        self._as_words = QPushButton(self.tr("Look for it as text"), self._trouble)
        self._typing = Debounce(self, TYPING_MS, self._tell)
        self._patience = Debounce(self, MISTAKE_MS, self._tell_mistake)
        self._lay_out()
        self.setFocusProxy(self._box)

    def _lay_out(self) -> None:
        self._draw()
        self._help.setAutoRaise(True)
        self._help.setAccessibleName(self.tr("Filter syntax"))
        self._help.setToolTip(plain_tip(self._help.accessibleName()))
        self._help.clicked.connect(lambda _=False: self.help_wanted.emit())
        row = arrange(QHBoxLayout(), (self._box, 1), self._help, spacing=6)
        row.addSpacing(4)
        row.addWidget(self._numbers)
        below = QHBoxLayout(self._trouble)
        below.setContentsMargins(2, 0, 0, 0)
        below.setSpacing(8)
        below.addLayout(arrange(QVBoxLayout(), self._sentence, self._unchanged, spacing=1), 1)
        self._unchanged.show_text(self.tr("The list is unchanged until the query is valid."))
        for button, text in ((self._mend, self._mended), (self._as_words, self._quoted)):
            button.clicked.connect(lambda _=False, text=text: self._try(text()))
            below.addWidget(button)
        self._trouble.hide()
        arrange(QVBoxLayout(self), row, self._trouble, self.chips, margins=0, spacing=5)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        self._help.setIcon(icon("info"))

    @property
    def text(self) -> str:
        return self._box.text()

    def set_text(self, text: str) -> None:
        """Filter by `text` without delay."""
        self._box.setText(text)
        self._tell()
        self._tell_mistake()

    def focus_text(self) -> None:
        """Focus the filter box and select its text."""
        self._box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._box.selectAll()

    def offer_values(self, known: Callable[[], Known]) -> None:
        """Set the callback for known values by field."""
        self._box.offer_values(known)

    @property
    def mistake(self) -> str:
        """The error message shown now, empty without one."""
        return "" if self._trouble.isHidden() else self._sentence.text()

    def show_mistakes(self, errors: Sequence[QueryError], *, applied: bool = False) -> None:
        """Show all errors of the query after a delay, or hide them when there are none.

        With `applied` the filter is active all the same, and so matches nothing.
        """
        self._mistakes, self._applied = tuple(errors), applied
        if not errors:
            self._patience.cancel()
            self._trouble.hide()
            self._show_stale(False)
        else:
            self._patience.request()

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Show the conditions of the active filter as chips."""
        self.chips.show_conditions(conditions)

    def show_pending(self, pending: bool) -> None:
        """Mark chips and numbers while the list still shows the previous filter."""
        self._pending = pending
        self._grey()

    def show_counts(self, shown: int, total: int, selected: int = 0) -> None:
        """Show `Showing 214 of 12,480 · 3 selected`, or nothing for an empty ledger."""
        self._numbers.show_text(words.showing(shown, total, selected) if total else "")
        self._numbers.show()

    def _type(self, text: str) -> None:
        # Clearing the text shows all tasks without delay.
        if text:
            self._typing.request()
        else:
            self._tell()

    def _tell(self) -> None:
        self._typing.cancel()
        text = self._box.text().strip()
        if text != self._told:
            self._told = text
            self.text_changed.emit(text)

    def _tell_mistake(self) -> None:
        self._patience.cancel()
        if not self._mistakes:
            return
        if self._box.offers:  # The condition is incomplete, and its completions are open
            self._patience.request()
            return
        said = self._said()
        right = self._mended()
        self._mend.setText(plain_keys(self.tr("Write {0}").format(right)))
        self._mend.setVisible(bool(right))
        self._as_words.setVisible(not self._applied)
        self._show_stale(not self._applied)
        if self._trouble.isHidden() or said != self._sentence.text():
            self._sentence.show_text(said)
            self._trouble.show()
            announce(self._box, said)

    def _show_stale(self, stale: bool) -> None:
        """Mark chips and numbers as those of an older query."""
        self._unchanged.setVisible(stale)
        before, self._stale = self._stale, stale
        self._grey()
        if stale != before:
            self.stale_changed.emit(stale)

    def _grey(self) -> None:
        old = self._stale or self._pending
        self.chips.show_stale(old)
        self._numbers.setEnabled(not old)

    def _said(self) -> str:
        """Return each error, with its position if there are several; the buttons offer fixes."""
        if len(self._mistakes) == 1:
            return language.sentence(self._mistakes[0])
        place = self.tr("Character {0}: {1}")
        lines = [
            place.format(words.count(one.position + 1), language.sentence(one))
            for one in self._mistakes[:MOST_TOLD]
        ]
        if len(self._mistakes) > MOST_TOLD:
            left = words.count(len(self._mistakes) - MOST_TOLD)
            lines.append(self.tr("…and {0} more").format(left))
        return "\n".join(lines)

    def _mended(self) -> str:
        """Return the query with the first fixable error corrected."""
        return next(filter(None, (corrected(self._told, one) for one in self._mistakes)), "")

    def _quoted(self) -> str:
        return as_words(self._told)

    def _try(self, text: str) -> None:
        self.set_text(text)
        self._box.setFocus()

    def _leave(self) -> None:
        self._tell()
        # The list does not show this query, so the focus stays.
        if self._mistakes and not self._applied:
            self._tell_mistake()
        else:
            self.left.emit()

    def _escape(self) -> None:
        self._tell()
        self.left.emit()


_SIZE = QSize(620, 560)
_EXAMPLE_WIDTH = 260
_ALT = "⌥" if sys.platform == "darwin" else "Alt"


class FilterHelp(InOrder, QDialog):
    """Modeless dialog whose examples a double click or Enter copies into the filter."""

    def __init__(
        self, put: Callable[[str], object], parent: QWidget, *, several: bool = False
    ) -> None:
        super().__init__(parent)
        self._put, self._several = put, several
        self.setWindowTitle(self.tr("Filter syntax"))
        self.resize(_SIZE)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 12)
        column.setSpacing(8)
        column.addWidget(heading(self.tr("Filter syntax"), self))
        lead = self.tr(
            "Every word must occur in the task's id, name, address, kind, state or error. A field "
            "with a value asks for more. Double-click an example to use it."
        )
        column.addWidget(plain_label(lead, self, wrap=True))
        self.table = self._table()
        column.addWidget(self.table, 1)
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        close.rejected.connect(self.close)
        column.addWidget(close)

    def _table(self) -> QTreeWidget:
        table = QTreeWidget(self)
        table.setAccessibleName(self.windowTitle())
        table.setColumnCount(2)
        table.setHeaderLabels([self.tr("Write"), self.tr("Finds")])
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setAlternatingRowColors(True)
        table.setTabKeyNavigation(False)
        table.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        table.header().resizeSection(0, _EXAMPLE_WIDTH)
        by_hand = self.tr("{0}+click on a cell").format(_ALT)
        rows = (*self._joining(), (by_hand, self.tr("the value of that cell")), *self._fields())
        for example, meaning in rows:
            QTreeWidgetItem(table, [example, meaning])
        table.setCurrentIndex(table.model().index(0, 0))
        table.setItemDelegate(Roomy(table))
        table.itemActivated.connect(lambda item, _: self._use(item.text(0)))
        return table

    def _joining(self) -> tuple[tuple[str, str], ...]:
        return (
            ("shop timeout", self.tr("both words, in any order")),
            ('"page timeout"', self.tr("these words together, as they stand")),
            ("status:failed kind:crawl", self.tr("both conditions")),
            ("status:failed OR status:orphaned", self.tr("one of them")),
            ("-host:example.com", self.tr("all but these")),
            ("(status:failed OR budget:exceeded) age:<1d", self.tr("brackets join")),
            ("host:*.example.com", self.tr("* stands for any text")),
        )

    def _fields(self) -> list[tuple[str, str]]:
        """Return all fields; the ledger field is useful only with several ledgers."""
        fields = ((name, one) for name, one in FIELDS.items() if self._several or name != ROOT)
        return [(f"{name}:{one.example}", retold(one.help)) for name, one in fields]

    def _use(self, example: str) -> None:
        if _ALT + "+" not in example:  # Mouse gestures cannot be copied into the filter
            self._put(example)


# Opening the help dialog.


class Help(QObject):
    """Open one help dialog at a time and keep it for reuse."""

    def __init__(self, ctx: WindowContext, filter_bar: FilterBar) -> None:
        super().__init__(ctx.parent)
        self._filter_bar = filter_bar
        self._ctx = ctx
        self._dialog: QDialog | None = None
        self._several = False
        filter_bar.help_wanted.connect(self.open)

    def open(self) -> None:
        several = bool(self._ctx.ledgers.states)
        if self._dialog is None or several != self._several:
            put, self._several = self._filter_bar.set_text, several
            self._dialog = FilterHelp(put, self._ctx.parent, several=several)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
