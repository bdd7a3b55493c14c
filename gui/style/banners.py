"""The card that replaces an empty list, and the banner above the list."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.text.words import count
from gui.style.accessibility import announce
from gui.style.icons import glyph, icon
from gui.style.theme import heading, plain_label, tone
from gui.style.widgets import arrange

# Removal of repeated words between a title and its sentence. Each error has a title for lists and a
# complete sentence, which often repeats the title.

_GOES_ON: Final = re.compile(r"\s*[:.!?…]+\s*")
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?=[\s,;]|\.?(?:\s|$))")


def without_repetition(title: str, sentence: str) -> tuple[str, str]:
    """Return the headline and the text below it, either of which may be empty.

    `Cannot write: disk full` below `Cannot write` becomes `Disk full`. Where the title is part of
    the sentence's grammar, only the sentence remains.
    """
    head = title.strip().rstrip(".")
    first, line_end, more = sentence.partition("\n")
    if not head or not re.search(rf"(?<!\w){re.escape(head)}(?!\w)", first, re.IGNORECASE):
        return title, sentence
    if first[: len(head)].casefold() != head.casefold():
        return "", sentence
    rest = first[len(head) :]
    goes_on = _GOES_ON.match(rest)
    if rest.strip() and goes_on is None:
        return "", sentence
    left = rest[goes_on.end() :] if goes_on else ""
    return title, (_begun(left) + line_end + more).strip("\n")


def _begun(text: str) -> str:
    """Capitalise a first word, but no file name or address."""
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


CARD_WIDTH, MOST_CARD_WIDTH = 460, 560
_BUTTON_GAP = 8
PICTURE = 44
TITLE_CHARS, SENTENCE_CHARS, SENTENCE_LINES = 200, 900, 8  # Limits for text with paths and reasons
BUTTON_HEIGHT = 32
# Characters of room that the text needs next to the buttons; with less, buttons go below.
WORDS_CHARS = 50
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class Choice:
    """Text and action of one button; the first one of a card is the default."""

    text: str
    act: Callable[[], object]


class Card(QWidget):
    """Centred icon, headline, sentence and buttons for an empty area."""

    _picture_gap = 10

    def __init__(self, sign: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sign = sign
        self._picture = plain_label(parent=self)
        self._headline = heading("", grow=1.35)
        self._sentence = plain_label(tone="muted", wrap=True)
        self._detail = plain_label(tone="muted", wrap=True)
        self._buttons = QVBoxLayout()  # of rows
        self._buttons.setSpacing(8)
        self._ways: tuple[QPushButton, ...] = ()
        self._default: QPushButton | None = None
        self._lay_out()
        self._draw()

    def _lay_out(self) -> None:
        column = QVBoxLayout()
        column.setSpacing(self._picture_gap)
        for label in (self._picture, self._headline, self._sentence):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column.addWidget(label)
        column.addSpacing(6)
        column.addLayout(self._buttons)
        column.addSpacing(6)
        self._detail.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(self._detail)
        box = self._box = QWidget(self)
        box.setFixedWidth(CARD_WIDTH)
        box.setLayout(column)
        around = self._around = QVBoxLayout(self)
        middle = QHBoxLayout()  # With an alignment Qt would compute the height for the full width
        middle.addStretch()
        middle.addWidget(box)
        middle.addStretch()
        around.addStretch(2)
        around.addLayout(middle)
        around.addStretch(3)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(QPalette.ColorRole.Base)

    def show_words(self, headline: str, sentence: str, detail: str = "") -> None:
        headline, sentence = without_repetition(headline, sentence)
        self._headline.show_text(display(headline, TITLE_CHARS))
        self._headline.setVisible(bool(headline))
        self._sentence.show_text(_few_lines(sentence))
        self._detail.show_text(display(detail, SENTENCE_CHARS))
        self._detail.setVisible(bool(detail))

    @property
    def first_choice(self) -> QWidget:
        """The first button, or the card without any."""
        return self._ways[0] if self._ways else self

    def show_choices(self, choices: tuple[Choice, ...]) -> None:
        """Replace the buttons; Enter presses the first one, which keeps a focus of the old ones."""
        held = self.window().focusWidget() in self._ways
        for old in self._ways:
            old.hide()
            old.deleteLater()
        self._default = None
        buttons = []
        for choice in choices:
            button = QPushButton(choice.text, self._box)
            # Outside a dialog Enter presses only buttons with autoDefault.
            button.setAutoDefault(True)
            button.setMinimumHeight(BUTTON_HEIGHT)
            button.clicked.connect(lambda _=False, act=choice.act: act())
            buttons.append(button)
            self._default = self._default or button
        self._ways = tuple(buttons)
        self._place()
        if held:
            self.first_choice.setFocus()

    def _place(self) -> None:
        """Place the buttons in rows that fit into a small window; no text is cut off."""
        while (row := self._buttons.takeAt(0)) is not None:
            if (old := row.layout()) is not None:
                while old.takeAt(0) is not None:
                    pass  # alone, the row would not hear of the end of its buttons
                old.deleteLater()
        rows: list[list[QPushButton]] = [[]]
        for button in self._ways:
            if rows[-1] and self._width_of([*rows[-1], button]) > MOST_CARD_WIDTH:
                rows.append([])
            rows[-1].append(button)
        for each in rows:
            self._buttons.addLayout(arrange(QHBoxLayout(), 1, *each, 1, spacing=_BUTTON_GAP))
        self._box.setFixedWidth(max(CARD_WIDTH, *map(self._width_of, rows)))

    @staticmethod
    def _width_of(row: Sequence[QPushButton]) -> int:
        wide = sum(max(one.sizeHint().width(), one.minimumWidth()) for one in row)
        return wide + _BUTTON_GAP * (len(row) + 1) + BUTTON_HEIGHT

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the icon where there is little room for the text."""
        super().resizeEvent(event)
        margins = self._around.contentsMargins()
        words = self._box.heightForWidth(self._box.maximumWidth())
        words += margins.top() + margins.bottom()
        if not self._picture.isHidden():
            words -= PICTURE + self._picture_gap
        self._picture.setVisible(event.size().height() >= words + PICTURE + self._picture_gap)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Do not take the focus from a visible widget such as the filter box.
        focus = self.window().focusWidget()
        if self._default is not None and (focus is None or not focus.isVisible()):
            self._default.setFocus()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()
        elif event.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self._place)  # after the buttons have the new font

    def _draw(self) -> None:
        colour = tone("muted", QApplication.palette())
        self._picture.setPixmap(glyph(self._sign, PICTURE, colour, self.devicePixelRatioF()))


