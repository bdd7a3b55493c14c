"""The argument `remote_browser`: the browser of a task runs on another machine.

The machine's browser server (`octask browser-server`) has a token, which this program takes from
the environment; a task only names the address. What the browser loads goes through the egress
policy of this machine, as ever. The other machine sees everything that the browser sees, so that
the operator alone names one: requests from outside (MCP, HTTP) never get a remote browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.browser.remote.remote_address import (
    TOKEN_VARIABLE,
    RemoteBrowserToken,
    RemotePlace,
    browser_address,
)
from engine.kinds.arguments import Argument, FormField, optional, text
from engine.kinds.context import FROM_OUTSIDE
from engine.model.config import Settings
from engine.model.errors import EngineError, Problem

NAME: Final = "remote_browser"
LEAST_TOKEN: Final = 20  # characters
NO_REMOTE: Final = "none"  # the browser of this machine
NOT_OUTSIDE: Final = "is for the operator of this program"


def _remote_browser(given: object) -> str | None:
    """Read the address of a browser server; None for `none`."""
    found = text(given).strip()
    return None if found == NO_REMOTE else str(browser_address(found))


REMOTE_BROWSER: Final = Argument(
    optional(_remote_browser),
    FormField(
        "Remote browser",
        editor="line",
        shade="tls://host:8790",
        hint="A browser server on another machine (octask browser-server). It sees everything "
        "that the browser sees.",
    ),
    help="Use the browser of another machine: tls://HOST:PORT, tcp://127.0.0.1:PORT of an SSH "
    "tunnel, or none; the token is in OC_BROWSER_TOKEN.",
)


def remote_place(given: str | None, settings: Settings) -> RemotePlace | None:
    """Return the browser server of a task, or None.

    Raises:
        RemoteBrowserToken: there is no token, or it is too short to be one.
        ValueError: it is no address.
    """
    if given in (None, NO_REMOTE):
        return None
    address = browser_address(given)
    token = settings.environ.get(TOKEN_VARIABLE, "").strip()
    if len(token) < LEAST_TOKEN:
        reason = "OC_BROWSER_TOKEN is too short" if token else "OC_BROWSER_TOKEN is not set"
        raise RemoteBrowserToken(address=address, reason=reason)
    return RemotePlace(address, token)


def remote_browser_problems(args: Mapping[str, Any], settings: Settings) -> list[Problem]:
    """Return why a task cannot use its remote browser now: it is not allowed, or has no token."""
    given = args.get(NAME)
    if not given or given == NO_REMOTE:
        return []
    if settings.route in FROM_OUTSIDE:
        return [Problem(NAME, "not_allowed", NOT_OUTSIDE)]
    try:
        remote_place(str(given), settings)
    except ValueError:
        return []  # the parser reports it
    except EngineError as error:
        return [Problem(NAME, "no_token", f"{error} {error.advice}")]
    return []
