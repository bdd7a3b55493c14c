"""Arrangement in boxes; labels and links that elide their text where room is short."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias, TypeVar

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QTabBar,
    QTabWidget,
    QWidget,
)

from gui.style.theme import TonedLabel, plain_tip, tone, use_colour

_Box = TypeVar("_Box", bound=QBoxLayout)
_Part: TypeAlias = QWidget | QLayout


def arrange(
    box: _Box,
    *parts: _Part | tuple[_Part, int] | tuple[QWidget, int, Qt.AlignmentFlag] | int,
    margins: int | tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> _Box:
    """Add `parts` to a box in their order, each alone or with stretch and alignment.

    A number is a stretch between them.
    """
    if margins is not None:
        box.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    if spacing is not None:
        box.setSpacing(spacing)
    for one in parts:
        if isinstance(one, int):
            box.addStretch(one)
            continue
        part, stretch, *align = one if isinstance(one, tuple) else (one, 0)
        if isinstance(part, QLayout):
            box.addLayout(part, stretch)
        else:
            box.addWidget(part, stretch, *align)
    return box


class ElidedLabel(TonedLabel):
    """Label that elides its text where room is short.

    `text` keeps the full text, as do its tool tip and screen reader text. The first `least`
    characters always have room.
    """

    def __init__(
        self, tone_name: str = "", parent: QWidget | None = None, *, least: int = 0
    ) -> None:
        self._least, self._more = least, ""
        super().__init__("", tone_name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        whole, least = super().minimumSizeHint(), self._least
        return QSize(
            min(whole.width(), least * self.fontMetrics().averageCharWidth()), whole.height()
        )

    def show_text(self, text: str, more: str = "") -> None:
        """Show `text`, with `more` in the tool tip."""
        self._more = more
        super().show_text(text)
        self._tell_whole()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._tell_whole()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, place = QPainter(self), self.contentsRect()
        side = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        self.style().drawItemText(
            painter,
            place,
            int(side),
            self.palette(),
            self.isEnabled(),
            self._seen(),
            self.foregroundRole(),
        )
        painter.end()

    def _seen(self) -> str:
        room = self.contentsRect().width()
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)

    def _tell_whole(self) -> None:
        cut = self.text() if self._seen() != self.text() else ""
        told = "\n".join(filter(None, (cut, self._more)))
        self.setToolTip(plain_tip(told) if told else "")


class EmptyNote(TonedLabel):
    """Text in the middle of an empty `place`, hidden while there is none."""

    def __init__(self, place: QWidget) -> None:
        super().__init__("", "muted", place)
        centre(self)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        place.installEventFilter(self)
        self.hide()

    def tell(self, text: str) -> None:
        """Show `text`, or nothing."""
        self.show_text(text)
        self.setGeometry(self._place().rect())
        self.setVisible(bool(text))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._place().rect())
        return False

    def _place(self) -> QWidget:
        place = self.parentWidget()
        assert place is not None
        return place


class Tabs(QTabWidget):
    """Tab widget in document mode, whose tabs have room for their text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabBar(_TabBar(self))
        self.setDocumentMode(True)


class _TabBar(QTabBar):
    """Tab bar that is higher by as much as the Fusion style takes from the text of a tab.

    Fusion moves the text of an unselected tab down, by cutting the top off its place, which then
    is lower than a line: dots of capitals and descenders were cut.
    """

    def tabSizeHint(self, index: int) -> QSize:
        hint = super().tabSizeHint(index)
        shift = self.style().pixelMetric(QStyle.PixelMetric.PM_TabBarTabShiftVertical)
        return QSize(hint.width(), hint.height() + shift)


def centre(note: QLabel) -> None:
    """Put the text of an otherwise empty place into its middle."""
    note.setAlignment(Qt.AlignmentFlag.AlignCenter)
    note.setWordWrap(True)
    note.setContentsMargins(12, 12, 12, 12)


MARGIN = 16  # Pixels of a button around its text


class _ColouredButton(QPushButton):
    """Button with text in a colour of the theme, also after a theme change."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.EnabledChange):
            self._colour()

    def _colour(self) -> None:
        use_colour(self, QPalette.ColorRole.ButtonText, self._wanted())

    @abstractmethod  # checked by mypy: Qt's metaclass excludes ABC
    def _wanted(self) -> QColor:
        """Return the colour of the text."""


class LinkButton(_ColouredButton):
    """Flat button in the link colour."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setFlat(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def _wanted(self) -> QColor:
        return QApplication.palette().color(QPalette.ColorRole.Link)


class DangerButton(_ColouredButton):
    """Button for what cannot be undone."""

    def _wanted(self) -> QColor:
        palette = QApplication.palette()
        group, role = QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText
        return tone("bad", palette) if self.isEnabled() else palette.color(group, role)


class ElidedLink(LinkButton):
    """One-line link that elides its text and keeps the full text as tool tip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._whole = ""
        self.setAutoDefault(False)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def paintEvent(self, _: QPaintEvent) -> None:
        """Paint the text at the left; a style sheet would keep the colours of the first theme."""
        painter, option = QStylePainter(self), QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        room = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        shown = left | Qt.TextFlag.TextShowMnemonic
        role = QPalette.ColorRole.ButtonText
        painter.drawItemText(room, shown, option.palette, self.isEnabled(), self.text(), role)

    @property
    def whole(self) -> str:
        """The full text."""
        return self._whole

    def show_text(self, text: str) -> None:
        self._whole = " ".join(text.split())
        self.setAccessibleName(self._whole)
        self.setToolTip(plain_tip(text) if text else "")
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        room = max(self.width() - MARGIN, 0)
        shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        self.setText(shown.replace("&", "&&"))
