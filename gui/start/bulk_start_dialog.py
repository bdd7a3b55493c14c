"""Many addresses instead of one: pasted, sorted out, and made into many tasks or into one."""

from __future__ import annotations

import time
from typing import Any, Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.model.display import display
from engine.model.redact import MARK
from engine.service.address_list import MOST, AddressList, Sorting
from engine.service.rerun import Asked
from engine.text.catalogue import retold
from engine.text.words import count
from gui.start.address import address_in
from gui.start.field import choice
from gui.style.editors import Patterns
from gui.style.theme import plain_label

LINES: Final = 8
MOST_IN_ONE: Final = 500  # a command task has at most 1,000 commands, two for each address
MOST_NAMED: Final = 3
AT_ONCE: Final = 3_000  # characters; a longer text is judged in slices
SLICE_S: Final = 0.002


class Many(QWidget):
    """`found` is what stands there, sorted out; `changed` when that is something else."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = Patterns(LINES)
        self.text.setAccessibleName(self.tr("Addresses, one a line"))
        self.text.setPlaceholderText(self.tr("One address a line"))
        self.found = AddressList((), 0, ())
        self._lacks = False  # was a secret taken out of one of them?
        self._told = plain_label(tone="muted", wrap=True)
        self._mistake = plain_label(tone="bad", wrap=True)
        each = (("each", self.tr("One task for each address")), ("one", self._words_for_one()))
        self.shape = choice(each)
        self.shape.setAccessibleName(self.tr("What becomes of the list"))
        self._slices = QTimer(self, interval=0)
        self._slices.timeout.connect(self._judge)
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
        """What the preview says."""
        return f"{self._told.text()}\n{self._mistake.text()}".strip()

    @property
    def mistake(self) -> str:
        """Why nothing can be started from this list; empty when it can."""
        number = len(self.found.urls)
        if self._reading:
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
        """These were started: what is left stays to be started later."""
        self.set_text("\n".join(self.found.urls[number:]))

    def requests(self, asked: Asked) -> list[Asked]:
        """What is to be started: `asked` for each address, or one task that opens them all."""
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
        """Judge what stands there from its beginning: a short list at once, else in slices."""
        text = self.text.toPlainText()
        self._sorting = Sorting()
        self._left = ((at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip())
        self._reading = True
        self._judge(float("inf") if len(text) < AT_ONCE else SLICE_S)

    def _judge(self, seconds: float = SLICE_S) -> None:
        until = time.perf_counter() + seconds
        for at, line in self._left:
            self._sorting.add(at, address_in(line) or line)
            if time.perf_counter() > until:
                self._slices.start()
                return
        self._slices.stop()
        self._reading = False
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
    return Asked("commands", document, asked.name)
