"""Report window parts that failed to load, while the window continues without them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from engine.logging.logs import log_path
from engine.model.display import display
from engine.model.errors import EngineError
from gui.i18n import language
from gui.style.banners import Banner, Card, Choice

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMainWindow

log = logging.getLogger(__name__)
_CHARS = 300


class PartMissing(EngineError):
    """A part of the window failed to load; the others work."""

    code = "window_part_missing"
    title = "A part of the window is missing"
    sentence = "“{part}” could not be made: {reason} [window_part_missing]"
    advice_text = "Everything else works. Start the program anew; if it comes back, send the log."


class WindowBroken(EngineError):
    """Only the frame of the window could be created."""

    code = "window_broken"
    title = "The window could not be made"
    sentence = "What stands in it could not be made: {reason} [window_broken]"
    advice_text = "Every task is kept. Start the program anew; if it comes back, send the log."


class BrokenParts(QObject):
    """Collect failed parts and report them once the window is shown."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._missing: list[PartMissing] = []
        self.bar: Banner | None = None

    def note(self, part: str, error: Exception) -> None:
        """Record a failed part."""
        log.error("the part %s of the window could not be made", part, exc_info=error)
        self._missing.append(PartMissing(part=part, reason=_reason(error)))

    def tell(self, place: Callable[[Banner], object]) -> None:
        """Show a banner with the failed parts, if any; `place` puts it into the window."""
        if not self._missing:
            return
        self.bar = Banner(self._window)
        place(self.bar)
        lines = [language.sentence(one) for one in self._missing]
        first = self._missing[0]
        text = "\n".join([*lines, language.advice(first)])
        show = Choice(self.tr("Open the log’s folder"), show_log)
        self.bar.tell(language.title(first), text, (show,), "bad")


def show_broken(window: QMainWindow, error: Exception, leave: Callable[[], object]) -> QWidget:
    """Replace the content of `window` by the error and its solutions."""
    told = WindowBroken(reason=_reason(error))
    card = Card("warning", window)
    card.show_words(language.title(told), language.told(told), str(log_path()))
    tr = card.tr
    card.show_choices((Choice(tr("Open the log’s folder"), show_log), Choice(tr("Quit"), leave)))
    window.setCentralWidget(card)
    return card


def show_log() -> None:
    from gui.style.folders import show_folder  # Rarely needed

    show_folder(log_path().parent)


def _reason(error: Exception) -> str:
    return display(f"{type(error).__name__}: {error}", _CHARS)
