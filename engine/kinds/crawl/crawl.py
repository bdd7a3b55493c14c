"""The kind `crawl`: breadth-first from a start URL, until a limit or a stop.

Decisions where the contract is silent. An answer of 400 and above is a failed page that keeps its
content. A page that robots.txt blocks is stored as a failed page and counts for `max_pages`, which
limits the pages of the result. A redirect that leaves the scope is stored under its target address,
and the scope applies to each of its links. The default scope is the start's origin; if the start
page redirects to the same host with or without `www.` or over https, that origin is included. A
page with a temporary failure is retried after the rest of its level; only its last attempt is
stored, and it counts once for `max_pages`. A stop stores the last failure of the pages that wait
for a retry. A host that fails page after page is paused (`host_pause`); if it is given up, its
other pages are not loaded, and the task fails with the pages of the result, so that it can be
resumed and a schedule does not report the missing pages as removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Self

import msgspec

from engine.cluster.cluster_address import WorkerLost
from engine.kinds.cluster_use import LOADS, WAIT_S, WAIT_UNIT
from engine.kinds.context import Context, UnitStopped
from engine.kinds.crawl.concurrency import Concurrency
from engine.kinds.crawl.crawl_args import CrawlArgs
from engine.kinds.crawl.frontier import SPARE, Frontier, Visit
from engine.kinds.crawl.host_pause import HostPauses, is_answer, is_host_failure
from engine.kinds.crawl.signed_out import SignInCheck
from engine.kinds.crawl.stored_pages import CarriedPages, StoredPage, stored_page
from engine.kinds.host_delay import HostTurns, Pace
from engine.model.addresses import Address, address_of, glob_matcher, same_site
from engine.model.blocked_places import BY_ROBOTS
from engine.model.errors import BrowserGone, EngineError, InjectedFault, PageError, UnitTimeout
from engine.model.records import Units
from engine.model.tally import CrawlOutcome, Limit, StoppedBy, Tally
from engine.pages import fetch
from engine.pages.custom_fields import FieldRule
from engine.pages.documents import is_html, is_text, media_type
from engine.pages.engine_choice import Loader
from engine.pages.extract import THREAD_FROM_CHARS, Extracted, extract, has_words
from engine.pages.fetch import (
    EngineName,
    Failure,
    Fetched,
    Fetcher,
    IdleState,
    PageOptions,
    PageWorkers,
    Redirect,
)
from engine.pages.page_facts import page_facts
from engine.pages.robots import ROBOTS_S, Robots, Rules
from engine.profiles.profile import is_sign_out
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import Scrub

# Records of pages in pages.jsonl and result.json, and the classification of answers.

NOTHING = Extracted("", "", (), 0, False)
_PICTURE = re.compile(r"<(img|svg|canvas|video|picture|object|embed|iframe|frame)\b", re.IGNORECASE)


def page_record(
    visit: Visit, fetched: Fetched, found: Extracted, *, keep_links: bool = True
) -> dict[str, Any]:
    """Return the page's fields, in their stable order."""
    measured = fetched.response_ms > 0 or fetched.render_ms > 0
    page: dict[str, Any] = {
        "url": visit.address.url,
        "final_url": fetched.final_url,
        "status": fetched.status or None,
        "title": found.title,
        "content": found.content,
        "depth": visit.depth,
        "links_found": found.links_found,
        "response_ms": fetched.response_ms if measured else None,
        "render_ms": fetched.render_ms if measured else None,
        "bytes": fetched.bytes,
        "engine_used": fetched.engine,
        "settled": fetched.settled,
    }
    marks = {
        "compared": fetched.compared,
        "script_edits": found.edited,
        "empty": _is_empty(fetched, found),
        "attempts": visit.attempts if visit.attempts > 1 else 0,
        "earlier_errors": list(visit.earlier),
        "redirects": [_redirect(one) for one in fetched.redirects],
        "transferred_bytes": fetched.transferred_bytes,
        "lastmod": visit.lastmod,
        "fields": found.values,
        "loads": fetched.loads,
        "loads_cut": fetched.loads_cut,
        "clicks": fetched.clicks,
        "clicks_cut": fetched.clicks_cut,
        "clicks_refused": fetched.clicks_refused,
        "facts": _facts(fetched, found),
        "links_over_limit": found.links_over,
        "links_not_web": found.links_skipped,
        "truncated": found.truncated,
        "frames": fetched.frames or found.frames,
        "links": list(found.anchors) if keep_links else [],
        "windows_closed": fetched.windows,
        "dialogs_dismissed": fetched.dialogs,
        "consent": fetched.consent,
        "worker": fetched.worker,
    }
    page.update((name, value) for name, value in marks.items() if value)
    return page


