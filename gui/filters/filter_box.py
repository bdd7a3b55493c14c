"""The line for a filter: offers what may follow. Esc clears it, a second Esc goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.query import Offer, completion
from gui.style.completion_popup import Offers

Known = Mapping[str, Iterable[str]]


class FilterBox(QLineEdit):
    """Arrows and Tab choose an offer while there is one. `escaped` gives the keys back."""

    escaped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known: Callable[[], Known] = dict
        self._offers: Offers | None = None
        self.textEdited.connect(lambda _: self._offer())

    def offer_values(self, known: Callable[[], Known]) -> None:
        """`known` tells which values tasks have, for fields that cannot list them."""
        self._known = known

    @property
    def offers(self) -> tuple[str, ...]:
        """What is offered below the line now."""
        return self._offers.shown if self._offers is not None else ()

    def event(self, event: QEvent) -> bool:
        # Tab would go to the next widget before any key event is made of it.
        tab = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Tab
        if tab and event.type() == QEvent.Type.KeyPress and self.offers:
            assert self._offers is not None
            self._offers.take(first=True)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._chooses(event):
            event.accept()
        elif event.key() == Qt.Key.Key_Escape:
            event.accept()
            if self.text():
                self.clear()
            else:
                self.escaped.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.escaped.emit()
        elif event.key() == Qt.Key.Key_Space and _with_control(event):
            self._offer(asked=True)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._close()

    def _chooses(self, event: QKeyEvent) -> bool:
        """Is this key for the offers?"""
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

    def _offer(self, *, asked: bool = False) -> None:
        found = completion(self.text(), self.cursorPosition(), self._known(), asked=asked)
        if self._offers is None:
            if not found.offers:
                return
            self._offers = Offers(self.window())
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
