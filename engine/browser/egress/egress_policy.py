"""What a task's browser (and its static engine) may reach.

One `Policy` per task. It answers for every *connection*: of the browser, which has no other
way out than our proxy (`proxy`, `lane`), and of the static engine (`resolver`). Documents are
asked about before that as well (`gate`), tab by tab, so that each page hears its own reason.
Only http and https, and only public addresses, after the name was resolved; except exactly
the host and port of a start URL that was private when it was first looked at. Who asks
connects to the addresses that were judged, never to the name.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from engine.browser.egress import public_addresses
from engine.browser.egress.blocked_requests import TurnedAway
from engine.browser.egress.public_addresses import IPAddress
from engine.model import urls
from engine.model.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver


# Asks the system's resolver on a few threads of its own.
#
# A name server that does not answer holds its thread for many seconds. On the loop's common
# threads sixteen such names would stand before every read of the ledger.

THREADS = 16
Answer = asyncio.Future[tuple[IPAddress, ...]]


class Lookups:
    """Threads that begin with the first name and end with the last; no exit waits for them."""

    def __init__(self, threads: int = THREADS) -> None:
        self._most = threads
        self._threads = 0
        self._waiting: deque[tuple[str, Answer, asyncio.AbstractEventLoop]] = deque()
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Answer:
        """The addresses of `host`; the future fails with `OSError` when it has none."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        with self._lock:
            if self._threads < self._most:
                threading.Thread(target=self._work, name="look names up", daemon=True).start()
                self._threads += 1
            self._waiting.append((host, answer, loop))
        return answer

    def _work(self) -> None:
        while (asked := self._next()) is not None:
            host, answer, loop = asked
            found: tuple[IPAddress, ...] | OSError
            try:
                found = _getaddrinfo(host)
            except OSError as failed:
                found = failed
            with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
                loop.call_soon_threadsafe(_settle, answer, found)

    def _next(self) -> tuple[str, Answer, asyncio.AbstractEventLoop] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


def _settle(answer: Answer, found: tuple[IPAddress, ...] | OSError) -> None:
    if answer.done():
        return
    if isinstance(found, OSError):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _getaddrinfo(host: str) -> tuple[IPAddress, ...]:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        texts = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
        return tuple(map(ipaddress.ip_address, texts))
    except ValueError as problem:  # UnicodeError is one
        raise OSError(f"{host} cannot be asked for") from problem


look_up = Lookups()


KEPT_S = 60.0  # how long an answer of the resolver is believed
KEPT_FAILED_S = 5.0  # a name that was not found is asked again soon
LOOKUP_S = 10.0
MAX_HOSTS = 4_096
# What a browser may find by itself (`launch` names the same); the rest of 127/8 goes by the proxy.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MOVED = "the name was private, and is public now"
_MAX_SCHEME = 32  # characters, of one that is told
_USERINFO = re.compile(r"(?<=//)[^/?#]*@")  # where no parser can tell


class Place(NamedTuple):
    """A host in canonical spelling, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Addresses(NamedTuple):
    """What a host's name came to, and until when (monotonic seconds) that is believed."""

    found: tuple[IPAddress, ...]
    until: float


Lookup = Callable[[str], "asyncio.Future[tuple[IPAddress, ...]]"]


def without_credentials(url: str) -> str:
    """`url` as it may be told: no user, no password."""
    if "@" not in url:
        return url
    found = urls.parse(url)
    if found is None:
        return _USERINFO.sub("", url)
    return found.without_user if found.user or found.password else url


def place_of(url: str) -> Place:
    """The host and port that a browser would connect to for `url`.

    Raises:
        AddressBlocked: not http or https, or no usable host or port.
    """
    scheme = urls.scheme_of(url)
    if scheme not in urls.PORTS:
        raise AddressBlocked(
            without_credentials(url), "only http and https addresses can be opened"
        )
    found = urls.parse(url)
    host = "" if found is None else found.host.removesuffix(".")
    if found is None or not host or found.port == 0:
        raise AddressBlocked(without_credentials(url), "not a usable address")
    return Place(host, found.port or urls.PORTS[scheme])


def place_or_scheme(url: str) -> str:
    """How a refused address is listed: `host:port`, or `file:` where it has none."""
    try:
        return str(place_of(url))
    except AddressBlocked:
        scheme = urls.scheme_of(url)
        return f"{scheme}:" if 0 < len(scheme) <= _MAX_SCHEME else "not an address"


def _is_loopback(text: str) -> bool:
    try:
        place = place_of(f"http://{text}")
    except AddressBlocked:
        return False
    return place.host in LOOPBACK and str(place) == text


