"""Proxy port of one browser context, with the policies that apply to it.

Each context has its own port, because a browser sends proxy credentials only with requests that
DevTools intercepts: a page loaded past the proxy could not load its resources through it.
Requests carry no tab, so a listener allows everything that any of its policies allows; documents
are checked tab by tab (`navigation_filter`).

A tunnel (https, WebSocket) is relayed unchanged. Of plain http only the requests are parsed, to
know the destination of each and the beginning of the next; responses are relayed raw: a browser
sends one request at a time, so that a new request means the last response is complete. Only the
interim heads (1xx) before a response are counted, and a connection with too many is closed. A
failed connection ends without a response, which would be mistaken for the page.

A browser opens few connections to one place. A page can hold all of them, also after it was left
(`fetch` with `keepalive`), and the requests of other pages then wait inside the browser. A listener
notices that from outside: while all connections are in use, nothing is sent (`withheld`).

With an upstream proxy (`Policy.proxy`) the listener connects to that instead (`upstream`). An
answer of plain http that may be a page of the proxy's own is held until the proxy was asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.egress import public_addresses
from engine.egress.connecting import Connect, dial
from engine.egress.egress_policy import Place, Policy, Route, place_of
from engine.egress.proxy_request import (
    END_OF_HEAD,
    MAX_HEAD_BYTES,
    AnswerStart,
    BadHead,
    Body,
    Head,
    TooManyInterim,
    absolute,
    parse,
)
from engine.egress.upstream import DENIED, DOUBTFUL, UpstreamDialer, authorization
from engine.model.errors import AddressBlocked, PageError, PageOutOfFiles, ProxyDenied
from engine.model.listening import stop_accepting
from engine.model.process_limits import is_shortage

if TYPE_CHECKING:
    from engine.model.proxies import UpstreamProxy

MOST_CONNECTIONS = 512
ROUND_S = 15.0
HEAD_ROUNDS = 2  # 15 to 30 s for a head, which browsers send at once
BACKLOG = 256  # accepted before any of them is read; less than the limit of connections
CROWD = 32  # connections without a request; a browser has a few
CHECK_S = 0.5  # poll interval for the owners of connections
IDLE_ROUNDS = 40  # ten minutes without a byte, because a WebSocket may be idle for long
ANSWER_S = 15.0  # for the policy: more than its own limit
MAX_PLACES = 256  # whose last failure or request is known
MAX_PEERS = 5_000  # places whose address is known
STALL_S = 3.0  # without a request to a place; a page sends its first one at once
MOST_TO_PLACE = 6  # Chromium's limits of connections in one context
MOST_IN_ALL = 32
MAX_STALLS = 100
Ports = frozenset[int] | None
_NOBODYS = "it belongs to no task"
LINGER_S = 20.0
_END_OF_HEAD = b"\r\n\r\n"
_OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_UNMADE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_ANSWER = b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def unknown_ports() -> Ports:
    """Default where the owners of connections are unknown."""
    return None


class Stall(NamedTuple):
    """A time without a request to a place; `full`: all connections to it were in use."""

    place: Place
    start_s: float
    end_s: float
    full: bool

    def covers(self, start_s: float, end_s: float) -> bool:
        """Return whether it lasted long enough between two moments of the monotonic clock."""
        return min(self.end_s, end_s) - max(self.start_s, start_s) >= STALL_S


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
        self.has_bypass = True  # the browser opens the loopback starts directly
        self._policies = tuple(policies)
        self._engine_loop = asyncio.get_running_loop()
        self._connect = connect
        self._dialer = UpstreamDialer(connect)
        self._server: asyncio.Server | None = None
        # Oldest first: bytes at the last check, rounds since, and rounds without a whole head.
        self._clients: dict[Client, tuple[int, int, int]] = {}
        self._ports = ports
        self._checking: asyncio.Task[None] | None = None
        self._failures: dict[Place, PageError] = {}
        self._peers: dict[Place, str] = {}  # whom it connected to; "": to several
        self._sent_s: dict[Place, float] = {}  # when a request was last sent to a place
        self._stalls: deque[Stall] = deque(maxlen=MAX_STALLS)
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_shut = False

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
        self._is_shut = True
        if self._server is not None:
            stop_accepting(self._server)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._close)  # late enough for every transport

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.transport.abort()
        self._dialer.abort()

    @property
    def server(self) -> str:
        """Address of the port, as a proxy setting."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bypass(self) -> str:
        """The proxy setting for addresses that are opened directly: the loopback starts."""
        return ",".join(["<-loopback>", *self._direct_places()])

    def is_bypassed(self, place: Place) -> bool:
        """Return whether the browser opens `place` directly, so that nothing is known of it."""
        return self.has_bypass and str(place) in self._direct_places()

    def _direct_places(self) -> dict[str, None]:
        policies = self._policies
        return dict.fromkeys(place for policy in policies for place in policy.loopback_places())

    def allow(self, policies: Iterable[Policy]) -> None:
        """Replace the policies."""
        self._policies = tuple(dict.fromkeys(policies))

    def last_failure(self, place: Place) -> PageError | None:
        """Return why the last connection to `place` failed, if it did."""
        return self._failures.get(place)

    def accept(self, client: Client) -> bool:
        """Accept a connection, if necessary in place of the oldest silent one; False: full."""
        if self._is_shut:  # accepted while the listener ended
            return False
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
        if client.place is not None:
            self._note_stall(client.place, time.monotonic())  # with this connection
        self._clients.pop(client, None)

    def note_sent(self, place: Place) -> None:
        """Record that the browser sends something to `place`."""
        now_s = time.monotonic()
        self._note_stall(place, now_s)
        while place not in self._sent_s and len(self._sent_s) >= MAX_PLACES:
            del self._sent_s[next(iter(self._sent_s))]
        self._sent_s[place] = now_s

    def withheld(self, place: Place, since_s: float, *, begun: bool) -> bool:
        """Return whether a page may have waited for connections that other pages held.

        `begun`: the page of `place` has arrived, and may lack something from anywhere.
        """
        now_s = time.monotonic()
        running = [self._stall(to, now_s) for to in list(self._sent_s)]
        stalls = [stall for stall in (*self._stalls, *running) if stall is not None]
        if any(stall.full and stall.covers(since_s, now_s) for stall in stalls):
            return True
        return not begun and any(
            stall.place == place and stall.covers(since_s, since_s + STALL_S) for stall in stalls
        )

    def _note_stall(self, place: Place, now_s: float) -> None:
        stall = self._stall(place, now_s)
        if stall is not None:
            self._stalls.append(stall)

    def _stall(self, place: Place, now_s: float) -> Stall | None:
        """Return the time since the last request to `place`, if it is long."""
        sent_s = self._sent_s.get(place, now_s)
        if now_s - sent_s < STALL_S:
            return None
        in_use = [client.place for client in list(self._clients) if client.waits]
        full = in_use.count(place) >= MOST_TO_PLACE or len(in_use) >= MOST_IN_ALL
        return Stall(place, sent_s, now_s, full)

    async def connect(self, place: Place, *, tunnel: bool) -> Upstream:
        """Connect to a checked address of `place`, or to its proxy.

        `tunnel`: for anything but requests of plain http.

        Raises:
            PageError: the place is blocked, its name was not found, or its proxy failed.
            OSError: nothing responds there.
        """
        try:
            route = self._known(place) or await self._ask(place)
            made = await self._dial(place, route, tunnel=tunnel)
        except (PageError, OSError) as failed:
            self.store_failure(place, failed)
            raise
        if made.proxy is None:  # else the proxy was reached, and the answer decides
            self.clear_failure(place)
        return made

    async def _dial(self, place: Place, route: Route, *, tunnel: bool) -> Upstream:
        if route.proxy is None:
            made = await dial(
                route.found, place.port, lambda: Upstream(place), Upstream.leave, self._connect
            )
            self._note_peer(place, made.transport)
            return made
        asks_proxy = None if tunnel or route.proxy.is_socks else route.proxy
        # The proxy gets the checked address, where it may not resolve the name itself.
        asked = Place(public_addresses.host(route.found[0]), place.port) if route.found else place
        return await self._dialer.connect(
            place, route, lambda: Upstream(place, asks_proxy, asked), tunnel=tunnel
        )

    async def own_failure(self, upstream: Upstream, answer: Answer) -> PageError | None:
        """Return why an upstream proxy did not get a page; None: the answer is the site's."""
        assert upstream.proxy is not None
        return await self._dialer.own_failure(
            upstream.proxy, upstream.asked, answer.head, answer.status
        )

    def _known(self, place: Place) -> Route | None:
        """Return the checked route if no policy needs a lookup.

        Raises:
            AddressBlocked: every policy has cached addresses and allows none, or there is no
                policy.
        """
        refused: AddressBlocked | None = None
        unknown = False
        for policy in self._policies:
            try:
                route = policy.known_route(place)
            except AddressBlocked as reason:
                refused = refused or reason
                continue
            if route is not None:
                return route
            unknown = True
        if unknown:
            return None
        refused = refused or AddressBlocked(f"//{place}", _NOBODYS)
        self._report(place, refused)
        raise refused

    async def _ask(self, place: Place) -> Route:
        if self._engine_loop.is_closed():
            raise ConnectionAbortedError("the engine has ended")
        asked = asyncio.run_coroutine_threadsafe(self._check(place), self._engine_loop)
        async with asyncio.timeout(ANSWER_S):
            return await asyncio.wrap_future(asked)

    async def _check(self, place: Place) -> Route:
        """Return, on the engine's loop, the route of the first policy that allows the place."""
        refused: PageError | None = None
        for policy in self._policies:
            try:
                return await policy.route(place, f"//{place}")
            except PageError as reason:
                refused = refused or reason
        refused = refused or AddressBlocked(f"//{place}", _NOBODYS)
        self._report(place, refused)
        raise refused

    def _report(self, place: Place, refused: PageError) -> None:
        if self._policies and isinstance(refused, AddressBlocked):
            self._policies[0].blocked_requests.note(str(place), refused.reason)

    def store_failure(self, place: Place, failed: PageError | OSError) -> None:
        """Keep why a connection to `place` failed, for the page that needed it."""
        while len(self._failures) >= MAX_PLACES:
            del self._failures[next(iter(self._failures))]
        self._failures[place] = failed if isinstance(failed, PageError) else _as_page(failed)

    def _note_peer(self, place: Place, transport: asyncio.Transport) -> None:
        if place not in self._peers and len(self._peers) >= MAX_PEERS:
            return  # of a place that was forgotten it would not be known whether it has moved
        name = transport.get_extra_info("peername")
        address = str(name[0]) if name else ""
        if self._peers.get(place, address) != address:
            address = ""
        self._peers[place] = address

    def peer(self, url: str) -> str:
        """Return the address that all connections for `url` went to; "" if it is not known.

        Through an upstream proxy it is not.
        """
        try:
            place = place_of(url)
        except AddressBlocked:
            return ""
        if self.is_bypassed(place):
            number = public_addresses.literal(place.host)
            return "" if number is None else str(number)
        return self._peers.get(place, "")

    def clear_failure(self, place: Place) -> None:
        """Forget the last failure: `place` was reached."""
        self._failures.pop(place, None)

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
    if is_shortage(failed):
        return PageOutOfFiles()
    if isinstance(failed, TimeoutError):
        return PageError("timeout", "the server did not answer")
    if isinstance(failed, ConnectionRefusedError):
        return PageError("connection", "connection refused")
    return PageError("connection", "the server cannot be reached")


