"""The proxy alone: connections, relaying, and limits."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import psutil
import pytest

from engine.egress import connecting
from engine.egress import proxy_listener as listeners
from engine.egress.egress_policy import KEPT_S, MOST, BlockedRequests, Place, Policy, Refusal
from engine.egress.proxy import Proxy
from engine.egress.proxy_listener import MAX_STALLS, STALL_S, ProxyListener
from engine.egress.proxy_request import MAX_HEAD_BYTES, MAX_INTERIM_HEADS
from engine.model.listening import close_server
from tests.browser.test_egress import LOOPBACK_SPELLINGS, METADATA, PRIVATE
from tests.egress.conftest import PUBLIC, START, World
from tests.support.engines import until
from tests.support.ports import free_port

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OTHER = "11.0.0.2"
GET = b"GET http://trap.example/%b HTTP/1.1\r\nHost: trap.example\r\n\r\n"


@asynccontextmanager
async def laned(world: World, *policies: Policy) -> AsyncIterator[tuple[ProxyListener, Proxy]]:
    proxy = Proxy(world.through)
    try:
        yield await proxy.open_listener(policies or (world.policy(),)), proxy
    finally:
        await proxy.close()


@asynccontextmanager
async def serving(world: World, serve: Serve, address: str = PUBLIC) -> AsyncIterator[None]:
    """A server behind a public address of this world."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    world.routes[address] = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        await close_server(server)
        await server.wait_closed()


@asynccontextmanager
async def client(
    listener: ProxyListener,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.wait({asyncio.ensure_future(_closed(writer))})


async def _closed(writer: asyncio.StreamWriter) -> None:
    try:
        await writer.wait_closed()
    except OSError:
        return


async def said(listener: ProxyListener, request: bytes) -> bytes:
    """All that comes back for one request until the connection ends."""
    async with client(listener) as (reader, writer):
        writer.write(request)
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each head with what it was asked."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(head), head))


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


@pytest.mark.parametrize("host", LOOPBACK_SPELLINGS + PRIVATE + METADATA)
async def test_no_spelling_of_a_private_address_is_connected_to(world: World, host: str) -> None:
    plain = host if host.isascii() and "%" not in host else "127.0.0.1"
    async with laned(world) as (listener, _):
        assert await said(listener, f"GET http://{plain}:81/ HTTP/1.1\r\n\r\n".encode()) == b""
        tunnel = await said(listener, f"CONNECT {plain}:443 HTTP/1.1\r\n\r\n".encode())
        assert tunnel.startswith(b"HTTP/1.1 502 ")
    assert not world.reached


async def test_a_refusal_is_kept_with_its_reason_and_how_often(world: World) -> None:
    policy = world.policy()
    async with laned(world, policy) as (listener, _):
        for _ in range(3):
            await said(listener, b"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n")
    assert policy.blocked_requests.counts == {Refusal("169.254.169.254:80", "metadata address"): 3}


async def test_the_connection_goes_to_the_address_that_was_judged(world: World) -> None:
    async with (
        serving(world, echo),
        laned(world) as (listener, _),
        client(listener) as (reader, writer),
    ):
        writer.write(GET % b"a")
        assert (await answer(reader)).startswith(b"GET /a HTTP/1.1\r\nHost: trap.example\r\n")
    assert world.reached == [(PUBLIC, 80)]
    assert world.asked == ["trap.example"]


async def test_a_connection_is_reused_for_one_host_only(world: World) -> None:
    world.names["other.example"] = [OTHER]
    async with (
        serving(world, echo),
        serving(world, echo, OTHER),
        laned(world) as (listener, _),
        client(listener) as (reader, writer),
    ):
        for path in (b"1", b"2"):
            writer.write(GET % path)
            assert (await answer(reader)).startswith(b"GET /" + path)
        writer.write(b"GET http://other.example/3 HTTP/1.1\r\n\r\n")
        assert b"Host: other.example" in await answer(reader)
    assert world.reached == [(PUBLIC, 80), (OTHER, 80)]


async def test_a_body_is_not_taken_for_a_request(world: World) -> None:
    hidden = b"GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n"
    got = asyncio.Queue[bytes]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.put_nowait(await reader.readexactly(len(hidden)))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        got.put_nowait(await reader.readuntil(b"\r\n\r\n"))

    post = b"POST http://trap.example/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    async with serving(world, take), laned(world) as (listener, _), client(listener) as (_, writer):
        writer.write(post + hidden + GET % b"next")
        assert await got.get() == hidden
        assert (await got.get()).startswith(b"GET /next ")
    assert not world.strangers


async def test_what_is_no_proxy_request_gets_400_and_nothing_more(world: World) -> None:
    async with laned(world) as (listener, _):
        told = await said(listener, b"GET / HTTP/1.1\r\nHost: trap.example\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 400 ")
        assert b"\r\n\r\n" in told
        assert told.endswith(b"\r\n\r\n")
        # One byte too many, because an answer is lost if the port closes with bytes unread.
        long = b"GET /".ljust(MAX_HEAD_BYTES + 1, b"a")
        assert (await said(listener, long)).startswith(b"HTTP/1.1 431 ")
    assert not world.reached


async def test_a_tunnel_goes_on_when_one_side_has_said_all(world: World) -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%d" % len(await reader.read()))  # until the browser's side ends

    async with (
        serving(world, count),
        laned(world) as (listener, _),
        client(listener) as (reader, writer),
    ):
        writer.write(b"CONNECT trap.example:443 HTTP/1.1\r\n\r\n" + b"early")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"x" * 100_000)
        writer.write_eof()
        assert await reader.read() == b"100005"


