"""Requests of the program itself, for updates and lists of rules: the client, and its failures."""

from __future__ import annotations

import ssl
from urllib.error import URLError
from urllib.request import (
    BaseHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
)


def opener(version: str, *handlers: BaseHandler) -> OpenerDirector:
    """Return a client that reads the system's proxies, and knows https alone.

    It follows redirects, and knows http, only by `handlers`. It names this program's `version`.
    """
    made = OpenerDirector()
    for handler in (
        ProxyHandler(),
        HTTPSHandler(context=ssl.create_default_context()),
        HTTPErrorProcessor(),
        HTTPDefaultErrorHandler(),
        *handlers,
    ):
        made.add_handler(handler)
    made.addheaders = [("User-Agent", f"openchrome-monitor/{version}")]
    return made


def reason_of(error: Exception) -> str:
    """Return why a request failed; the error's own text may hold the password of a proxy."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return "the server did not answer in time"
    if isinstance(cause, ssl.SSLError):
        return "the secure connection cannot be trusted"
    return "the server cannot be reached"