class Answer(NamedTuple):
    """Status and head of a whole answer."""

    status: int
    head: bytes


class Upstream(asyncio.Protocol):
    """The server's side of a connection; paused until the client side attaches.

    `proxy` gets requests of plain http in absolute form, for the place `asked` there.
    """

    transport: asyncio.Transport

    def __init__(
        self, place: Place, proxy: UpstreamProxy | None = None, asked: Place | None = None
    ) -> None:
        self.place = place
        self.asked = asked or place
        self.proxy = proxy
        self.early = b""  # arrived before the connection was handed over
        self.is_over = False  # nothing follows the early bytes
        self._held = bytearray()  # an answer of the proxy until it is known to be the site's
        self._is_doubted = False  # the proxy is asked about what is held
        self._client: Client | None = None
        self._start: AnswerStart | None = None  # while the final head has not begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()  # a server may send before the browser is ready

    def serve(self, client: Client) -> None:
        """Relay to `client` from now on."""
        self._client = client
        early, self.early = self.early, b""
        if early:
            self.data_received(early)
        if self.is_over:
            self._client = None
            client.server_lost()
        else:
            self.resume_reading()

    def ask(self, head: bytes) -> None:
        """Send the head of a request, and expect its answer."""
        self._start = AnswerStart()
        if self.proxy is not None:
            head = absolute(head, self.asked, authorization(self.proxy))
        self.transport.write(head)

    def leave(self) -> None:
        """Close the connection; discard incoming data, flush outgoing data."""
        self._client = None
        if not self.transport.is_closing():  # one with TLS is unusable after a second close
            self.transport.close()
        if self.transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._client is None:
            return
        if self._is_doubted:
            self._held += data
            return
        if self._start is not None:
            data = self._until_final(self._client, self._start, data)
            if not data:
                return
        self._relay(self._client, data)

    def _relay(self, client: Client, data: bytes) -> None:
        client.moved += len(data)
        client.waits = False
        client.transport.write(data)

    def _until_final(self, client: Client, start: AnswerStart, data: bytes) -> bytes:
        """Look at the beginning of an answer; return what is relayed of it now."""
        try:
            is_final = start.is_final(data)
        except TooManyInterim:
            client.transport.abort()
            self.leave()
            return b""
        if self.proxy is None:
            self._start = None if is_final else start
            return data
        self._held += data
        if not is_final:
            return b""
        if start.status == DENIED:  # a browser would show it as the page
            client.refuse(ProxyDenied())
            self.leave()
            return b""
        if start.status in DOUBTFUL:
            end = END_OF_HEAD.search(self._held, start.interim_bytes)
            if end is not None:
                self._is_doubted = True
                self.transport.pause_reading()
                head = bytes(self._held[start.interim_bytes : end.start()])
                client.ask_about(self, Answer(start.status, head))
                return b""
            if len(self._held) <= start.interim_bytes + MAX_HEAD_BYTES:
                return b""
        return self._release(client)

    def _release(self, client: Client) -> bytes:
        """Return what was held; the rest of the answer is relayed as it comes."""
        client.note_answer(self.place)
        self._start, self._is_doubted = None, False
        held = bytes(self._held)
        self._held.clear()
        return held

    def trust(self) -> None:
        """Relay the answer that was doubted: it is the site's."""
        client = self._client
        if client is None:
            return
        self._relay(client, self._release(client))
        if self.is_over:
            self._client = None
            client.server_lost()
        else:
            self.resume_reading()

    def resume_reading(self) -> None:
        """Go on reading, unless an answer is doubted."""
        if not self._is_doubted and not self.transport.is_closing():
            self.transport.resume_reading()

    def eof_received(self) -> bool:
        if not self.transport.can_write_eof():  # TLS has no half-close
            return False
        return self._client is not None and self._client.server_ended()

    def pause_writing(self) -> None:
        if self._client is not None:
            self._client.hold()

    def resume_writing(self) -> None:
        if self._client is not None:
            self._client.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_doubted:
            self.is_over = True
            return
        client, self._client = self._client, None
        if client is not None:
            if self._held:  # an incomplete head
                self._relay(client, self._release(client))
            client.server_lost()


