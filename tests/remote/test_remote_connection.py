"""Connections to a browser server, without a browser."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from engine.browser.remote.remote_address import RemotePlace, browser_address
from engine.browser.remote.remote_connection import connect, greet

TOKEN = "t" * 32


async def test_an_idle_connection_is_kept_alive_and_a_lost_one_noticed() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet((reader, writer), TOKEN)
        with suppress(OSError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        place = RemotePlace(browser_address(f"tcp://127.0.0.1:{port}"), TOKEN)
        _, writer = await connect(place, None, "driver", "name")
        connection = writer.get_extra_info("socket")
        try:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):  # a router forgets after some minutes
                idle_s = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
                assert 0 < idle_s <= 60
        finally:
            writer.close()
            await writer.wait_closed()