class Policy:
    """The one answer to "may this task open that address?"; keeps look-ups for a minute."""

    def __init__(
        self,
        start: Place | None,
        allow_private: Iterable[str] = (),
        *,
        named: Iterable[Place] = (),
        lookup: Lookup | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        # What the operator named, and the private addresses it had when it was first looked at;
        # None: not looked at yet.
        starts = (*named, *([start] if start else []))
        self._starts: dict[Place, frozenset[IPAddress] | None] = dict.fromkeys(starts)
        self._allowed = frozenset(text.lower() for text in allow_private)
        self._lookup = lookup or look_up
        self._now = now
        self._kept: dict[str, Addresses] = {}
        self._in_flight: dict[str, asyncio.Future[tuple[IPAddress, ...]]] = {}
        self.turned_away = TurnedAway()

    @classmethod
    def for_start(
        cls, url: str, allow_private: Iterable[str] = (), *, named: Iterable[str] = ()
    ) -> Policy:
        """The policy of a task that an operator started at `url`.

        Args:
            allow_private: further `host:port` that are private and may be reached.
            named: further addresses that the operator named; judged as `url` is.

        Raises:
            AddressBlocked: `url` is not an http or https address, or one of `named` is not.
        """
        return cls(place_of(url), allow_private, named=[place_of(each) for each in named])

    @property
    def root(self) -> Policy:
        """The policy that judges addresses; another one for what only narrows it (`fence`)."""
        return self

    async def check(self, url: str) -> None:
        """Return when `url` may be opened; a refusal is kept in `turned_away`.

        Raises:
            AddressBlocked: it may not, and why.
            PageError: its name cannot be resolved ("name not found").
        """
        try:
            await self.ask(url)
        except AddressBlocked as refused:
            self.turned_away.note(place_or_scheme(url), refused.reason)
            raise

    async def ask(self, url: str) -> None:
        """As `check`, and nothing is kept: for who only compares policies."""
        await self.addresses(place_of(url), url)

    async def addresses(self, place: Place, url: str) -> tuple[IPAddress, ...]:
        """The addresses of `place`, each of them allowed; raises as `check` does."""
        answer = self._fresh(place.host)
        found = answer.found if answer else await self._look_up(place.host)
        if found and self._unseen(place):
            shut = frozenset(a for a in found if public_addresses.refusal(a))
            self._starts[place] = shut if shut == set(found) else frozenset()
        return self._judged(place, found, url)

    def known(self, url: str) -> bool | None:
        """The answer that needs no waiting: allowed, refused, or None (then ask `check`)."""
        try:
            found = self.known_addresses(place_of(url))
        except PageError:
            return False
        return None if found is None else True

    def known_addresses(self, place: Place) -> tuple[IPAddress, ...] | None:
        """As `addresses`, from what is kept, on any thread; None where it has to be looked up."""
        answer = self._fresh(place.host)
        if answer is None or self._unseen(place):
            return None
        return self._judged(place, answer.found, f"//{place}")

    def loopback_places(self) -> tuple[str, ...]:
        """Which allowed places are this machine by their very spelling.

        No name can lead such a place elsewhere: a browser may go there by itself.
        """
        return tuple(sorted(filter(_is_loopback, {*self._allowed, *map(str, self._starts)})))

    def resolver(self) -> AbstractResolver:
        """For aiohttp's connector: connects only to addresses that were judged.

        aiohttp asks no resolver about a host that is a number: `check` every hop as well.
        """
        from engine.browser.egress.resolver import PolicyResolver

        return PolicyResolver(self)

    def _judged(
        self, place: Place, found: tuple[IPAddress, ...], url: str
    ) -> tuple[IPAddress, ...]:
        if not found:
            raise PageError("dns", "name not found")
        if place in self._starts and not self._starts[place] and str(place) not in self._allowed:
            # A public start whose name also says a private one gets the public ones alone: it
            # would serve a page itself, then fall silent, and have its script read the other.
            found = tuple(a for a in found if public_addresses.refusal(a) is None) or found
        reason = self._refusal(place, found)
        if reason is not None:
            raise AddressBlocked(without_credentials(url), reason)
        return found

    def _refusal(self, place: Place, found: tuple[IPAddress, ...]) -> str | None:
        allowed = str(place) in self._allowed
        held = self._starts.get(place)
        for address in found:
            reason = public_addresses.refusal(address)
            if reason is None and held:
                return _MOVED  # else it could lend a private page a public script
            private = reason == "private address"  # a cloud's own place stays shut to everybody
            # A public name that turns private later (DNS rebinding) was never in `held`.
            if reason is None or (private and (allowed or address in (held or ()))):
                continue
            return reason
        return None

    def _unseen(self, place: Place) -> bool:
        return place in self._starts and self._starts[place] is None

    def _fresh(self, host: str) -> Addresses | None:
        number = public_addresses.literal(host)
        if number is not None:
            return Addresses((number,), self._now() + KEPT_S)
        answer = self._kept.get(host)
        return answer if answer is not None and answer.until > self._now() else None

    async def _look_up(self, host: str) -> tuple[IPAddress, ...]:
        future = self._in_flight.get(host)
        if future is None:
            future = self._in_flight[host] = self._lookup(host)
            future.add_done_callback(lambda done: self._keep(host, done))
        try:
            async with asyncio.timeout(LOOKUP_S):
                return await asyncio.shield(future)
        except TimeoutError as slow:
            raise PageError("dns", f"the name was not resolved within {LOOKUP_S:.0f} s") from slow
        except OSError:
            return ()

    def _keep(self, host: str, done: asyncio.Future[tuple[IPAddress, ...]]) -> None:
        self._in_flight.pop(host, None)
        if done.cancelled():
            return
        found = () if done.exception() else done.result()
        while len(self._kept) >= MAX_HOSTS:
            del self._kept[next(iter(self._kept))]
        self._kept[host] = Addresses(found, self._now() + (KEPT_S if found else KEPT_FAILED_S))
