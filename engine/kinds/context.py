"""The context of a task's body: interruptible units of work, storage for results, and egress.

A body that runs as a task gets the runner's context, which writes to the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

from engine.budgets import DOMAINS
from engine.egress.egress_policy import DomainAllowlist, Policy, Refusal, place_of
from engine.egress.public_addresses import PRIVATE, literal
from engine.egress.upstream import check_proxy
from engine.kinds.arguments import proxy_secrets
from engine.ledger.machine import wall_ms
from engine.model.config import Settings
from engine.model.errors import AddressBlocked, ProxyNotAllowed, UnitTimeout
from engine.model.proxies import ENV, ProxyChoice, UpstreamProxy
from engine.model.records import Units
from engine.secrets.given_secrets import Hidden
from engine.secrets.value_search import SHORT

StopReason = Literal["", "cancelled", "budget", "forced", "stopped"]
"""Why a task has to stop: asked to, over its budget, forced to be complete, or to end in order."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Source of times; a shared clock makes two runs reproducible."""

    now_ms: Callable[[], int] = field(default=wall_ms)
    monotonic: Callable[[], float] = field(default=time.monotonic)


Span = tuple[int, int]
"""Place of a line in `pages.jsonl`: its first byte, and the one behind its line end."""


class UnitStopped(Exception):
    """A requested stop ended the unit; finished units are kept. Not a failure."""


class Context(Protocol):
    """Interface between a body and its environment."""

    task_id: str
    budgets: Mapping[str, Any]
    """The policy that the task was started under (seed 004); empty without one."""

    @property
    def stopping(self) -> bool:
        """Return whether a stop was requested."""
        ...

    @property
    def stop_reason(self) -> StopReason:
        """The reason for the stop; empty while the task may continue."""
        ...

    def now_ms(self) -> int:
        """Return the wall clock in ms since 1970, for stored instants."""
        ...

    def monotonic(self) -> float:
        """Return monotonic seconds, for durations."""
        ...

    def unit(self, label: str, limit_s: float) -> AbstractAsyncContextManager[None]:
        """Run one unit of work, the smallest step after which the task can stop.

        Raises:
            UnitStopped: a stop was requested before or during the unit.
            UnitTimeout: the unit took longer than `limit_s` seconds.
        """
        ...

    @property
    def resumes(self) -> bool:
        """Return whether the task continues another one, whose units it may carry over."""
        ...

    def earlier_units(self) -> Iterator[tuple[bytes, Span]]:
        """Yield each unit that the continued task stored: its JSON and place; for a thread.

        Raises:
            UnitStopped: a stop was requested meanwhile.
            TaskNotFound, TaskUnreadable: its folder is gone or cannot be read.
        """
        ...

    async def carry(self, spans: Sequence[Span], files: Sequence[str], units: Units) -> None:
        """Store these units of the continued task as the first ones, unchanged, with its `files`.

        They are stored all or none, and no budget counts them.

        Raises:
            UnitStopped: a stop was requested meanwhile.
        """
        ...

    async def page(self, page: dict[str, Any], units: Units) -> None:
        """Store a finished unit (a page, a command, …): `pages.jsonl` first, then the progress."""
        ...

    async def reached(self, message: str) -> None:
        """Report progress without a finished unit."""
        ...

    async def rest(self, pages: list[dict[str, Any]]) -> None:
        """Store skipped units in one write; they do not count as progress."""
        ...

    async def log(self, phase: str, note: str, **data: object) -> None:
        """Write a line to the task's event log."""
        ...

    async def artifact(self, name: str, data: bytes) -> str:
        """Store a file of the task; return its path inside the task's folder."""
        ...

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        """Mask these given values, too, in everything that the task stores from now on."""
        ...

    def conceal_later(self, hidden: Iterable[Hidden]) -> None:
        """Mask these tokens of a site as well; of very many the newest."""
        ...

    async def append_artifact(self, name: str, data: bytes) -> None:
        """Append to a file of the task; a write that has begun ends also after a cancellation."""
        ...

    async def carry_artifact(self, name: str, whole: Callable[[BinaryIO], int]) -> int:
        """Copy a file of the continued task, which `append_artifact` continues; return its size.

        `whole` returns how much of the file is whole. Returns 0 if there is none.

        Raises:
            UnitStopped: a stop was requested meanwhile.
        """
        ...

    async def document(self, name: str, data: bytes) -> None:
        """Replace a file of the kind (`commands.json`) atomically."""
        ...

    async def pause(self, seconds: float) -> None:
        """Sleep; a stop request interrupts it with `UnitStopped`."""
        ...