async def test_a_server_that_speaks_first_is_heard_after_the_tunnel_is_open(world: World) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()

    async with serving(world, greet), laned(world) as (listener, _):
        told = await said(listener, b"CONNECT trap.example:443 HTTP/1.1\r\n\r\n")
    assert told == b"HTTP/1.1 200 Connection established\r\n\r\nhello"


async def test_who_does_not_read_holds_the_server_up_and_not_the_memory(world: World) -> None:
    sent = [0]
    full = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while sent[0] < 256 << 20:
            writer.write(b"x" * (1 << 20))
            sent[0] += 1 << 20
            try:
                async with asyncio.timeout(0.5):
                    await writer.drain()
            except TimeoutError:
                full.set()
                return

    async with (
        serving(world, flood),
        laned(world) as (listener, _),
        client(listener) as (_, writer),
    ):
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        writer.write(GET % b"")
        await full.wait()
    assert sent[0] < 64 << 20, "it was taken in although nobody read it"


async def test_a_server_that_sends_interim_heads_without_end_is_let_go(world: World) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n"
    ended = asyncio.Event()

    async def hints(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for count in (MAX_INTERIM_HEADS, MAX_INTERIM_HEADS):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(hint * count)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(head), head))
        await reader.readuntil(b"\r\n\r\n")
        try:
            while True:
                writer.write(hint)
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with (
        serving(world, hints),
        laned(world) as (listener, _),
        client(listener) as (reader, writer),
    ):
        for name in (b"one", b"two"):
            writer.write(GET % name)
            for _ in range(MAX_INTERIM_HEADS):
                await reader.readuntil(b"\r\n\r\n")
            assert name in await answer(reader)
        writer.write(GET % b"three")
        got = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(60):
                while more := await reader.read(1 << 16):
                    got += len(more)
        assert got <= MAX_INTERIM_HEADS * len(hint), "what exceeds the limit is not relayed"
        async with asyncio.timeout(60):
            await ended.wait()


async def test_extra_connections_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "MOST_CONNECTIONS", 2)
    async with (
        serving(world, echo),
        laned(world) as (listener, _),
        client(listener) as (first, one),
        client(listener) as (second, two),
    ):
        for reader, writer in ((first, one), (second, two)):
            writer.write(GET % b"")
            await answer(reader)
        assert await said(listener, GET % b"") == b""


async def test_the_oldest_idle_client_closes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "MOST_CONNECTIONS", 3)
    async with (
        serving(world, echo),
        laned(world) as (listener, _),
        client(listener) as (asked, asking),
        client(listener) as (oldest, _),
        client(listener) as (newer, _),
    ):
        asking.write(GET % b"")
        await answer(asked)
        async with client(listener) as (reader, writer):
            writer.write(GET % b"")
            await answer(reader)
            assert await oldest.read() == b""
            asking.write(GET % b"")
            await answer(asked)
            assert not newer.at_eof()


async def test_foreign_clients_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "CROWD", 3)
    own: set[int] = set()
    proxy = Proxy(world.through)
    async with serving(world, echo), contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(proxy.close)
        listener = await proxy.open_listener((world.policy(),), ports=lambda: frozenset(own))
        ours = await stack.enter_async_context(client(listener))
        own.add(ours[1].get_extra_info("sockname")[1])
        foreign_connections = [await stack.enter_async_context(client(listener)) for _ in range(4)]
        for reader, _ in foreign_connections[:3]:
            assert await reader.read() == b""
        assert listener.foreign_connections >= 3
        ours[1].write(GET % b"")
        await answer(ours[0])


