"""Line below the search of a list of units: the mistake in it, with buttons that correct it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.query import QueryError, as_words, corrected
from gui.engine_link.scheduling import Debounce
from gui.filters.filter_bar import MISTAKE_MS
from gui.i18n import language
from gui.style.accessibility import announce
from gui.style.theme import plain_keys, plain_label
from gui.style.widgets import arrange


class FilterMistake(QWidget):
    """Mistake in a search, shown after a pause in typing; `corrected` carries a right search."""

    corrected = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._text = ""
        self._mistake: QueryError | None = None
        self.sentence = plain_label(tone="bad", wrap=True, parent=self)
        self.mend = QPushButton(self)
        self.as_words = QPushButton(self.tr("Look for it as text"), self)
        shown = self.tr("All rows are shown until the search is valid.")
        unused = plain_label(shown, self, tone="muted", wrap=True)
        texts = arrange(QVBoxLayout(), self.sentence, unused, spacing=1)
        arrange(QHBoxLayout(self), (texts, 1), self.mend, self.as_words, margins=0)
        self.mend.clicked.connect(lambda: self.corrected.emit(self._mended()))
        self.as_words.clicked.connect(lambda: self.corrected.emit(as_words(self._text)))
        self._patience = Debounce(self, MISTAKE_MS, self._show)
        self.hide()

    def show_mistake(self, text: str, mistake: QueryError | None) -> None:
        """Show the mistake in this search after a pause, or hide the line for None."""
        self._text, self._mistake = text, mistake
        if mistake is None:
            self._patience.cancel()
            self.hide()
        else:
            self._patience.request()

    def _show(self) -> None:
        if self._mistake is None:
            return
        said = language.sentence(self._mistake)
        right = self._mended()
        self.mend.setText(plain_keys(self.tr("Write {0}").format(right)))
        self.mend.setVisible(bool(right))
        if self.isHidden() or said != self.sentence.text():
            self.sentence.show_text(said)
            self.show()
            announce(self, said)

    def _mended(self) -> str:
        return corrected(self._text, self._mistake) if self._mistake is not None else ""
