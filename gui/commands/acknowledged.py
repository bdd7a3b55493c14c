"""What a person has seen of tasks that need attention: kept beside the settings, in no ledger."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer

from engine.logging.private_files import private_folder
from engine.model.ledger_ids import ledger_label, plain_id, qualified
from gui.state.preferences import locked, write_whole

log = logging.getLogger(__name__)

VERSION = 1
MAX_BYTES = 8 * 1024 * 1024
KEPT_DAYS = 30  # a failure is history after one; the rest is seen again by then
MOST = 20_000
_SAVE_MS = 300
_DAY_S = 86_400


class Acknowledged(QObject):
    """Marks (`engine.model.status.seen`) by task id. Written whole or not at all, a moment after a
    change, and never over what the window of another ledger has seen; a damaged file is the same
    as none. Without a file it holds until the end."""

    def __init__(self, file: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self._kept: dict[str, tuple[float, frozenset[str]]] = _read(file) if file else {}
        self.marks: dict[str, frozenset[str]] = {one: kept[1] for one, kept in self._kept.items()}
        self._unsaved: set[str] = set()
        self._saving = QTimer(self, singleShot=True, interval=_SAVE_MS)
        self._saving.timeout.connect(self.save)

    def add(self, task_id: str, marks: Iterable[str]) -> None:
        """These needs of the task were seen, and those before still are."""
        self.marks[task_id] = self.marks.get(task_id, frozenset()) | frozenset(marks)
        self._kept[task_id] = (time.time(), self.marks[task_id])
        self._change(task_id)

    def drop(self, task_id: str) -> None:
        """Nothing of this task was seen."""
        self._kept.pop(task_id, None)
        if self.marks.pop(task_id, None) is not None:
            self._change(task_id)

    def move(self, label: str, wanted: str) -> None:
        """The ledger called `label` is called `wanted` now: what was seen of its tasks stays."""
        for one in [one for one in self._kept if ledger_label(one) == label]:
            other = qualified(plain_id(one), wanted)
            self._kept[other], self.marks[other] = self._kept.pop(one), self.marks.pop(one)
            self._change(one, other)

    def _change(self, *task_ids: str) -> None:
        self._unsaved.update(task_ids)
        self._saving.start()

    def save(self) -> None:
        """Write it now, if anything has changed since it was last written."""
        self._saving.stop()
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
    """When, and what; long ago for what is no entry."""
    at, *marks = given if isinstance(given, list) and given else [0]
    if isinstance(at, bool) or not isinstance(at, int | float):
        return 0.0, frozenset()
    return float(at), frozenset(mark for mark in marks if isinstance(mark, str))
