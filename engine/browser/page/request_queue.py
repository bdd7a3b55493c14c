"""Requests of pages that wait for one of the browser's connections.

Chromium opens few connections to a place for all tabs of a context. A request that waits for one
has not been sent, so its page is informed, and the limit of the request begins when it is sent.
The DevTools protocol reports both moments: `requestWillBeSent`, `requestWillBeSentExtraInfo`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from playwright.async_api import Error

from engine.browser.page.extraction_options import WORLD
from engine.egress.proxy_listener import MOST_IN_ALL, MOST_TO_PLACE

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from engine.browser.direct.devtools_connection import Session

QUEUED_S = 1.0  # without a connection; then, and again after this time, its page is informed
INFORM_S = 10.0
MOST_EARLY: Final = 1_000
_LIMITED: Final = frozenset({"Fetch", "XHR", "Script"})  # those for which `pending.js` has a limit


class Connections:
    """The requests of all tabs of one context that have a connection, by place."""

    def __init__(self) -> None:
        self._places: Counter[str] = Counter()

    def is_full(self, url: str) -> bool:
        """Return whether a request to `url` has to wait for the end of another one."""
        in_all = self._places.total()
        return self._places[_place(url)] >= MOST_TO_PLACE or in_all >= MOST_IN_ALL

    def count(self, url: str, change: int) -> None:
        """Record that a request to `url` was sent (1), or has ended (-1)."""
        place = _place(url)
        self._places[place] += change
        if not self._places[place]:
            del self._places[place]


class _Unsent:
    """A request that has no connection yet."""

    def __init__(self, url: str, frame_id: str) -> None:
        self.url = url
        self.frame_id = frame_id
        self.known = False  # to its page
        self.look: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        if self.look is not None:
            self.look.cancel()


class RequestQueue:
    """The requests of the page in one tab; `session` reports those of its network domain.

    `pending` is the name of `pending.js` in its pages; `see_to` runs a coroutine in the background.
    """

    def __init__(
        self,
        session: Session | CDPSession,
        connections: Connections,
        pending: str,
        see_to: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._session = session
        self._connections = connections
        self._pending = pending
        self._see_to = see_to
        self._active = False
        self._unsent: dict[str, _Unsent] = {}  # by the id of the request, like the others
        self._sent: dict[str, str] = {}
        self._early: set[str] = set()  # sent before the browser reported them
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.requestWillBeSentExtraInfo", self._on_sent)
        for end in ("Network.loadingFinished", "Network.loadingFailed"):
            session.on(end, self._on_end)

    @property
    def is_waiting(self) -> bool:
        """Whether the page waits for a connection that other pages hold."""
        waiting = [one.url for one in self._unsent.values() if self._connections.is_full(one.url)]
        own = Counter(map(_place, self._sent.values()))
        return any(own[_place(url)] < MOST_TO_PLACE for url in waiting)

    def begin(self) -> None:
        """Follow the requests of the next page."""
        self.end()
        self._active = True

    def end(self) -> None:
        """Forget the requests of the page, and follow no others."""
        self._active = False
        for unsent in self._unsent.values():
            unsent.cancel()
        for url in self._sent.values():
            self._connections.count(url, -1)
        self._unsent, self._sent, self._early = {}, {}, set()

    def _on_request(self, event: dict[str, Any]) -> None:
        request_id, url = str(event["requestId"]), str(event["request"]["url"])
        if not self._active or not url.startswith(("http://", "https://")):
            return
        self._on_end(event)  # a redirect has the id of the request that led there
        if request_id in self._early:
            self._early.discard(request_id)
            self._send(request_id, url)
            return
        unsent = self._unsent[request_id] = _Unsent(url, str(event.get("frameId", "")))
        if event.get("type") in _LIMITED:
            self._look_later(request_id, unsent)

    def _on_sent(self, event: dict[str, Any]) -> None:
        request_id = str(event["requestId"])
        unsent = self._unsent.pop(request_id, None)
        if unsent is None:
            if self._active and len(self._early) < MOST_EARLY:
                self._early.add(request_id)
            return
        unsent.cancel()
        self._send(request_id, unsent.url)
        if unsent.known:
            self._inform(request_id, unsent, "sent")

    def _on_end(self, event: dict[str, Any]) -> None:
        request_id = str(event["requestId"])
        unsent = self._unsent.pop(request_id, None)
        if unsent is not None:
            unsent.cancel()
        url = self._sent.pop(request_id, None)
        if url is not None:
            self._connections.count(url, -1)

    def _send(self, request_id: str, url: str) -> None:
        self._sent[request_id] = url
        self._connections.count(url, 1)

    def _look_later(self, request_id: str, unsent: _Unsent) -> None:
        loop = asyncio.get_running_loop()
        unsent.look = loop.call_later(QUEUED_S, self._look, request_id, unsent)

    def _look(self, request_id: str, unsent: _Unsent) -> None:
        """Inform the page if a request begins to wait, or waits for something else by now."""
        is_queued = self._connections.is_full(unsent.url)
        if is_queued != unsent.known:
            unsent.known = is_queued
            self._inform(request_id, unsent, "queued" if is_queued else "sent")
        self._look_later(request_id, unsent)

    def _inform(self, request_id: str, unsent: _Unsent, state: Literal["queued", "sent"]) -> None:
        self._see_to(self._told(request_id, unsent, state))

    async def _told(self, request_id: str, unsent: _Unsent, state: str) -> None:
        """Tell `pending.js`, in the world of the engine's own scripts."""
        named = {"frameId": unsent.frame_id, "worldName": WORLD}
        detail = json.dumps(json.dumps([state, unsent.url]))
        event = f"new CustomEvent({json.dumps(f'{self._pending}>')}, {{ detail: {detail} }})"
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(INFORM_S):
                world = await self._session.send("Page.createIsolatedWorld", named)
                if request_id not in self._unsent and request_id not in self._sent:
                    return  # its page may have been left
                asked = {
                    "expression": f"document.dispatchEvent({event})",
                    "contextId": world["executionContextId"],
                }
                await self._session.send("Runtime.evaluate", asked)


def _place(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
