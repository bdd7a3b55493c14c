"""The cookies of a site in a crawl's context: limited, and checked when the site refuses pages.

A page may set more of them than its own server accepts in a request (8 kB with most): every later
page would get an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.direct.devtools_connection import NO_BODIES
from engine.model.errors import PageError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

MAX_BYTES: Final = 8 * 1024  # of the cookies of one address
LARGE_BYTES: Final = 4 * 1024  # the smallest header that common servers reject
LOOK_S: Final = 2.0
TOO_LARGE: Final = 431
# Status codes with which servers, balancers and caches reject a header that is too large.
SUSPECT: Final = frozenset({400, 413, 414, 494, 500, 502, 503, 520})
REFUSALS: Final = frozenset({400, 413, 414, TOO_LARGE, 494})  # without the codes of a busy server
MOST_ASKED: Final = 1_000  # requests of one tab whose address is known
CUT: Final = frozenset({"connection", "protocol"})  # some servers close the connection instead


class CookieJar:
    """The cookies that the tab on `wire` sends, and can delete."""

    def __init__(self, wire: CDPSession) -> None:
        self._wire = wire

    async def may_explain(self, url: str, status: int = 0) -> bool:
        """Return whether cookies may explain the `status` of `url`, or (0) a missing response."""
        if not is_suspect(status):
            return False
        return await self.holds(url, 1 if status == TOO_LARGE else LARGE_BYTES)

    async def holds(self, url: str, least: int = LARGE_BYTES) -> bool:
        """Return whether the cookies of `url` have at least that many bytes together."""
        return sum(map(_bytes, await self._cookies(url))) >= least

    async def bound(self, url: str, readable_chars: int) -> bool:
        """Delete the newest script-readable cookies of `url` above the limit.

        Cookies that scripts cannot read stay. Return whether the limit was exceeded.
        """
        if readable_chars <= MAX_BYTES:
            return False
        cookies, order = await self._cookies(url), await self._oldest_first()
        kept = sum(_bytes(cookie) for cookie in cookies if cookie.get("httpOnly"))
        for cookie in sorted(cookies, key=lambda one: order.get(_text(one), len(order))):
            if cookie.get("httpOnly"):
                continue
            kept += _bytes(cookie)
            if kept > MAX_BYTES:
                named = ("name", "domain", "path", "partitionKey")
                told = {name: cookie[name] for name in named if name in cookie}
                await self._send("Network.deleteCookies", told)
        return True

    async def _oldest_first(self) -> dict[str, int]:
        """Return the order of each script-readable cookie, oldest first within one path.

        `document.cookie` is the only place where the browser shows their age.
        """
        wanted = {"expression": "document.cookie", "returnByValue": True}
        told = (await self._send("Runtime.evaluate", wanted)).get("result", {}).get("value")
        texts = told.split("; ") if isinstance(told, str) else ()
        return {text: at for at, text in enumerate(texts)}

    async def _cookies(self, url: str) -> list[dict[str, Any]]:
        return list((await self._send("Network.getCookies", {"urls": [url]})).get("cookies", ()))

    async def _send(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(LOOK_S):
                return dict(await self._wire.send(what, given) or {})
        except (Error, TimeoutError):
            return {}


async def hear_cookies(
    wire: CDPSession, page_url: Callable[[], str], hear: Callable[[list[str], str, str], None]
) -> None:
    """Call `hear` with the Set-Cookie lines of each answer of a tab, before it arrives.

    The other arguments are the address of the answer and that of the page.

    Raises:
        playwright.Error: the tab is gone.
    """
    asked: dict[str, list[str]] = {}  # the addresses of each request, which may be redirected

    def on_request(event: dict[str, Any]) -> None:
        url = str(event.get("request", {}).get("url", ""))
        if not url.startswith(("http://", "https://")):  # such as a picture within its address
            return
        asked.setdefault(str(event.get("requestId")), []).append(url)
        if len(asked) > MOST_ASKED:
            del asked[next(iter(asked))]

    def on_answer(event: dict[str, Any]) -> None:
        headers: Mapping[str, str] = event.get("headers", {})
        values = [value for name, value in headers.items() if name.lower() == "set-cookie"]
        if values:
            url = page_url()
            lines = [line for value in values for line in value.split("\n")]
            for answered in asked.get(str(event.get("requestId")), [url]):
                hear(lines, answered, url)  # of several it is not known which one has answered

    wire.on("Network.requestWillBeSent", on_request)
    wire.on("Network.responseReceivedExtraInfo", on_answer)
    await wire.send("Network.enable", NO_BODIES)


def is_suspect(status: int) -> bool:
    """Return whether servers reject cookies with this status, or (0) with no response."""
    return status in (0, TOO_LARGE) or status in SUSPECT


def unproved(status: int, retry_after_s: float | None = None) -> PageError:
    """Return the error for a page that another page's cookies may have caused."""
    failed = PageError("http", f"HTTP {status}", status)
    failed.unproved, failed.retry_after_s = True, retry_after_s
    return failed


def _text(cookie: dict[str, Any]) -> str:
    """Format the cookie as in `document.cookie`."""
    return f"{cookie['name']}={cookie['value']}" if cookie["name"] else str(cookie["value"])


def _bytes(cookie: dict[str, Any]) -> int:
    return len(cookie["name"]) + len(cookie["value"]) + 3  # "=" and "; "
