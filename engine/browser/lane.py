"""What one browser context may reach through the proxy: a port of its own, and its policies.

Each context is given a port, because a browser asks for a proxy's credentials only with
requests that DevTools intercepts: a page that is loaded past the proxy could not load its
parts through it. Requests tell no tab, so that a lane allows what any of its policies does;
documents are judged tab by tab (`gate`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.browser.dialing import Connect, dial
from engine.browser.egress import Place, Policy
from engine.browser.proxy_wire import Client, Upstream
from engine.errors import AddressBlocked, PageError

if TYPE_CHECKING:
    from playwright.async_api import ProxySettings

    from engine.browser.addresses import IPAddress

MOST_CONNECTIONS = 512
ROUND_S = 15.0
HEAD_ROUNDS = 2  # 15 to 30 s for a head that was begun
IDLE_ROUNDS = 40  # ten minutes without a byte; a WebSocket may be silent for long
ANSWER_S = 15.0  # for the policy: more than its own limit
MOST_TROUBLES = 256
_NOBODYS = "it belongs to no task"


class Lane:
    """One listening port of the proxy. The proxy's loop runs it; `close` is for any thread."""

    def __init__(self, policies: Sequence[Policy], connect: Connect) -> None:
        """Made on the engine's loop, where the policies live."""
        self.port = 0
        self.odd = 0  # what spoke to the port and was no browser
        self._policies = tuple(policies)
        self._home = asyncio.get_running_loop()
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._clients: dict[Client, tuple[int, int]] = {}  # bytes at the last look, rounds since
        self._troubles: dict[Place, PageError] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Listen, on the proxy's loop."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Client(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._sweeping = loop.call_later(ROUND_S, self._sweep)

    def shut(self) -> None:
        """Listen no more and cut what is connected, on the proxy's loop."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.transport.abort()

    def settings(self) -> ProxySettings:
        """What a browser context is told: to use this lane for all but its own loopback start."""
        direct = (place for policy in self._policies for place in policy.loopback_places())
        bypass = ",".join(["<-loopback>", *dict.fromkeys(direct)])
        return {"server": f"http://127.0.0.1:{self.port}", "bypass": bypass}

    def allow(self, policies: Iterable[Policy]) -> None:
        """Judge by these from now on."""
        self._policies = tuple(dict.fromkeys(policies))

    def trouble(self, place: Place) -> PageError | None:
        """Why no connection to `place` was made when it was last asked for."""
        return self._troubles.get(place)

    def join(self, client: Client) -> bool:
        """Take a connection in; False: there are too many."""
        if len(self._clients) >= MOST_CONNECTIONS:
            return False
        self._clients[client] = (0, 0)
        return True

    def part(self, client: Client) -> None:
        """The connection is over."""
        self._clients.pop(client, None)

    async def reach(self, place: Place) -> Upstream:
        """A connection to `place`, to an address that was judged.

        Raises:
            PageError: it may not be reached, or its name was not found.
            OSError: nothing answers there.
        """
        try:
            found = self._known(place) or await self._ask(place)
            made = await dial(
                found, place.port, lambda: Upstream(place), Upstream.leave, self._connect
            )
        except (PageError, OSError) as failed:
            self._remember(place, failed)
            raise
        self._troubles.pop(place, None)
        return made

    def _known(self, place: Place) -> tuple[IPAddress, ...] | None:
        """The judged addresses, where a policy need not look the name up first.

        Raises:
            AddressBlocked: every policy knows them and allows none, or there is no policy.
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
        self._tell(place, refused)
        raise refused

    async def _ask(self, place: Place) -> tuple[IPAddress, ...]:
        if self._home.is_closed():
            raise ConnectionAbortedError("the engine has ended")
        asked = asyncio.run_coroutine_threadsafe(self._judge(place), self._home)
        async with asyncio.timeout(ANSWER_S):
            return await asyncio.wrap_future(asked)

    async def _judge(self, place: Place) -> tuple[IPAddress, ...]:
        """On the engine's loop: what the first policy says that allows it."""
        refused: PageError | None = None
        for policy in self._policies:
            try:
                return await policy.addresses(place, f"//{place}")
            except PageError as reason:
                refused = refused or reason
        refused = refused or AddressBlocked(f"//{place}", _NOBODYS)
        self._tell(place, refused)
        raise refused

    def _tell(self, place: Place, refused: PageError) -> None:
        if self._policies and isinstance(refused, AddressBlocked):
            self._policies[0].turned_away.note(str(place), refused.reason)

    def _remember(self, place: Place, failed: PageError | OSError) -> None:
        while len(self._troubles) >= MOST_TROUBLES:
            del self._troubles[next(iter(self._troubles))]
        self._troubles[place] = failed if isinstance(failed, PageError) else _as_page(failed)

    def _sweep(self) -> None:
        """End what has said nothing for too long; one look at all of them costs no timers."""
        for client, (before, silent) in list(self._clients.items()):
            rounds = silent + 1 if client.moved == before else 0
            self._clients[client] = (client.moved, rounds)
            if rounds >= (HEAD_ROUNDS if client.expects_head else IDLE_ROUNDS):
                client.transport.abort()
        self._sweeping = asyncio.get_running_loop().call_later(ROUND_S, self._sweep)


def _as_page(failed: OSError) -> PageError:
    if isinstance(failed, TimeoutError):
        return PageError("timeout", "the server did not answer")
    if isinstance(failed, ConnectionRefusedError):
        return PageError("connection", "connection refused")
    return PageError("connection", "the server cannot be reached")
