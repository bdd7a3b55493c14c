"""The filter above the list: its line, its conditions as chips, and its mistake with a way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from engine.query import QueryError, as_words, mended
from engine.text import words
from gui.filters.filter_box import FilterBox, Known
from gui.filters.filter_chips import Condition, FilterChips
from gui.i18n import language
from gui.style.announcements import announce
from gui.style.clearable import clearable
from gui.style.icons import icon
from gui.style.theme import plain_keys, plain_label, plain_tip

# Typing is not held up by the list: it is filtered when the fingers rest this long.
TYPING_MS = 120
# What is half typed is mostly no mistake: one is told when the fingers rest longer.
MISTAKE_MS = 700
MOST_TOLD = 4  # mistakes in one text: the box has no room for more


class FilterBar(QWidget):
    """Emits `text_changed` a moment after typing, and `left` when the list should have the keys."""

    text_changed = Signal(str)
    left = Signal()
    help_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._told = ""
        self._mistakes: tuple[QueryError, ...] = ()
        self._applied = False
        self._box = FilterBox(self)
        self._box.setPlaceholderText(words.say("filter.placeholder"))
        self._box.setAccessibleName(words.say("filter.name"))
        clearable(self._box)
        self._box.textChanged.connect(self._type)
        self._box.returnPressed.connect(self._leave)
        self._box.escaped.connect(self._escape)
        self._help = QToolButton(self)
        self._numbers = plain_label(tone="muted", parent=self)
        self._numbers.hide()
        self.chips = FilterChips(self)
        self._trouble = QWidget(self)
        self._sentence = plain_label(tone="bad", wrap=True, parent=self._trouble)
        self._mend = QPushButton(self._trouble)
        self._as_words = QPushButton(self.tr("Look for it as text"), self._trouble)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._typing.timeout.connect(self._tell)
        self._patience = QTimer(self, singleShot=True, interval=MISTAKE_MS)
        self._patience.timeout.connect(self._tell_mistake)
        self._lay_out()
        self.setFocusProxy(self._box)

    def _lay_out(self) -> None:
        self._draw()
        self._help.setAutoRaise(True)
        self._help.setAccessibleName(self.tr("What can be filtered by"))
        self._help.setToolTip(plain_tip(self._help.accessibleName()))
        self._help.clicked.connect(lambda _=False: self.help_wanted.emit())
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self._box, 1)
        row.addWidget(self._help)
        row.addSpacing(4)
        row.addWidget(self._numbers)
        below = QHBoxLayout(self._trouble)
        below.setContentsMargins(2, 0, 0, 0)
        below.setSpacing(8)
        below.addWidget(self._sentence, 1)
        for button, text in ((self._mend, self._mended), (self._as_words, self._quoted)):
            button.clicked.connect(lambda _=False, text=text: self._try(text()))
            below.addWidget(button)
        self._trouble.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(5)
        column.addLayout(row)
        column.addWidget(self._trouble)
        column.addWidget(self.chips)

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
        """Filter by `text` at once."""
        self._box.setText(text)
        self._tell()
        self._tell_mistake()

    def focus_text(self) -> None:
        """Put the keys here; what stands in the box is marked, not cleared."""
        self._box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._box.selectAll()

    def offer_values(self, known: Callable[[], Known]) -> None:
        """`known` tells the values that tasks have, by field."""
        self._box.offer_values(known)

    @property
    def mistake(self) -> str:
        """What is said to be wrong with the text; empty while nothing is."""
        return "" if self._trouble.isHidden() else self._sentence.text()

    def show_mistakes(self, errors: Sequence[QueryError], *, applied: bool = False) -> None:
        """Say all that is wrong with the text, in a moment; none: nothing is.

        `applied`: the list is narrowed by it all the same, and so shows nothing.
        """
        self._mistakes, self._applied = tuple(errors), applied
        if not errors:
            self._patience.stop()
            self._trouble.hide()
        else:
            self._patience.start()

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Everything that narrows the list now."""
        self.chips.show_conditions(conditions)

    def show_counts(self, shown: int, total: int, selected: int = 0) -> None:
        """`Showing 214 of 12,480 · 3 selected`, beside the box; of none the list itself tells."""
        self._numbers.show_text(words.showing(shown, total, selected) if total else "")
        self._numbers.show()

    def _type(self, text: str) -> None:
        # What was emptied shows everything again without waiting.
        if text:
            self._typing.start()
        else:
            self._tell()

    def _tell(self) -> None:
        self._typing.stop()
        text = self._box.text().strip()
        if text != self._told:
            self._told = text
            self.text_changed.emit(text)

    def _tell_mistake(self) -> None:
        self._patience.stop()
        if not self._mistakes:
            return
        if self._box.offers:  # half a condition, and what may follow stands below it
            self._patience.start()
            return
        said = self._said()
        right = self._mended()
        self._mend.setText(plain_keys(self.tr("Write {0}").format(right)))
        self._mend.setVisible(bool(right))
        self._as_words.setVisible(not self._applied)
        if self._trouble.isHidden() or said != self._sentence.text():
            self._sentence.show_text(said)
            self._trouble.show()
            announce(self._box, said)

    def _said(self) -> str:
        """Each mistake, and of several where it is; the buttons beside them are the advice."""
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
        """The text without the first of the mistakes that have one way out."""
        return next(filter(None, (mended(self._told, one) for one in self._mistakes)), "")

    def _quoted(self) -> str:
        return as_words(self._told)

    def _try(self, text: str) -> None:
        self.set_text(text)
        self._box.setFocus()

    def _leave(self) -> None:
        self._tell()
        if self._mistakes and not self._applied:  # the list shows something else: stay with it
            self._tell_mistake()
        else:
            self.left.emit()

    def _escape(self) -> None:
        self._tell()
        self.left.emit()
