"""Egress policy: the addresses that a task's browser and static engine may reach.

One `Policy` per task. It decides about every *connection*: of the browser, whose only way out is
the product's proxy (`proxy`, `proxy_listener`), and of the static engine (`http_session`).
Documents are also checked before that (`navigation_filter`), tab by tab, so that each page gets its
own reason. Only http and https are allowed, and only public addresses, after the name was resolved;
except exactly the host and port of a start URL that was private at its first check. Callers
connect to the checked addresses, never to the name.

With an upstream proxy (`Policy.proxy`) the same rules apply, and the proxy gets the checked
addresses. A proxy that resolves names itself gets the name instead: names of local networks and
names that lead to private addresses here are refused, other names are left to it.

`BlockedRequests` counts the refusals; `DomainAllowlist` narrows a policy to an envelope's domains.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from engine import budgets
from engine.egress import public_addresses
from engine.egress.public_addresses import IPAddress
from engine.model import addresses as urls
from engine.model.errors import AddressBlocked, PageError, PageOutOfFiles
from engine.model.process_limits import is_shortage, was_short
from engine.model.proxies import UpstreamProxy


class DomainBlocked(AddressBlocked):
    """The address is not in the task's allowedDomains; nothing was opened."""

    code = "domain_blocked"
    title = "Not one of the task's domains"

    def __init__(self, url: str) -> None:
        super().__init__(url, "not one of the task's allowed domains")


MOST = 100  # a hostile page can invent addresses without end


class Refusal(NamedTuple):
    """A blocked place (`host:port`, or a scheme with its colon) and the reason."""

    place: str
    reason: str


class BlockedRequests:
    """Thread-safe counts of one policy's refusals; each listener gets each place once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Refusal, int] = {}
        self._listeners: dict[Callable[[Refusal], None], set[Refusal]] = {}

    def note(self, place: str, reason: str) -> None:
        """Count a refusal; beyond the hundredth place it is not stored."""
        refusal = Refusal(place, reason)
        with self._lock:
            if refusal in self._counts or len(self._counts) < MOST:
                self._counts[refusal] = self._counts.get(refusal, 0) + 1
            for listener, notified in self._listeners.items():
                if refusal not in notified and len(notified) < MOST:
                    notified.add(refusal)
                    listener(refusal)

    @contextmanager
    def subscribed(self, listener: Callable[[Refusal], None]) -> Iterator[None]:
        """Call `listener` for each place blocked meanwhile; it must not wait."""
        with self._lock:
            self._listeners[listener] = set()
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[listener]

    @property
    def counts(self) -> dict[Refusal, int]:
        """Number of refusals of each place, in the order of the first one."""
        with self._lock:
            return dict(self._counts)


# Resolver calls on a few dedicated threads.
#
# A name server that does not respond blocks its thread for many seconds. On the loop's default
# threads sixteen such names would delay every read of the ledger.

THREADS = 16
Answer = asyncio.Future[tuple[IPAddress, ...]]


class Lookups:
    """Daemon threads for pending names: started on demand, never awaited at exit."""

    def __init__(self, threads: int = THREADS) -> None:
        self._most = threads
        self._threads = 0
        self._waiting: deque[tuple[str, Answer, asyncio.AbstractEventLoop]] = deque()
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Answer:
        """Resolve `host`; the future fails with `OSError` if it has no address."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        with self._lock:
            if self._threads < self._most:
                threading.Thread(target=self._work, name="look names up", daemon=True).start()
                self._threads += 1
            self._waiting.append((host, answer, loop))
        return answer

    def _work(self) -> None:
        while (request := self._next()) is not None:
            host, answer, loop = request
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
    except ValueError as problem:  # includes UnicodeError
        raise OSError(f"{host} cannot be asked for") from problem


look_up = Lookups()


KEPT_S = 60.0  # lifetime of a resolver result
KEPT_FAILED_S = 5.0  # a failed lookup is repeated soon
LOOKUP_S = 10.0
LOOKUP_BESIDE_S = 3.0  # where a proxy resolves names: networks behind proxies may resolve none
MAX_HOSTS = 4_096
# Addresses that a browser reaches directly (as in `launch`); the rest of 127/8 uses the proxy.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# Endings of names that only a local network resolves. RFC 2606, 6762, 8375; ICANN's `.internal`,
# below which clouds have the service with the credentials of a machine.
LOCAL_NAMES = frozenset({"localhost", "local", "internal", "localdomain", "home.arpa", "lan"})
_LOCAL = "private name"
_MOVED = "the name was private, and is public now"
_MAX_SCHEME = 32  # characters of a scheme in reports
_USERINFO = re.compile(r"(?<=//)[^/?#]*@")  # for texts that cannot be parsed


