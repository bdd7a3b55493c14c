"""Addresses of browser servers, and the errors of using one.

Without TLS a connection could be read and changed on its way. Such addresses are for this machine
alone, where an SSH tunnel may lead elsewhere.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from engine.model.errors import BrowserFailed

TOKEN_VARIABLE: Final = "OC_BROWSER_TOKEN"
DEFAULT_PORT: Final = 8_790
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_ADDRESS: Final = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?/?", re.ASCII)

Scheme = Literal["tcp", "tls"]


class RemoteBrowserUnreachable(BrowserFailed):
    """The browser server of another machine cannot be used."""

    code = "remote_browser_unreachable"
    title = "The remote browser cannot be reached"
    sentence = "The browser server {address} cannot be used: {reason}."
    advice_text = "`octask browser-server` must run there; docs/scale.md has the set-up."


class RemoteBrowserToken(BrowserFailed):
    """The token of a browser server is missing, or the server has another one."""

    code = "remote_browser_token"
    title = "The token of the remote browser is missing or wrong"
    sentence = "The browser server {address} was not used: {reason}."
    advice_text = (
        "Set OC_BROWSER_TOKEN to the token of the server: that in the file which it printed, or "
        "that of its own OC_BROWSER_TOKEN."
    )


class BrowserAddress(NamedTuple):
    """Where a browser server listens."""

    scheme: Scheme
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def browser_address(given: str) -> BrowserAddress:
    """Read tls://HOST:PORT, or tcp://HOST:PORT of this machine. Raises ValueError: the reason."""
    found = _ADDRESS.fullmatch(given.strip())
    port = int(found[3] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port <= 65_535:
        raise ValueError("must be tls://HOST:PORT, or tcp://127.0.0.1:PORT")
    host = found[2].strip("[]")
    if found[1] == "tcp":
        if host not in LOOPBACK_HOSTS:
            raise ValueError(
                "needs tls://, because tcp:// is not encrypted; tcp:// is for 127.0.0.1, as with "
                "an SSH tunnel"
            )
        return BrowserAddress("tcp", host, port)
    return BrowserAddress("tls", host, port)


class RemotePlace(NamedTuple):
    """A browser server, and the token that both sides have."""

    address: BrowserAddress
    token: str

    def __repr__(self) -> str:
        return f"RemotePlace({self.address})"  # without the token
