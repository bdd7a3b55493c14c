"""A request as JSON, to be read, pasted and edited; its mistakes with line and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from engine.model.errors import InvalidArguments, Problem
from engine.service.drafts import TERMS, read, text_of
from engine.service.rerun import Asked
from gui.start.json_positions import line_and_column, places
from gui.style.fonts import fixed_pitch
from gui.style.theme import plain_label

PAUSE_MS: Final = 150  # of typing, until the text is read again
MOST_SHOWN: Final = 4


class JsonPane(QWidget):
    """`asked` is the request that stands there, None while it is none."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = QPlainTextEdit(self)
        fixed_pitch(self.text)
        self.text.setAccessibleName(self.tr("The task as JSON"))
        self.text.setTabChangesFocus(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._mistakes = plain_label(tone="bad", wrap=True)
        self._go = QPushButton(self.tr("Go to the mistake"), self)
        self._go.setAutoDefault(False)
        self._go.clicked.connect(self._go_there)
        self._timer = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._timer.timeout.connect(self._read)
        self._first: int | None = None
        self.asked: Asked | None = None
        self.refusal: tuple[Problem, ...] = ()
        self.text.textChanged.connect(self._timer.start)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.addWidget(self.text, 1)
        column.addWidget(self._mistakes)
        column.addWidget(self._go, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_problems(())

    @property
    def mistakes(self) -> str:
        return self._mistakes.text()

    def show_request(self, asked: Asked) -> None:
        """Write down this request."""
        self.asked, self.refusal = asked, ()
        self.text.setPlainText(text_of(asked))
        self._timer.stop()
        self.show_problems(())

    def settle(self) -> None:
        """Read what was typed now, without waiting for a pause."""
        if self._timer.isActive():
            self._timer.stop()
            self._read()

    def show_problems(self, problems: Iterable[Problem]) -> None:
        """Show each mistake with the line where it stands."""
        listed = list(problems)
        known = self._places() if listed and self.asked is not None else {}
        lines, offsets = [], []
        for problem in listed[:MOST_SHOWN]:
            offset = _offset(problem.path, known)
            if offset is None:
                lines.append(str(problem))
                continue
            offsets.append(offset)
            line, column = line_and_column(self.text.toPlainText(), offset)
            where = self.tr("Line {0}, column {1}: {2}")
            lines.append(where.format(line, column, str(problem)))
        if len(listed) > MOST_SHOWN:
            lines.append(self.tr("And {0} more.").format(len(listed) - MOST_SHOWN))
        self._first = offsets[0] if offsets else None
        self._mistakes.show_text("\n".join(lines))
        self._mistakes.setVisible(bool(lines))
        self._go.setVisible(self._first is not None)

    def _read(self) -> None:
        try:
            data = self.text.toPlainText().encode("utf-8", "surrogatepass")
            self.asked, self.refusal = read(data, self.tr("The text")), ()
        except InvalidArguments as error:
            self.asked, self.refusal = None, error.problems
        self.show_problems(self.refusal)
        self.changed.emit()

    def _places(self) -> dict[str, int]:
        return places(self.text.toPlainText())

    def _go_there(self) -> None:
        if self._first is not None:
            cursor = QTextCursor(self.text.document())
            cursor.setPosition(min(self._first, self.text.document().characterCount() - 1))
            self.text.setTextCursor(cursor)
            self.text.setFocus()


def _offset(path: str, known: dict[str, int]) -> int | None:
    """Where it stands; of what is missing, where it would belong."""
    head = path.split(".")[0].split("[")[0]
    first = path if head in TERMS and head in known else f"args.{path}"
    nearest = (one for each in (first, path) for one in _upwards(each) if one in known)
    return known[next(nearest, "args" if "args" in known else "")] if known else None


def _upwards(path: str) -> Iterator[str]:
    """`a.b[2].c`, `a.b[2]`, `a.b`, but not what holds everything."""
    while path and path != "args":
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
