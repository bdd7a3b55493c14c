"""Label that shrinks in favour of the buttons in its row."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QWidget

from gui.style.theme import TonedLabel, plain_tip


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
