"""A request in two shapes that stay in step: as a form, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTabWidget, QVBoxLayout, QWidget

from engine.model.errors import InvalidArguments, Problem
from engine.service.drafts import TERMS, read, text_of
from engine.service.rerun import Asked
from gui.start.kind_forms import FormWords
from gui.start.request_form import RequestForm
from gui.style.fonts import fixed_pitch
from gui.style.theme import plain_label

# A request as JSON, to be read, pasted and edited; its mistakes with line and column.

# Where each value of a JSON text stands, so that a mistake can be shown at its line.

MOST_CHARS: Final = 200_000  # a longer text gets no places: finding them would hold up the window
_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$]{0,63}", re.ASCII)
_VALUE: Final = re.compile(r"[^\s,\]}]+")
_BLANKS: Final = re.compile(r"\s*")


def places(text: str) -> dict[str, int]:
    """The offset of every value by its path (`args.tabs[2].url`). `text` has to be valid JSON."""
    found: dict[str, int] = {}
    if len(text) <= MOST_CHARS:
        _walk(text, 0, "", found)
    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both from 1 on."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _walk(text: str, at: int, path: str, found: dict[str, int]) -> int:
    """Note what stands at `at`; the offset behind it."""
    at = _skip(text, at)
    found[path] = at
    if text[at] == "{":
        return _inside(text, at + 1, path, found, named=True)
    if text[at] == "[":
        return _inside(text, at + 1, path, found, named=False)
    if text[at] == '"':
        return _string(text, at)[1]
    value = _VALUE.match(text, at)
    return value.end() if value else at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    """The string that begins at `at`, and the offset behind it."""
    value, end = json.JSONDecoder().raw_decode(text, at)
    return str(value), end


def _inside(text: str, at: int, path: str, found: dict[str, int], *, named: bool) -> int:
    number = 0
    at = _skip(text, at)
    while text[at] not in "}]":
        below = f"{path}[{number}]"
        if named:
            key, at = _string(text, at)
            at = _skip(text, at) + 1
            below = _under(path, key)
        at = _skip(text, _walk(text, at, below, found))
        if text[at] == ",":
            at = _skip(text, at + 1)
        number += 1
    return at + 1


def _under(path: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


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


FORM: Final = 0
JSON: Final = 1


class RequestTabs(QTabWidget):
    """`turned` when the other shape is shown; `stuck` when the JSON is no request that the form
    could show, and therefore stays in sight."""

    turned, stuck = Signal(), Signal()

    def __init__(self, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = RequestForm(words, self)
        self.json = JsonPane(self)
        self._staying = False
        page = QWidget(self)
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 8, 0, 0)
        inner.addWidget(self.form)
        self.addTab(page, self.tr("Form"))
        self.addTab(self.json, self.tr("JSON"))
        self.setDocumentMode(True)
        self.tabBar().setAccessibleName(self.tr("As a form or as JSON"))
        self.currentChanged.connect(self._turn)

    @property
    def in_json(self) -> bool:
        """Is it the JSON that is shown?"""
        return self.currentIndex() == JSON

    @property
    def asked(self) -> Asked | None:
        """The request that stands there; None while the JSON is none."""
        return self.json.asked if self.in_json else self.form.asked

    @property
    def refusal(self) -> tuple[Problem, ...]:
        """Why the JSON is no request."""
        return self.json.refusal if self.in_json else ()

    def show_request(self, asked: Asked, *, whole: bool) -> None:
        """Show it in both; what the form cannot show is left out, or kept if `whole`."""
        self.form.show_request(asked, whole=whole)
        if self.in_json:
            self.json.show_request(self.form.asked)

    def _turn(self, tab: int) -> None:
        """The same request on the other side; a text that is none stays where it is."""
        if self._staying:
            return
        if tab == JSON:
            self.json.show_request(self.form.asked)
        else:
            self.json.settle()
            if self.json.asked is None:
                self._stay()
                return
            self.form.show_request(self.json.asked, whole=True)
        self.turned.emit()

    def _stay(self) -> None:
        self._staying = True
        self.setCurrentIndex(JSON)
        self._staying = False
        self.stuck.emit()
