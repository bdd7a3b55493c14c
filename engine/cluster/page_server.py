"""The work of a worker: load pages and take bundles, with one browser and each task's fetchers.

The terms of a task come with each request, so that a restarted worker needs nothing else. A task
that sends no request for a while loses its fetchers, and with the last one the browser is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_address
from typing import Final

from engine.browser import direct
from engine.browser.chromium.browser_options import FetcherOptions, InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page.bundle_parts import PART_S, Opened, Part, Piece, Taking
from engine.browser.page.idle_report import IdleReport
from engine.cluster.background import beside, logged, rounds
from engine.cluster.bundle_records import (
    CODES,
    MOST_PART_BYTES,
    BundleReply,
    BundleRequest,
    PartFailure,
    SentFacts,
    SentPage,
    SentPart,
    TakenPart,
    check_bundle,
)
from engine.cluster.page_limits import MOST_RETRY_S, clamped
from engine.cluster.page_records import (
    MOST_MESSAGE_CHARS,
    MOST_REPLY_BYTES,
    MOST_REPORTS,
    MOST_REQUEST_BYTES,
    PROTOCOL,
    Failed,
    Hello,
    PageReply,
    PageRequest,
    Terms,
    WrongField,
    check_reply,
    packed,
    plain_name,
    unpacked,
)
from engine.egress.egress_policy import MOST as MOST_REFUSALS
from engine.egress.egress_policy import DomainAllowlist, Policy, Refusal
from engine.model.config import VERSION
from engine.model.errors import (
    BrowserFailed,
    BrowserGone,
    BrowserMissing,
    EngineError,
    PageError,
    ShuttingDown,
    UnitTimeout,
)
from engine.model.machine_load import TabRoom, most_tabs
from engine.pages.fetch import EngineName, Fetched, Fetcher, IdleState, OnIdle
from engine.pages.static_engine import SHARED_AGENT, USER_AGENT, Sender, open_static

IDLE_S: Final = 120.0  # without a request, after which the fetchers of a task are closed
LOOK_S: Final = 5.0
BUSY_S: Final = 2.5  # the longest wait of a page for a slot, and for the start of the browser
MOST_SESSIONS: Final = 64
START_S: Final = 30.0  # for the browser of a bundle
OWN_MARGIN_S: Final = 5.0  # beyond the time limit of a page, as the fetchers have margins, too


class PageServer:
    """Loads at most `slots` pages at once, without idle ones. Loop-bound; a context manager."""

    def __init__(self, name: str, slots: int, browser_path: str | None = None) -> None:
        self.name, self.slots = name, slots
        self._browser = BrowserSession(browser_path)
        self._slots = _Slots(slots)
        self._sessions: dict[str, _Session] = {}
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve during the block, and then close all fetchers and the browser."""
        try:
            async with beside(rounds(self._close_idle)):
                yield
        finally:
            self._is_closed = True
            for session in list(self._sessions.values()):
                await logged(session.close())
            await self._browser.aclose()

    @property
    def sessions(self) -> int:
        """The number of tasks that it keeps fetchers for."""
        return len(self._sessions)

    def hello(self) -> bytes:
        """Return what this worker tells of itself."""
        return packed(Hello(PROTOCOL, VERSION, plain_name(self.name), self.slots))

    async def fetch(self, data: bytes, report: OnIdle | None = None) -> bytes:
        """Load the page of a request; every failure is part of the reply.

        `report` is called as by `Fetcher.fetch`, if the request asks for it.

        Raises:
            Misbehaviour: the request cannot be decoded.
        """
        request = unpacked(data, PageRequest, MOST_REQUEST_BYTES)
        async with self._slot() as ends_s:
            if ends_s is None:
                return packed(PageReply(failed=Failed("busy")))
            with self._slots.reporting(report if request.reports else None) as on_idle:
                reply = await self._reply(request, ends_s, on_idle)
        return _packet(reply, request)

    async def bundle(self, data: bytes) -> bytes:
        """Take the evidence bundle of a request; every failure is part of the reply.

        Raises:
            Misbehaviour: the request cannot be decoded.
        """
        request = unpacked(data, BundleRequest, MOST_REQUEST_BYTES)
        async with self._slot() as ends_s:
            if ends_s is None:
                return packed(BundleReply(failed=Failed("busy")))
            reply = await self._bundle(request)
        try:
            check_bundle(reply, request)
        except WrongField as wrong:
            reply = BundleReply(failed=_too_large(wrong), refusals=reply.refusals)
        return packed(reply)

    async def _bundle(self, request: BundleRequest) -> BundleReply:
        refused = _refusals()
        try:
            policy = _policy_of(request.terms)
            with policy.blocked_requests.subscribed(refused.append):
                async with asyncio.timeout(request.limit_s + START_S):
                    reply = await _take_bundle(request, self._browser, policy)
        except EngineError as failed:
            reply = BundleReply(failed=_failed(failed))
        except TimeoutError:
            reply = BundleReply(failed=Failed("slow"))
        reply.refusals = _told(refused)
        return reply

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[float | None]:
        """Keep room for a page during the block, and yield how long its engine may start.

        That is a moment of the loop's clock; None: there is no room.
        """
        ends_s = asyncio.get_running_loop().time() + BUSY_S
        try:
            async with asyncio.timeout_at(ends_s):
                await self._slots.take()
        except TimeoutError:
            yield None
            return
        try:
            yield None if self._is_closed else ends_s  # Dask closes its connections after that
        finally:
            self._slots.give_back()

    async def _reply(
        self, request: PageRequest, ends_s: float, on_idle: OnIdle | None
    ) -> PageReply:
        session = self._session(request)
        if session is None:
            return PageReply(failed=Failed("busy"))
        with session.used():
            try:
                if await session.opened(request.engine, ends_s):
                    found = PageReply(fetched=await session.fetch(request, on_idle))
                else:
                    found = PageReply(failed=Failed("busy"))
            except EngineError as failed:
                found = PageReply(failed=_failed(failed))
            except TimeoutError:
                found = PageReply(failed=Failed("slow"))
            found.refusals = session.refusals()
        return found

    def _session(self, request: PageRequest) -> _Session | None:
        found = self._sessions.get(request.session)
        if found is None and len(self._sessions) < MOST_SESSIONS:
            found = _Session(request.terms, self._browser, self.slots)
            self._sessions[request.session] = found
        return found

    async def _close_idle(self) -> None:
        await asyncio.sleep(LOOK_S)
        before_s = time.monotonic() - IDLE_S
        for name, session in list(self._sessions.items()):
            if session.is_idle_since(before_s):
                del self._sessions[name]
                await logged(session.close())


