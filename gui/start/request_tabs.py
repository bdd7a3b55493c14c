"""A request in two synchronised tabs, form and JSON, and its addresses: typed, pasted, a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QTextCursor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, elide_right
from engine.model.errors import InvalidArguments, Problem
from engine.model.kind_traits import traits_of
from engine.model.redact import MARK
from engine.model.typed_address import address_in
from engine.service.drafts import TERMS, read, text_of
from engine.service.forms import COMMANDS, MOST, AddressList, Sorting
from engine.service.rerun import Asked
from engine.text.messages import retold
from engine.text.words import count
from gui.engine_link.scheduling import Debounce, SlicedWork
from gui.start.field import choice
from gui.start.kind_form import FormWords
from gui.start.request_form import RequestForm
from gui.style.editors import Patterns
from gui.style.theme import fixed_pitch, plain_keys, plain_label
from gui.style.widgets import Tabs, arrange

if TYPE_CHECKING:
    from gui.start.command_form import CommandForm
    from gui.start.kind_form import KindForm


# List of addresses, which becomes one task each or one task for all.

LINES: Final = 8
MOST_IN_ONE: Final = 500  # A command task has at most 1,000 commands, two for each address
MOST_NAMED: Final = 3
AT_ONCE: Final = 3_000  # Characters; a longer text is parsed in slices
SLICE_MS: Final = 2


class Many(QWidget):
    """Editor for a list of addresses; `found` is the parsed list, `changed` reports another one."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = Patterns(LINES)
        self.text.setAccessibleName(self.tr("Addresses, one per line"))
        self.text.setPlaceholderText(self.tr("One per line"))
        self.found = AddressList((), 0, ())
        self._lacks = False  # True while an address contains a redacted secret
        self._told = plain_label(tone="muted", wrap=True)
        self._mistake = plain_label(tone="bad", wrap=True)
        one = self.tr("One command task that opens them in turn and keeps their text")
        self.shape = choice((("each", self.tr("One task for each address")), ("one", one)))
        self.shape.setAccessibleName(self.tr("What becomes of the list"))
        self._reading = SlicedWork(self, budget_ms=SLICE_MS)
        self._reading.done.connect(self._show_found)
        self.text.textChanged.connect(self._begin)
        self.shape.currentIndexChanged.connect(lambda _: self.changed.emit())
        parts = (self.text, self._told, self._mistake, self.shape)
        arrange(QVBoxLayout(self), *parts, margins=0, spacing=6)
        self._begin()

    @property
    def told(self) -> str:
        """The preview text."""
        return f"{self._told.text()}\n{self._mistake.text()}".strip()

    @property
    def mistake(self) -> str:
        """The reason why this list cannot be started, or an empty string."""
        number = len(self.found.urls)
        if self._reading.is_active:
            return self.tr("The list is still being read.")
        if self._lacks:
            return self.tr("A secret was not kept here: type it in where it says [redacted].")
        if not number:
            return self.tr("Put in at least one address.")
        if number > MOST:
            return self.tr("At most {0} addresses at once.").format(count(MOST))
        if self.shape.currentData() == "one" and number > MOST_IN_ONE:
            return self.tr("One task takes at most {0} addresses.").format(count(MOST_IN_ONE))
        return ""

    def set_text(self, text: str) -> None:
        self.text.setPlainText(text)

    def drop_first(self, number: int) -> None:
        """Remove the started addresses, so that the rest can be started later."""
        self.set_text("\n".join(self.found.urls[number:]))

    def requests(self, asked: Asked) -> list[Asked]:
        """Return the requests: `asked` for each address, or one task that opens all."""
        if self.shape.currentData() == "one":
            return [_one_task(self.found.urls, self.tr("Open {0} addresses"), asked)]
        args = {name: value for name, value in asked.args.items() if name != "url"}
        return [
            Asked(asked.kind, {"url": url, **args}, asked.name, asked.terms)
            for url in self.found.urls
        ]

    def _begin(self) -> None:
        """Parse the text from its start, a long one in slices."""
        text = self.text.toPlainText()
        self._sorting = Sorting()
        self._reading.start(self._sort_lines(text.splitlines()))
        if len(text) < AT_ONCE:
            self._reading.finish()
        else:
            self._reading.advance()

    def _sort_lines(self, lines: Sequence[str]) -> Iterator[None]:
        for at, line in enumerate(lines, 1):
            if line.strip():
                self._sorting.add(at, address_in(line) or line)
                yield

    def _show_found(self) -> None:
        self.found = self._sorting.found
        self._lacks = any(MARK in url for url in self.found.urls)
        self._told.show_text(self._numbers())
        self._mistake.show_text(self._refused())
        self._mistake.setVisible(bool(self.found.refused))
        self.changed.emit()

    def _numbers(self) -> str:
        number, doubles = len(self.found.urls), self.found.doubles
        addresses = (
            self.tr("1 address.")
            if number == 1
            else self.tr("{0} addresses.").format(count(number))
        )
        if not doubles:
            return addresses
        twice = (
            self.tr("{0} 1 duplicate is left out.")
            if doubles == 1
            else self.tr("{0} {1} duplicates are left out.")
        )
        return twice.format(addresses, count(doubles))

    def _refused(self) -> str:
        refused = self.found.refused
        if not refused:
            return ""
        line = self.tr("Line {0}: “{1}” {2}")
        named = [
            line.format(one.line, display(one.text, 60), retold(one.reason))
            for one in refused[:MOST_NAMED]
        ]
        head = (
            self.tr("1 line is no address and is left out:")
            if len(refused) == 1
            else self.tr("{0} lines are no addresses and are left out:").format(count(len(refused)))
        )
        return "\n".join([head, *named, *(["…"] if len(refused) > MOST_NAMED else [])])