class Scopes:
    """The open units of one task. After `stop`, every open and later unit raises `UnitStopped`."""

    def __init__(self) -> None:
        self._open: set[asyncio.Timeout] = set()
        self._held: dict[asyncio.Timeout, float] = {}
        self.reason: StopReason = ""

    @property
    def stopping(self) -> bool:
        return bool(self.reason)

    def stop(self, reason: StopReason = "cancelled") -> None:
        """Stop every open unit at its next await; the first reason is kept."""
        self.reason = self.reason or reason
        now = asyncio.get_running_loop().time()
        for scope in self._open:
            if not scope.expired():
                scope.reschedule(now)

    def hold(self, held: bool) -> None:
        """Suspend the deadlines of open units while the ledger is unavailable, or resume them."""
        now = asyncio.get_running_loop().time()
        if held:
            left = {one: one.when() for one in self._open if not one.expired()}
            self._held = {one: when - now for one, when in left.items() if when is not None}
            for scope in self._held:
                scope.reschedule(None)
            return
        for scope, left_s in self._held.items():
            if scope in self._open and not scope.expired() and not self.stopping:
                scope.reschedule(now + left_s)
        self._held = {}

    @asynccontextmanager
    async def unit(self, label: str, limit_s: float) -> AsyncIterator[None]:
        """Implement `Context.unit`."""
        if self.stopping:
            raise UnitStopped
        scope = asyncio.timeout(limit_s)
        try:
            async with scope:
                self._open.add(scope)
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            if self.stopping:
                raise UnitStopped from None
            raise UnitTimeout(label=label, limit_s=limit_s) from None
        finally:
            self._open.discard(scope)

    async def pause(self, seconds: float) -> None:
        """Implement `Context.pause`."""
        async with self.unit("pause", seconds + 60):
            await asyncio.sleep(seconds)


FROM_OUTSIDE = frozenset({"mcp", "http"})  # untrusted: not typed by the operator
_IS_PRIVATE = str(AddressBlocked("", PRIVATE))


class AllowedSecrets(dict[str, str]):
    """The part of the environment that a request from outside may use."""


def missing_secret(environ: Mapping[str, str], name: str) -> str:
    """Return why the variable `name` gives no secret."""
    if isinstance(environ, AllowedSecrets) and name not in environ:
        return (
            f"{name} is not allowed to programs; the operator allows it with --allow-secret, or in "
            "the settings of the window"
        )
    return f"the environment holds no {name}"


def with_way_out(reason: str, settings: Settings) -> str:
    """Add to the reason of a failure who can allow a private address to a program."""
    if settings.route not in FROM_OUTSIDE or _IS_PRIVATE not in reason:
        return reason
    return (
        f"{reason}; the operator allows it with --allow-private HOST:PORT, or in the settings of "
        "the window"
    )


def reach(settings: Settings, *urls: str, proxy: ProxyChoice | None = None) -> Policy:
    """Return the policy for these addresses; the first one is the start address.

    Their own private host and port are allowed, unless the request came over MCP or HTTP: then
    only the operator's allowlist applies. `proxy` is the one that the request asks for.

    Raises:
        AddressBlocked: one of them is not an http or https address.
        ProxyUnusable, ProxyNotAllowed: see `upstream_proxy`.
    """
    upstream = upstream_proxy(settings, proxy)
    if settings.route in FROM_OUTSIDE:
        return Policy(None, settings.allow_private, proxy=upstream)
    if not urls:
        return Policy(None, proxy=upstream)
    first, *others = urls
    return Policy.for_start(first, named=others, proxy=upstream)


