"""Retention settings: preview of ended tasks to delete, then moving them to the trash."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHeaderView

from engine.model.errors import EngineError
from engine.retention.pruning import Preview, Pruned
from engine.retention.rules import Rules
from engine.text.sizes import size_words
from engine.text.words import clock, count, say
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.settings.setting_parts import Part
from gui.style.question import TaskList

if TYPE_CHECKING:
    from engine.service.engine import Engine

DAY_MS = 86_400_000
GIGABYTE = 1_000_000_000
KEYS = ("retention.days", "retention.gigabytes", "retention.keep")


class Clearing(Part):
    """Preview and deletion on request; nothing is deleted automatically."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._shown: Preview | None = None
        self.list: TaskList | None = None
        self._stop: threading.Event | None = None
        self._preview = self.add(self.tr("Preview what would go"))
        self._clear = self.add(self.tr("Move to the trash"))
        self._cancel = self.add(self.tr("Stop"))
        self.fill_up()
        self._preview.clicked.connect(self.preview)
        self._clear.clicked.connect(self._prune)
        self._cancel.clicked.connect(self._end)
        ctx.preferences.changed.connect(self._forget)
        self._rest()
        if ctx.ledgers.states:
            self.say(self.tr("This is about the window’s own ledger only."))

    def rules(self) -> Rules:
        """Return the retention rules; the third number only limits the other two."""
        days, gigabytes, keep = (self.ctx.preferences.get(key, int) for key in KEYS)
        if not days and not gigabytes:
            return Rules()  # With `keep` alone the engine would delete all other tasks
        return Rules(
            older_than_ms=days * DAY_MS if days else None,
            max_bytes=gigabytes * GIGABYTE if gigabytes else None,
            keep=keep or None,
        )

    def preview(self) -> None:
        """Request the tasks that the rules would delete."""
        rules = self.rules()
        if rules.is_empty:
            self.say(self.tr("Without a limit nothing goes."))
            return
        self._begin(self.tr("Looking at all ended tasks…"))

        async def look(engine: Engine) -> tuple[Preview, list[tuple[str, ...]]]:
            shown = await engine.retention.preview(rules)
            return shown, await asyncio.to_thread(_rows, shown)

        self.ctx.bridge.ask(look, self._show, self._fail, name="preview of clearing")

    def _prune(self) -> None:
        shown = self._shown
        if shown is None:
            return
        stop = self._stop = threading.Event()
        self._begin(self.tr("Moving tasks to the trash…"))

        async def prune(engine: Engine) -> Pruned:
            return await engine.retention.prune(shown, stop=stop)

        self.ctx.bridge.ask(prune, self._tell, self._fail, name="clearing")

    def _begin(self, words: str) -> None:
        self.say(words)
        self._show_list()
        self._preview.setEnabled(False)
        self._clear.setEnabled(False)
        self._cancel.show()

    def _rest(self) -> None:
        self._preview.setEnabled(True)
        self._clear.setEnabled(self._shown is not None and bool(self._shown.tasks))
        self._cancel.hide()

    def _show(self, found: tuple[Preview, list[tuple[str, ...]]]) -> None:
        shown = self._shown = found[0]
        self._rest()
        self._show_list(found[1])
        number, size = len(shown.tasks), size_words(shown.size_bytes)
        if not number:
            self.say(self.tr("Nothing would go."))
        elif number == 1:
            self.say(self.tr("1 task would go, with {0}.").format(size), "warning")
        else:
            words = self.tr("{0} tasks would go, with {1}.")
            self.say(words.format(count(number), size), "warning")

    def _show_list(self, rows: Sequence[tuple[str, ...]] = ()) -> None:
        """Show the tasks of the preview as a list."""
        if self.list is not None:
            self.list.hide()
            self.list.deleteLater()
            self.list = None
        column = self.layout()
        if rows and column is not None:
            titles = (self.tr("Task"), self.tr("Status"), self.tr("Ended"), self.tr("Size"))
            self.list = TaskList(titles, rows, self)
            head = self.list.header()  # With at most a hundred rows, fitting the columns is cheap
            head.setStretchLastSection(False)
            head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
            head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
            column.addWidget(self.list)

    def _tell(self, pruned: Pruned) -> None:
        self._shown = None
        self._rest()
        self.ctx.bridge.rescan()
        gone, size = count(len(pruned.gone)), size_words(pruned.size_bytes)
        left = len(pruned.stayed) + len(pruned.refused)
        if not left:
            self.say(self.tr("Tasks in the trash: {0}, with {1}.").format(gone, size), "good")
            return
        words = self.tr("Tasks in the trash: {0}, with {1}. Tasks that had to stay: {2}.")
        why = language.sentence(pruned.refused[0].error) if pruned.refused else ""
        self.say(f"{words.format(gone, size, count(left))} {why}".strip(), "warning")

    def _fail(self, error: EngineError) -> None:
        self._rest()
        self.say(language.told(error), "bad")

    def _end(self) -> None:
        """Stop between two tasks; deleted tasks stay in the trash."""
        if self._stop is not None:
            self._stop.set()
        else:
            self.ctx.bridge.call_off("preview of clearing")
            self.say("")
            self._rest()

    def _forget(self, key: str) -> None:
        """Discard the preview after a change of the rules."""
        if key in KEYS and self._shown is not None:
            self._shown = None
            self.say("")
            self._show_list()
            self._rest()


def _rows(shown: Preview) -> list[tuple[str, ...]]:
    """Return name, state, end and size of each task; slow for many tasks, for a thread."""
    return [
        (
            one.name,
            say(f"status.{one.status.lower()}"),
            clock(one.ended_at),
            size_words(one.size_bytes),
        )
        for one in shown.tasks
    ]