def _redirect(one: Redirect) -> dict[str, Any]:
    by = {"by": "page"} if one.by_page else {}
    return {"url": one.url, "status": one.status, **by}


def _facts(fetched: Fetched, found: Extracted) -> dict[str, Any]:
    """Return the facts of a page that is HTML; an answer with an error has none."""
    if found.facts is None or not 200 <= fetched.status < 300:
        return {}
    return page_facts(
        found.facts,
        content_type=media_type(fetched.content_type),
        robots_header=fetched.robots_header,
        content=found.content,
    )


def _is_empty(fetched: Fetched, found: Extracted) -> bool:
    """Return whether a page shows neither text nor link nor picture."""
    if refusal(fetched) is not None or found.links_found:
        return False
    if fetched.engine == "browser":
        return fetched.empty
    return not has_words(found.content) and not _PICTURE.search(fetched.html)


def refusal(fetched: Fetched) -> Failure | None:
    """Return the failure of an answer that is not a page; None for a page."""
    if not 200 <= fetched.status < 300:
        return Failure(f"HTTP {fetched.status}", "http", fetched.status)
    kind = fetched.content_type
    if fetched.html or fetched.text or is_html(kind) or is_text(kind):
        return None
    return Failure(f"not a web page ({media_type(kind)[:100]})", "content_type", fetched.status)


# Detection of a suspended process or machine, so that the delays from it are not failures.
#
# A machine in sleep stops its monotonic clock, while another of its clocks continues (Linux,
# macOS); a suspended process, and a machine whose monotonic clock continues in sleep (Windows),
# shows as a late beat.

BEAT_S: Final = 1.0
STILL_S: Final = 5.0  # longer than the delay of a beat under any load
_GOES_ON: Final = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


class Awake:
    """Heartbeat on the loop's timers for one block of work; `since` covers the block."""

    def __init__(self, still_s: float | None = None) -> None:
        self._still_s = STILL_S if still_s is None else still_s
        self._timer: asyncio.TimerHandle | None = None
        self._beat_at = self._slept_at = 0.0
        self._slept_s = 0.0

    def __enter__(self) -> Self:
        self._beat_at, self._slept_s = time.monotonic(), _slept_s()
        self._slept_at = self._beat_at - 1
        self._beat()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def since(self, moment_s: float) -> bool:
        """Return whether nothing was suspended since this moment of the monotonic clock."""
        self._look()
        return self._slept_at < moment_s

    def _beat(self) -> None:
        self._look()
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _look(self) -> None:
        now, slept = time.monotonic(), _slept_s()
        if now - self._beat_at > self._still_s or slept - self._slept_s > self._still_s:
            self._slept_at = now
        self._beat_at, self._slept_s = now, slept


def _slept_s() -> float:
    """Return the machine's total sleep in seconds, from an arbitrary origin; 0 if unknown."""
    if _GOES_ON is None:
        return 0.0
    return time.clock_gettime(_GOES_ON) - time.monotonic()


SLACK_S = 10.0  # margin of a fetcher beyond the page's own limit, before the unit ends it
KEPT_SINGLY = 200  # failed pages in retry at a stop; each costs a page and an event
MINUTE_S: Final = 60.0
MANY = 1_000  # start addresses; a million take 3 s, which would block the loop
_TOO_MANY_REQUESTS: Final = 429
_NAMES_A_TIME = frozenset(
    {_TOO_MANY_REQUESTS, 503}
)  # statuses whose Retry-After applies to the host


OpenFetcher = Callable[[EngineName, CrawlArgs], AbstractAsyncContextManager[Fetcher]]


async def crawl(
    args: CrawlArgs,
    ctx: Context,
    open_fetcher: OpenFetcher,
    sign_in: SignIn | None = None,
    workers: PageWorkers | None = None,
    turns: HostTurns | None = None,
) -> CrawlOutcome:
    """Crawl as configured by `args`; store pages through `ctx.page`, and return the summary.

    `workers` load the pages instead of the fetchers of `open_fetcher`; `turns` are shared with
    the other crawls of the engine.

    A stop through `ctx` is not an error: the outcome is `cancelled`.

    Raises:
        BrowserMissing, BrowserFailed: no browser is available to continue.
        InjectedFault: `failOnPage` was given and its page was reached.
        SignedOut: the site does not take `sign_in` for signed in any more.
        EngineError: any error of `ctx` when it cannot store a page.
    """
    async with Loader(args, lambda engine: open_fetcher(engine, args), sign_in, workers) as loader:
        visits = [Visit(start, 0) for start in args.starts]
        pace = Pace(ctx, args.delay_ms / 1_000, turns)
        return await crawl_from(args, ctx, loader, visits, pace=pace)


