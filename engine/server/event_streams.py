"""Answers that last: server-sent events of one task and of all, and a result in blocks.

A stream ends when its client leaves, stops reading (`connections.STALL_S`), or the server ends.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, BinaryIO, Final, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.model.errors import EngineError, InvalidArguments, Problem, ShuttingDown
from engine.model.records import TERMINAL, History, TaskEvent, TaskRecord
from engine.server.change_feed import ChangeFeed
from engine.server.http_answers import JSON_TYPE
from engine.server.http_routes import ROUTE_NAMES
from engine.service.engine import Engine
from engine.verbs.json_answers import described_for_programs
from engine.verbs.model import MOST_NUMBER

SSE_TYPE: Final = "text/event-stream"
HEARTBEAT_S: Final = 15.0
POLL_S: Final = 0.25  # as often as a runner reads requests
LOOK_S: Final = 2.0  # between looks at the record of a task that wrote no event of its end
BLOCK: Final = 64 * 1024
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}", re.ASCII)
_TERMINAL: Final = frozenset(status.lower() for status in TERMINAL)

T = TypeVar("T")
Blocks = AsyncGenerator[bytes, None]


class StreamedAnswer(Response):
    """Answer in blocks; `stopping` ends it. A `whole` one that is cut off is left incomplete."""

    def __init__(
        self, blocks: Blocks, media_type: str, stopping: asyncio.Event, *, whole: bool = False
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._blocks = blocks
        self._stopping = stopping
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        ended: bool | None = True
        try:
            if scope["method"] != "HEAD":
                ended = await first(self._send_blocks(send), _gone(receive), self._stopping.wait())
        finally:
            await self._blocks.aclose()
        if ended or not self._whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_blocks(self, send: Send) -> bool:
        async for block in self._blocks:
            await send({"type": "http.response.body", "body": block, "more_body": True})
        return True


async def first(work: Awaitable[T], *ends: Awaitable[Any]) -> T | None:
    """Return what `work` returned; None if one of `ends` came first, which cancels it."""
    working = asyncio.ensure_future(work)
    watches = [asyncio.ensure_future(end) for end in ends]
    try:
        await asyncio.wait({working, *watches}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (working, *watches):
            each.cancel()
        await asyncio.wait({working, *watches})
    return None if working.cancelled() else working.result()


async def until_left(work: Awaitable[T], receive: Receive, stopping: asyncio.Event) -> T:
    """Await `work`, which its client's leaving cancels.

    Raises:
        ShuttingDown: the server ended first, or nobody waits for the answer any more.
    """
    found = await first(work, _gone(receive), stopping.wait())
    if found is None:
        raise ShuttingDown()
    return found


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event_block(name: str, data: Any, event_id: int | None = None) -> bytes:
    """Encode one server-sent event; names of other programs may hold anything."""
    name = name if _NAME.fullmatch(name) else "event"
    head = f"event: {name}\n" if event_id is None else f"event: {name}\nid: {event_id}\n"
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


def start_offset(last_event_id: str | None, offset: str | None) -> int:
    """Return the byte from which on to send events; the header of a reconnect wins.

    Raises:
        InvalidArguments: it is no number.
    """
    name, text = ("Last-Event-ID", last_event_id) if last_event_id else ("offset", offset)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MOST_NUMBER):
        raise InvalidArguments((Problem(name, "wrong_type", "must be a whole number"),))
    return int(text)


async def task_events(engine: Engine, task_id: str, offset: int) -> Blocks:
    """Yield the events of a task from a byte offset on, until it has ended.

    The id of an event is the offset behind it, where a reconnecting client continues.
    """
    sent_at, looked_at = time.monotonic(), -math.inf
    ended: TaskRecord | EngineError | None = None
    has_last = False  # the event of its end was sent
    while True:
        try:
            part = await engine.tasks.history(task_id, _placed, since=offset)
        except EngineError as error:
            yield event_block("end", {"error": described_for_programs(error, ROUTE_NAMES)})
            return
        if part.events:
            yield _event_blocks(part)
            sent_at = time.monotonic()
            has_last = has_last or any(event.kind in _TERMINAL for event, _ in part.events)
        if part.next_offset != offset:
            offset = part.next_offset
            continue
        if ended is not None:
            yield _end_block(ended, offset)
            return
        if has_last or time.monotonic() - looked_at >= LOOK_S:
            looked_at, ended = time.monotonic(), await _ended(engine, task_id)
            if has_last and ended is not None:
                continue
            has_last = False
        if time.monotonic() - sent_at >= HEARTBEAT_S:
            yield b": still here\n\n"
            sent_at = time.monotonic()
        await asyncio.sleep(POLL_S)  # also for the last event, which follows the record


def _event_blocks(part: History[tuple[TaskEvent, int]]) -> bytes:
    behind = [start for _, start in part.events[1:]] + [part.next_offset]
    pairs = zip(part.events, behind, strict=True)
    return b"".join(event_block(event.kind, event, at) for (event, _), at in pairs)


def _placed(event: TaskEvent, start: int) -> tuple[TaskEvent, int]:
    return event, start


async def _ended(engine: Engine, task_id: str) -> TaskRecord | EngineError | None:
    """Return the record of an ended task, or why it cannot be read; None while it lives."""
    try:
        entry = (await engine.tasks.get(task_id)).entry
    except EngineError as error:
        return error
    return entry if isinstance(entry, TaskRecord) and entry.is_terminal else None


def _end_block(ended: TaskRecord | EngineError, offset: int) -> bytes:
    if isinstance(ended, EngineError):
        return event_block("end", {"error": described_for_programs(ended, ROUTE_NAMES)}, offset)
    return event_block("end", {"task_id": ended.task_id, "status": ended.status}, offset)


async def list_changes(feed: ChangeFeed) -> Blocks:
    """Yield changes of all tasks; `ready` comes first, and from then on nothing is missed."""
    with feed.listening() as listener:
        while not listener.is_closed:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    block = await listener.next()
            except TimeoutError:
                block = b": still here\n\n"
            if block is not None:
                yield block


async def file_blocks(file: BinaryIO) -> Blocks:
    """Yield a file in blocks, read in a thread; the file is closed at the end."""
    try:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
    finally:
        asyncio.get_running_loop().run_in_executor(None, file.close)


def result_answer(file: BinaryIO, stopping: asyncio.Event) -> StreamedAnswer:
    return StreamedAnswer(file_blocks(file), JSON_TYPE, stopping, whole=True)