class _Slots:
    """Room for pages of all engines, without those in which nothing happens."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._open = self._idle = 0
        self._freed = asyncio.Event()
        self._line = asyncio.Lock()  # lets those wait in their order
        self._room = TabRoom()

    async def take(self) -> None:
        """Wait until there is room for a page, and take it."""
        async with self._line:
            while self._open - self._idle >= self._number:
                self._freed.clear()
                await self._freed.wait()
            self._open += 1

    def give_back(self) -> None:
        self._open -= 1
        self._freed.set()

    @contextlib.contextmanager
    def reporting(self, on_idle: OnIdle | None) -> Iterator[OnIdle | None]:
        """Yield what a fetcher calls about one page, which takes no room while it is idle.

        The engine learns of it by `on_idle`, unless this machine has no room for a further page.
        """
        if on_idle is None:
            yield None
            return
        report = IdleReport()
        report.begin(partial(self._count_idle, on_idle))
        left = MOST_REPORTS // 2  # as each is followed by another state

        def record(state: IdleState) -> None:
            nonlocal left
            if state == "idle":
                if not left or not self._may_leave_out():
                    return
                left -= 1
            report.record(state)

        try:
            yield record
        finally:
            report.end()

    def _may_leave_out(self) -> bool:
        """Return whether a further page has room while another one is idle."""
        self._room.look(self._open, time.monotonic())
        return self._number + self._idle < min(self._room.most, most_tabs(self._number))

    def _count_idle(self, on_idle: OnIdle, state: IdleState) -> None:
        self._idle += 1 if state == "idle" else -1
        self._freed.set()
        on_idle(state)


class _Session:
    """The fetchers of one task, each opened on first use, and its egress policy."""

    def __init__(self, terms: Terms, browser: BrowserSession, slots: int) -> None:
        self._terms, self._browser = terms, browser
        self._pages = most_tabs(max(1, min(terms.pages, slots)))
        self._stack = AsyncExitStack()
        self._fetchers: dict[EngineName, Fetcher] = {}
        self._browser_options: FetcherOptions | None = None
        self._openings: dict[EngineName, asyncio.Task[None]] = {}
        self._policy: Policy | None = None
        self._refused = _refusals()
        self._in_use = 0
        self._used_s = time.monotonic()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Count a page in progress."""
        self._in_use += 1
        try:
            yield
        finally:
            self._in_use -= 1
            self._used_s = time.monotonic()

    def is_idle_since(self, moment_s: float) -> bool:
        """Return whether no page was loaded since this moment of the monotonic clock."""
        return not self._in_use and self._used_s < moment_s

    def refusals(self) -> list[tuple[str, str]]:
        """Return the egress refusals since the last call."""
        # They come from the thread of the proxy, also now.
        return _told(self._refused.popleft() for _ in range(len(self._refused)))

    async def opened(self, engine: EngineName, ends_s: float) -> bool:
        """Return whether the fetcher and its browser are there until `ends_s` of the loop's clock.

        A start goes on for the next request: its time is not that of a page.

        Raises:
            BrowserMissing, BrowserFailed, ShuttingDown
        """
        if engine == "static" and engine in self._fetchers:
            return True
        opening = self._openings.get(engine)
        if opening is None or opening.done():
            opening = asyncio.create_task(self._open(engine), name=f"open the engine {engine}")
            opening.add_done_callback(_note_failure)
            self._openings[engine] = opening
        done, _ = await asyncio.wait({opening}, timeout=ends_s - asyncio.get_running_loop().time())
        if done:
            opening.result()
        return bool(done)

    async def fetch(self, request: PageRequest, on_idle: OnIdle | None) -> Fetched:
        """Load the page with an opened fetcher; raises as `Fetcher.fetch`, and TimeoutError."""
        options = request.options
        limit_s = (options.timeout_ms + options.clicks_ms) / 1_000 + OWN_MARGIN_S
        async with asyncio.timeout(limit_s):
            return await self._fetchers[request.engine].fetch(request.url, options, on_idle)

    async def close(self) -> None:
        openings = list(self._openings.values())
        for opening in openings:
            opening.cancel()
        if openings:
            await asyncio.wait(openings)
        await self._stack.aclose()

    async def _open(self, engine: EngineName) -> None:
        if self._policy is None:
            self._policy = self._open_policy()
        if engine not in self._fetchers:
            opened = self._opened(engine, self._policy)
            self._fetchers[engine] = await self._stack.enter_async_context(opened)
        if engine == "browser" and self._browser_options is not None:
            await self._browser.ensure_started(self._browser_options)

    def _open_policy(self) -> Policy:
        policy = _policy_of(self._terms)
        self._stack.enter_context(policy.blocked_requests.subscribed(self._refused.append))
        return policy

    def _opened(
        self, engine: EngineName, policy: Policy
    ) -> contextlib.AbstractAsyncContextManager[Fetcher]:
        terms = self._terms
        if engine == "static":
            agent = terms.look.agent or (SHARED_AGENT if terms.both else USER_AGENT)
            sender = Sender(agent, terms.look.locale)
            return open_static(policy, judge=terms.both, sender=sender)
        self._browser_options = FetcherOptions(
            policy=policy,
            pages=self._pages,
            block_resources=terms.block_resources,
            look=terms.look,
            user_agent=SHARED_AGENT if terms.both else None,
            direct=terms.direct and direct.AVAILABLE,
            on_fallback=_fall_back if terms.falls_back else None,
        )
        return self._browser.fetcher(self._browser_options)


