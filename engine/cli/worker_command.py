"""`octask worker`: load pages for the tasks of a Dask cluster, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from engine.cli.calls import Interrupts, bare_settings, print_json, refuse
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.cluster.background import until
from engine.cluster.cluster_address import (
    ClusterAddress,
    cluster_address,
    default_worker_name,
    import_library,
    tls_of_dask,
)
from engine.cluster.page_server import PageServer
from engine.cluster.wire import Wire, WireError
from engine.cluster.worker_pool import why_unreachable
from engine.logging.logs import log_to_file
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.text.cli_messages import say

log = logging.getLogger(__name__)

RunWorker = Callable[..., Awaitable[Any]]
SLOTS = 4
MOST_SLOTS = 64
LOOK_S: Final = 1.0  # between two looks whether the scheduler can be reached
NEWS: Final = "engine.cluster.dask_worker"  # the logger of what happens to a worker


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
    """Load pages for the tasks that use the Dask scheduler at ADDRESS, until Ctrl-C.

    ADDRESS is tcp://HOST:PORT, or tls://HOST:PORT with the certificates of Dask's own settings. Its
    default is OC_CLUSTER.
    Whoever reaches the scheduler or this worker over tcp:// can run programs here.
    """
    log_to_file()
    try:
        scheduler = _scheduler(address)
        dask = import_library("engine.cluster.dask_worker")
        tls = tls_of_dask(scheduler, "worker") if scheduler.scheme == "tls" else None
        browser = bare_settings(home, root).browser_path
        server = PageServer(name or default_worker_name(), slots, browser)
        with _news_at_the_terminal():
            asyncio.run(_serve(scheduler, tls, server, dask.run_worker, as_json))
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


class _Terminal(logging.Handler):
    """Writes messages to standard error, where the output is for programs or for a person."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(display(record.getMessage(), 1_000), err=True)


@contextlib.contextmanager
def _news_at_the_terminal() -> Iterator[None]:
    """Show what happens to the worker: a lost scheduler, a name that is taken."""
    logger, terminal = logging.getLogger(NEWS), _Terminal(logging.WARNING)
    logger.addHandler(terminal)
    try:
        yield
    finally:
        logger.removeHandler(terminal)


async def _reached(scheduler: ClusterAddress, tls: ssl.SSLContext | None) -> None:
    """Return when the scheduler answers; until then tell why it does not.

    Dask itself connects ten times a second, which fills the log of a scheduler that refuses it.
    """
    told = ""
    while True:
        try:
            (await Wire.open(scheduler, tls)).abort()
        except WireError as failed:
            reason = why_unreachable(scheduler, failed)
        else:
            return
        if reason != told:
            click.echo(say("worker.unreachable", scheduler=scheduler, reason=reason), err=True)
            log.warning("%s cannot be reached: %s", scheduler, reason)
            told = reason
        await asyncio.sleep(LOOK_S)


async def _serve(
    scheduler: ClusterAddress,
    tls: ssl.SSLContext | None,
    server: PageServer,
    run: RunWorker,
    as_json: bool,
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
        reached = partial(_reached, scheduler, tls)
        await until(stop, reached())
        if not stop.is_set():
            await run(str(scheduler), server, stop, connected, reached=reached)
