"""A request in two synchronised tabs: form and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTabWidget, QVBoxLayout, QWidget

from engine.model.errors import InvalidArguments, Problem
from engine.service.drafts import TERMS, read, text_of
from engine.service.rerun import Asked
from gui.engine_link.throttle import Debounce
from gui.start.kind_form import FormWords
from gui.start.request_form import RequestForm
from gui.style.fonts import fixed_pitch
from gui.style.theme import plain_label

# JSON editor of a request, which shows errors with line and column.

# Offsets of the values in a JSON text, for errors by line.

# Offsets of a longer text are not computed, because that blocks the window.
MOST_CHARS: Final = 200_000
_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$]{0,63}", re.ASCII)
_VALUE: Final = re.compile(r"[^\s,\]}]+")
_BLANKS: Final = re.compile(r"\s*")


def places(text: str) -> dict[str, int]:
    """Return the offset of every value by path (`args.tabs[2].url`); `text` is valid JSON."""
    found: dict[str, int] = {}
    if len(text) <= MOST_CHARS:
        _walk(text, 0, "", found)
    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _walk(text: str, at: int, path: str, found: dict[str, int]) -> int:
    """Record the value at `at` and return the offset after it."""
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
    """Return the string at `at` and the offset after it."""
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


PAUSE_MS: Final = 150  # Pause in typing before the text is parsed
MOST_SHOWN: Final = 4


class JsonPane(QWidget):
    """JSON editor; `asked` is its request, or None for invalid JSON."""

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
        self._pause = Debounce(self, PAUSE_MS, self._read)
        self._first: int | None = None
        self.asked: Asked | None = None
        self.refusal: tuple[Problem, ...] = ()
        self.text.textChanged.connect(self._pause.request)
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
        """Show a request as JSON."""
        self.asked, self.refusal = asked, ()
        self.text.setPlainText(text_of(asked))
        self._pause.cancel()
        self.show_problems(())

    def settle(self) -> None:
        """Parse the text now, without waiting for a pause."""
        self._pause.flush()

    def show_problems(self, problems: Iterable[Problem]) -> None:
        """Show each problem with its line."""
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
    """Return the offset of a value, or of the nearest parent of a missing one."""
    head = path.split(".")[0].split("[")[0]
    first = path if head in TERMS and head in known else f"args.{path}"
    nearest = (one for each in (first, path) for one in _upwards(each) if one in known)
    return known[next(nearest, "args" if "args" in known else "")] if known else None


def _upwards(path: str) -> Iterator[str]:
    """Yield `a.b[2].c`, `a.b[2]` and `a.b`, without the root."""
    while path and path != "args":
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


FORM: Final = 0
JSON: Final = 1


class RequestTabs(QTabWidget):
    """Tabs for form and JSON; `turned` reports a switch, `stuck` a refused one.

    Invalid JSON cannot be shown in the form, so the JSON tab stays open.
    """

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
        """True while the JSON tab is shown."""
        return self.currentIndex() == JSON

    @property
    def asked(self) -> Asked | None:
        """The request of the current tab, or None for invalid JSON."""
        return self.json.asked if self.in_json else self.form.asked

    @property
    def refusal(self) -> tuple[Problem, ...]:
        """The problems of invalid JSON."""
        return self.json.refusal if self.in_json else ()

    def show_request(self, asked: Asked, *, whole: bool) -> None:
        """Show a request in both tabs; what the form cannot show is dropped, or kept if `whole`."""
        self.form.show_request(asked, whole=whole)
        if self.in_json:
            self.json.show_request(self.form.asked)

    def _turn(self, tab: int) -> None:
        """Copy the request to the other tab; invalid JSON prevents the switch."""
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
