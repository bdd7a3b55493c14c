"""Asks the task's policy about every document before a connection for it is made.

The proxy is the fence (`proxy`); here each tab hears why a document of its own was refused,
and what one tab may open is kept from the others. One DevTools `Fetch` session per browser,
for requests of the type Document only: it sees the first address, each redirect hop, meta
refresh, script navigation, frames (also those in processes of their own) and windows that a
page opens. Requests of other types are left to the proxy, but for sound and film where a
crawl leaves them out: those are few, and no flag of the browser stops them.
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
    """One tab under the gate's watch: its policy, its credentials, and what it was refused."""

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
        self.context = context  # of which windows that it opens are judged by its policy, too
        self.refused: PageError | None = None
        self._lane = lane
        self._opening = ""  # the last address that was let through
        self.answered: str | None = None  # the request whose challenge was answered

    def clear(self) -> None:
        """Forget what happened to the page before."""
        self.refused = None
        self._opening = ""

    def let_through(self, url: str) -> None:
        """The gate has nothing against this document; the proxy connects for it, or not."""
        self._opening = url

    def why(self) -> PageError | None:
        """Why a document of the tab did not come: refused here, or not reached by the proxy."""
        if self.refused is not None or self._lane is None or not self._opening:
            return self.refused
        try:
            return self._lane.trouble(place_of(self._opening))
        except AddressBlocked:
            return None


class Gate:
    """Lets documents through, or fails their request before it leaves the machine."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._wards: dict[str, Ward] = {}  # by the id of the tab's main frame
        self._public = Policy(None)  # for frames and windows whose tab is not known

    @classmethod
    async def open(cls, browser: Browser, *, without_media: bool) -> Gate:
        """Stand before every document of `browser` from now on, and refuse it sound and film."""
        session = await browser.new_browser_cdp_session()
        gate = cls(session)
        session.on("Fetch.requestPaused", gate._on_paused)
        session.on("Fetch.authRequired", gate._on_challenge)
        patterns = [_DOCUMENTS, _MEDIA] if without_media else [_DOCUMENTS]
        await session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})
        return gate

    def admit(self, frame_id: str, ward: Ward) -> None:
        """Judge the documents of this tab by `ward` until it is dismissed."""
        self._wards[frame_id] = ward

    def dismiss(self, frame_id: str) -> None:
        """The tab is gone."""
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
        """Keep a refusal with the policy of the tab; of frames, that is asked for."""
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
        """A frame or a new window: what is public may be opened; private places only by their tab.

        Which tab a frame belongs to is asked only then, so it costs nothing on public sites.
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
        """The browser context of the window with this main frame; empty where there is none."""
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
            return  # the tab, or the whole browser, went away meanwhile


async def frames_of(wire: CDPSession) -> frozenset[str]:
    """The ids of every frame in a tab; empty when it does not tell in time."""
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
