"""Client of the DevTools protocol over a socket pair: commands, flat sessions, events.

Messages are JSON, each ended by a zero byte. Events without a listener are skipped undecoded.
Pages cause messages of any size and depth: what cannot be decoded, or is above the limit, is
dropped, and its command fails at once; the session of an event emits `dropped` with its name.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from playwright.async_api import Error

Listener = Callable[[Any], object]
CLOSED: Final = "Target page, context or browser has been closed"
CRASHED: Final = "Target crashed"
TOO_MUCH: Final = "its answer is too large or too deep"
MOST_BYTES: Final = 128 * 1024**2  # of one message
# Of `Network.enable`: the browser keeps no bodies for the session.
NO_BODIES: Final = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}
_END: Final = b"\0"
_HEAD_BYTES: Final = 64  # the number of a command stands in them
_TAIL_BYTES: Final = 128  # the session of an event stands in them
_EVENT: Final = re.compile(rb'\{"method":"([\w.]{1,50})"')
_SESSION: Final = re.compile(rb'"sessionId":"(\w{1,80})"\}\s*\Z')
_NUMBER: Final = re.compile(rb'\{"id":(\d{1,18})[,}]')
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, ValueError)
# Pages write them without limit, and nothing here listens to them.
_UNHEARD: Final = (
    b'{"method":"Runtime.consoleAPICalled",',
    b'{"method":"Runtime.exceptionThrown",',
)


class Emitter:
    """Listeners by the name of their event; coroutine functions run as tasks of their own."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)
        self._running: set[asyncio.Task[Any]] = set()

    def on(self, event: str, listener: Listener) -> None:
        """Call `listener` with each such event from now on."""
        self._listeners[event].append(listener)

    def remove_listener(self, event: str, listener: Listener) -> None:
        """Remove a listener; an unknown one is ignored."""
        self._listeners[event] = [one for one in self._listeners[event] if one != listener]

    def hears(self, event: str) -> bool:
        """Return whether an event has a listener."""
        return bool(self._listeners.get(event))

    def emit(self, event: str, given: object) -> None:
        """Call the listeners of an event, in the order of their registration.

        One that fails is reported to the loop: other tabs depend on the same pipe.
        """
        for listener in tuple(self._listeners.get(event, ())):
            try:
                self.run(listener(given))
            except Exception as failed:  # noqa: BLE001 - asyncio closes the pipe for it
                _report(asyncio.get_running_loop(), failed)

    def run(self, work: object) -> None:
        """Run a coroutine in the background; other values are ignored."""
        if inspect.iscoroutine(work):
            task = asyncio.create_task(cast("Coroutine[Any, Any, Any]", work), name="an event")
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (failed := task.exception()) is not None:
            _report(task.get_loop(), failed)


def _report(loop: asyncio.AbstractEventLoop, failed: BaseException) -> None:
    loop.call_exception_handler({"message": "an event failed", "exception": failed})


class _Message(msgspec.Struct):
    """The head of a message; the rest is decoded for who needs it."""

    id: int = 0
    method: str = ""
    session: str = msgspec.field(default="", name="sessionId")
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: msgspec.Raw = msgspec.Raw(b"")


_HEAD: Final = msgspec.json.Decoder(_Message)
_ENCODER: Final = msgspec.json.Encoder()


