"""`octask serve`: HTTP, WebSocket and MCP on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli.calls import Interrupts, print_json, refuse, settings_from
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.cli.trust_options import trust_options, trusting
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError
from engine.server.optional_libraries import import_server
from engine.service.engine import Engine
from engine.text.cli_messages import say

if TYPE_CHECKING:
    from engine.server.local_server import LocalServer


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="The port to listen on (default: a free one).",
)
@click.option("--new-token", is_flag=True, help="Make a new token; the old one ends.")
@trust_options
@place_options
def serve(home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
    """Serve HTTP, WebSocket and MCP to programs of this machine, until Ctrl-C.

    The address and the token are in a file that only you can read; its path is printed.
    """
    log_to_file()
    try:
        serving = import_server("local_server")
        settings = replace(trusting(settings_from(home, root), given), route="http")
        asyncio.run(_serve(serving.LocalServer, settings, given, as_json))
    except EngineError as error:
        refuse(error, as_json=as_json)
    sys.exit(OK)


async def _serve(
    server_type: type[LocalServer], settings: Settings, given: Mapping[str, Any], as_json: bool
) -> None:
    leaving = asyncio.Event()
    with Interrupts(leaving.set):  # also while it ends: a second Ctrl-C does not wait
        engine = Engine(settings, accepts=True)
        try:
            await engine.open()
            server = server_type(engine, port=given["port"], new_token=given["new_token"])
            await server.start()
            try:
                _announce(server, as_json)
                await leaving.wait()
                if not as_json:
                    click.echo(say("serve.ending"), err=True)
            finally:
                await server.stop()
        finally:
            await engine.close()


def _announce(server: LocalServer, as_json: bool) -> None:
    """Print the address and the path of the token's file, never the token."""
    path = str(server.token_file)
    if as_json:
        print_json({"url": server.url, "port": server.port, "token_file": path}, indent=None)
    else:
        click.echo(say("serve.ready", url=server.url))
        click.echo(say("serve.token", path=display(path)))
    sys.stdout.flush()
