"""`octask browser-server`: lend this machine's browser to tasks of other machines, until Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from engine.browser.remote.browser_server import MOST_SESSIONS, SESSIONS, BrowserServer
from engine.browser.remote.remote_address import (
    DEFAULT_PORT,
    LOOPBACK_HOSTS,
    TOKEN_VARIABLE,
)
from engine.cli.calls import Interrupts, bare_settings, print_json, refuse
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.kinds.remote_browser_use import LEAST_TOKEN
from engine.logging.logs import log_to_file
from engine.model.addresses import ServiceAddress
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.server.access_file import BROWSER_NAME, AccessFile
from engine.text.cli_messages import say

_UNREADABLE: Final = "no certificate with its key can be read from it; --key names another file"
_PLACE: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?", re.ASCII)


class CannotListen(EngineError):
    """The browser server cannot listen at its address."""

    code = "cannot_listen"
    title = "The address cannot be used"
    sentence = "Nothing can listen at {address}: {reason}."
    advice_text = "Choose another address of this machine with --listen, or another port."


@click.command("browser-server")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{DEFAULT_PORT}",
    show_default=True,
    help="Where to listen: an address, a port of 127.0.0.1, or both; port 0 is a free one. Any "
    "address but 127.0.0.1 needs --certificate.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    help="The TLS certificate of this machine (PEM, with its chain).",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Its private key (PEM); default: in the file of the certificate.",
)
@click.option(
    "--most",
    type=click.IntRange(1, MOST_SESSIONS),
    default=SESSIONS,
    show_default=True,
    help="Browsers that are lent at the same time.",
)
@click.option("--new-token", is_flag=True, help="Make a new token; the old one ends.")
@place_options
def browser_server(home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
    """Lend the browser of this machine to tasks of other machines, until Ctrl-C.

    Such a task names this server with --remote-browser, and has its token in OC_BROWSER_TOKEN. The
    token is in a file that only you can read, whose path is printed; with OC_BROWSER_TOKEN set
    here, that is the token. Pages are loaded through the machine of the task.
    """
    log_to_file()
    try:
        settings = bare_settings(home, root)
        host, port = _place(given["listen"])
        tls = _certificate(given["certificate"], given["key"])
        if tls is None and host not in LOOPBACK_HOSTS:
            why = "is needed to listen at any address but 127.0.0.1: the connection is encrypted"
            raise InvalidArguments((Problem("--certificate", "missing", why),))
        address = ServiceAddress("tls" if tls else "tcp", host, port)
        asyncio.run(_serve(settings, address, tls, given, as_json))
    except EngineError as error:
        refuse(error, as_json=as_json)
    sys.exit(OK)


def _place(given: str) -> tuple[str, int]:
    text = given.strip()
    found = _PLACE.fullmatch(f"127.0.0.1:{text}" if text.isdecimal() else text)
    port = int(found[2] or DEFAULT_PORT) if found else -1
    if found is None or not 0 <= port <= 65_535:
        raise InvalidArguments((Problem("--listen", "invalid_value", "must be HOST:PORT"),))
    return found[1].strip("[]"), port


def _certificate(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context of the server. Raises InvalidArguments: the files are unusable."""
    if certificate is None:
        if key is not None:
            raise InvalidArguments((Problem("--key", "missing", "goes with --certificate"),))
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as failed:
        mismatch = failed.reason == "KEY_VALUES_MISMATCH"
        reason = "the key is of another certificate" if mismatch else _UNREADABLE
        raise InvalidArguments((Problem("--certificate", "unusable", reason),)) from failed
    except (OSError, ValueError) as failed:
        reason = getattr(failed, "strerror", None) or str(failed)
        raise InvalidArguments((Problem("--certificate", "unusable", reason),)) from failed
    return context


def _no_password() -> str:
    """Refuse a key that needs a password; OpenSSL would ask for it at the terminal."""
    raise ValueError("the key needs a password; use one without")


async def _serve(
    settings: Settings,
    address: ServiceAddress,
    tls: ssl.SSLContext | None,
    given: Mapping[str, Any],
    as_json: bool,
) -> None:
    file = AccessFile(settings.home, BROWSER_NAME)
    token = settings.environ.get(TOKEN_VARIABLE, "").strip()
    if token and len(token) < LEAST_TOKEN:
        why = f"must have {LEAST_TOKEN} characters and more"
        raise InvalidArguments((Problem(TOKEN_VARIABLE, "invalid_value", why),))
    if token and given["new_token"]:
        why = f"does not go with {TOKEN_VARIABLE}, which is the token"
        raise InvalidArguments((Problem("--new-token", "contradiction", why),))
    leaving = asyncio.Event()
    with Interrupts(leaving.set):
        stored = not token
        if stored:
            token = file.open(new_token=given["new_token"])
        try:
            server = BrowserServer(
                token,
                environ=settings.environ,
                browser_path=settings.browser_path,
                most=given["most"],
                report=lambda news, facts: _tell(news, facts, as_json),
            )
            try:
                port = await server.start(address.host, address.port, tls)
            except OSError as failed:
                known = failed.errno in errno.errorcode
                reason = os.strerror(failed.errno or 0) if known else "it is no address here"
                raise CannotListen(address=address, reason=reason) from failed
            address = address._replace(port=port)
            try:
                if stored:
                    file.announce(port, token, str(address))
                _announce(address, file if stored else None, as_json)
                await leaving.wait()
                if not as_json:
                    click.echo(say("browser_server.ending"), err=True)
            finally:
                await server.close()
        finally:
            if stored:
                file.withdraw()


def _announce(address: ServiceAddress, file: AccessFile | None, as_json: bool) -> None:
    """Print the address and where the token is, never the token."""
    path = "" if file is None else str(file.path)
    if as_json:
        print_json({"url": str(address), "token_file": path or None}, indent=None)
    else:
        click.echo(say("browser_server.ready", address=address))
        place = say("browser_server.token_file", path=display(path)) if path else ""
        click.echo(place or say("browser_server.token_variable", variable=TOKEN_VARIABLE))
    sys.stdout.flush()


def _tell(news: str, facts: Mapping[str, object], as_json: bool) -> None:
    with suppress(OSError):  # nobody reads it any more
        if as_json:
            print_json({"event": news, **facts}, indent=None)
            sys.stdout.flush()
        else:
            click.echo(say(f"browser_server.{news}", **facts), err=True)