def _one_task(urls: tuple[str, ...], words: str, asked: Asked) -> Asked:
    title = asked.name or words.format(count(len(urls)))
    commands: list[dict[str, Any]] = []
    for url in urls:
        args = {"action": "goto", "url": url}
        commands.append({"tool_name": "browser_navigate", "intention": url[:200], "args": args})
        args = {"action": "get_text", "selector": "body"}
        commands.append({"tool_name": "browser_content", "intention": url[:200], "args": args})
    document = {"task_name": title, "task_intention": title, "commands": commands}
    return Asked(COMMANDS, document, asked.name)


LONGEST_OFFER: Final = 60


class AddressesPart(QWidget):
    """Address controls below the first field of the current form."""

    changed = Signal()

    def __init__(self, form: RequestForm, parent: QWidget) -> None:
        super().__init__(parent)
        self._form = form
        self._offered = ""
        self.offer = QPushButton(self)
        self.only_one = False  # For a request that is edited
        self.switch = QPushButton(self.tr("Several addresses…"), self)
        self.many = Many(parent)
        self.many.setVisible(False)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self.offer, self.switch):
            button.setAutoDefault(False)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        row.addStretch()
        self.offer.setVisible(False)
        self.offer.clicked.connect(self._take_offer)
        self.switch.setCheckable(True)
        self.switch.toggled.connect(self._show_many)
        self.many.changed.connect(self.changed)

    @property
    def is_many(self) -> bool:
        """True while a list replaces the single address."""
        return self.switch.isChecked()

    @property
    def number(self) -> int:
        """The number of tasks of the list, 0 without one."""
        if not self.is_many or self.many.mistake:
            return 0
        return len(self.many.found.urls) if self.many.shape.currentData() == "each" else 1

    @property
    def obstacle(self) -> str:
        """The reason why the addresses cannot be started, or an empty string."""
        if self.is_many:
            return self.many.mistake
        return self.tr("Type the address of the site first.") if self.lacks_address else ""

    def less_address(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return the problems without those of the address, when a list replaces it."""
        return tuple(one for one in problems if not self.is_many or one.path != "url")

    @property
    def lacks_address(self) -> bool:
        """True while the required address is missing."""
        body = self._form.body
        if self.is_many or "url" not in body:
            return False
        other = body["sitemap_url"].value if "sitemap_url" in body else ""
        return not body["url"].value and not other

    def requests(self, asked: Asked) -> list[Asked]:
        """Return the requests of the list, empty without one."""
        return self.many.requests(asked) if self.is_many else []

    def move_to(self, body: KindForm | CommandForm) -> None:
        body.under_first.addWidget(self)
        body.under_first.addWidget(self.many)
        self.setVisible(True)  # A widget is hidden by a change of its parent
        self.switch.setVisible(traits_of(body.kind).address_list and not self.only_one)
        if not traits_of(body.kind).address_list:
            self.switch.setChecked(False)
        self.many.setVisible(self.is_many)
        self.offer.setVisible(False)
        if "url" in body:
            body["url"].changed.connect(lambda: self.offer.setVisible(False))
            body["url"].editor.installEventFilter(self)
            self._show_one(not self.is_many)

    def start_list(self, text: str) -> None:
        """Switch to the list and fill it with `text`."""
        self.switch.setChecked(True)
        self.many.set_text(text)
        self.many.text.setFocus()

    def offer_text(self, text: str) -> None:
        """Offer `text` for pasting, if it is an address and the field is empty."""
        self._offered = address_in(text)
        shown = plain_keys(elide_right(self._offered, LONGEST_OFFER))
        self.offer.setText(self.tr("Paste {0}").format(shown))
        self.offer.setVisible(bool(self._offered) and self.lacks_address)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Switch to the list when several lines are pasted into the address."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            text = QGuiApplication.clipboard().text()
            pastes = event.matches(QKeySequence.StandardKey.Paste)
            if pastes and traits_of(self._form.kind).address_list and len(text.split("\n")) > 1:
                self.start_list(text)
                return True
        return False

    def _take_offer(self) -> None:
        self._form["url"].value = self._offered
        self._form.focus()

    def _show_many(self, wanted: bool) -> None:
        self.many.setVisible(wanted)
        self.switch.setText(
            self.tr("One address only") if wanted else self.tr("Several addresses…")
        )
        self.offer.setVisible(False)
        body = self._form.body
        if "url" in body:
            typed = body["url"].value
            self._show_one(not wanted)
            if wanted and typed and isinstance(typed, str) and not self.many.text.toPlainText():
                self.many.set_text(typed)
        (self.many.text if wanted else body.needed).setFocus()
        self.changed.emit()

    def _show_one(self, shown: bool) -> None:
        for key in ("url", "sitemap_url"):
            if key in self._form.body:
                field = self._form[key]
                field.setVisible(shown)
                field.name.setVisible(shown)


# Offsets of a longer JSON text are not computed, because that blocks the window.
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
        go = (self._go, 0, Qt.AlignmentFlag.AlignLeft)
        arrange(QVBoxLayout(self), (self.text, 1), self._mistakes, go, margins=(0, 8, 0, 0))
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
        known = places(self.text.toPlainText()) if listed and self.asked is not None else {}
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


class RequestTabs(Tabs):
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
        arrange(QVBoxLayout(page), self.form, margins=(0, 8, 0, 0))
        self.addTab(page, self.tr("Form"))
        self.addTab(self.json, self.tr("JSON"))
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
            unfolded = self.form.unfolded  # a request from JSON makes the form anew
            self.form.show_request(self.json.asked, whole=True)
            self.form.unfold(unfolded)
        self.turned.emit()

    def _stay(self) -> None:
        self._staying = True
        self.setCurrentIndex(JSON)
        self._staying = False
        self.stuck.emit()