class Place(NamedTuple):
    """A host in canonical form, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Addresses(NamedTuple):
    """The addresses of a host name, and the end of their lifetime (monotonic seconds)."""

    found: tuple[IPAddress, ...]
    until: float


Lookup = Callable[[str], "asyncio.Future[tuple[IPAddress, ...]]"]


def without_credentials(url: str) -> str:
    """Remove user and password from `url` for display."""
    if "@" not in url:
        return url
    found = urls.parse(url)
    if found is None:
        return _USERINFO.sub("", url)
    return found.without_user if found.user or found.password else url


def place_of(url: str) -> Place:
    """Return the host and port that a browser would connect to for `url`.

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
    """Format a blocked address: `host:port`, or a scheme such as `file:` without one."""
    try:
        return str(place_of(url))
    except AddressBlocked:
        scheme = urls.scheme_of(url)
        return f"{scheme}:" if 0 < len(scheme) <= _MAX_SCHEME else "not an address"


class Route(NamedTuple):
    """How a place is connected to: at which addresses, and by which proxy if any.

    Without addresses the proxy resolves the name.
    """

    found: tuple[IPAddress, ...]
    proxy: UpstreamProxy | None = None


def is_local_name(host: str) -> bool:
    """Return whether a name is one of local networks: without a dot, or with such an ending."""
    if public_addresses.literal(host) is not None:
        return False
    return "." not in host or any(host == end or host.endswith(f".{end}") for end in LOCAL_NAMES)


def _is_loopback(text: str) -> bool:
    try:
        place = place_of(f"http://{text}")
    except AddressBlocked:
        return False
    return place.host in LOOPBACK and str(place) == text