# An evidence bundle, taken in a new tab.


class PartTooLarge(EngineError):
    """A part was taken, and is larger than a cluster carries."""

    code = "part_too_large"
    title = "A part is too large for a cluster"
    sentence = "The part is larger than the 8 MiB that a cluster carries."
    advice_text = "Set cluster to none to take the bundle on this machine."


async def _take_bundle(
    request: BundleRequest, browser: BrowserSession, policy: Policy
) -> BundleReply:
    """Open the page of a bundle and take its parts; their failures are part of the reply.

    Raises:
        BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown: there is no browser for it.
    """
    # They import Playwright, which a worker of static pages does without.
    from engine.browser.interact.agent_tab import open_tab
    from engine.browser.page.evidence import camera_on

    options = InstanceOptions(policy, look=request.terms.look)
    async with browser.instance(options) as instance:
        tab = await open_tab(1, instance, policy)
        async with camera_on(tab, request, time.monotonic, PART_S) as camera:
            taking = Taking(camera, request, _unit, time.monotonic)
            await taking.open()
            parts = [_taken(part, await taking.take(part)) for part in request.include]
    unopened = None if taking.unopened is None else _part_failure(taking.unopened)
    return BundleReply(opened=_sent_page(taking.opened), unopened=unopened, parts=parts)


