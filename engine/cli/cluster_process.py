"""Hidden command of an embedded cluster: be its scheduler or one of its workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Any, Final

import click

from engine.cluster.cluster_address import import_library
from engine.cluster.page_server import PageServer
from engine.logging.logs import log_to_file
from engine.model.errors import EngineError

LAST_S: Final = 10.0  # until a process ends that does not end in order


@click.command(name="_cluster", hidden=True)
@click.argument("role", type=click.Choice(["scheduler", "worker"]))
def cluster_process(role: str) -> None:
    """Take orders from standard input, and end when it is closed."""
    log_to_file()
    orders = json.loads(sys.stdin.readline() or "{}")
    if not orders:
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine decides when it ends
    asyncio.run(_served(role, orders))


async def _served(role: str, orders: dict[str, Any]) -> None:
    """Serve, and end the process: nothing of Dask is worth the time of an orderly end."""
    code = 0
    try:
        await _run(role, orders)
    except (EngineError, OSError) as error:
        _answer({"error": str(error)})
        code = 1
    logging.shutdown()
    os._exit(code)


async def _run(role: str, orders: dict[str, Any]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def until_closed() -> None:
        sys.stdin.read()
        # Dask logs connections that end with the other processes as errors.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        loop.call_soon_threadsafe(stop.set)
        time.sleep(LAST_S)  # on this thread; the loop ends in order meanwhile
        os._exit(1)

    threading.Thread(target=until_closed, name="wait for the engine", daemon=True).start()
    dask = import_library("engine.cluster.dask_worker")

    def connected(address: str) -> None:
        _answer({"address": address})

    if role == "scheduler":
        await dask.run_scheduler(orders["port"], stop, connected, orders["security"])
        return
    server = PageServer(orders["name"], orders["slots"], orders["browser"])
    await dask.run_worker(orders["address"], server, stop, connected, orders["security"])


def _answer(answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the engine has ended
        os.write(1, json.dumps(answer).encode() + b"\n")