async def test_a_slow_request_head_times_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "ROUND_S", 0.05)
    async with laned(world) as (listener, _), client(listener) as (reader, writer):
        with contextlib.suppress(OSError):
            while not (reader.at_eof() or reader.exception() or writer.is_closing()):
                writer.write(b"G")
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("begun", [b"GET http://trap.ex", b""])
async def test_who_says_nothing_is_let_go(
    world: World, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(listeners, "ROUND_S", 0.02)
    monkeypatch.setattr(listeners, "IDLE_ROUNDS", 4)
    async with laned(world) as (listener, _):
        assert await said(listener, begun) == b""


async def test_a_name_that_turns_inwards_is_never_followed(world: World) -> None:
    now = [0.0]
    world.names["flip.example"] = [PUBLIC, "127.0.0.1"] * 40
    policy = world.policy(now=lambda: now[0])
    async with serving(world, echo), laned(world, policy) as (listener, _):
        for turn in range(60):
            now[0] += KEPT_S / 2  # some questions meet a kept answer, some a new one
            await said(
                listener,
                b"GET http://flip.example/ HTTP/1.1\r\nConnection: close\r\n\r\nBAD\r\n\r\n",
            )
            assert not world.strangers, turn
    assert len(world.asked) > 20
    assert policy.blocked_requests.counts[Refusal("flip.example:80", "private address")] > 10


async def test_one_private_answer_among_public_ones_refuses_the_name(world: World) -> None:
    world.names["mixed.example"] = [f"{PUBLIC} 10.0.0.1"]
    async with laned(world) as (listener, _):
        assert b" 502 " in await said(listener, b"CONNECT mixed.example:443 HTTP/1.1\r\n\r\n")
    assert not world.reached


async def test_a_lane_allows_what_one_of_its_policies_does(world: World) -> None:
    async with serving(world, echo):
        port = world.routes[PUBLIC]
        ask = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port
        async with laned(world) as (listener, _):
            assert b" 502 " in await said(listener, ask)
            first = world.policy()
            listener.allow((first, world.policy(f"http://127.0.0.1:{port}/")))
            async with client(listener) as (reader, writer):
                writer.write(ask)
                assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            assert not first.blocked_requests.counts


async def test_a_silent_address_is_raced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "STAGGER_S", 0.01)
    world.names["trap.example"] = [f"11.0.0.9 {PUBLIC}"]
    through = world.through

    async def slow(address, port, make):
        if str(address) == "11.0.0.9":
            await asyncio.Future()
        return await through(address, port, make)

    world.through = slow
    async with (
        serving(world, echo),
        laned(world) as (listener, _),
        client(listener) as (reader, writer),
    ):
        writer.write(GET % b"")
        assert (await answer(reader)).startswith(b"GET / ")


async def test_why_a_place_was_not_reached_is_known_until_it_is(world: World) -> None:
    place = Place("trap.example", 80)
    with free_port() as world.routes[PUBLIC]:
        async with laned(world) as (listener, _):
            assert await said(listener, GET % b"") == b""
            assert str(listener.last_failure(place)) == "connection refused"
            async with serving(world, echo), client(listener) as (reader, writer):
                writer.write(GET % b"")
                await answer(reader)
            assert listener.last_failure(place) is None
            await said(listener, b"GET http://nobody.example/ HTTP/1.1\r\n\r\n")
            assert str(listener.last_failure(Place("nobody.example", 80))) == "name not found"


async def test_a_lane_that_ended_takes_nobody_and_cuts_who_is_there(world: World) -> None:
    async with serving(world, echo), laned(world) as (listener, proxy):
        async with client(listener) as (reader, writer):
            writer.write(GET % b"")
            await answer(reader)
            proxy.end(listener)
            proxy.end(listener)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", listener.port)


async def test_lanes_of_browsers_that_died_are_closed_with_the_next(world: World) -> None:
    proxy, alive = Proxy(world.through), [True]
    try:
        first = await proxy.open_listener((world.policy(),), lambda: alive[0])
        second = await proxy.open_listener((world.policy(),), lambda: alive[0])
        assert b"400" in await said(first, b"GET / HTTP/1.1\r\n\r\n")
        alive[0] = False
        third = await proxy.open_listener((world.policy(),))
        for gone in (first, second):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", gone.port)
        assert b"400" in await said(third, b"GET / HTTP/1.1\r\n\r\n")
    finally:
        await proxy.close()


async def test_the_thread_ends_with_the_proxy_also_in_the_middle_of_things(world: World) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    before = set(threading.enumerate())  # of an earlier test, perhaps, and about to end

    def mine() -> list[threading.Thread]:
        new = set(threading.enumerate()) - before
        return [each for each in new if each.name == "forward proxy"]

    async with serving(world, hang):
        async with laned(world) as (listener, _), client(listener) as (_, writer):
            writer.write(GET % b"")
            assert mine()
        await until(lambda: not mine())


