"""Tasks that need attention: acknowledging them, and task runs that wait for help."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.logging.logs import private_folder
from engine.model.errors import EngineError
from engine.model.ledger_ids import ledger_label, plain_id, qualified
from engine.model.records import TaskRecord, TaskView
from engine.model.status import NEEDS_HELP
from engine.query.attention_reasons import reasons, seen
from engine.service.feed import Batch
from engine.text.words import task_name, why
from gui.commands.bulk_work import Reports
from gui.context.preferences import locked, write_whole
from gui.context.window_context import WindowContext
from gui.engine_link.scheduling import Debounce, SlicedWork
from gui.style.questions import Question
from gui.style.theme import plain_label

# Acknowledged reasons, stored next to the settings and in no ledger.

log = logging.getLogger(__name__)

VERSION = 1
MAX_BYTES = 8 * 1024 * 1024
KEPT_DAYS = 30  # Older failures no longer need attention; other reasons may appear again
MOST = 20_000
_SAVE_MS = 300
_DAY_S = 86_400


class Acknowledged(QObject):
    """Acknowledged marks (`engine.query.attention_reasons.seen`) by task id.

    Saved atomically after a short delay, and merged with the marks of other windows. A damaged file
    counts as empty. Without a file the marks last until the end of the program.
    """

    def __init__(self, file: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self._kept: dict[str, tuple[float, frozenset[str]]] = _read(file) if file else {}
        self.marks: dict[str, frozenset[str]] = {one: kept[1] for one, kept in self._kept.items()}
        self._unsaved: set[str] = set()
        self._saving = Debounce(self, _SAVE_MS, self.save)

    def add(self, task_id: str, marks: Iterable[str]) -> None:
        """Add acknowledged reasons of a task."""
        self.marks[task_id] = self.marks.get(task_id, frozenset()) | frozenset(marks)
        self._kept[task_id] = (time.time(), self.marks[task_id])
        self._change(task_id)

    def drop(self, task_id: str) -> None:
        """Remove all acknowledged reasons of a task."""
        self._kept.pop(task_id, None)
        if self.marks.pop(task_id, None) is not None:
            self._change(task_id)

    def move(self, label: str, wanted: str) -> None:
        """Rename a ledger label in the ids of acknowledged tasks."""
        for one in [one for one in self._kept if ledger_label(one) == label]:
            other = qualified(plain_id(one), wanted)
            self._kept[other], self.marks[other] = self._kept.pop(one), self.marks.pop(one)
            self._change(one, other)

    def _change(self, *task_ids: str) -> None:
        self._unsaved.update(task_ids)
        self._saving.request()

    def save(self) -> None:
        """Save the marks, if they have changed."""
        self._saving.cancel()
        if self._file is None or not self._unsaved:
            return
        try:
            private_folder(self._file.parent)
            with locked(self._file):
                tasks = self._merged(_read(self._file) or self._kept)
                write_whole(self._file, json.dumps({"version": VERSION, "tasks": tasks}).encode())
            self._unsaved.clear()
        except OSError:
            log.warning("what was acknowledged cannot be kept", exc_info=True)

    def _merged(self, others: dict[str, tuple[float, frozenset[str]]]) -> dict[str, list[Any]]:
        kept = {one: seen for one, seen in others.items() if one not in self._unsaved}
        kept |= {one: self._kept[one] for one in self._unsaved & self._kept.keys()}
        newest = sorted(kept.items(), key=lambda item: -item[1][0])[:MOST]
        return {one: [round(at), *sorted(marks)] for one, (at, marks) in newest}


def _read(file: Path) -> dict[str, tuple[float, frozenset[str]]]:
    try:
        if file.stat().st_size > MAX_BYTES:
            return {}
        found = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        log.warning("what was acknowledged cannot be read", exc_info=True)
        return {}
    tasks = found.get("tasks") if isinstance(found, dict) else None
    oldest = time.time() - KEPT_DAYS * _DAY_S
    listed = tasks.items() if isinstance(tasks, dict) else ()
    kept = {one: _entry(entry) for one, entry in listed}
    return {one: entry for one, entry in kept.items() if entry[0] >= oldest}


def _entry(given: Any) -> tuple[float, frozenset[str]]:
    """Return time and marks of an entry; time 0 for an invalid one."""
    at, *marks = given if isinstance(given, list) and given else [0]
    if isinstance(at, bool) or not isinstance(at, int | float):
        return 0.0, frozenset()
    return float(at), frozenset(mark for mark in marks if isinstance(mark, str))


FILE_NAME = "acknowledged.json"
_AT_ONCE = 100
_MOST_LOOKED_AT = 500  # Tasks examined for the state of the action


class AttentionActions(QObject):
    """Toggle the acknowledgement of the selected tasks, in this window only.

    A new reason shows the task again.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._model, self._scope = ctx, ctx.model, ctx.scope
        self.acknowledged = Acknowledged(ctx.memory.folder / FILE_NAME, self)
        ctx.ledgers.renamed.connect(self.acknowledged.move)
        self._model.acknowledge(self.acknowledged.marks, ())
        self._left: list[str] = []
        self._back = False
        self._work = SlicedWork(self, budget_ms=0)
        acts = ctx.actions
        self._act = acts.add("acknowledge", "", ["A"], "acknowledge", self.tr("Acknowledge"))
        self._act.triggered.connect(lambda _=False: self.acknowledge())
        forward = acts.add("next_attention", self.tr("Ne&xt needing attention"), ["N"])
        back = acts.add("last_attention", self.tr("Pre&vious needing attention"), ["Shift+N"])
        forward.triggered.connect(lambda _=False: self._step(1))
        back.triggered.connect(lambda _=False: self._step(-1))
        acts.keep_to(ctx.table, "acknowledge", "next_attention", "last_attention")
        self._scope.changed.connect(self._show_ability)
        self._model.counts_changed.connect(lambda _: self._show_ability())
        ctx.bridge.resumed.connect(self._settle)
        self._show_ability()

    def acknowledge(self) -> None:
        """Acknowledge the selected tasks, or revoke it if all are acknowledged."""
        rows = list(filter(None, map(self._model.row_by_id, self._scope.ids())))
        needy = [row.task_id for row in rows if row.needs]
        self._back = not needy
        self._left += needy or [row.task_id for row in rows if row.quiet]
        self._work.start(self._mark_left())
        self._work.advance()

    def _mark_left(self) -> Iterator[None]:
        while True:
            part, self._left = self._left[:_AT_ONCE], self._left[_AT_ONCE:]
            for task_id in part:
                self._mark(task_id)
            self._model.acknowledge(self.acknowledged.marks, part)
            if not self._left:
                return
            yield

    def _mark(self, task_id: str) -> None:
        view = self._model.view_of(task_id)
        if self._back or view is None:
            self.acknowledged.drop(task_id)
        else:
            self._add(view)

    def _add(self, view: TaskView) -> None:
        found = reasons(view, self._model.now_ms(), self._model.stall_after_ms(view.task_id))
        self.acknowledged.add(view.task_id, [seen(view, reason) for reason in found])

    def _settle(self, task_id: str) -> None:
        """Acknowledge a task that was resumed: what it needed has been done."""
        view = self._model.view_of(task_id)
        if view is not None:
            self._add(view)
            self._model.acknowledge(self.acknowledged.marks, (view.task_id,))

    def _step(self, by: int) -> None:
        self._ctx.table.step_attention(by)
        self._ctx.table.setFocus()

    def _show_ability(self) -> None:
        ids = self._scope.ids()[:_MOST_LOOKED_AT]
        rows = [row for row in map(self._model.row_by_id, ids) if row is not None]
        needy, quiet = any(row.needs for row in rows), any(row.quiet for row in rows)
        back = quiet and not needy
        self._act.setText(self.tr("Not ac&knowledged") if back else self.tr("Ac&knowledge"))
        self._act.setEnabled(needy or quiet or len(self._scope) > _MOST_LOOKED_AT)
        there = self._model.counts()["attention"] > 0
        for key in ("next_attention", "last_attention"):
            self._ctx.actions[key].setEnabled(there)


