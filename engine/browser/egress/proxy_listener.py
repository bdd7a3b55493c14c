"""Proxy port of one browser context, with the policies that apply to it.

Each context has its own port, because a browser sends proxy credentials only with requests that
DevTools intercepts: a page loaded past the proxy could not load its resources through it.
Requests carry no tab, so a listener allows everything that any of its policies allows; documents
are checked tab by tab (`navigation_filter`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from engine.browser.egress.connecting import Connect, dial
from engine.browser.egress.egress_policy import Place, Policy
from engine.browser.egress.proxy_connection import Client, Upstream
from engine.model.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from playwright.async_api import ProxySettings

    from engine.browser.egress.public_addresses import IPAddress

MOST_CONNECTIONS = 512
ROUND_S = 15.0
HEAD_ROUNDS = 2  # 15 to 30 s for a head, which browsers send at once
BACKLOG = 256  # accepted before any of them is read; less than the limit of connections
CROWD = 32  # connections without a request; a browser has a few
CHECK_S = 0.5  # poll interval for the owners of connections
IDLE_ROUNDS = 40  # ten minutes without a byte, because a WebSocket may be idle for long
ANSWER_S = 15.0  # for the policy: more than its own limit
MAX_FAILURES = 256
Ports = frozenset[int] | None
_NOBODYS = "it belongs to no task"


def unknown_ports() -> Ports:
    """Default where the owners of connections are unknown."""
    return None


class ProxyListener:
    """One listening port of the proxy, on the proxy's loop; any thread may call `close`."""

    def __init__(
        self,
        policies: Sequence[Policy],
        connect: Connect,
        ports: Callable[[], Ports] = unknown_ports,
    ) -> None:
        """Create the listener on the engine's loop, which owns the policies.

        `ports` returns the ports of the browser's own connections, where the system reports them.
        """
        self.port = 0
        self.invalid_requests = 0  # clients of the port that were no browser
        self.foreign_connections = 0  # connections refused as another program's
        self._policies = tuple(policies)
        self._engine_loop = asyncio.get_running_loop()
        self._connect = connect
        self._server: asyncio.Server | None = None
        # Oldest first: bytes at the last check, rounds since, and rounds without a whole head.
        self._clients: dict[Client, tuple[int, int, int]] = {}
        self._ports = ports
        self._checking: asyncio.Task[None] | None = None
        self._failures: dict[Place, PageError] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Listen, on the proxy's loop."""
        loop = asyncio.get_running_loop()
        # Two steps: cancelled after its socket is bound, create_server would leave the port open.
        self._server = await loop.create_server(
            lambda: Client(self), "127.0.0.1", 0, backlog=BACKLOG, start_serving=False
        )
        self.port = self._server.sockets[0].getsockname()[1]
        await self._server.start_serving()
        self._sweeping = loop.call_later(ROUND_S, self._sweep)

    def shut(self) -> None:
        """Stop listening and abort all connections, on the proxy's loop."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._checking is not None:
            self._checking.cancel()
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.transport.abort()

    def settings(self) -> ProxySettings:
        """Return a context's proxy settings: the listener, bypassed for its loopback start."""
        direct = (place for policy in self._policies for place in policy.loopback_places())
        bypass = ",".join(["<-loopback>", *dict.fromkeys(direct)])
        return {"server": f"http://127.0.0.1:{self.port}", "bypass": bypass}

    def allow(self, policies: Iterable[Policy]) -> None:
        """Replace the policies."""
        self._policies = tuple(dict.fromkeys(policies))

    def last_failure(self, place: Place) -> PageError | None:
        """Return why the last connection to `place` failed, if it did."""
        return self._failures.get(place)

    def accept(self, client: Client) -> bool:
        """Accept a connection, if necessary in place of the oldest silent one; False: full."""
        silent = [each for each in self._clients if not each.has_asked]
        if len(silent) >= CROWD and self._checking is None:
            self._checking = asyncio.create_task(
                self._abort_foreign(), name="abort foreign connections"
            )
        if len(self._clients) >= MOST_CONNECTIONS:
            if not silent:
                return False
            self._drop(silent[0])
        client.joined_s = time.monotonic()
        self._clients[client] = (0, 0, 0)
        return True

    def _drop(self, client: Client) -> None:
        del self._clients[client]
        client.transport.abort()

    async def _abort_foreign(self) -> None:
        """Abort connections that belong to another program than the browser."""
        try:
            began_s = time.monotonic()
            ours = await asyncio.to_thread(self._ports)
            for client in list(self._clients) if ours is not None else ():
                # The system was not queried about later connections.
                if client.joined_s < began_s and ours is not None and client.port not in ours:
                    self.foreign_connections += 1
                    self._drop(client)
            await asyncio.sleep(CHECK_S)
        finally:
            self._checking = None

    def remove(self, client: Client) -> None:
        """Remove a closed connection."""
        self._clients.pop(client, None)

    async def connect(self, place: Place) -> Upstream:
        """Connect to a checked address of `place`.

        Raises:
            PageError: the place is blocked, or its name was not found.
            OSError: nothing responds there.
        """
        try:
            found = self._known(place) or await self._ask(place)
            made = await dial(
                found, place.port, lambda: Upstream(place), Upstream.leave, self._connect
            )
        except (PageError, OSError) as failed:
            self._store_failure(place, failed)
            raise
        self._failures.pop(place, None)
        return made

    def _known(self, place: Place) -> tuple[IPAddress, ...] | None:
        """Return the checked addresses if no policy needs a lookup.

        Raises:
            AddressBlocked: every policy has cached addresses and allows none, or there is no
                policy.
        """
        refused: AddressBlocked | None = None
        unknown = False
        for policy in self._policies:
            try:
                found = policy.known_addresses(place)
            except AddressBlocked as reason:
                refused = refused or reason
                continue
            if found:
                return found
            unknown = True
        if unknown:
            return None
        refused = refused or AddressBlocked(f"//{place}", _NOBODYS)
        self._report(place, refused)
        raise refused

    async def _ask(self, place: Place) -> tuple[IPAddress, ...]:
        if self._engine_loop.is_closed():
            raise ConnectionAbortedError("the engine has ended")
        asked = asyncio.run_coroutine_threadsafe(self._check(place), self._engine_loop)
        async with asyncio.timeout(ANSWER_S):
            return await asyncio.wrap_future(asked)

    async def _check(self, place: Place) -> tuple[IPAddress, ...]:
        """Return, on the engine's loop, the addresses from the first policy that allows them."""
        refused: PageError | None = None
        for policy in self._policies:
            try:
                return await policy.addresses(place, f"//{place}")
            except PageError as reason:
                refused = refused or reason
        refused = refused or AddressBlocked(f"//{place}", _NOBODYS)
        self._report(place, refused)
        raise refused

    def _report(self, place: Place, refused: PageError) -> None:
        if self._policies and isinstance(refused, AddressBlocked):
            self._policies[0].blocked_requests.note(str(place), refused.reason)

    def _store_failure(self, place: Place, failed: PageError | OSError) -> None:
        while len(self._failures) >= MAX_FAILURES:
            del self._failures[next(iter(self._failures))]
        self._failures[place] = failed if isinstance(failed, PageError) else _as_page(failed)

    def _sweep(self) -> None:
        """Abort idle connections; one loop over all of them needs no timers."""
        for client, (before, rounds, headless_rounds) in list(self._clients.items()):
            silent = rounds + 1 if client.moved == before else 0
            headless = headless_rounds + 1 if client.expects_head else 0
            self._clients[client] = (client.moved, silent, headless)
            if headless >= HEAD_ROUNDS or silent >= IDLE_ROUNDS:
                client.transport.abort()
        self._sweeping = asyncio.get_running_loop().call_later(ROUND_S, self._sweep)


def _as_page(failed: OSError) -> PageError:
    if isinstance(failed, TimeoutError):
        return PageError("timeout", "the server did not answer")
    if isinstance(failed, ConnectionRefusedError):
        return PageError("connection", "connection refused")
    return PageError("connection", "the server cannot be reached")
