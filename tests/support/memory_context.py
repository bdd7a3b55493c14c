"""The context of a kind's body that is called directly, without a ledger.

With the same clock a direct call gives the same result as a task, byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, BinaryIO

from engine.kinds.context import Scopes, Span, StopReason
from engine.kinds.spec import Head, KindSpec
from engine.ledger.machine import wall_ms
from engine.ledger.result_assembly import assemble
from engine.model.records import Units
from engine.secrets.given_secrets import Hidden


class MemoryContext:
    """The context of a direct call: pages, log and artifacts stay in memory.

    `on_page` is called with each stored page; `stop()` ends the work.
    """

    def __init__(
        self,
        *,
        task_id: str = "0000000000000000",
        now_ms: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        on_page: Callable[[dict[str, Any], Units], None] | None = None,
    ) -> None:
        self.task_id = task_id
        self.budgets: Mapping[str, Any] = {}
        self.monotonic = monotonic
        self.now_ms = now_ms or wall_ms
        self.pages: list[dict[str, Any]] = []
        self.progress: list[Units] = []
        self.notes: list[tuple[str, str, dict[str, object]]] = []
        self.concealed: list[Hidden] = []
        self.artifacts: dict[str, bytes] = {}
        self.documents: dict[str, bytes] = {}
        self._scopes = Scopes()
        self._on_page = on_page

    @property
    def stopping(self) -> bool:
        return self._scopes.stopping

    @property
    def stop_reason(self) -> StopReason:
        return self._scopes.reason

    def stop(self, reason: StopReason = "cancelled") -> None:
        """Request a stop, as a cancel does."""
        self._scopes.stop(reason)

    def unit(self, label: str, limit_s: float) -> AbstractAsyncContextManager[None]:
        return self._scopes.unit(label, limit_s)

    async def pause(self, seconds: float) -> None:
        await self._scopes.pause(seconds)

    @property
    def resumes(self) -> bool:
        return False

    def earlier_units(self) -> Iterator[tuple[bytes, Span]]:
        return iter(())

    async def carry(self, spans: Sequence[Span], files: Sequence[str], units: Units) -> None:
        raise AssertionError("a direct call resumes nothing")

    async def page(self, page: dict[str, Any], units: Units) -> None:
        self.pages.append(page)
        self.progress.append(units)
        if self._on_page is not None:
            self._on_page(page, units)

    async def reached(self, message: str) -> None:
        before = self.progress[-1] if self.progress else Units()
        self.progress.append(Units(before.done, before.total, message, before.failed))

    async def rest(self, pages: list[dict[str, Any]]) -> None:
        self.pages.extend(pages)

    async def log(self, phase: str, note: str, **data: object) -> None:
        self.notes.append((phase, note, data))

    async def artifact(self, name: str, data: bytes) -> str:
        self.artifacts[name] = data
        return f"artifacts/{name}"

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        self.concealed.extend(hidden)

    def conceal_later(self, hidden: Iterable[Hidden]) -> None:
        self.concealed.extend(hidden)

    async def append_artifact(self, name: str, data: bytes) -> None:
        self.artifacts[name] = self.artifacts.get(name, b"") + data

    async def carry_artifact(self, name: str, whole: Callable[[BinaryIO], int]) -> int:
        raise AssertionError("a direct call resumes nothing")

    async def document(self, name: str, data: bytes) -> None:
        self.documents[name] = data


def direct_result(kind: KindSpec, head: Head, units: Iterable[bytes]) -> bytes:
    """Return the result.json of a direct call, equal to that of a task."""
    return b"".join(assemble(head, kind.units_key, units))
