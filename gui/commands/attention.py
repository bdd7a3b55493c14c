"""Actions for tasks that need attention: go to the next one, acknowledge."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject

from engine.logging.logs import private_folder
from engine.model.ledger_ids import ledger_label, plain_id, qualified
from engine.query.attention_reasons import reasons, seen
from gui.context.window_context import WindowContext
from gui.engine_link.sliced_work import SlicedWork
from gui.engine_link.throttle import Debounce
from gui.state.preferences import locked, write_whole

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
        forward = acts.add("next_attention", self.tr("Ne&xt that needs attention"), ["N"])
        back = acts.add("last_attention", self.tr("Pre&vious that needs attention"), ["Shift+N"])
        forward.triggered.connect(lambda _=False: self._step(1))
        back.triggered.connect(lambda _=False: self._step(-1))
        acts.keep_to(ctx.table, "acknowledge", "next_attention", "last_attention")
        self._scope.changed.connect(self._show_ability)
        self._model.counts_changed.connect(lambda _: self._show_ability())
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
            return
        found = reasons(view, self._model.now_ms(), self._model.stall_after_ms(task_id))
        self.acknowledged.add(task_id, [seen(view, reason) for reason in found])

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
