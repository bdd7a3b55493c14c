"""Check every document with the task's policy before a connection is made.

The proxy enforces the policy (`proxy`); this filter reports to each tab the reason for its own
document, and separates the tabs' permissions. One DevTools `Fetch` session per browser, for
requests of the type Document only: it receives the first address, each redirect hop, meta
refresh, script navigation, frames (also out-of-process ones) and windows that a page opens.
Requests of other types are left to the proxy, except audio and video if a crawl excludes them:
those are few, and no browser flag stops them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from engine.egress.egress_policy import Policy, place_of, place_or_scheme
from engine.model.addresses import Credentials
from engine.model.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

    from engine.egress.proxy_listener import ProxyListener

_DOCUMENTS = {"resourceType": "Document"}
_MEDIA = {"resourceType": "Media"}
FRAMES_S = 2.0
SEND_S = 10.0
_NEEDS_NO_CONNECTION = ("about:", "data:", "blob:")


class TabFilter:
    """Filter state of one tab: its policy, its credentials, and its last refusal."""

    def __init__(
        self,
        policy: Policy,
        credentials: Credentials | None,
        frames: Callable[[], Awaitable[frozenset[str]]],
        context: str = "",
        listener: ProxyListener | None = None,
    ) -> None:
        self.policy = policy
        self.credentials = credentials
        self.frames = frames
        self.context = context  # windows opened in this context use the same policy
        self.refused: PageError | None = None
        self._listener = listener
        self._opening = ""  # the last address that was allowed
        self.answered: str | None = None  # the request whose challenge was answered

    def clear(self) -> None:
        """Clear the state of the previous page."""
        self.refused = None
        self._opening = ""

    def record_allowed(self, url: str) -> None:
        """Record that the filter allowed this document; the proxy may still refuse it."""
        self._opening = url

    def why(self) -> PageError | None:
        """Return why a document did not load: blocked here, or not reached by the proxy."""
        if self.refused is not None or self._listener is None or not self._opening:
            return self.refused
        try:
            return self._listener.last_failure(place_of(self._opening))
        except AddressBlocked:
            return None


class NavigationFilter:
    """Allows document requests, or fails them before they leave the machine."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._tab_filters: dict[str, TabFilter] = {}  # by the id of the tab's main frame
        self._public = Policy(None)  # for frames and windows of an unknown tab

    @classmethod
    async def open(cls, browser: Browser, *, without_media: bool) -> NavigationFilter:
        """Filter every document of `browser` from now on, optionally also audio and video."""
        session = await browser.new_browser_cdp_session()
        navigation_filter = cls(session)
        session.on("Fetch.requestPaused", navigation_filter._on_paused)
        session.on("Fetch.authRequired", navigation_filter._on_challenge)
        patterns = [_DOCUMENTS, _MEDIA] if without_media else [_DOCUMENTS]
        await session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})
        return navigation_filter

    def admit(self, frame_id: str, tab_filter: TabFilter) -> None:
        """Check the documents of this tab with `tab_filter` until `dismiss`."""
        self._tab_filters[frame_id] = tab_filter

    def dismiss(self, frame_id: str) -> None:
        """Remove a closed tab."""
        self._tab_filters.pop(frame_id, None)

    async def _on_paused(self, event: dict[str, Any]) -> None:
        request = {"requestId": event["requestId"]}
        if event["resourceType"] == "Document" and await self._may_open(event):
            await self._send("Fetch.continueRequest", request)
        else:
            await self._send("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"})

    async def _may_open(self, event: dict[str, Any]) -> bool:
        url, frame_id = str(event["request"]["url"]), str(event.get("frameId", ""))
        tab_filter = self._tab_filters.get(frame_id)
        refused = await (
            self._check(tab_filter, url) if tab_filter else self._check_unknown_frame(frame_id, url)
        )
        if isinstance(refused, AddressBlocked):
            await self._note(tab_filter, frame_id, refused)
        if tab_filter is not None:
            tab_filter.refused = refused or tab_filter.refused
            if refused is None:
                tab_filter.record_allowed(url)
        return refused is None

    async def _note(
        self, tab_filter: TabFilter | None, frame_id: str, refused: AddressBlocked
    ) -> None:
        """Store a refusal with the tab's policy; find the tab of a frame by request."""
        tab_filters = [tab_filter] if tab_filter else list(self._tab_filters.values())
        if len({id(each.policy.root) for each in tab_filters}) > 1:
            tab_filters = [each for each in tab_filters if frame_id in await each.frames()]
        if tab_filters:
            tab_filters[0].policy.blocked_requests.note(
                place_or_scheme(refused.url), refused.reason
            )

    async def _check(self, tab_filter: TabFilter, url: str) -> PageError | None:
        if tab_filter.policy.known(url) or url.startswith(_NEEDS_NO_CONNECTION):
            return None
        return await _refusal(tab_filter.policy, url)

    async def _check_unknown_frame(self, frame_id: str, url: str) -> PageError | None:
        """Check a frame or new window: public addresses are open, private ones only to their tab.

        The tab of a frame is looked up only then, so that public sites cost nothing. Behind a proxy
        names may resolve nowhere here, so that its tab comes first.
        """
        if url.startswith(_NEEDS_NO_CONNECTION):
            return None
        tab_filters = list(self._tab_filters.values())
        is_proxied = any(each.policy.proxy is not None for each in tab_filters)
        refused = None if is_proxied else await _refusal(self._public, url)
        if refused is None and not is_proxied:
            return None
        if await self._is_allowed_by_its_tab(tab_filters, frame_id, url):
            return None
        return await _refusal(self._public, url) if is_proxied else refused

    async def _is_allowed_by_its_tab(
        self, tab_filters: list[TabFilter], frame_id: str, url: str
    ) -> bool:
        context: str | None = None
        for tab_filter in tab_filters:
            if await _refusal(tab_filter.policy, url) is not None:
                continue
            if frame_id in await tab_filter.frames():
                return True
            if tab_filter.context:
                context = await self._context_of(frame_id) if context is None else context
                if context == tab_filter.context:
                    return True
        return False

    async def _context_of(self, frame_id: str) -> str:
        """Return the browser context of the window with this main frame, or ""."""
        try:
            async with asyncio.timeout(FRAMES_S):
                targets = await self._session.send("Target.getTargets")
        except (TimeoutError, Error):
            return ""
        found = (each for each in targets["targetInfos"] if each["targetId"] == frame_id)
        return next((str(each.get("browserContextId", "")) for each in found), "")

    async def _on_challenge(self, event: dict[str, Any]) -> None:
        tab_filter = self._tab_filters.get(str(event.get("frameId", "")))
        known = tab_filter.credentials if tab_filter else None
        response: dict[str, str] = {"response": "CancelAuth"}
        request_id = str(event["requestId"])
        if (
            tab_filter
            and known
            and tab_filter.answered != request_id
            and _is_for(known, event["authChallenge"])
        ):
            tab_filter.answered = request_id
            response = {
                "response": "ProvideCredentials",
                "username": known.username,
                "password": known.password,
            }
        answer = {"requestId": request_id, "authChallengeResponse": response}
        await self._send("Fetch.continueWithAuth", answer)

    async def _send(self, method: str, params: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(SEND_S):
                await self._session.send(method, params)
        except (TimeoutError, Error):
            return  # the tab or the browser ended meanwhile


async def frames_of(wire: CDPSession) -> frozenset[str]:
    """Return the ids of all frames in a tab; empty after the time limit."""
    try:
        async with asyncio.timeout(FRAMES_S):
            tree = await wire.send("Page.getFrameTree")
    except (TimeoutError, Error):
        return frozenset()
    waiting, found = [tree["frameTree"]], set()
    while waiting:
        node = waiting.pop()
        found.add(str(node["frame"]["id"]))
        waiting.extend(node.get("childFrames", ()))
    return frozenset(found)


async def _refusal(policy: Policy, url: str) -> PageError | None:
    try:
        await policy.ask(url)
    except PageError as refused:
        return refused
    return None


def _is_for(known: Credentials, challenge: dict[str, Any]) -> bool:
    if challenge.get("source") != "Server":
        return False
    given = str(challenge.get("origin", ""))
    try:
        same_place = place_of(given) == place_of(known.origin)
    except AddressBlocked:
        return False
    return same_place and given.partition(":")[0] == known.origin.partition(":")[0]