def _few_lines(text: str) -> str:
    """Limit the length of a multi-line text, so that it cannot fill the window."""
    lines = text.split("\n", SENTENCE_LINES)
    return "\n".join(display(line, SENTENCE_CHARS) for line in lines)


class Banner(QFrame):
    """Banner above the list with a problem and its solutions.

    Where the text has too little room next to the buttons, they move below it.
    """

    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tone, self._told = "warning", ""
        self._first: tuple[QPushButton, str] | None = None
        self._leaving = QTimer(self, singleShot=True)
        self._leaving.timeout.connect(lambda: self.setVisible(False))
        self._limit: QTimer | None = None
        self._seconds = QTimer(self, interval=SECOND_MS)
        self._seconds.timeout.connect(self._show_seconds)
        self._picture = plain_label(parent=self)
        self._title = heading("", grow=1.0)
        self._title.setWordWrap(True)
        self._sentence = plain_label(wrap=True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._sentence.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._buttons = QHBoxLayout()
        self._close = QToolButton(self)
        self._close.setAutoRaise(True)
        self._close.setAccessibleName(self.tr("Close this message"))
        self._close.setToolTip(self._close.accessibleName())
        self._close.clicked.connect(self._dismiss)
        self._lay_out()
        self.setVisible(False)
        self._draw()

    def _lay_out(self) -> None:
        words = arrange(QVBoxLayout(), self._title, self._sentence, spacing=1)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(10)
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        self._both = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._both.addLayout(words, 1)
        self._both.addLayout(self._buttons)
        self._both.setAlignment(self._buttons, Qt.AlignmentFlag.AlignLeft)
        row.addLayout(self._both, 1)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)

    def tell(
        self,
        title: str,
        sentence: str,
        choices: tuple[Choice, ...] = (),
        tone_name: str = "warning",
    ) -> None:
        """Show the banner and announce it to screen readers."""
        self._tone, self._told = tone_name, title
        title, sentence = without_repetition(title, sentence)
        for label, text in (
            (self._title, display(title, TITLE_CHARS)),
            (self._sentence, _few_lines(sentence)),
        ):
            label.show_text(text)
            label.setVisible(bool(text))
        parts = (self._title.text().removesuffix("."), self._sentence.text())
        self.setAccessibleName(". ".join(part for part in parts if part))
        while (item := self._buttons.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        self._first = None
        self._leaving.stop()
        self._seconds.stop()
        for choice in choices:
            button = QPushButton(choice.text, self)
            button.clicked.connect(lambda _=False, act=choice.act: act())
            self._buttons.addWidget(button)
            self._first = self._first or (button, choice.text)
        self._arrange()
        self._draw()
        self.setVisible(True)
        announce(self, self.accessibleName())

    def leave_after(self, ms: int) -> None:
        """Hide a message that needs no answer, unless another one replaces it."""
        self._leaving.start(ms)

    def count_down(self, limit: QTimer) -> None:
        """Show the seconds that `limit` has left on the first button."""
        self._limit = limit
        self._seconds.start()
        self._show_seconds()

    def _show_seconds(self) -> None:
        limit = self._limit
        if self._first is None or limit is None or not limit.isActive() or self.isHidden():
            self._seconds.stop()
            return
        button, text = self._first
        left_ms = min(limit.remainingTime(), limit.interval())  # a coarse timer may end later
        left = math.ceil(left_ms / SECOND_MS)
        button.setText(self.tr("{0} ({1} s)").format(text, count(left)))
        button.setMinimumWidth(max(button.minimumWidth(), button.sizeHint().width()))  # no shaking
        button.setAccessibleName(text)  # a screen reader need not follow the seconds

    @property
    def title(self) -> str:
        """The title of the banner, empty while hidden."""
        return "" if self.isHidden() else display(self._told, TITLE_CHARS)

    def minimumSizeHint(self) -> QSize:
        """Allow a width of the buttons alone, because the text wraps."""
        return QSize(self._beside_words(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _beside_words(self) -> int:
        """Return the width in pixels of everything except the text."""
        margins, row = self.contentsMargins(), self.layout()
        assert row is not None
        edges, signs = row.contentsMargins(), (self._picture, self._close)
        fixed = sum(one.sizeHint().width() + row.spacing() for one in signs)
        fixed += margins.left() + margins.right() + edges.left() + edges.right()
        return fixed + self._buttons.sizeHint().width()

    def _arrange(self) -> None:
        metrics = self.fontMetrics()
        texts = (self._title.text(), *self._sentence.text().splitlines())
        longest = max(map(metrics.horizontalAdvance, texts), default=0)
        wanted = min(longest, WORDS_CHARS * metrics.averageCharWidth())
        fits = self.width() >= self._beside_words() + self._both.spacing() + wanted
        way = QBoxLayout.Direction.LeftToRight if fits else QBoxLayout.Direction.TopToBottom
        if self._both.direction() != way:
            self._both.setDirection(way)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(tone(self._tone, QApplication.palette()))
        edge = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        colour.setAlphaF(0.55)
        painter.setPen(colour)
        colour.setAlphaF(0.10)
        painter.setBrush(colour)
        painter.drawRoundedRect(edge, 6, 6)
        painter.end()

    def _dismiss(self) -> None:
        self.setVisible(False)
        self.closed.emit()

    def _draw(self) -> None:
        colour = tone(self._tone, QApplication.palette())
        sign = "info" if self._tone in ("accent", "muted", "good") else "warning"
        self._picture.setPixmap(glyph(sign, 20, colour, self.devicePixelRatioF()))
        self._close.setIcon(icon("close"))
