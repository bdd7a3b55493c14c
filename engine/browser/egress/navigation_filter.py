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

from engine.browser.egress.egress_policy import Policy, place_of, place_or_scheme
from engine.model.credentials import Credentials
from engine.model.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

    from engine.browser.egress.proxy_listener import Lane

_DOCUMENTS = {"resourceType": "Document"}
_MEDIA = {"resourceType": "Media"}
FRAMES_S = 2.0
SAY_S = 10.0
_NEEDS_NO_CONNECTION = ("about:", "data:", "blob:")


class Ward:
    """Filter state of one tab: its policy, its credentials, and its last refusal."""

    def __init__(
        self,
        policy: Policy,
        credentials: Credentials | None,
        frames: Callable[[], Awaitable[frozenset[str]]],
        context: str = "",
        lane: Lane | None = None,
    ) -> None:
        self.policy = policy
        self.credentials = credentials
        self.frames = frames
        self.context = context  # windows opened in this context use the same policy
        self.refused: PageError | None = None
        self._lane = lane
        self._opening = ""  # the last address that was allowed
        self.answered: str | None = None  # the request whose challenge was answered

    def clear(self) -> None:
        """Clear the state of the previous page."""
        self.refused = None
        self._opening = ""

    def let_through(self, url: str) -> None:
        """Record that the filter allowed this document; the proxy may still refuse it."""
        self._opening = url

    def why(self) -> PageError | None:
        """Return why a document did not load: blocked here, or not reached by the proxy."""
        if self.refused is not None or self._lane is None or not self._opening:
            return self.refused
        try:
            return self._lane.trouble(place_of(self._opening))
        except AddressBlocked:
            return None


class Gate:
    """Allows document requests, or fails them before they leave the machine."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._wards: dict[str, Ward] = {}  # by the id of the tab's main frame
        self._public = Policy(None)  # for frames and windows of an unknown tab

    @classmethod
    async def open(cls, browser: Browser, *, without_media: bool) -> Gate:
        """Filter every document of `browser` from now on, optionally also audio and video."""
        session = await browser.new_browser_cdp_session()
        gate = cls(session)
        session.on("Fetch.requestPaused", gate._on_paused)
        session.on("Fetch.authRequired", gate._on_challenge)
        patterns = [_DOCUMENTS, _MEDIA] if without_media else [_DOCUMENTS]
        await session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})
        return gate

    def admit(self, frame_id: str, ward: Ward) -> None:
        """Check the documents of this tab with `ward` until `dismiss`."""
        self._wards[frame_id] = ward

    def dismiss(self, frame_id: str) -> None:
        """Remove a closed tab."""
        self._wards.pop(frame_id, None)

    async def _on_paused(self, event: dict[str, Any]) -> None:
        request = {"requestId": event["requestId"]}
        if event["resourceType"] == "Document" and await self._may_open(event):
            await self._say("Fetch.continueRequest", request)
        else:
            await self._say("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"})

    async def _may_open(self, event: dict[str, Any]) -> bool:
        url, frame_id = str(event["request"]["url"]), str(event.get("frameId", ""))
        ward = self._wards.get(frame_id)
        refused = await (self._judge(ward, url) if ward else self._judge_stray(frame_id, url))
        if isinstance(refused, AddressBlocked):
            await self._note(ward, frame_id, refused)
        if ward is not None:
            ward.refused = refused or ward.refused
            if refused is None:
                ward.let_through(url)
        return refused is None

    async def _note(self, ward: Ward | None, frame_id: str, refused: AddressBlocked) -> None:
        """Store a refusal with the tab's policy; find the tab of a frame by request."""
        wards = [ward] if ward else list(self._wards.values())
        if len({id(each.policy.root) for each in wards}) > 1:
            wards = [each for each in wards if frame_id in await each.frames()]
        if wards:
            wards[0].policy.turned_away.note(place_or_scheme(refused.url), refused.reason)

    async def _judge(self, ward: Ward, url: str) -> PageError | None:
        if ward.policy.known(url) or url.startswith(_NEEDS_NO_CONNECTION):
            return None
        return await _refusal(ward.policy, url)

    async def _judge_stray(self, frame_id: str, url: str) -> PageError | None:
        """Check a frame or new window: public addresses are open, private ones only to their tab.

        The tab of a frame is looked up only then, so that public sites cost nothing.
        """
        if url.startswith(_NEEDS_NO_CONNECTION):
            return None
        refused = await _refusal(self._public, url)
        if refused is None:
            return None
        context: str | None = None
        for ward in list(self._wards.values()):
            if await _refusal(ward.policy, url) is not None:
                continue
            if frame_id in await ward.frames():
                return None
            if ward.context:
                context = await self._context_of(frame_id) if context is None else context
                if context == ward.context:
                    return None
        return refused

    async def _context_of(self, frame_id: str) -> str:
        """Return the browser context of the window with this main frame, or ""."""
        try:
            async with asyncio.timeout(FRAMES_S):
                told = await self._session.send("Target.getTargets")
        except (TimeoutError, Error):
            return ""
        found = (each for each in told["targetInfos"] if each["targetId"] == frame_id)
        return next((str(each.get("browserContextId", "")) for each in found), "")

    async def _on_challenge(self, event: dict[str, Any]) -> None:
        ward = self._wards.get(str(event.get("frameId", "")))
        known = ward.credentials if ward else None
        response: dict[str, str] = {"response": "CancelAuth"}
        asked = str(event["requestId"])
        if ward and known and ward.answered != asked and _is_for(known, event["authChallenge"]):
            ward.answered = asked
            response = {
                "response": "ProvideCredentials",
                "username": known.username,
                "password": known.password,
            }
        answer = {"requestId": asked, "authChallengeResponse": response}
        await self._say("Fetch.continueWithAuth", answer)

    async def _say(self, method: str, params: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(SAY_S):
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
