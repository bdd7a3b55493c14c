"""Starting many tasks in turn, with progress, and a stop that leaves no task half made."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from engine.service.rerun import Asked
from gui.engine_link.bridge import Bridge

NAME = "start many"


class Volley(QObject):
    """`progress` says how many of how many are started; `ended` how many, and what stopped it."""

    progress = Signal(int, int)
    ended = Signal(int, object)

    def __init__(self, bridge: Bridge, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._stopping = False

    def start(self, requests: Sequence[Asked]) -> None:
        """Start all of them in their order, up to the first that is refused."""
        self._stopping = False
        total, started = len(requests), list[TaskRecord]()

        async def work(engine: Engine) -> None:
            for asked in requests:
                if self._stopping:
                    return
                record = await engine.start(
                    asked.kind, asked.args, name=asked.name, terms=asked.terms
                )
                self._bridge.remember_request(record, asked)
                started.append(record)
                self.progress.emit(len(started), total)

        def end(error: EngineError | None) -> None:
            if started:
                self._bridge.started.emit(started[0])  # it is shown, and chosen
            self.ended.emit(len(started), error)

        self._bridge.ask(work, lambda _: end(None), end, name=NAME)

    def stop(self) -> None:
        """Start no more; the one that is being written down is finished."""
        self._stopping = True
