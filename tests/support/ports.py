"""Ports of this machine that nobody else gets while a test needs them."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port of 127.0.0.1 that no other process gets during the block, also while nobody listens.

    A server that sets SO_REUSEADDR can listen on it, again and again; connections are refused in
    between. Other systems than Linux do not let two sockets have one port: it is only likely there
    that the port stays free.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
