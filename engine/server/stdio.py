"""MCP on standard input and output, for a host that starts `octask mcp`.

Tasks run in worker processes, so they go on when the host ends this one. Envelopes and browsers of
agents belong to this process, and end with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Final

from mcp.server.stdio import stdio_server

from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.ending_signals import handled_on_loop
from engine.server.mcp_server import McpServer
from engine.service.engine import Engine

log = logging.getLogger(__name__)

LEAVE_S: Final = 5.0  # hosts kill the process soon after they asked it to end


def serve_stdio(settings: Settings, groups: Collection[str] = ()) -> None:
    """Serve until standard input ends; standard output belongs to the protocol.

    Args:
        groups: the groups of tools that are offered (all without one), see `tool_table`.

    Raises:
        EngineError: the ledger cannot be opened.
    """
    log_to_file()
    asyncio.run(_serve(replace(settings, route="mcp", detached=True), groups))


async def _serve(settings: Settings, groups: Collection[str]) -> None:
    engine = Engine(settings, accepts=True)
    await engine.open(list_first=True)
    face = McpServer(engine, groups=groups)
    leaving: list[asyncio.Task[None]] = []
    leave = partial(_begin_leaving, engine, face, leaving)
    with handled_on_loop((signal.SIGTERM, leave), (signal.SIGINT, leave)):
        try:
            async with stdio_server() as (read, write):
                await face.server.run(read, write, face.server.create_initialization_options())
        except* ConnectionError:  # the host was killed while an answer was written to it
            log.info("the host has gone")
        finally:
            await _close(engine, face)


def _begin_leaving(engine: Engine, face: McpServer, leaving: list[asyncio.Task[None]]) -> None:
    if not leaving:
        leaving.append(asyncio.create_task(_leave(engine, face), name="leave"))


async def _leave(engine: Engine, face: McpServer) -> None:
    """Close everything and end the process: a thread waits for standard input and cannot end."""
    await _close(engine, face)
    logging.shutdown()
    os._exit(0)


async def _close(engine: Engine, face: McpServer) -> None:
    await face.close()
    await engine.close(LEAVE_S)