def _sent_page(opened: Opened | None) -> SentPage | None:
    if opened is None:
        return None
    return SentPage(opened.url, opened.title, opened.status, opened.settled)


@contextlib.asynccontextmanager
async def _unit(label: str, limit_s: float) -> AsyncIterator[None]:
    """Limit a block as the unit of a task does. Raises UnitTimeout."""
    scope = asyncio.timeout(limit_s)
    try:
        async with scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise UnitTimeout(label=label, limit_s=limit_s) from None


def _taken(part: Part, found: Piece | EngineError) -> TakenPart:
    if isinstance(found, EngineError):
        return TakenPart(part, failure=_part_failure(found))
    if len(found.data) > MOST_PART_BYTES:
        return TakenPart(part, failure=_part_failure(PartTooLarge()))
    return TakenPart(part, SentPart(found.data, found.truncated, SentFacts(**found.told)))


def _part_failure(failed: EngineError) -> PartFailure:
    kind = failed.kind if isinstance(failed, PageError) else ""
    code = failed.code if failed.code in CODES else PageError.code
    return PartFailure(code, str(failed)[:MOST_MESSAGE_CHARS], kind)


# What both operations need, and their replies.


def _policy_of(terms: Terms) -> Policy:
    """Make the policy as the engine makes that of a local task."""
    policy = Policy.for_start(terms.start, named=terms.named)
    # The engine checked them first. A check of each worker could be a later one, of a name that
    # leads into a private network meanwhile.
    policy.adopt({place: map(ip_address, held) for place, held in terms.held.items()})
    if not terms.budgets:
        return policy
    allowlist = DomainAllowlist(policy)
    allowlist.narrow(terms.budgets)
    return allowlist


def _refusals() -> deque[Refusal]:
    return deque(maxlen=MOST_REFUSALS)


def _told(refused: Iterable[Refusal]) -> list[tuple[str, str]]:
    most = MOST_MESSAGE_CHARS
    return [(one.place[:most], one.reason[:most]) for one in refused]


async def _fall_back(_: str) -> None:
    """Go on through Playwright; the engine does not need to know."""


def _note_failure(opening: asyncio.Task[None]) -> None:
    """Retrieve the failure of a start that no page waits for any more; the next one tries again."""
    if not opening.cancelled():
        opening.exception()


def _packet(reply: PageReply, request: PageRequest) -> bytes:
    """Return the bytes of a reply that the engine accepts; a page that is too much fails alone."""
    if reply.fetched is not None:
        reply.fetched = clamped(reply.fetched)
    message = f"the page is larger than {MOST_REPLY_BYTES // 2**20} MiB"
    failed = Failed("page", "too_large", message)
    try:
        check_reply(reply, request)
        packet = packed(reply)
        if len(packet) <= MOST_REPLY_BYTES:
            return packet
    except WrongField as wrong:
        failed = _too_large(wrong)
    return packed(PageReply(failed=failed, refusals=reply.refusals))


def _too_large(wrong: WrongField) -> Failed:
    message = f"the page has more than a cluster carries ({wrong.name})"
    return Failed("page", "too_large", message)


def _failed(failed: EngineError) -> Failed:
    message = str(failed)[:MOST_MESSAGE_CHARS]
    if isinstance(failed, BrowserGone):
        return Failed("gone")
    if isinstance(failed, PageError):
        retry_after_s = failed.retry_after_s
        return Failed(
            "page",
            failed.kind,
            message,
            failed.status,
            None if retry_after_s is None else min(retry_after_s, MOST_RETRY_S),
            failed.unproved,
            failed.proved,
        )
    if isinstance(failed, ShuttingDown):
        return Failed("busy")
    if isinstance(failed, BrowserMissing | BrowserFailed):
        return Failed("browser", message=message)
    return Failed("page", "worker", message)
