"""Address input of a form: typed, offered from the clipboard, or a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.model.display import display, elide_right
from engine.model.errors import Problem
from engine.model.kind_traits import traits_of
from engine.model.redact import MARK
from engine.service.forms import COMMANDS, MOST, AddressList, Sorting
from engine.service.rerun import Asked
from engine.text.messages import retold
from engine.text.words import count
from gui.engine_link.sliced_work import SlicedWork
from gui.start.address import address_in
from gui.start.field import choice
from gui.style.editors import Patterns
from gui.style.theme import plain_keys, plain_label

if TYPE_CHECKING:
    from gui.start.command_form import CommandForm
    from gui.start.kind_form import KindForm
    from gui.start.request_form import RequestForm


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
        self.text.setAccessibleName(self.tr("Addresses, one a line"))
        self.text.setPlaceholderText(self.tr("One address a line"))
        self.found = AddressList((), 0, ())
        self._lacks = False  # True while an address contains a redacted secret
        self._told = plain_label(tone="muted", wrap=True)
        self._mistake = plain_label(tone="bad", wrap=True)
        each = (("each", self.tr("One task for each address")), ("one", self._words_for_one()))
        self.shape = choice(each)
        self.shape.setAccessibleName(self.tr("What becomes of the list"))
        self._reading = SlicedWork(self, budget_ms=SLICE_MS)
        self._reading.done.connect(self._show_found)
        self.text.textChanged.connect(self._begin)
        self.shape.currentIndexChanged.connect(lambda _: self.changed.emit())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for part in (self.text, self._told, self._mistake, self.shape):
            column.addWidget(part)
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

    def _words_for_one(self) -> str:
        return self.tr("One command task that opens them in turn and keeps their text")

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
        """Move the controls into the form `body`."""
        body.under_first.addWidget(self)
        body.under_first.addWidget(self.many)
        self.setVisible(True)  # A widget is hidden by a change of its parent
        self.switch.setVisible(traits_of(body.kind).address_list)
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