class Client(asyncio.Protocol):
    """The browser's side of a connection: parses heads, connects, relays."""

    transport: asyncio.Transport

    def __init__(self, listener: ProxyListener) -> None:
        self.moved = 0  # bytes, both ways; the listener detects idle connections by it
        self.has_asked = False  # a whole head has arrived, as browsers send it at once
        self.joined_s = 0.0
        self.place: Place | None = None  # the destination of its last request
        self.waits = False  # nothing has arrived since the browser last sent something
        self._listener = listener
        self._buffer = bytearray()
        self._body: Body | None = None
        self._upstream: Upstream | None = None
        self._tunnel: asyncio.Transport | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None  # about an answer of a proxy

    @property
    def expects_head(self) -> bool:
        """Whether a head is incomplete, or the first one has not begun."""
        return not self.has_asked or (bool(self._buffer) and self._dialing is None)

    @property
    def port(self) -> int:
        """The browser's port of the connection; 0 once it is closed."""
        name = self.transport.get_extra_info("peername")
        return int(name[1]) if name else 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self._listener.accept(self):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.moved += len(data)
        if self.place is not None:
            self._listener.note_sent(self.place)
        self.waits = True
        if self._tunnel is not None:
            self._tunnel.write(data)
            return
        self._buffer += data
        self._advance()

    def eof_received(self) -> bool:
        """Half-close a tunnel; close plain http."""
        if self._tunnel is None or not self._tunnel.can_write_eof():  # TLS has no half-close
            return False
        self._tunnel.write_eof()
        return True

    def pause_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.remove(self)
        for task in (self._dialing, self._asking):
            if task is not None:
                task.cancel()
        self._leave_upstream()

    def hold(self) -> None:
        """Pause reading: the server's buffer is full."""
        self.transport.pause_reading()

    def go_on(self) -> None:
        """Resume reading: the server's buffer has room."""
        if self._dialing is None:
            self.transport.resume_reading()

    def server_ended(self) -> bool:
        """Handle the server's end of data; return True to keep a tunnel half open."""
        if self._tunnel is None or self.transport.is_closing():
            return False
        self.transport.write_eof()
        return True

    def note_answer(self, place: Place) -> None:
        """Note that the site of `place` has answered, through its proxy."""
        self._listener.clear_failure(place)

    def ask_about(self, upstream: Upstream, answer: Answer) -> None:
        """Relay a held answer if it is the site's; else close for the proxy's reason."""
        loop = asyncio.get_running_loop()
        self._asking = loop.create_task(
            self._judge(upstream, answer), name="ask a proxy about its answer"
        )

    async def _judge(self, upstream: Upstream, answer: Answer) -> None:
        failed = await self._listener.own_failure(upstream, answer)
        self._asking = None
        if failed is None:
            upstream.trust()
        else:
            self.refuse(failed)
            upstream.leave()

    def refuse(self, failed: PageError) -> None:
        """Close without an answer, for this reason."""
        if self.place is not None:
            self._listener.store_failure(self.place, failed)
        self.transport.abort()

    def server_lost(self) -> None:
        """Close after the server's remaining data is delivered."""
        self._upstream = None
        self.transport.close()

    def _advance(self) -> None:
        try:
            while self._dialing is None and self._step():
                pass
        except BadHead as bad:
            self._listener.invalid_requests += 1
            self.transport.write(_ANSWER % bad.status)
            self.transport.close()

    def _step(self) -> bool:
        """Process one part of the buffer; return False if more data is needed."""
        if self._body is not None and self._upstream is not None:
            taken = self._body.take(self._buffer)
            if taken:
                self._upstream.transport.write(bytes(self._buffer[:taken]))
                del self._buffer[:taken]
            if not self._body.done:
                return False
            self._body = None
        end = self._buffer.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if end < len(_END_OF_HEAD):
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadHead(b"431 Request Header Fields Too Large")
            return False
        head = parse(bytes(self._buffer[:end]))
        self.has_asked = True
        del self._buffer[:end]
        self._begin(head)
        return True

    def _begin(self, head: Head) -> None:
        self.place = head.place
        self._listener.note_sent(head.place)
        upstream = self._upstream
        same = upstream is not None and not head.tunnel and upstream.place == head.place
        if upstream is not None and same and not upstream.transport.is_closing():
            self._send(head, upstream)
            return
        self._leave_upstream()
        self.transport.pause_reading()
        loop = asyncio.get_running_loop()
        self._dialing = loop.create_task(self._dial(head), name="connect for the browser")

    async def _dial(self, head: Head) -> None:
        try:
            upstream = await self._listener.connect(head.place, tunnel=head.tunnel)
        except (PageError, OSError):
            if head.tunnel:
                self.transport.write(_UNMADE)
            self.transport.close()
            return
        finally:
            self._dialing = None
        self._upstream = upstream
        # The connection may have closed before it was attached.
        if upstream.transport.is_closing() and not upstream.early:
            self._leave_upstream()
            self.transport.close()
            return
        if head.tunnel:
            self._open_tunnel(upstream)
        else:
            self._send(head, upstream)
        upstream.serve(self)
        self.transport.resume_reading()
        if not head.tunnel:
            self._advance()

    def _open_tunnel(self, upstream: Upstream) -> None:
        self.transport.write(_OPENED)
        self._tunnel = upstream.transport
        if self._buffer:
            self._tunnel.write(bytes(self._buffer))
            self._buffer.clear()

    def _send(self, head: Head, upstream: Upstream) -> None:
        upstream.ask(head.forward)
        self._body = Body(head.body_bytes) if head.body_bytes else None

    def _leave_upstream(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.leave()
