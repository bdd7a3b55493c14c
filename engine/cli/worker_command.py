"""`octask worker`: load pages for the crawls of a Dask cluster, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from engine.cli.calls import Interrupts, bare_settings, print_json, refuse
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.cluster.cluster_address import (
    ClusterAddress,
    cluster_address,
    default_worker_name,
    import_library,
    tls_of_dask,
)
from engine.cluster.page_server import PageServer
from engine.logging.logs import log_to_file
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.text.cli_messages import say

RunWorker = Callable[..., Awaitable[Any]]
SLOTS = 4
MOST_SLOTS = 64


@click.command("worker")
@click.argument("address", envvar="OC_CLUSTER")
@click.option(
    "--slots",
    type=click.IntRange(1, MOST_SLOTS),
    default=SLOTS,
    show_default=True,
    help="Pages that load at the same time here.",
)
@click.option(
    "--name", metavar="NAME", help="Name in the records of pages (default: host and process)."
)
@place_options
def worker(
    address: str, slots: int, name: str | None, home: Path | None, root: Path | None, as_json: bool
) -> None:
    """Load pages for the crawls that use the Dask scheduler at ADDRESS, until Ctrl-C.

    ADDRESS is tcp://HOST:PORT, or tls://HOST:PORT with the certificates of Dask's own settings.
    Whoever reaches the scheduler or this worker over tcp:// can run programs here.
    """
    log_to_file()
    try:
        scheduler = _scheduler(address)
        dask = import_library("engine.cluster.dask_worker")
        if scheduler.scheme == "tls":
            tls_of_dask(scheduler, "worker")
        browser = bare_settings(home, root).browser_path
        server = PageServer(name or default_worker_name(), slots, browser)
        asyncio.run(_serve(scheduler, server, dask.run_worker, as_json))
    except EngineError as error:
        refuse(error, as_json=as_json)
    sys.exit(OK)


def _scheduler(given: str) -> ClusterAddress:
    """Read the address of a scheduler. Raises InvalidArguments."""
    try:
        found = cluster_address(given)
    except ValueError:
        found = ClusterAddress(local=1)
    if found.local:
        why = "must be tcp://HOST:PORT or tls://HOST:PORT"
        raise InvalidArguments((Problem("ADDRESS", "invalid_value", why),))
    return found


async def _serve(
    scheduler: ClusterAddress, server: PageServer, run: RunWorker, as_json: bool
) -> None:
    stop = asyncio.Event()

    def connected(own: str) -> None:
        facts = {"scheduler": str(scheduler), "address": own, "name": server.name}
        if as_json:
            print_json({**facts, "slots": server.slots}, indent=None)
            return
        shown = {name: display(text, 300) for name, text in facts.items()}
        click.echo(say("worker.connected", **shown, slots=server.slots))

    if not as_json:
        click.echo(say("worker.waiting", scheduler=scheduler), err=True)
    with Interrupts(stop.set):
        await run(str(scheduler), server, stop, connected)