def written_places(urls: Iterable[str]) -> tuple[str, ...]:
    """Return an address of each place among `urls` that is an IP address or `localhost`.

    Other names are subject to the general rule, because their resolution may change.

    Raises:
        AddressBlocked: one of them is not an http or https address.
    """
    places = dict.fromkeys(map(place_of, urls))
    is_written = [one.host == "localhost" or literal(one.host) is not None for one in places]
    return tuple(f"http://{one}" for one in compress(places, is_written))


def within_domains(policy: Policy, context: Context) -> Policy:
    """Return the policy that allows only the `allowedDomains` of the task; itself without any."""
    if DOMAINS not in context.budgets:
        return policy
    allowlist = DomainAllowlist(policy)
    allowlist.narrow(context.budgets)
    return allowlist


def domains_of(context: Context) -> dict[str, Any]:
    """Return the task's `allowedDomains` as budgets for a worker; empty without any."""
    return {DOMAINS: context.budgets[DOMAINS]} if DOMAINS in context.budgets else {}


def upstream_proxy(settings: Settings, asked: ProxyChoice | None) -> UpstreamProxy | None:
    """Return the proxy of a task: the requested one, else the one of the settings.

    Over MCP and HTTP a request may choose a proxy only where the settings have none, and its
    address is checked as those of pages are.

    Raises:
        ProxyUnusable: the proxy is not usable as it is written.
        ProxyNotAllowed: a request from outside asks for another proxy than the settings.
    """
    if asked is None:
        return settings.proxy.upstream()
    if settings.route not in FROM_OUTSIDE:
        return asked.upstream(settings.environ)
    if settings.proxy or asked.proxy == ENV:
        raise ProxyNotAllowed
    upstream = asked.upstream({})
    return upstream and msgspec.structs.replace(upstream, allowed=settings.allow_private)


PHASE = "egress"


PROXY_PHASE = "proxy"  # phase of the `log` event that names the task's proxy


async def _tell_proxy(context: Context, policy: Policy) -> None:
    """Check the policy's proxy, and write a `log` event about it."""
    if policy.proxy is None:
        return
    await check_proxy(policy, with_start=DOMAINS not in context.budgets)
    note = f"Connections go through the proxy {policy.proxy}; names are resolved here"
    if policy.proxy.resolves_names:
        note = f"Connections go through the proxy {policy.proxy}, which resolves names"
    await context.log(PROXY_PHASE, note, proxy=str(policy.proxy))


@asynccontextmanager
async def telling(context: Context, policy: Policy) -> AsyncIterator[None]:
    """Write one `log` event of the task for each request that `policy` refuses.

    Before that, its proxy is checked and written down, so that a wrong one ends the task at once.
    Nothing that the task stores from now on has the password of the proxy.

    Raises:
        ProxyUnreachable, ProxyRefusedUser: the proxy does not work.
        EngineError: an event could not be written, and the block itself succeeded.
    """
    context.conceal(one for one in proxy_secrets(policy.proxy) if len(one.value) >= SHORT)
    await _tell_proxy(context, policy)
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[Refusal | None] = asyncio.Queue()

    def hear(refusal: Refusal) -> None:
        with contextlib.suppress(RuntimeError):  # the loop closed before its browser
            loop.call_soon_threadsafe(heard.put_nowait, refusal)

    teller = asyncio.create_task(_tell(heard, context), name="tell what was refused")
    try:
        with policy.blocked_requests.subscribed(hear):
            yield
    finally:
        # The sentinel is queued after entries from other threads, so that no refusal is lost.
        loop.call_soon_threadsafe(heard.put_nowait, None)
        try:
            await asyncio.wait({teller})
        finally:
            teller.cancel()
        failed = teller.exception()
    if failed is not None:
        raise failed


async def _tell(heard: asyncio.Queue[Refusal | None], context: Context) -> None:
    while (refusal := await heard.get()) is not None:
        place, reason = refusal
        await context.log(PHASE, f"Refused {place}: {reason}", place=place, reason=reason)
