"""Check every document with the task's policy before a connection is made.

The proxy enforces the policy (`proxy`); this filter reports to each tab the reason for its own
document, and separates the tabs' permissions. One DevTools `Fetch` session per browser, for
requests of the type Document only: it receives the first address, each redirect hop, meta
refresh, script navigation, frames (also out-of-process ones) and windows that a page opens.
Requests of other types are left to the proxy, except audio and video if a crawl excludes them:
those are few, and no browser flag stops them.

While a tab's links are clicked, requests that may send data are paused as well: its own session
(`click_links`) sees no frames with a process of their own.

While a task has headers of its own, its requests to their origins are paused as well: Chromium
drops headers that were added here at each redirect, so every hop is decided anew, and no other
site receives one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.chromium.browser_options import PLAIN, BrowserLook
from engine.browser.chromium.user_agent import present_window, request_headers
from engine.egress.egress_policy import Policy, place_of, place_or_scheme
from engine.egress.own_headers import OwnHeaders
from engine.model import addresses
from engine.model.addresses import Credentials
from engine.model.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession

    from engine.egress.proxy_listener import ProxyListener

_DOCUMENTS = {"resourceType": "Document"}
_MEDIA = {"resourceType": "Media"}
_EVERYTHING = {"urlPattern": "*"}
_SENDING = [{"resourceType": kind} for kind in ("Fetch", "XHR", "Ping", "Other")]
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change no data
MOST_PATTERNS: Final = 50  # origins; Chromium compares each request with each pattern
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
        *,
        look: BrowserLook = PLAIN,
    ) -> None:
        self.policy = policy
        self.look = look
        self.credentials = credentials
        self.frames = frames
        self.context = context  # windows opened in this context use the same policy
        self.refused: PageError | None = None
        # While links are clicked: addresses of documents, each of which is refused.
        self.led_to: list[str] | None = None
        self.is_clicked = False  # until the tab is closed
        self.withheld = 0  # requests of its frames while links are clicked
        self.pause_sending: Callable[[], Awaitable[None]] | None = None
        self._listener = listener
        self._opening = ""  # the last address that was allowed
        self.answered: str | None = None  # the request whose challenge was answered

    async def begin_clicks(self) -> None:
        """Withhold from now on what frames with a process of their own send; see `led_to`.

        Raises:
            playwright.Error: the browser died.
        """
        self.is_clicked = True
        if self.pause_sending is not None:
            await self.pause_sending()

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

    def __init__(self, session: CDPSession, *, without_media: bool) -> None:
        self._session = session
        self._without_media = without_media
        self._origins: dict[BrowserContext, frozenset[str]] = {}  # that get headers of a task
        self._owners: dict[str, TabFilter] = {}  # by the id of a frame with headers
        self._outdated = False  # requests are paused that no task needs any more
        self._enabling = asyncio.Lock()
        self._tab_filters: dict[str, TabFilter] = {}  # by the id of the tab's main frame
        self._public = Policy(None)  # for frames and windows of an unknown tab

    @classmethod
    async def open(cls, browser: Browser, *, without_media: bool) -> NavigationFilter:
        """Filter every document of `browser` from now on, optionally also audio and video."""
        session = await browser.new_browser_cdp_session()
        navigation_filter = cls(session, without_media=without_media)
        session.on("Fetch.requestPaused", navigation_filter._on_paused)
        session.on("Fetch.authRequired", navigation_filter._on_challenge)
        await navigation_filter._enable()
        return navigation_filter

    async def add_headers(self, context: BrowserContext, headers: OwnHeaders) -> None:
        """Add a task's headers to the requests of `context` to their origins, until it is closed.

        The tabs that send them are admitted with their look.

        Raises:
            playwright.Error: the browser died.
        """
        self._origins[context] = headers.origins
        context.on("close", self._end_headers)
        await self._enable()

    def _end_headers(self, context: BrowserContext) -> None:
        """Pause the requests to these origins no longer, from the next one on."""
        self._outdated |= self._origins.pop(context, None) is not None

    async def _update(self) -> None:
        self._outdated = False
        try:
            async with asyncio.timeout(SEND_S):
                await self._enable()
        except (TimeoutError, Error):
            return  # the browser ended

    async def _enable(self) -> None:
        """Tell Chromium which requests to pause; one call at a time: the last one counts."""
        async with self._enabling:
            patterns: list[dict[str, str]] = [_DOCUMENTS]
            patterns += [_MEDIA] * self._without_media
            origins = sorted(frozenset().union(*self._origins.values()))
            if len(origins) > MOST_PATTERNS:
                patterns = [_EVERYTHING]
            else:
                patterns += [{"urlPattern": f"{origin}/*"} for origin in origins]
            if any(one.is_clicked for one in self._tab_filters.values()):
                patterns += _SENDING
            params = {"patterns": patterns, "handleAuthRequests": True}
            await self._session.send("Fetch.enable", params)

    def admit(self, frame_id: str, tab_filter: TabFilter) -> None:
        """Check the documents of this tab with `tab_filter` until `dismiss`."""
        self._tab_filters[frame_id] = tab_filter
        tab_filter.pause_sending = self._enable

    def dismiss(self, frame_id: str) -> None:
        """Remove a closed tab."""
        gone = self._tab_filters.pop(frame_id, None)
        for frame in [frame for frame, owner in self._owners.items() if owner is gone]:
            del self._owners[frame]
        self._outdated |= gone is not None and gone.is_clicked

    async def _on_paused(self, event: dict[str, Any]) -> None:
        request = {"requestId": event["requestId"]}
        kind = event["resourceType"]
        refused = self._without_media and kind == "Media"
        if kind == "Document" and self._is_of_a_click(event):
            # Not as blocked, by which the page would be replaced by the browser's own.
            await self._send("Fetch.failRequest", {**request, "errorReason": "Aborted"})
            return
        if await self._is_sent_by_a_click(event):
            reason = "Aborted" if kind == "Document" else "BlockedByClient"
            await self._send("Fetch.failRequest", {**request, "errorReason": reason})
            return
        if refused or (kind == "Document" and not await self._may_open(event)):
            await self._send("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"})
            return
        if self._outdated and kind != "Document":
            await self._update()
        changed = await self._changed_headers(event)
        headers = {"headers": [{"name": name, "value": one} for name, one in changed.items()]}
        await self._send("Fetch.continueRequest", {**request, **(headers if changed else {})})

    def _is_of_a_click(self, event: dict[str, Any]) -> bool:
        """Return whether a click opens this in its tab, and note the address."""
        tab_filter = self._tab_filters.get(str(event.get("frameId", "")))
        if tab_filter is None or tab_filter.led_to is None:
            return False
        if event["request"]["method"] == "GET":
            tab_filter.led_to.append(str(event["request"]["url"]))
        return True

    async def _is_sent_by_a_click(self, event: dict[str, Any]) -> bool:
        """Return whether a frame of a clicked tab may send this; one of an unknown tab counts."""
        clicked = {frame: one for frame, one in self._tab_filters.items() if one.led_to is not None}
        frame_id = str(event.get("frameId", ""))
        if not clicked or event["request"]["method"] in READS or frame_id in self._tab_filters:
            return False  # a tab's own session sees its main frame
        targets = await self._targets()
        owner = self._tab_filters.get(_root_of(frame_id, targets))
        if owner is not None:
            found = [owner] if owner.led_to is not None else []
        elif await self._is_of_others(frame_id):
            return False
        else:
            contexts = _contexts_of(targets)
            own = contexts.get(frame_id)
            found = [one for frame, one in clicked.items() if not own or contexts.get(frame) == own]
        if found:
            found[0].withheld += 1
        return bool(found)

    async def _is_of_others(self, frame_id: str) -> bool:
        """Return whether a frame without a process of its own is part of a tab without clicks."""
        others = [one for one in self._tab_filters.values() if one.led_to is None]
        return await _tab_of(frame_id, others) is not None

    async def _changed_headers(self, event: dict[str, Any]) -> dict[str, str]:
        """Return all headers of a request that gets other ones than Chromium's; else {}."""
        given: dict[str, str] = event["request"]["headers"]
        changed = await self._as_window(event, given)
        own = await self._own_headers(event) if self._origins else {}
        if changed is given and not own:
            return {}
        names = {name.lower() for name in own}
        return {name: one for name, one in changed.items() if name.lower() not in names} | own

    async def _as_window(self, event: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
        """Give a window that a page opens its look, before its first document arrives."""
        frame_id = str(event.get("frameId", ""))
        if event["resourceType"] != "Document" or frame_id in self._tab_filters:
            return given
        looks = {
            one.context: one.look
            for one in self._tab_filters.values()
            if one.context and one.look.agent is not None
        }
        look = looks.get(await self._context_of(frame_id)) if looks else None
        if look is None:
            return given
        await present_window(self._session, frame_id, look)
        return request_headers(look, given)

    async def _own_headers(self, event: dict[str, Any]) -> dict[str, str]:
        """Return the headers of the task whose page sends this request, if it is for its origins.

        A script of another site does not get them: it could read what they open.
        """
        address = addresses.parse(str(event["request"]["url"]))
        if address is None or event["resourceType"] == "Preflight":
            return {}
        origin = address.origin
        owners = [one for one in self._tab_filters.values() if origin in one.look.headers.origins]
        owner = await self._owner(str(event.get("frameId", "")), owners) if owners else None
        if owner is None or _sent_by_others(event["request"]["headers"], owner.look.headers):
            return {}
        return dict(owner.look.headers.for_origin(origin))

    async def _owner(self, frame_id: str, owners: list[TabFilter]) -> TabFilter | None:
        """Return which of the tabs a frame, or a window that a page opens, belongs to."""
        known = self._tab_filters.get(frame_id) or self._owners.get(frame_id)
        if known is not None:
            return known
        found = await _tab_of(frame_id, owners) or await self._opened_by(frame_id, owners)
        if found is not None and found in self._tab_filters.values():  # not closed meanwhile
            self._owners[frame_id] = found
        return found

    async def _opened_by(self, frame_id: str, owners: list[TabFilter]) -> TabFilter | None:
        """Return a tab in the context of a window, or of a frame in a process of its own."""
        contexts = await self._contexts()
        own = contexts.get(frame_id)
        tabs = [frame for frame, one in self._tab_filters.items() if one in owners]
        found = [self._tab_filters[frame] for frame in tabs if own and contexts.get(frame) == own]
        return found[0] if found else None

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
            owner = await _tab_of(frame_id, tab_filters)
            tab_filters = [] if owner is None else [owner]
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
        allowing = [each for each in tab_filters if await _refusal(each.policy, url) is None]
        contexts = {each.context for each in allowing} - {""}
        if contexts and await self._context_of(frame_id) in contexts:
            return True
        return await _tab_of(frame_id, allowing) is not None

    async def _context_of(self, frame_id: str) -> str:
        """Return the browser context of the window with this main frame, or ""."""
        return (await self._contexts()).get(frame_id, "")

    async def _contexts(self) -> Mapping[str, str]:
        """Return the browser context of each window, and of each frame with its own process."""
        return _contexts_of(await self._targets())

    async def _targets(self) -> dict[str, Mapping[str, Any]]:
        """Return what Chromium tells of each window and frame with its own process, by its id."""
        try:
            async with asyncio.timeout(FRAMES_S):
                targets = await self._session.send("Target.getTargets")
        except (TimeoutError, Error):
            return {}
        return {str(each["targetId"]): each for each in targets["targetInfos"]}

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


def _contexts_of(targets: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {frame: str(each.get("browserContextId", "")) for frame, each in targets.items()}


def _root_of(frame_id: str, targets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the window of a frame with its own process, or the frame itself if unknown."""
    for _ in range(len(targets)):
        parent = str(targets.get(frame_id, {}).get("parentId", ""))
        if not parent:
            break
        frame_id = parent
    return frame_id


async def _tab_of(frame_id: str, tabs: Sequence[TabFilter]) -> TabFilter | None:
    """Return which of these tabs has a frame; one that does not answer holds up no other's."""

    async def with_frames(tab: TabFilter) -> tuple[TabFilter, frozenset[str]]:
        return tab, await tab.frames()

    found: TabFilter | None = None
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(with_frames(each)) for each in tabs]
        for answer in asyncio.as_completed(asked):
            tab, frames = await answer
            if frame_id in frames:
                found = tab
                break
        for each in asked:
            each.cancel()
    return found


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


def _sent_by_others(headers: Mapping[str, str], own: OwnHeaders) -> bool:
    """Return whether a page of another site asks to read the answer (CORS), or posts to it."""
    sender = next((one for name, one in headers.items() if name.lower() == "origin"), None)
    return sender is not None and sender not in own.origins


def _is_for(known: Credentials, challenge: dict[str, Any]) -> bool:
    if challenge.get("source") != "Server":
        return False
    given = str(challenge.get("origin", ""))
    try:
        same_place = place_of(given) == place_of(known.origin)
    except AddressBlocked:
        return False
    return same_place and given.partition(":")[0] == known.origin.partition(":")[0]