class Policy:
    """Decides whether a task may open an address; caches lookups for a minute."""

    def __init__(
        self,
        start: Place | None,
        allow_private: Iterable[str] = (),
        *,
        named: Iterable[Place] = (),
        proxy: UpstreamProxy | None = None,
        lookup: Lookup | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.proxy = proxy
        # Places given by the operator, with the private addresses of their first check; None:
        # unchecked.
        starts = (*named, *([start] if start else []))
        self._starts: dict[Place, frozenset[IPAddress] | None] = dict.fromkeys(starts)
        self._allowed = frozenset(text.lower() for text in allow_private)
        self._lookup = lookup or look_up
        self._now = now
        self._kept: dict[str, Addresses] = {}
        self._in_flight: dict[str, asyncio.Future[tuple[IPAddress, ...]]] = {}
        self.blocked_requests = BlockedRequests()

    @classmethod
    def for_start(
        cls,
        url: str,
        allow_private: Iterable[str] = (),
        *,
        named: Iterable[str] = (),
        proxy: UpstreamProxy | None = None,
    ) -> Policy:
        """Create the policy of a task that an operator started at `url`.

        Args:
            allow_private: further private `host:port` that may be reached.
            named: further addresses given by the operator; checked like `url`.
            proxy: the upstream proxy of all connections.

        Raises:
            AddressBlocked: `url` or one of `named` is no http or https address.
        """
        places = [place_of(each) for each in named]
        return cls(place_of(url), allow_private, named=places, proxy=proxy)

    @property
    def root(self) -> Policy:
        """The policy that checks addresses; `domain_allowlist` returns the inner one."""
        return self

    @property
    def first_place(self) -> Place | None:
        """The place of the start URL, if an operator gave one."""
        return next(reversed(self._starts), None)

    def proxy_for(self, place: Place) -> UpstreamProxy | None:
        """Return the upstream proxy for `place`; None: it is connected to directly."""
        proxy = self.proxy
        return None if proxy is None or proxy.is_bypassed(*place) else proxy

    async def route(self, place: Place, url: str) -> Route:
        """Return how to connect to `place`; raise like `check`."""
        return self._route(place, await self.addresses(place, url))

    def known_route(self, place: Place) -> Route | None:
        """As `route`, from the cache, on any thread; None if a lookup is needed."""
        found = self.known_addresses(place)
        return None if found is None else self._route(place, found)

    def _route(self, place: Place, found: tuple[IPAddress, ...]) -> Route:
        proxy = self.proxy_for(place)
        if proxy is None or not proxy.resolves_names or public_addresses.literal(place.host):
            return Route(found, proxy)
        answer = self._fresh(place.host)
        if answer is not None and len(answer.found) > len(found):
            return Route(found, proxy)  # the private addresses of a public start were left out
        return Route((), proxy)

    def allow(self, private: Iterable[str]) -> bool:
        """Replace the allowed private `host:port`; return whether one is no longer allowed."""
        before, self._allowed = self._allowed, frozenset(text.lower() for text in private)
        return not before <= self._allowed

    async def first_checks(self) -> dict[Place, frozenset[IPAddress]]:
        """Check the places of the operator that were not checked yet, and return what is allowed.

        The private addresses of a place that was private at its first check; none for a public
        one. A place whose name cannot be resolved is left out.
        """
        for place in list(self._starts):
            with contextlib.suppress(PageError):  # it is refused when it is opened
                await self.addresses(place, f"//{place}")
        return {place: held for place, held in self._starts.items() if held is not None}

    def adopt(self, checked: Mapping[str, Iterable[IPAddress]]) -> None:
        """Take the first checks of another policy for the operator's places, by their text.

        A name that was not checked there counts as public: a later private address is refused. A
        place that is written as an address is not adopted, because it leads nowhere else.
        """
        for place in self._starts:
            if public_addresses.literal(place.host) is None:
                self._starts[place] = frozenset(checked.get(str(place), ()))

    async def check(self, url: str) -> None:
        """Return if `url` may be opened; store a refusal in `blocked_requests`.

        Raises:
            AddressBlocked: the address is blocked; the error has the reason.
            PageError: its name cannot be resolved ("name not found").
        """
        try:
            await self.ask(url)
        except AddressBlocked as refused:
            self.blocked_requests.note(place_or_scheme(url), refused.reason)
            raise

    async def ask(self, url: str) -> None:
        """As `check`, without storing refusals, for comparing policies."""
        await self.addresses(place_of(url), url)

    async def addresses(self, place: Place, url: str) -> tuple[IPAddress, ...]:
        """Return the addresses of `place`, all of them allowed; raise like `check`.

        There may be none if a proxy resolves the name.
        """
        answer = self._fresh(place.host)
        beside = self._is_resolved_by_proxy(place)
        found = answer.found if answer else await self._look_up(place.host, beside=beside)
        if (found or beside) and self._is_unchecked(place):
            shut = frozenset(a for a in found if public_addresses.refusal(a))
            self._starts[place] = shut if shut == set(found) else frozenset()
        return self._allowed_addresses(place, found, url)

    def known(self, url: str) -> bool | None:
        """Answer without waiting: allowed, blocked, or None (then call `check`)."""
        try:
            found = self.known_addresses(place_of(url))
        except PageError:
            return False
        return None if found is None else True

    def known_addresses(self, place: Place) -> tuple[IPAddress, ...] | None:
        """As `addresses`, from the cache, on any thread; None if a lookup is needed."""
        answer = self._fresh(place.host)
        if answer is None or self._is_unchecked(place):
            return None
        return self._allowed_addresses(place, answer.found, f"//{place}")

    def loopback_places(self) -> tuple[str, ...]:
        """Return the allowed places that are spelled as loopback addresses.

        Name resolution cannot redirect such a place, so a browser may connect to it directly;
        but never beside an upstream proxy.
        """
        if self.proxy is not None:
            return ()
        return tuple(sorted(filter(_is_loopback, {*self._allowed, *map(str, self._starts)})))

    def _allowed_addresses(
        self, place: Place, found: tuple[IPAddress, ...], url: str
    ) -> tuple[IPAddress, ...]:
        if self._is_resolved_by_proxy(place):
            if is_local_name(place.host) and not self._is_named(place):
                raise AddressBlocked(without_credentials(url), _LOCAL)
            if not found:
                return ()
        if not found:
            raise PageError("dns", "name not found")
        if place in self._starts and not self._starts[place] and str(place) not in self._allowed:
            # A public start whose name also has a private address gets the public ones alone:
            # otherwise its server could send a page, then stop responding, and let its script read
            # the private one.
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
                return _MOVED  # otherwise it could insert a public script into a private page
            # Cloud metadata addresses stay blocked for all.
            private = reason == public_addresses.PRIVATE
            # A public name that becomes private later (DNS rebinding) was never in `held`.
            if reason is None or (private and (allowed or address in (held or ()))):
                continue
            return reason
        return None

    def _is_resolved_by_proxy(self, place: Place) -> bool:
        proxy = self.proxy_for(place)
        return proxy is not None and proxy.resolves_names

    def _is_named(self, place: Place) -> bool:
        """Return whether the operator named this private place."""
        return place in self._starts or str(place) in self._allowed

    def _is_unchecked(self, place: Place) -> bool:
        return place in self._starts and self._starts[place] is None

    def _fresh(self, host: str) -> Addresses | None:
        number = public_addresses.literal(host)
        if number is not None:
            return Addresses((number,), self._now() + KEPT_S)
        answer = self._kept.get(host)
        return answer if answer is not None and answer.until > self._now() else None

    async def _look_up(self, host: str, *, beside: bool = False) -> tuple[IPAddress, ...]:
        """Resolve `host`; `beside` a proxy that resolves it, too, a slow answer is none."""
        began_s, future = time.monotonic(), self._in_flight.get(host)
        if future is None:
            future = self._in_flight[host] = self._lookup(host)
            future.add_done_callback(lambda done: self._keep(host, done))
        try:
            async with asyncio.timeout(LOOKUP_BESIDE_S if beside else LOOKUP_S):
                return await asyncio.shield(future)
        except TimeoutError as slow:
            if beside:
                self._store(host, ())
                return ()
            raise PageError("dns", f"the name was not resolved within {LOOKUP_S:.0f} s") from slow
        except OSError as failed:
            # Without a descriptor a resolver may say that there is no such name.
            if is_shortage(failed) or was_short(began_s):
                raise PageOutOfFiles() from failed
            return ()

    def _keep(self, host: str, done: asyncio.Future[tuple[IPAddress, ...]]) -> None:
        self._in_flight.pop(host, None)
        if done.cancelled():
            return
        failed = done.exception()
        if failed is not None and was_short(time.monotonic() - KEPT_FAILED_S):
            return  # it says nothing about the name
        self._store(host, () if failed else done.result())

    def _store(self, host: str, found: tuple[IPAddress, ...]) -> None:
        while len(self._kept) >= MAX_HOSTS:
            del self._kept[next(iter(self._kept))]
        self._kept[host] = Addresses(found, self._now() + (KEPT_S if found else KEPT_FAILED_S))


class DomainAllowlist(Policy):
    """The policy `inside`, minus addresses outside the newest task's domains."""

    def __init__(self, inside: Policy) -> None:
        super().__init__(None, proxy=inside.proxy)
        self._inside = inside
        self.blocked_requests = inside.blocked_requests
        self._budgets: Mapping[str, Any] = {}

    def narrow(self, budgets: Mapping[str, Any] | None) -> None:
        """Restrict the tab to the `allowedDomains` of these budgets from now on; None lifts it."""
        self._budgets = budgets or {}

    @property
    def root(self) -> Policy:
        return self._inside.root

    async def ask(self, url: str) -> None:
        """As `Policy.ask`; raise DomainBlocked outside the task's domains."""
        if not budgets.allows(self._budgets, url):
            raise DomainBlocked(without_credentials(url))
        await self._inside.ask(url)

    async def addresses(self, place: Place, url: str) -> tuple[IPAddress, ...]:
        """As `Policy.addresses`; `check` applies the allowlist."""
        return await self._inside.addresses(place, url)

    def known(self, url: str) -> bool | None:
        """As `Policy.known`."""
        return self._inside.known(url) if budgets.allows(self._budgets, url) else False

    def known_addresses(self, place: Place) -> tuple[IPAddress, ...] | None:
        """As `Policy.known_addresses`."""
        return self._inside.known_addresses(place)

    async def route(self, place: Place, url: str) -> Route:
        """As `Policy.route`; `check` applies the allowlist."""
        return await self._inside.route(place, url)

    def known_route(self, place: Place) -> Route | None:
        """As `Policy.known_route`."""
        return self._inside.known_route(place)

    def loopback_places(self) -> tuple[str, ...]:
        """As `Policy.loopback_places`."""
        return self._inside.loopback_places()
