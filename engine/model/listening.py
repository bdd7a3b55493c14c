"""End of a listening server that loses no accepted connection."""

from __future__ import annotations

import asyncio
import sys

# Loop iterations after an accept: the transport exists after one, its protocol knows it after
# two, and the handler of a stream has begun after three.
TURNS = 3


def stop_accepting(server: asyncio.Server) -> None:
    """Accept nothing more, and let the caller close `server` after two loop iterations.

    A selector loop creates the transport of a connection one iteration after it accepts it. If
    the server is closed between the two, asyncio drops the connection without closing it, so
    that the client waits (CPython gh-109564). The loop of Windows does both in one step.
    """
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())


async def close_server(server: asyncio.Server) -> None:
    """Stop accepting, then close `server`; its connections stay open."""
    stop_accepting(server)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    server.close()
