"""Addresses of browser servers, and the errors of using one.

Without TLS a connection could be read and changed on its way. Such addresses are for this machine
alone, where an SSH tunnel may lead elsewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.model.addresses import ServiceAddress, service_address
from engine.model.errors import BrowserFailed

TOKEN_VARIABLE: Final = "OC_BROWSER_TOKEN"
DEFAULT_PORT: Final = 8_790
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})


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


def browser_address(given: str) -> ServiceAddress:
    """Read tls://HOST:PORT, or tcp://HOST:PORT of this machine. Raises ValueError: the reason."""
    found = service_address(given.strip(), DEFAULT_PORT)
    if found is None:
        raise ValueError("must be tls://HOST:PORT, or tcp://127.0.0.1:PORT")
    if found.scheme == "tcp" and found.host not in LOOPBACK_HOSTS:
        raise ValueError(
            "needs tls://, because tcp:// is not encrypted; tcp:// is for 127.0.0.1, as with an "
            "SSH tunnel"
        )
    return found


class RemotePlace(NamedTuple):
    """A browser server, and the token that both sides have."""

    address: ServiceAddress
    token: str

    def __repr__(self) -> str:
        return f"RemotePlace({self.address})"  # without the token
