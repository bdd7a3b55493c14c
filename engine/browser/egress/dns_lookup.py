"""Asks the system's resolver on a few threads of its own.

A name server that does not answer holds its thread for many seconds. On the loop's common
threads sixteen such names would stand before every read of the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections import deque

from engine.browser.egress.public_addresses import IPAddress

THREADS = 16
Answer = asyncio.Future[tuple[IPAddress, ...]]


class Lookups:
    """Threads that begin with the first name and end with the last; no exit waits for them."""

    def __init__(self, threads: int = THREADS) -> None:
        self._most = threads
        self._threads = 0
        self._waiting: deque[tuple[str, Answer, asyncio.AbstractEventLoop]] = deque()
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Answer:
        """The addresses of `host`; the future fails with `OSError` when it has none."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        with self._lock:
            if self._threads < self._most:
                threading.Thread(target=self._work, name="look names up", daemon=True).start()
                self._threads += 1
            self._waiting.append((host, answer, loop))
        return answer

    def _work(self) -> None:
        while (asked := self._next()) is not None:
            host, answer, loop = asked
            found: tuple[IPAddress, ...] | OSError
            try:
                found = _getaddrinfo(host)
            except OSError as failed:
                found = failed
            with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
                loop.call_soon_threadsafe(_settle, answer, found)

    def _next(self) -> tuple[str, Answer, asyncio.AbstractEventLoop] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


def _settle(answer: Answer, found: tuple[IPAddress, ...] | OSError) -> None:
    if answer.done():
        return
    if isinstance(found, OSError):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _getaddrinfo(host: str) -> tuple[IPAddress, ...]:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        texts = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
        return tuple(map(ipaddress.ip_address, texts))
    except ValueError as problem:  # UnicodeError is one
        raise OSError(f"{host} cannot be asked for") from problem


look_up = Lookups()
