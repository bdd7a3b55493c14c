"""What came of something that was done to many tasks: a line below the list, and the refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from gui import language
from gui.bulk_work import Refusal
from gui.states import Banner, Choice

if TYPE_CHECKING:
    from gui.main_window import MainWindow

NEWS_MS = 8000
MOST_LISTED = 3


class Reports(QObject):
    """Good news goes by itself; what was refused stays until it is closed."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.bar = Banner(window)
        window.middle.addWidget(self.bar)
        self._over = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._over.timeout.connect(self.bar.hide)

    def say(self, words: str) -> None:
        """All went well; the line goes after a while."""
        self.bar.tell(words, "", tone_name="good")
        self._over.start()

    def tell(self, title: str, refused: Sequence[Refusal]) -> None:
        """`title` says how many; the first reasons stand below, all of them in a list."""
        self._over.stop()
        reasons = dict.fromkeys(language.sentence(one.error) for one in refused)
        lines = "\n".join(list(reasons)[:MOST_LISTED])
        show = Choice(self.tr("Show which…"), lambda: self._show(title, refused))
        self.bar.tell(title, lines, (show,), "bad")

    def _show(self, title: str, refused: Sequence[Refusal]) -> None:
        from gui.dialogs.refusals import Refusals  # seldom needed

        dialog = Refusals(title, refused, self._window.model.view_of, self._window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
