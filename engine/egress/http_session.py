"""HTTP session of the static engine, which connects only to addresses that the policy checked.

Imports aiohttp (0.5 s): import this module where a session is opened.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http.cookies import CookieError, Morsel
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from engine.egress import public_addresses
from engine.egress.egress_policy import Place, Policy
from engine.model.errors import AddressBlocked

MAX_HEADERS, MAX_HEADER_CHARS = 1_000, 64 * 1024  # browsers accept more than the library's 128
_ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


class PolicyResolver(AbstractResolver):
    """Passes aiohttp the addresses that the policy checked, so that none can be replaced."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of `host`.

        Raises:
            AddressBlocked, PageError: as `Policy.check`; both pass through aiohttp unchanged.
        """
        place = Place(public_addresses.canonical_host(host), port)
        try:
            found = await self._policy.addresses(place, f"//{place}")
        except AddressBlocked as refused:
            self._policy.blocked_requests.note(str(place), refused.reason)
            raise
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
            if family in (socket.AF_UNSPEC, _FAMILIES[address.version])
        ]

    async def close(self) -> None:
        """Do nothing: there are no resources."""


def open_session(
    policy: Policy,
    agent: str,
    language: str | None = None,
    cookies: Iterable[Mapping[str, Any]] | None = None,
) -> aiohttp.ClientSession:
    """Return a session with the user agent `agent`, which keeps no connection past the policy.

    `language` is its Accept-Language, if any. It sends `cookies` (in the form of a storage
    state) to the hosts that they are for.

    aiohttp calls no resolver for a numeric host: call `Policy.check` for every hop as well.
    """
    headers = {"User-Agent": agent, "Accept": _ACCEPT}
    if language is not None:
        headers["Accept-Language"] = language
    connector = aiohttp.TCPConnector(resolver=PolicyResolver(policy), use_dns_cache=False, limit=32)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=_jar(cookies or ()),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None),  # the page's deadline applies instead
        max_line_size=MAX_HEADER_CHARS,
        max_field_size=MAX_HEADER_CHARS,
        max_headers=MAX_HEADERS,
        trust_env=False,
    )


def _jar(cookies: Iterable[Mapping[str, Any]]) -> aiohttp.CookieJar:
    """Return a jar with these cookies, also of hosts that are numbers, as browsers keep them."""
    jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)
    for cookie in cookies:
        domain, expires = str(cookie.get("domain", "")), float(cookie.get("expires") or -1)
        if not domain or 0 <= expires <= time.time():
            continue
        morsel: Morsel[str] = Morsel()
        value = str(cookie.get("value", ""))
        try:
            morsel.set(str(cookie.get("name", "")), value, value)
        except CookieError:
            continue  # a name that the library does not send
        morsel["path"] = str(cookie.get("path") or "/")
        if domain.startswith("."):
            morsel["domain"] = domain.removeprefix(".")
        if cookie.get("secure"):
            morsel["secure"] = True
        if expires >= 0:
            morsel["max-age"] = str(int(expires - time.time()))
        host = domain.removeprefix(".").strip("[]")
        with suppress(ValueError):  # no host: a browser does not send it either
            jar.update_cookies({morsel.key: morsel}, URL.build(scheme="https", host=host, path="/"))
    return jar


def session_cookies(session: aiohttp.ClientSession) -> list[dict[str, Any]]:
    """Return name, domain, path and value of each cookie that the session has now."""
    return [
        {
            "name": cookie.key,
            "value": cookie.value,
            "domain": cookie["domain"],
            "path": cookie["path"] or "/",
        }
        for cookie in session.cookie_jar
    ]
