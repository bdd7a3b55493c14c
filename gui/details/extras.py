"""What the Overview shows beside the record: its contract, what ended it, its newest picture.

Read when the tab is in sight, off the loop, and again when the task has gone on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QSize, QTimer, Signal
from PySide6.QtGui import QImage

from engine.contracts.contract_views import ContractView
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.service.engine import Engine
from engine.text.words import failures_text, remarks
from gui.details.facts import arguments_text
from gui.engine_link.services import Desk
from gui.i18n import language

NAME = "overview"
EVERY_S = 1.0  # of a task that goes on
PICTURE = QSize(240, 150)


@dataclass(frozen=True, slots=True)
class Extra:
    """`problem` says why the contract cannot be read; `picture` is small already."""

    contract: ContractView | None = None
    problem: str = ""
    stopped_by: str = ""
    remarks: tuple[str, ...] = ()
    failures: str = ""
    picture: QImage | None = None
    arguments: str = ""  # of a record that the list has only a part of


class Extras(QObject):
    """`changed` carries what there is of the task that is looked at."""

    changed = Signal(Extra)

    def __init__(self, desk: Desk | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._view: TaskView | None = None
        self._read: object = None
        self._read_at = 0.0
        self._soon = QTimer(self, singleShot=True)
        self._soon.timeout.connect(self._ask)

    @property
    def can_read(self) -> bool:
        return self._desk is not None

    def look(self, view: TaskView | None) -> None:
        """Show this task as it stands; None: nobody looks."""
        if self._desk is None:
            return
        other = self._view is None or view is None or view.task_id != self._view.task_id
        self._view = view
        if other:
            self._read = None
            self._soon.stop()
            self._desk.bridge.call_off(NAME)
        if other and view is not None:
            self.changed.emit(Extra())
        if view is None or self._read == _state(view) or self._soon.isActive():
            return
        wait_s = 0.0 if other else max(0.0, self._read_at + EVERY_S - time.monotonic())
        self._soon.start(int(wait_s * 1000))

    def _ask(self) -> None:
        view = self._view
        if self._desk is None or view is None or not isinstance(view.entry, TaskRecord):
            return
        self._read, self._read_at = _state(view), time.monotonic()
        record, ratio = view.entry, _scale(self.parent())

        async def work(engine: Engine) -> Extra:
            contract, problem = await _contract(engine, record)
            summary = await _summary(engine, record)
            stopped_by = summary.get("stopped_by")
            return Extra(
                contract,
                problem,
                stopped_by if isinstance(stopped_by, str) else "",
                tuple(remarks(summary)),
                failures_text(summary),
                await _picture(engine, record, ratio),
                await _arguments(engine, record),
            )

        self._desk.bridge.ask(work, self.changed.emit, lambda _: None, name=NAME)


def _state(view: TaskView) -> object:
    """What makes reading again worth while."""
    entry = view.entry
    return getattr(entry, "status", ""), view.units, getattr(entry, "engine", None)


def _scale(parent: QObject | None) -> float:
    ratio = getattr(parent, "devicePixelRatioF", None)
    return float(ratio()) if ratio is not None else 1.0


async def _contract(engine: Engine, record: TaskRecord) -> tuple[ContractView | None, str]:
    named = record.engine.contract_id if record.engine is not None else None
    if not named:
        return None, ""
    try:
        return await engine.contract(named, items=False), ""
    except EngineError as error:
        return None, language.told(error)


async def _summary(engine: Engine, record: TaskRecord) -> Mapping[str, Any]:
    """What the result says of the whole task; nothing where there is none."""
    if not record.is_terminal:
        return {}
    try:
        head: Mapping[str, Any] = await engine.head(record.task_id)
    except EngineError:
        return {}
    summary = head.get("summary")
    return summary if isinstance(summary, Mapping) else head


def is_cut(record: TaskRecord | Unreadable) -> bool:
    """Does the list have only a part of the arguments?"""
    return isinstance(record, TaskRecord) and record.args_summary.get("_truncated") is True


async def _arguments(engine: Engine, record: TaskRecord) -> str:
    if not is_cut(record):
        return ""
    try:
        whole = (await engine.get(record.task_id)).entry
    except EngineError:
        return ""
    args = whole.args_summary if isinstance(whole, TaskRecord) else {}
    return await asyncio.to_thread(arguments_text, args)


async def _picture(engine: Engine, record: TaskRecord, ratio: float) -> QImage | None:
    try:
        files = await engine.reading.files(record.task_id)
        pictures = [file for file in files if file.is_picture]
        if not pictures:
            return None
        newest = max(pictures, key=lambda file: file.changed_at)
        data = await engine.reading.picture(record.task_id, newest.name)
    except EngineError:
        return None
    return await asyncio.to_thread(_made_small, data, ratio) if data else None


def _made_small(data: bytes, ratio: float) -> QImage | None:
    """The picture, fitting into `PICTURE`; None for what is none. Slow: for a thread."""
    from gui.style.picture import decoded  # with the first picture, not with the window

    image, _ = decoded(data, PICTURE * ratio)
    if image.isNull():
        return None
    image.setDevicePixelRatio(ratio)
    return image