def _decoded(raw: msgspec.Raw | bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(bytes(raw))  # half of a surrogate pair, from a page's text


class Session(Emitter):
    """A DevTools session: of the browser itself, of a tab, or of a frame with its own process."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        super().__init__()
        self.id = session_id
        self.parts: set[str] = set()  # sessions of its frames and workers
        self._connection = connection
        self._waiting: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._ended = ""  # why it takes no more commands

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result; unbounded.

        Raises:
            playwright.Error: the browser refused it, or the session has ended.
        """
        return await self.begin(method, params)

    def begin(
        self, method: str, params: dict[str, Any] | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Send a command at once; the future has its result, or a `playwright.Error`."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieve_error)
        if self._ended:
            answer.set_exception(_failure(method, self._ended))
            return answer
        number = self._connection.send(self.id, method, params)
        self._waiting[number] = (method, answer)
        return answer

    async def detach(self) -> None:
        """End the session; unbounded.

        Raises:
            playwright.Error: it has ended, or the browser has.
        """
        await self._connection.root.send("Target.detachFromTarget", {"sessionId": self.id})

    def end(self, why: str) -> None:
        """Fail what waits for an answer, and every later command."""
        self._ended = self._ended or why
        waiting, self._waiting = self._waiting, {}
        for method, answer in waiting.values():
            if not answer.done():
                answer.set_exception(_failure(method, why))

    def receive(self, message: _Message) -> None:
        """Take the answer to a command, or an event.

        Raises:
            msgspec.MsgspecError, RecursionError, ValueError: it cannot be decoded.
        """
        if message.method:
            if self.hears(message.method):
                self.emit(message.method, _decoded(message.params))
            return
        method, answer = self._waiting.get(message.id, ("", None))
        if answer is None or answer.done():
            self._waiting.pop(message.id, None)
            return
        result = _decoded(message.error if bytes(message.error) else message.result)
        del self._waiting[message.id]
        if bytes(message.error):
            answer.set_exception(_failure(method, str(result.get("message", ""))))
        else:
            answer.set_result(result)

    def fail(self, number: int, why: str) -> None:
        """Fail the command with this number, if it is one of this session."""
        method, answer = self._waiting.pop(number, ("", None))
        if answer is not None and not answer.done():
            answer.set_exception(_failure(method, why))


def _failure(method: str, why: str) -> Error:
    return Error(f"Protocol error ({method}): {why}")


def _retrieve_error(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()  # it may be nobody's: the task that waited was cancelled


class Connection(asyncio.Protocol):
    """The pipe of one browser; `root` is the browser's own session."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []  # of a message that has not ended
        self._size = 0  # of that message; above the limit, only its head and its tail are kept
        self._tail = b""
        self._number = 0
        self.root = Session(self, "")
        self._sessions = {"": self.root}

    @property
    def lost(self) -> bool:
        return self._transport is None

    def session(self, session_id: str) -> Session:
        """Return the session with this id, which the browser has announced."""
        found = self._sessions.get(session_id)
        if found is None:
            found = self._sessions[session_id] = Session(self, session_id)
            if self.lost:
                found.end(CLOSED)
        return found

    def forget(self, session_id: str) -> Session | None:
        """End a session whose target is gone, with those of its parts, and return it."""
        found = self._sessions.pop(session_id, None)
        if found is not None:
            found.end(CLOSED)
            for part in tuple(found.parts):
                self.forget(part)
        return found

    def send(self, session_id: str, method: str, params: dict[str, Any] | None) -> int:
        """Write a command; return its number."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method}
        if params:
            message["params"] = params
        if session_id:
            message["sessionId"] = session_id
        if self._transport is not None:
            self._transport.write(_ENCODER.encode(message) + _END)
        return self._number

    def close(self) -> None:
        """Close the pipe, which ends the browser."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        first, *rest = data.split(_END)
        self._take(first)
        for part in rest:
            self._finish()
            self._take(part)

    def _take(self, part: bytes) -> None:
        """Take a part of a message; drop all but head and tail of one above the limit."""
        before, self._size = self._size, self._size + len(part)
        if self._size <= MOST_BYTES:
            self._parts.append(part)
            return
        if before <= MOST_BYTES:
            self._tail = b"".join(self._parts[-_TAIL_BYTES:])[-_TAIL_BYTES:]
            self._parts.append(part[:_HEAD_BYTES])
            self._parts = [b"".join(self._parts[:_HEAD_BYTES])[:_HEAD_BYTES]]
        self._tail = (self._tail + part[-_TAIL_BYTES:])[-_TAIL_BYTES:]

    def _finish(self) -> None:
        whole, is_kept = b"".join(self._parts), self._size <= MOST_BYTES
        tail = whole[-_TAIL_BYTES:] if is_kept else self._tail
        self._parts, self._size, self._tail = [], 0, b""
        if whole.startswith(_UNHEARD):
            return
        if is_kept:
            with suppress(*_UNREADABLE):
                self._receive(whole)
                return
        self._drop(whole[:_HEAD_BYTES], tail)

    def _drop(self, head: bytes, tail: bytes) -> None:
        """Fail the command that a dropped message answers, or tell who may wait for the event."""
        event, owner = _EVENT.match(head), _SESSION.search(tail)
        if event is not None and owner is not None:
            if (told := self._sessions.get(owner[1].decode())) is not None:
                told.emit("dropped", event[1].decode())
        elif (found := _NUMBER.match(head)) is not None:
            for session in tuple(self._sessions.values()):
                session.fail(int(found[1]), TOO_MUCH)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for session in tuple(self._sessions.values()):
            session.end(CLOSED)
        self._on_lost()

    def _receive(self, raw: bytes) -> None:
        try:
            message = _HEAD.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair
            told = json.loads(raw)
            parts = ("params", "result", "error")
            kept = {
                one: msgspec.Raw(json.dumps(told[one]).encode()) for one in parts if one in told
            }
            message = _Message(
                told.get("id", 0), told.get("method", ""), told.get("sessionId", ""), **kept
            )
        session = self._sessions.get(message.session)
        if session is not None:
            session.receive(message)