Give = Callable[[Sequence[Visit]], Awaitable[None]]
Search = Callable[[Give], Awaitable[bool]]
"""Finds addresses while pages are taken, and gives them as it goes; has it found all of them?"""


async def crawl_from(
    args: CrawlArgs,
    ctx: Context,
    loader: Loader,
    visits: Sequence[Visit] = (),
    *,
    search: Search | None = None,
    pace: Pace,
) -> CrawlOutcome:
    """Crawl from any number of addresses; the patterns do not apply to these.

    `search` adds addresses during the crawl. It is cancelled at the page limit; its errors end the
    crawl. `pace` is the throttle that both share. With a sign-in, links that sign out are not
    followed.
    """
    made = _Crawl(args, ctx, loader, pace)
    return await made.run(visits, search)


class _TimeIsUp(Exception):
    """The time limit of the crawl ended the wait before a page."""


class _Crawl:
    def __init__(self, args: CrawlArgs, ctx: Context, loader: Loader, pace: Pace) -> None:
        self._args, self._ctx, self._loader = args, ctx, loader
        used = loader.sign_in
        self._sign_in_check = None if used is None else SignInCheck(used, self._load_check)
        self._scope = args.scope or f"{args.address.origin}/**"
        self._scopes = [self._scope]
        self._pauses = HostPauses(ctx, self._still_answers, is_on=args.host_pause)
        self._frontier = Frontier(
            args.max_depth,
            args.max_pages + SPARE,
            self._wanted,
            args.fragments,
            self._pauses.holds,
        )
        self._pace = pace
        self._concurrency = Concurrency(ctx, args.concurrency, loader.workers)
        self._workers: asyncio.TaskGroup | None = None  # from the first page on
        # A limit of data is exceeded by the pages that are open when it is reached.
        if self._concurrency.counts_idle and args.max_bytes is None:
            loader.report_idle(self._on_idle)
        self._searching = self._is_more = False
        self._robots: Robots | None = None
        self._tally = Tally()
        self._scrub = Scrub(args.secrets, key_shapes=args.redact_content)
        self._carried = 0  # pages of the task that is resumed
        self._loaded = 0
        self._bytes = 0  # of documents, as they were sent
        self._ends_s = math.inf
        self._pictured = 0  # the number of the last screenshot
        self._keeping = 0  # finished pages with a write in progress
        self._changed = asyncio.Condition()
        self._awake = Awake()
        self._read_patterns()

    def _read_patterns(self) -> None:
        self._in_scope = glob_matcher(self._scopes)
        self._included = glob_matcher(self._args.include_patterns or ("**",))
        self._excluded = glob_matcher(self._args.exclude_patterns)

    def _wanted(self, address: Address) -> bool:
        if not self._in_scope(address) or self._excluded(address):
            return False
        if self._signs_out(address):
            return False
        return not self._args.include_patterns or self._included(address)

    def _signs_out(self, address: Address) -> bool:
        """Return whether the address ends the sign-in, and count it as left out."""
        if self._sign_in_check is None or not is_sign_out(address):
            return False
        self._frontier.left.add("sign_out", address.key)
        return True

    async def run(self, visits: Sequence[Visit], search: Search | None) -> CrawlOutcome:
        started = self._ctx.monotonic()
        if self._args.max_minutes is not None:
            self._ends_s = started + MINUTE_S * self._args.max_minutes
        if len(visits) < MANY:
            self._frontier.start(visits)
        else:
            await asyncio.to_thread(self._frontier.start, visits)
        if self._ctx.resumes:
            await self._carry_over()
        try:
            with self._awake:
                await self._take_all(search)
        except BaseExceptionGroup as group:
            with contextlib.suppress(EngineError):
                await self._keep_waiting()
            raise _first(group) from None
        limit = self._limit() if self._frontier.waiting else None
        await self._keep_waiting()
        duration_ms = round((self._ctx.monotonic() - started) * 1_000)
        stopped_by = self._stopped_by(limit)
        outcome = self._tally.outcome(self._scope, duration_ms, stopped_by)
        return msgspec.structs.replace(
            outcome,
            left_out=self._frontier.left.told(),
            hosts_given_up=tuple(self._pauses.given_up),
            host_error=self._pauses.reason,
        )

    async def _carry_over(self) -> None:
        """Take over the answered pages of the continued task, and queue their links.

        What such a page leads to is queued as if it had been loaded now. A page whose links are
        not all stored, and may be needed, is loaded again.
        """
        await self._ctx.reached("Reading the pages of the task that is resumed")
        found = await asyncio.to_thread(self._replay)
        self._carried = self._tally.total
        if found.spans:
            units = self._units("Kept the pages of the task that is resumed")
            await self._ctx.carry(found.spans, found.pictures, units)
        kept, again = self._tally.total, found.again
        note = f"Pages kept of the task that is resumed: {kept:,}; loaded again: {again:,}"
        await self._ctx.log("resumed", note, kept=kept, again=again)

    def _replay(self) -> CarriedPages:
        """Rebuild the queue from the stored pages, in the order in which they ended."""
        found = CarriedPages()
        for line, span in self._ctx.earlier_units():
            page = stored_page(line, self._args.fragments)
            if page is not None and page.depth == 0:
                self._follow_start(page.landed)
            if page is None or self._is_needed_again(page):
                found.again += 1
                continue
            if page.address.key in found:
                continue
            self._frontier.carry(page.address)
            if page.landed is not None and page.landed.url != page.address.url:
                self._frontier.land(page.landed, Visit(page.address, page.depth))
            if not page.failed:
                self._frontier.add(found.new_links(page), page.depth)
                self._frontier.left.count("not_web", page.links_not_web)
                if page.depth < self._args.max_depth:
                    self._frontier.left.count("over_limit", page.links_over)
                self._pauses.loaded(page.landed or page.address)
            found.add(page, span)
            self._tally.add(page.counted)
        self._loaded = self._tally.total
        self._pictured = found.pictured
        return found

    def _is_needed_again(self, page: StoredPage) -> bool:
        """Return whether a stored page got no lasting answer, or lacks links that may be wanted."""
        if not page.answered:
            return True
        if page.failed or page.depth >= self._args.max_depth:
            return False
        return page.links_missing or any(map(self._in_scope, page.hidden_links))

    async def _take_all(self, search: Search | None) -> None:
        self._searching = self._is_more = search is not None
        async with asyncio.TaskGroup() as searching:
            finding = None if search is None else searching.create_task(self._search(search))
            ending = searching.create_task(self._wake_at_end(), name="wait for the time limit")
            async with asyncio.TaskGroup() as self._workers:
                await self._concurrency.begin()
                self._add_workers()
            ending.cancel()
            if finding is not None:
                finding.cancel()

    def _add_workers(self) -> bool:
        """Begin the workers that lack; return whether there were any."""
        assert self._workers is not None
        lacking = range(self._concurrency.workers, self._concurrency.number)
        for number in lacking:
            work = self._work()
            try:
                self._workers.create_task(work, name=f"crawl-{number}")
            except RuntimeError:  # the group ends with an error, or is cancelled
                work.close()
                return False
            self._concurrency.workers += 1
        return bool(lacking)

    def _on_idle(self, state: IdleState) -> None:
        """Let another page load while nothing happens in one."""
        self._concurrency.count_idle(state)
        self._add_workers()

    async def _wake_at_end(self) -> None:
        """Notify waiting workers of the time limit."""
        if self._ends_s < math.inf:
            left_s = self._ends_s - self._ctx.monotonic()
            while left_s > 0:
                await asyncio.sleep(left_s)
                left_s = self._ends_s - self._ctx.monotonic()  # a timer may be early
            async with self._changed:
                self._changed.notify_all()

    async def _search(self, search: Search) -> None:
        """Run `search` to its end, and queue its addresses."""
        with contextlib.suppress(UnitStopped):
            self._is_more = not await search(self._give)
        self._searching = False
        async with self._changed:
            self._changed.notify_all()

    async def _give(self, visits: Sequence[Visit]) -> None:
        visits = [visit for visit in visits if not self._signs_out(visit.address)]
        for start in range(0, len(visits), MANY):
            self._frontier.start(visits[start : start + MANY])
            async with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(0)

    def _stopped_by(self, limit: Limit | None) -> StoppedBy:
        """Return what ended the crawl; `limit` left pages without another attempt."""
        if self._ctx.stopping:
            return why_stopped(self._ctx)
        whole = self._frontier.is_empty and not (self._frontier.dropped or self._is_more)
        if whole:
            return limit or ("host_errors" if self._pauses.given_up else "frontier")
        return self._limit() or "max_pages"

    def _limit(self) -> Limit | None:
        """Return the limit of time or data that is reached, so that no further page starts."""
        if self._ctx.monotonic() >= self._ends_s:
            return "max_minutes"
        most = self._args.max_bytes
        return "max_bytes" if most is not None and self._bytes >= most else None

    async def _work(self) -> None:
        try:
            while (visit := await self._next()) is not None:
                await self._visit(visit)
                self._pauses.end_probe(visit.address)
                async with self._changed:
                    self._changed.notify_all()
                before = self._concurrency.number
                await self._concurrency.adapt()
                if self._add_workers() or self._concurrency.number != before:
                    async with self._changed:
                        self._changed.notify_all()
        except UnitStopped:
            async with self._changed:
                self._changed.notify_all()
        finally:
            self._concurrency.workers -= 1

    async def _next(self) -> Visit | None:
        """Return the next page to load, or wait while others may still add some."""
        async with self._changed:
            while not (self._is_over() or self._concurrency.is_exceeded):
                now_s = self._ctx.monotonic()
                if (visit := self._take(now_s)) is not None:
                    if not self._pauses.gave_up(visit.address.origin):
                        return visit
                    await self._leave_out(visit)
                    continue
                if self._frontier.has_parked and self._limit() is None:
                    await asyncio.sleep(0)
                    continue
                if self._fault_is_due() and not self._under_way:
                    raise InjectedFault(page=self._args.fail_on_page)
                if self._is_over():
                    break
                with self._concurrency.waiting():
                    await self._wait(now_s)
            self._changed.notify_all()
            return None

    async def _wait(self, now_s: float) -> None:
        """Wait for a change, or for the end of a host's pause. Raises UnitStopped."""
        pause_s = self._pauses.next_s(self._frontier.parked, now_s)
        if pause_s is None:  # another page is loading, whose end is a change
            await self._changed.wait()
            return
        with contextlib.suppress(UnitTimeout):
            async with self._ctx.unit("pause of a host", pause_s):
                await self._changed.wait()

    async def _leave_out(self, visit: Visit) -> None:
        """End a page of a host that is given up: with its last failure, if it has one."""
        if visit.failure is None:
            self._frontier.left.count("host_errors", 1)
            await asyncio.sleep(0)
        else:
            await self._keep_failed(_without_next(visit), visit.failure)
            self._loaded += 1
        self._frontier.done(visit)

    def _is_over(self) -> bool:
        if self._ctx.stopping or (self._frontier.is_empty and not self._searching):
            return True
        if self._limit() is not None:
            return not self._frontier.flying
        return self._room() <= 0 and not self._under_way

    def _room(self) -> int:
        return self._args.max_pages - self._spent()

    def _spent(self) -> int:
        """Pages that count for `max_pages`: every page of the result, and those in progress."""
        return self._loaded + self._under_way

    @property
    def _under_way(self) -> int:
        """Pages that are loading, or wait for another attempt."""
        return self._frontier.flying + self._frontier.waiting

    def _fault_is_due(self) -> bool:
        due = self._args.fail_on_page
        return due is not None and self._spent() >= due - 1

    def _take(self, now_s: float) -> Visit | None:
        """Return the next page that may start; a retry is exempt from the page limit."""
        if self._limit() is not None:
            return None
        fresh = self._room() > 0 and not self._fault_is_due()
        probe = self._probe(now_s, fresh)
        return probe or self._frontier.take(fresh=fresh) or self._probe(now_s, fresh)

    def _probe(self, now_s: float, fresh: bool) -> Visit | None:
        """Return the page that probes whether a host answers again, if its pause has ended."""
        for origin in self._pauses.due(self._frontier.parked, now_s):
            if (visit := self._frontier.probe(origin, fresh=fresh)) is not None:
                self._pauses.begin_probe(visit.address)
                return visit
        return None

    async def _visit(self, visit: Visit) -> None:
        """Process one page to its outcome, and then notify the frontier."""
        began = time.monotonic()
        try:
            if not await self._took(visit, began):
                return
        except (BrowserGone, PageError, UnitTimeout) as failed:
            if isinstance(failed, PageError):
                self._keep_away(visit.address.place, failed)
            if self._comes_again(visit, failed, began):
                return
            failure = fetch.failure_of(failed)
            await self._judge_host(visit, failed, failure)
            if fetch.is_passing(failed) and self._put_off(visit, failure):
                return
            await self._keep_failed(visit, failure)
        except _TimeIsUp:
            if visit.failure is None:
                self._frontier.put_back(visit)
            else:
                self._frontier.put_off(visit)  # its last failure is stored at the end
            return
        except (UnitStopped, asyncio.CancelledError):
            if visit.failure is not None:
                self._frontier.put_off(visit)
            raise
        self._loaded += 1
        self._frontier.done(visit)

    async def _took(self, visit: Visit, began_s: float) -> bool:
        """Load and store one page; False if it was requeued for another attempt."""
        async with self._in_time():
            with self._concurrency.waiting():
                await self._until_due(visit)
        rules = await self._rules(visit.address)
        if rules is not None and not rules.allows(visit.address.asked):
            await self._keep_failed(visit, _blocked(rules))
            return True
        fetched = await self._load(visit, rules)
        if not fetched.settled and self._overslept(visit, began_s):
            return False
        if self._sign_in_check is not None:
            await self._sign_in_check.expect_signed_in(visit.address, fetched)
        failure = fetch.passing_failure(fetched)
        if failure is None:
            if refusal(fetched) is None:
                self._pauses.loaded(address_of(fetched.final_url) or visit.address)
            await self._host_answered(visit)
        else:
            await self._host_failed(visit, failure, fetched.retry_after_s)
        if self._put_off(visit, failure):
            return False
        if visit.depth == 0:
            self._follow_start(address_of(fetched.final_url))
        await self._keep_page(visit, fetched)
        return True

    def _comes_again(self, visit: Visit, failed: EngineError, began_s: float) -> bool:
        """Requeue a page if its failure may have an outside cause, once for each cause."""
        if fetch.is_of_a_sleep(failed) and self._overslept(visit, began_s):
            return True
        # Each page has its own limit: an excess comes from outside, as from a flooded browser.
        held_up = isinstance(failed, UnitTimeout) and failed.label == visit.address.url
        if visit.deaths or not (held_up or fetch.is_unproved(failed)):
            return False
        error, rank = fetch.first_error(failed), fetch.rank(failed)
        self._frontier.set_apart(visit, error, rank)
        return True

    def _overslept(self, visit: Visit, began_s: float) -> bool:
        """Requeue a page if the machine slept while it loaded."""
        if visit.slept or self._awake.since(began_s):
            return False
        self._frontier.put_back(visit)
        return True

    def _put_off(self, visit: Visit, failure: Failure | None) -> bool:
        """Requeue a page at the end of its level after a temporary failure."""
        if failure is None or visit.tries >= self._args.retries:
            return False
        tries = visit.tries + 1
        due_s = self._ctx.monotonic() + fetch.pause_s(tries)
        earlier = (*visit.earlier, failure.error)
        again = visit._replace(tries=tries, failure=failure, due_s=due_s, earlier=earlier)
        self._frontier.put_off(again)
        return True

    async def _judge_host(self, visit: Visit, failed: EngineError, failure: Failure) -> None:
        """Count what the failure of a page says about its host."""
        if is_host_failure(failed):
            asked_s = failed.retry_after_s if isinstance(failed, PageError) else None
            await self._host_failed(visit, failure, asked_s)
        elif is_answer(failed):
            await self._host_answered(visit)

    async def _host_answered(self, visit: Visit) -> None:
        if await self._pauses.answered(visit.address):
            self._frontier.release(visit.address.origin)

    async def _host_failed(
        self, visit: Visit, failure: Failure, retry_after_s: float | None = None
    ) -> None:
        is_first = visit.attempts == 1
        if await self._pauses.failed(
            visit.address,
            failure.error,
            is_first=is_first,
            retry_after_s=retry_after_s,
            asks_to_wait=failure.status == _TOO_MANY_REQUESTS,
        ):
            self._frontier.release(visit.address.origin)

    @contextlib.asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Limit a wait before a page by the rest of the crawl's time. Raises _TimeIsUp."""
        left_s = self._ends_s - self._ctx.monotonic()
        try:
            async with asyncio.timeout(None if left_s == math.inf else max(0.0, left_s)):
                yield
        except TimeoutError:
            raise _TimeIsUp from None

    async def _until_due(self, visit: Visit) -> None:
        left_s = visit.due_s - self._ctx.monotonic()
        if visit.failure is not None and left_s > 0:
            await self._ctx.pause(left_s)

    async def _keep_waiting(self) -> None:
        """Store the last failure of pages that receive no further attempt.

        Most of a large number are stored in one write, because a stopped task must end within 2 s.
        """
        self._pauses.end()
        for origin in list(self._frontier.parked):
            self._frontier.release(origin)
        many: list[dict[str, Any]] = []
        while (visit := self._frontier.take(fresh=False)) is not None:
            tried = _without_next(visit)
            if visit.failure is not None and self._frontier.waiting >= KEPT_SINGLY:
                page = self._redacted(self._failed_page(tried, visit.failure))
                self._tally.add(page)
                many.append(page)
            elif visit.failure is not None:
                if many:  # before the progress that counts them
                    await self._ctx.rest(many)
                    many = []
                await self._keep_failed(tried, visit.failure)
            self._frontier.done(visit)
        if many:
            await self._ctx.rest(many)

    async def _rules(self, address: Address) -> Rules | None:
        if not self._args.respect_robots:
            return None
        if self._robots is None:
            self._robots = await self._loader.robots()
        known = self._robots.known(address)
        if known is not None:
            return known
        async with self._ctx.unit(fetch.ROBOTS, ROBOTS_S):
            return await self._robots.rules(address)

    async def _load(self, visit: Visit, rules: Rules | None) -> Fetched:
        host = visit.address.place
        crawl_delay_s = rules.delay_s if rules is not None else 0.0

        async def turn() -> None:
            with self._concurrency.waiting():
                await self._pace.turn(host, crawl_delay_s)

        async def turn_in_time() -> None:
            async with self._in_time():
                await turn()

        url, fresh = visit.address.url, visit.deaths > 0
        load = partial(self._loader.load, url, fresh=fresh)
        fetched = await self._in_unit(url, turn_in_time, load)
        async with self._loader.comparing(fetched) as found:
            fetched = found
            if found.needs_browser:
                fetched = await self._in_unit(url, turn, partial(self._loader.second, found))
        self._keep_away(host, fetched)
        return fetched

    async def _in_unit(
        self,
        url: str,
        turn: Callable[[], Awaitable[None]],
        load: Callable[[], Awaitable[Fetched]],
    ) -> Fetched:
        """Load a page as a unit; on another worker of a cluster, if the first one is lost.

        Each try takes its `turn` when a worker has room, so that requests keep their distance.
        """
        options = self._args.page_options
        limit_s = (options.timeout_ms + options.clicks_ms) / 1_000 + SLACK_S
        lost = 0
        while True:
            try:
                async with self._room_of_worker():
                    await turn()
                    with self._concurrency.loading() as measured:
                        async with self._ctx.unit(url, limit_s):
                            measured.fetched = await load()
                        return measured.fetched
            except WorkerLost as failed:
                lost += failed.began
                if lost == LOADS:
                    raise

    @contextlib.asynccontextmanager
    async def _room_of_worker(self) -> AsyncIterator[None]:
        """Keep the room of a worker of the cluster, if there is one. Raises UnitStopped."""
        async with contextlib.AsyncExitStack() as stack:
            if (workers := self._loader.workers) is not None:
                async with self._in_time():
                    with self._concurrency.waiting():
                        async with self._ctx.unit(WAIT_UNIT, WAIT_S):
                            await stack.enter_async_context(workers.room())
            yield

    def _keep_away(self, host: str, answer: Fetched | PageError) -> None:
        """Hold the requests to a host for the time that its answer names."""
        if answer.status in _NAMES_A_TIME and answer.retry_after_s is not None:
            self._pace.hold(host, answer.retry_after_s)

    async def _load_check(self, address: Address, fields: tuple[FieldRule, ...]) -> Fetched:
        """Load the page that tells whether the profile is signed in, with these fields of it."""
        await self._pace.turn(address.place)
        async with self._ctx.unit(address.url, self._args.timeout_ms / 1_000 + SLACK_S):
            return await self._loader.load_beside(address.url, fields)

    async def _still_answers(self, address: Address) -> bool | None:
        """Load a page again, without storing it; return whether its host answers.

        None: the crawl ends before.
        """
        # The browser only for its session: a fresh context, because the cache of the other one may
        # have the page, replaces the one of the crawl with its cookies.
        is_browser = self._args.engine == "browser" and self._args.profile is not None
        timeout_ms = self._args.timeout_ms
        options = PageOptions(timeout_ms, self._args.settle_ms, fresh=is_browser)
        try:
            rules = await self._rules(address)
            if rules is not None and not rules.allows(address.asked):
                return False  # a redirect led to it
            async with self._in_time():
                await self._pace.turn(address.place, rules.delay_s if rules is not None else 0.0)
            fetcher = await self._loader.fetcher("browser" if is_browser else "static")
            async with self._ctx.unit(address.url, timeout_ms / 1_000 + SLACK_S):
                fetched = await fetcher.fetch(address.url, options)
        except (BrowserGone, PageError, UnitTimeout) as failed:
            return is_answer(failed)
        except (UnitStopped, _TimeIsUp):
            return None
        return fetch.passing_failure(fetched) is None

    def _follow_start(self, landed: Address | None) -> None:
        if self._args.scope is not None or landed is None:
            return
        if landed.origin != self._args.address.origin and same_site(self._args.address, landed):
            self._scope = f"{landed.origin}/**"
            self._scopes.append(self._scope)
            self._read_patterns()

    async def _keep_page(self, visit: Visit, fetched: Fetched) -> None:
        self._bytes += fetched.transferred_bytes or fetched.bytes
        error = refusal(fetched)
        found = NOTHING
        if error is None or fetched.html or fetched.text:
            args = self._args
            limits = (args.max_text_kb, args.max_elements, args.fields)
            found = await extract(fetched, args.output_format, *limits)
        if fetched.final_url != visit.address.url and (to := address_of(fetched.final_url)):
            self._frontier.land(to, visit)
        if error is None:
            self._frontier.add(found.links, visit.depth)
            self._frontier.left.count("not_web", found.links_skipped)
            if visit.depth < self._args.max_depth:
                self._frontier.left.count("over_limit", found.links_over)
        page = page_record(visit, fetched, found, keep_links=self._args.keep_links)
        if fetched.screenshot is not None:
            # Reserved before the write, because other workers choose names during it.
            self._pictured = max(self._pictured, self._tally.total) + 1
            name = f"page-{self._pictured:06d}.png"
            page["screenshot"] = await self._ctx.artifact(name, fetched.screenshot)
        if error is not None:
            page.update(error=error.error, error_code=error.code)
        await self._keep(page)

    async def _keep_failed(self, visit: Visit, failure: Failure) -> None:
        await self._keep(self._failed_page(visit, failure))

    def _failed_page(self, visit: Visit, failure: Failure) -> dict[str, Any]:
        engine: EngineName = "browser" if self._args.engine == "browser" else "static"
        url = visit.address.url
        nothing = Fetched(url, url, failure.status, engine=engine, settled=False)
        page = page_record(visit, nothing, NOTHING)
        return {**page, "error": failure.error, "error_code": failure.code}

    async def _keep(self, page: dict[str, Any]) -> None:
        size = len(page["content"]) if isinstance(page["content"], str) else 0
        if size > THREAD_FROM_CHARS:
            page = await asyncio.to_thread(self._redacted, page)
        else:
            page = self._redacted(page)
        self._tally.add(page)
        error = page.get("error")
        self._keeping += 1
        try:
            units = self._units(f"{page['url']}: {error}" if error else page["url"])
            await self._ctx.page(page, units)
        finally:
            self._keeping -= 1

    def _redacted(self, page: dict[str, Any]) -> dict[str, Any]:
        return self._scrub.page(page, markdown=self._args.output_format == "markdown")

    def _units(self, message: str) -> Units:
        """Return the progress; it stays below 100 % until the task has ended."""
        done, most = self._tally.total, self._args.max_pages
        # The frontier still counts pages with a write in progress, of this worker and of others.
        to_come = max(0, self._frontier.known - self._keeping)
        total = done + min(to_come, max(0, most - done))
        return Units(done, total, message, self._tally.failed, self._carried)


def _without_next(visit: Visit) -> Visit:
    """Return a page that waits for an attempt which does not happen."""
    return visit._replace(tries=visit.tries - 1, earlier=visit.earlier[:-1])


def _blocked(rules: Rules) -> Failure:
    """Return the failure of a page that robots.txt, or the lack of its answer, blocks."""
    if rules.refused:
        return Failure(rules.blocked, "blocked")
    return Failure(rules.blocked, "robots" if rules.blocked == BY_ROBOTS else "robots_unread")


def why_stopped(ctx: Context) -> StoppedBy:
    """Return the reason for the summary of a stopped crawl."""
    reason = ctx.stop_reason
    return reason if reason in ("budget", "forced") else "cancelled"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended the workers; the others are only cancellations."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
