"""Servers on a free port of this machine, for the length of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from engine.sample.site import Answer, Request, Server


class HasServer(Protocol):
    """A site with its server."""

    server: Server


A_Site = TypeVar("A_Site", bound=HasServer)


@contextmanager
def served(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """Serve `answer`, and yield the address without a slash at its end."""
    server = Server(answer, "127.0.0.1", 0)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


@contextmanager
def running(site: A_Site) -> Iterator[A_Site]:
    """Start the server of `site` for the length of the block."""
    site.server.start()
    try:
        yield site
    finally:
        site.server.stop()