async def test_the_browsers_own_requests_lead_nowhere(world: World) -> None:
    proxy = Proxy(world.through)
    try:
        blocking_listener = await proxy.blocking_listener()
        assert blocking_listener is await proxy.blocking_listener()
        assert await said(blocking_listener, GET % b"") == b""
        assert not world.asked
    finally:
        await proxy.close()


def test_each_listener_hears_of_a_place_once_and_of_no_more_than_a_hundred() -> None:
    blocked_requests = BlockedRequests()
    heard: list[Refusal] = []
    later: list[Refusal] = []
    with blocked_requests.subscribed(heard.append):
        for number in range(MOST + 50):
            for _ in range(2):
                blocked_requests.note(f"10.0.0.1:{number}", "private address")
        with blocked_requests.subscribed(later.append):
            blocked_requests.note("10.0.0.1:1", "private address")
    blocked_requests.note("10.9.9.9:1", "private address")
    assert len(heard) == len(set(heard)) == MOST
    assert later == [Refusal("10.0.0.1:1", "private address")]
    assert len(blocked_requests.counts) == MOST
    assert blocked_requests.counts[Refusal("10.0.0.1:1", "private address")] == 3


async def test_a_listener_that_is_called_off_at_any_step_leaves_no_port_open() -> None:
    process, loop = psutil.Process(), asyncio.get_running_loop()

    def listening() -> set[int]:
        found = process.net_connections("inet")
        return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}

    before, after = listening(), []
    for steps in range(12):
        listener = ProxyListener((), connecting.connect)
        opening = loop.create_task(listener.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        listener.shut()
        for _ in range(2):  # iterations until the port is closed
            await asyncio.sleep(0)
        after.append(listening() - before)
    assert not any(after)


async def test_the_oldest_stalls_are_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, now_s = Place("trap.example", 80), 0.0
    async with laned(world) as (listener, _):
        monkeypatch.setattr(listeners, "time", SimpleNamespace(monotonic=lambda: now_s))
        for _ in range(MAX_STALLS + 2):  # the first request follows no stall, the last is running
            listener.note_sent(place)
            now_s += 2 * STALL_S
        assert listener.withheld(place, 2 * STALL_S, begun=False)
        assert not listener.withheld(place, 0.0, begun=False)


@pytest.mark.skipif(sys.platform == "win32", reason="accepting is one step there")
async def test_a_connection_accepted_as_the_listener_ends_is_closed(world: World) -> None:
    loop = asyncio.get_running_loop()
    listener = ProxyListener((world.policy(),), world.through)
    await listener.open()
    ended, starter = asyncio.Event(), socket.socketpair()

    def end() -> None:
        loop.remove_reader(starter[0])
        listener.shut()
        ended.set()

    loop.add_reader(starter[0], end)
    with starter[0], starter[1], socket.create_connection(("127.0.0.1", listener.port)) as late:
        starter[1].send(b"now")  # the loop hears of both at once, of the connection first
        await ended.wait()
        late.setblocking(False)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(60):
                assert await loop.sock_recv(late, 1) == b""
    gc.collect()  # an unclosed transport would say so here


async def test_an_ended_listener_is_released(world: World) -> None:
    async with laned(world) as (listener, proxy):
        released = weakref.ref(listener)
        proxy.end(listener)
        del listener
        await until(lambda: gc.collect() >= 0 and released() is None)


async def test_the_address_of_a_server_is_known_if_all_connections_went_to_it(
    world: World,
) -> None:
    async with laned(world) as (listener, _), serving(world, echo):
        assert listener.peer(START) == ""
        for _ in range(2):
            async with client(listener) as (reader, writer):
                writer.write(GET % b"a")
                await answer(reader)
        assert listener.peer(START) == "127.0.0.1"  # where the public address leads to here
        listener._peers[Place("trap.example", 80)] = "11.0.0.9"
        async with client(listener) as (reader, writer):
            writer.write(GET % b"a")
            await answer(reader)
        assert listener.peer(START) == ""


async def test_of_more_places_than_are_known_no_address_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.egress.proxy_listener.MAX_PEERS", 1)
    async with laned(world) as (listener, _), serving(world, echo):
        listener._peers[Place("other.example", 80)] = "11.0.0.9"
        async with client(listener) as (reader, writer):
            writer.write(GET % b"a")
            await answer(reader)
        assert listener.peer(START) == ""
        assert listener.peer("http://other.example/") == "11.0.0.9"
