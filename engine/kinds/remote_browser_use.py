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
NOT_OUTSIDE: Final = "is for the operator of this program"


def _remote_browser(given: object) -> str:
    """Read the address of a browser server."""
    return str(browser_address(text(given)))


REMOTE_BROWSER: Final = Argument(
    optional(_remote_browser),
    FormField(
        "Remote browser",
        editor="line",
        shade="tls://host:8790",
        hint="A browser server on another machine (octask browser-server). It sees everything "
        "that the browser sees.",
    ),
    help="Use the browser of another machine: tls://HOST:PORT, or tcp://127.0.0.1:PORT of an SSH "
    "tunnel; the token is in OC_BROWSER_TOKEN.",
)


def remote_place(given: str | None, settings: Settings) -> RemotePlace | None:
    """Return the browser server of a task, or None.

    Raises:
        RemoteBrowserToken: there is no token, or it is too short to be one.
    """
    if given is None:
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
    if not given:
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