# Question before a task run resumes.

WIDTH = 520
MOST_REASON = 500


class ResumeDialog(Question):
    """Dialog for the required `reason`; the default keeps the run waiting."""

    def __init__(self, view: TaskView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        assert isinstance(view.entry, TaskRecord)
        headline = self.tr("Let “{0}” go on?").format(task_name(view))
        self.ask(self.tr("Resume task"), headline)
        self.add_text(why(view, 0))
        self._line = QLineEdit(self)
        self._line.setMaxLength(MOST_REASON)
        self._line.setPlaceholderText(self.tr("as in: the captcha is solved"))
        name = plain_label(self.tr("What has been done"))
        name.setBuddy(self._line)
        self.body.addWidget(name)
        self.body.addWidget(self._line)
        self._go = self.add_button("resume", self.tr("Resume"))
        self.add_button("wait", self.tr("Leave waiting"), default=True)
        self._line.textChanged.connect(self._judge)
        self._line.setFocus()
        self._judge()

    @property
    def reason(self) -> str:
        return self._line.text().strip()

    def _judge(self) -> None:
        self._go.setEnabled(bool(self.reason))
        self._go.setToolTip("" if self.reason else self.tr("Say what has been done"))


MOST_VIEWS = 200  # Views added at once; making a row takes about 0.1 ms
AGAIN_S = 5.0


class RunRows(QObject):
    """Add task runs to the list through the same signals as tasks."""

    def __init__(self, ctx: WindowContext, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx, self._bridge = ctx, ctx.bridge
        self._following = False
        text = self.tr("Resume waitin&g task…")
        self._act = ctx.actions.add("resume", text, ["Ctrl+G"], "sample", self.tr("Resume…"))
        self._act.triggered.connect(self.ask)
        ctx.bridge.loaded.connect(self._begin)
        ctx.scope.changed.connect(self._show_ability)
        self._show_ability()

    def ask(self) -> None:
        """Show the reason why the first selected run waits, and ask for the resolution."""
        view = next(filter(self._may_go_on, self._ctx.scope.views()), None)
        if view is None or not isinstance(view.entry, TaskRecord):
            return
        dialog = ResumeDialog(view, self._ctx.parent)
        dialog.open_for(resume=lambda: self._resume(view.task_id, dialog.reason))

    def _may_go_on(self, view: TaskView | None) -> bool:
        waits = view is not None and getattr(view.entry, "status", "") == NEEDS_HELP
        return waits and self._ctx.scope.may_change(view)

    def _resume(self, run_id: str, reason: str) -> None:
        words = self.tr("It goes on as soon as whoever works for it looks.")
        self._bridge.ask(
            lambda engine: engine.contracts.resume(run_id, reason),
            lambda _: self._reports.say(words),
            name=f"resume {run_id}",
        )

    def _begin(self) -> None:
        """Start after the tasks are loaded, since the window waits for those."""
        if not self._following:
            self._following = True
            self._bridge.spawn(self._follow(), name="task runs")

    async def _follow(self) -> None:
        """Follow changes until the window closes, and restart a failed feed."""
        while True:
            try:
                async with aclosing(self._bridge.engine.contracts.run_changes()) as batches:
                    async for batch in batches:
                        await self._hand_on(batch)
            except EngineError as error:
                log.warning("the task runs cannot be followed now: %s", error)
            await asyncio.sleep(AGAIN_S)

    async def _hand_on(self, batch: Batch) -> None:
        views = batch.views
        parts = [views[at : at + MOST_VIEWS] for at in range(0, len(views), MOST_VIEWS)] or [()]
        for part in parts:
            self._bridge.batch.emit(replace(batch, views=part))
            await asyncio.sleep(0)

    def _show_ability(self) -> None:
        ids, view_of = self._ctx.scope.ids()[:_MOST_LOOKED_AT], self._ctx.model.view_of
        able = any(self._may_go_on(view_of(one)) for one in ids)
        why_not = self.tr("Only a task run that needs help can go on.")
        self._ctx.actions.allow_chosen("resume", able, why_not, chosen=len(ids))
