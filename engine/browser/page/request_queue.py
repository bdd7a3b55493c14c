"""Requests of pages that wait for one of the browser's connections.

Chromium opens few connections to a place for all tabs of a context. A request that waits for one
has not been sent, so its page is informed, and the limit of the request begins when it is sent.
The DevTools protocol reports both moments: `requestWillBeSent`, `requestWillBeSentExtraInfo`.

The document of a frame may bring a page its data, and no script of the page sees its request. So
the page is informed of those to its own site; of others, the protocol does not report the end, nor
always of one whose frame is removed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.page.extraction_options import REQUEST_MS, WORLD
from engine.egress.proxy_listener import MOST_IN_ALL, MOST_TO_PLACE
from engine.model.addresses import site_of

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from engine.browser.direct.devtools_connection import Session

QUEUED_S = 1.0  # without a connection; then, and again after this time, its page is informed
INFORM_S = 10.0
MOST_EARLY: Final = 1_000
MOST_TOLD: Final = 1_000  # addresses at a time; `pending.js` knows as many requests
_LIMITED: Final = frozenset({"Fetch", "XHR", "Script"})  # those for which `pending.js` has a limit
_SHARING: Final = frozenset({"h2", "h3"})  # protocols whose requests share a connection


class _Request:
    """A request of a page; the first of its redirects has the address that its page knows."""

    def __init__(self, event: dict[str, Any], before: _Request | None) -> None:
        self.url = str(event["request"]["url"])
        self.first: str = self.url if before is None else before.first
        self.place = "/".join(self.url.split("/", 3)[:3])
        self.frame_id = str(event.get("frameId", ""))
        self.kind = str(event.get("type", ""))
        self.since_s = time.monotonic()  # when it was made; later, when it was sent
        self.waited: bool = (
            before is not None and before.waited
        )  # for a connection, before it was sent
        self.answered = False
        self.queued: bool = before is not None and before.queued  # as its page knows it
        self.look: asyncio.TimerHandle | None = None

    def cancel_look(self) -> None:
        if self.look is not None:
            self.look.cancel()


class Connections:
    """The requests of all tabs of one context that have a connection, by place."""

    def __init__(self) -> None:
        self._places: dict[str, dict[_Request, None]] = {}
        self._sharing: set[str] = set()

    @property
    def in_use(self) -> dict[str, int]:
        """The number of connections, by place."""
        return {
            place: 1 if place in self._sharing else len(requests)
            for place, requests in self._places.items()
        }

    def is_full(self, place: str) -> bool:
        """Return whether a request to `place` has to wait for the end of another one."""
        if place in self._sharing:
            return False
        return self._is_full_itself(place) or sum(self.in_use.values()) >= MOST_IN_ALL

    def are_held_open(self, place: str) -> bool:
        """Return whether all connections that a request to `place` might get are held open."""
        places = [place] if self._is_full_itself(place) else [*self._places]
        return all(_is_held_open(one) for each in places for one in self._places[each])

    def share(self, place: str) -> None:
        """Record that requests to `place` share one connection."""
        self._sharing.add(place)

    def add(self, request: _Request) -> None:
        """Record that a request was sent."""
        if self._is_full_itself(request.place):
            # Chromium reports no end of an answer whose body the page does not read.
            ended = next((one for one in self._places[request.place] if one.answered), None)
            if ended is not None:
                self.remove(ended)
        self._places.setdefault(request.place, {})[request] = None

    def remove(self, request: _Request) -> None:
        """Record the end of a request; one that is unknown is ignored."""
        requests = self._places.get(request.place, {})
        requests.pop(request, None)
        if not requests:
            self._places.pop(request.place, None)

    def _is_full_itself(self, place: str) -> bool:
        return len(self._places.get(place, ())) >= MOST_TO_PLACE


class RequestQueue:
    """The requests of the page in one tab; `session` reports its domains of network and page.

    `pending` is the name of `pending.js` in its pages, `frame_id` that of the tab's main frame;
    `see_to` runs a coroutine in the background.
    """

    def __init__(
        self,
        session: Session | CDPSession,
        connections: Connections,
        pending: str,
        frame_id: str,
        see_to: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._session = session
        self._connections = connections
        self._pending = pending
        self._frame_id = frame_id
        self._site = ""  # of the page's document
        self._see_to = see_to
        self._active = False
        self._unsent: dict[str, _Request] = {}  # by the id of the request, like the others
        self._sent: dict[str, _Request] = {}
        self._early: set[str] = set()  # sent before the browser reported them
        self._informing: dict[str, set[str]] = {}  # addresses by frame
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.requestWillBeSentExtraInfo", self._on_sent)
        session.on("Network.responseReceived", self._on_answer)
        for end in ("Network.loadingFinished", "Network.loadingFailed"):
            session.on(end, self._on_end)
        session.on(
            "Page.frameDetached", lambda event: self._forget_documents(str(event["frameId"]))
        )
        session.on("Page.frameStoppedLoading", self._on_stopped)
        session.on("Page.frameNavigated", self._on_navigated)

    @property
    def is_waiting(self) -> bool:
        """Whether the page waits for a connection that other pages hold."""
        own = Counter(one.place for one in self._sent.values())
        return any(own[one.place] < MOST_TO_PLACE for one in self._late())

    def is_leaving(self, frame_id: str) -> bool:
        """Return whether the next document of this frame waits for a connection, or did so."""
        sent = (one for one in self._sent.values() if one.waited and not one.answered)
        documents = (one for one in (*self._late(), *sent) if one.kind == "Document")
        return any(one.frame_id == frame_id for one in documents)

    def begin(self) -> None:
        """Follow the requests of the next page."""
        self.end()
        self._active = True

    def end(self) -> None:
        """Forget the requests of the page, and follow no others."""
        self._active = False
        for unsent in self._unsent.values():
            unsent.cancel_look()
        for sent in self._sent.values():
            self._connections.remove(sent)
        self._unsent, self._sent, self._early = {}, {}, set()

    def _late(self) -> list[_Request]:
        """Return the requests for which there has been no connection for a while."""
        old = time.monotonic() - QUEUED_S
        unsent = (one for one in self._unsent.values() if one.since_s <= old)
        return [one for one in unsent if self._connections.is_full(one.place)]

    def _waits(self, unsent: _Request) -> bool:
        """Return whether a request waits for a connection that it may get."""
        if not self._connections.is_full(unsent.place):
            return False
        if any(one.kind == "Preflight" and one.url == unsent.url for one in self._sent.values()):
            return False  # it waits for that answer
        return not self._connections.are_held_open(unsent.place)

    def _on_request(self, event: dict[str, Any]) -> None:
        request_id, url = str(event["requestId"]), str(event["request"]["url"])
        if not self._active or not url.startswith(("http://", "https://")):
            return
        before = self._take(request_id)  # a redirect has the id of the request that led there
        request = _Request(event, before if "redirectResponse" in event else None)
        if request.kind == "Document" and before is None:
            self._forget_documents(request.frame_id)
        if self._is_in_frame(request) or (before is not None and self._is_in_frame(before)):
            self._inform(request)
        if request_id in self._early:
            self._early.discard(request_id)
            self._send(request_id, request)
            return
        self._unsent[request_id] = request
        if request.kind in _LIMITED or request.kind == "Document":
            self._look_later(request)

    def _on_sent(self, event: dict[str, Any]) -> None:
        request_id = str(event["requestId"])
        request = self._unsent.pop(request_id, None)
        if request is not None:
            self._send(request_id, request)
        elif self._active and len(self._early) < MOST_EARLY:
            self._early.add(request_id)

    def _on_answer(self, event: dict[str, Any]) -> None:
        request_id = str(event["requestId"])
        request = self._sent.get(request_id) or self._unsent.get(request_id)
        if request is None:
            return
        request.answered = True
        if event.get("response", {}).get("protocol") in _SHARING:
            self._connections.share(request.place)

    def _on_end(self, event: dict[str, Any]) -> None:
        request = self._take(str(event["requestId"]))
        if request is not None and (request.queued or self._is_in_frame(request)):
            self._inform(request)

    def _on_navigated(self, event: dict[str, Any]) -> None:
        """Handle a new document: in the main frame, it ends all of the document before."""
        frame = event["frame"]
        if str(frame["id"]) != self._frame_id:
            return
        self._forget_documents(*{one.frame_id for one in self._in_frames().values()})
        self._site = site_of(str(frame["url"]))

    def _on_stopped(self, event: dict[str, Any]) -> None:
        """End the document of a frame that has stopped: of media, the end is not reported."""
        self._forget_documents(str(event["frameId"]), answered=True)

    def _forget_documents(self, *frame_ids: str, answered: bool = False) -> None:
        """Forget the documents that these frames wait for; their end may not be reported."""
        for request_id, request in self._in_frames().items():
            if request.frame_id in frame_ids and (request.answered or not answered):
                self._take(request_id)
                self._inform(request)

    def _in_frames(self) -> dict[str, _Request]:
        """Return the requests for documents of frames, of the page's own site."""
        pending = chain(self._unsent.items(), self._sent.items())
        return {request_id: one for request_id, one in pending if self._is_in_frame(one)}

    def _take(self, request_id: str) -> _Request | None:
        """Remove a request, and return it."""
        request = self._unsent.pop(request_id, None)
        if request is not None:
            request.cancel_look()
            return request
        request = self._sent.pop(request_id, None)
        if request is not None:
            self._connections.remove(request)
        return request

    def _send(self, request_id: str, request: _Request) -> None:
        request.cancel_look()
        request.since_s = time.monotonic()
        self._sent[request_id] = request
        self._connections.add(request)
        if request.queued:
            request.queued = False
            self._inform(request)

    def _look_later(self, request: _Request) -> None:
        request.look = asyncio.get_running_loop().call_later(QUEUED_S, self._look, request)

    def _look(self, request: _Request) -> None:
        """Inform the page if a request waits for a connection, or for something else by now."""
        waits = self._waits(request)
        request.waited = request.waited or waits
        is_limited = request.kind in _LIMITED or self._is_in_frame(request)
        if is_limited and (waits or request.queued):
            request.queued = waits
            self._inform(request)
        self._look_later(request)

    def _inform(self, request: _Request) -> None:
        """Inform the page of its documents in frames, or how many requests to an address wait."""
        if not self._active:
            return
        is_document = request.kind == "Document"
        frame_id = self._frame_id if is_document else request.frame_id
        if frame_id not in self._informing:
            self._informing[frame_id] = set()
            self._see_to(self._tell(frame_id))
        if not is_document and len(self._informing[frame_id]) < MOST_TOLD:
            self._informing[frame_id].add(request.first)

    def _is_in_frame(self, request: _Request) -> bool:
        """Return whether a request is for the document of a frame, of the page's own site."""
        is_part = request.kind == "Document" and request.frame_id != self._frame_id
        return is_part and site_of(request.url) == self._site

    async def _tell(self, frame_id: str) -> None:
        """Tell `pending.js`, in the world of the engine's own scripts."""
        with suppress(Error, TimeoutError):  # its page, or its tab, may be gone
            async with asyncio.timeout(INFORM_S):
                try:
                    world = await self._session.send(
                        "Page.createIsolatedWorld", {"frameId": frame_id, "worldName": WORLD}
                    )
                finally:  # what changes from now on is told again
                    addresses = self._informing.pop(frame_id)
                detail = json.dumps(json.dumps(self._report(frame_id, addresses)))
                name = json.dumps(f"{self._pending}>")
                told = f"document.dispatchEvent(new CustomEvent({name}, {{ detail: {detail} }}))"
                asked = {"expression": told, "contextId": world["executionContextId"]}
                await self._session.send("Runtime.evaluate", asked)

    def _report(self, frame_id: str, addresses: Iterable[str]) -> dict[str, Any]:
        """Return how many requests to each address wait, and the documents that frames wait for.

        Those are lists of an id, the address, and whether it waits for a connection.
        """
        mine = (one for one in self._unsent.values() if one.frame_id == frame_id)
        queued = Counter(one.first for one in mine if one.queued)
        report: dict[str, Any] = {"queued": [[url, queued[url]] for url in addresses]}
        if frame_id == self._frame_id:
            found = islice(self._in_frames().items(), MOST_TOLD)
            report["frames"] = [[key, one.first, one.queued] for key, one in found]
        return report


def _is_held_open(sent: _Request) -> bool:
    """Return whether a request keeps its connection for longer than pages are waited for."""
    return sent.kind == "EventSource" or time.monotonic() - sent.since_s >= REQUEST_MS / 1000
