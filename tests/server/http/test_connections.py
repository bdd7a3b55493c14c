"""Many connections, slow clients, broken input, and the start and end of the server."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from engine.server import local_server
from engine.server.local_server import MOST_CONNECTIONS, LocalServer, PortRefused, PortTaken
from tests.server.http.conftest import WAIT_S, Client, Serving, answer, is_held_up
from tests.support.engines import opened, until

MANY = 1_000


@pytest.fixture
def descriptors() -> None:
    """Enough descriptors for both ends of a thousand connections."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MANY
    if soft < wanted:
        if hard not in (resource.RLIM_INFINITY,) and hard < wanted:
            pytest.skip("this user may not open enough files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def test_a_thousand_connections_leave_those_within_the_limit_served(
    serving: Serving, descriptors: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("HEAD_S", "REFUSED_S"):  # a crowded machine connects slowly
        monkeypatch.setattr(local_server, limit, 120.0)
    async with serving() as client, AsyncExitStack() as stack:
        many = [await stack.enter_async_context(client.raw()) for _ in range(MANY)]
        statuses = await asyncio.gather(*(_status(client, one) for one in many))
        assert statuses[:MOST_CONNECTIONS] == [200] * MOST_CONNECTIONS
        assert statuses[MOST_CONNECTIONS : 2 * MOST_CONNECTIONS] == [503] * MOST_CONNECTIONS
        assert not any(statuses[2 * MOST_CONNECTIONS :])
        await stack.aclose()
        await until(lambda: not _open(client))
        assert (await client.get("/tasks"))["count"] == 0


async def _status(
    client: Client, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> int:
    """Status of a request on this connection; 0 if it was closed without an answer."""
    reader, writer = connection
    try:
        writer.write(client.head())
        status, _, data = await answer(reader)
    except (OSError, asyncio.IncompleteReadError):
        return 0
    assert status == 200 or data["error"]["code"] == "too_many_connections"
    return status


async def test_sockets_count_as_connections(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "MOST_CONNECTIONS", 2)
    async with serving() as client:
        async with client.socket(), client.socket():
            status, _, data = await client.sent(client.head())
            assert (status, data["error"]["code"]) == (503, "too_many_connections")
            handshake = client.head(
                "GET /ws HTTP/1.1",
                Connection="Upgrade",
                Upgrade="websocket",
                Sec_WebSocket_Version="13",
                Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==",
            )
            status, _, data = await client.sent(handshake)
            assert (status, data["error"]["code"]) == (503, "too_many_connections")
        await until(lambda: not _open(client))
        await client.get("/tasks")


async def test_a_head_that_is_never_finished_is_closed(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "HEAD_S", 0.3)
    async with serving() as client:
        for begun in (b"", b"GET /tasks HT", client.head()[:-2]):
            async with client.raw() as (reader, writer):
                writer.write(begun)
                status, _, data = await answer(reader)
                assert (status, data["error"]["code"]) == (408, "request_timeout")
                assert await reader.read() == b""
        async with client.raw() as (reader, writer):  # a byte now and then does not help
            with pytest.raises(ConnectionError):
                await _trickle(writer)
        await until(lambda: not _open(client))


async def test_a_second_head_on_a_connection_is_limited_like_the_first(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "HEAD_S", 0.3)
    async with serving() as client, client.raw() as (reader, writer):
        writer.write(client.head())
        assert (await answer(reader))[0] == 200
        writer.write(b"GET /tasks HTTP/1.1\r\nHost:")
        assert (await answer(reader))[0] == 408


async def test_a_body_that_nobody_wants_is_not_read_for_ever(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "HEAD_S", 0.3)
    async with serving() as client, client.raw() as (reader, writer):
        head = {"Content_Type": "text/plain", "Content_Length": "100000"}
        writer.write(client.head("POST /tasks HTTP/1.1", **head))
        assert (await answer(reader))[0] == 415
        with pytest.raises(ConnectionError):
            await _trickle(writer)


@pytest.mark.thorough
async def test_a_reader_that_does_not_read_is_closed(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "STALL_S", 0.3)
    async with serving() as client:
        task_id = await client.envelope()
        _write_many_events(client.server.token_file.parents[1], task_id)
        async with client.raw() as (reader, writer):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(client.head(f"GET /tasks/{task_id}/events HTTP/1.1"))
            await until(lambda: _open(client) == 1)
            await until(lambda: not _open(client))
        await client.get("/tasks")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /tasks FTP/1.1\r\n\r\n",
        b"GET /tasks HTTP/1.1\r\nHost 127\r\n\r\n",
        b"GET " + b"x" * 100_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 9 + b"\r\n\r\n",
    ],
    ids=["bytes", "version", "header", "long", "tls"],
)
async def test_what_is_no_http_is_answered_typed(serving: Serving, data: bytes) -> None:
    async with serving() as client:
        status, _, answered = await client.sent(data)
        assert (status, answered["error"]["code"]) == (400, "bad_http_request")
        await client.get("/tasks")


async def test_a_chunk_that_is_none_ends_its_connection_alone(serving: Serving) -> None:
    async with serving() as client:
        head = {"Content_Type": "application/json", "Transfer_Encoding": "chunked"}
        async with client.raw() as (reader, writer):
            writer.write(client.head("POST /tasks HTTP/1.1", **head) + b'5\r\n{"a":\r\nzz\r\n')
            status, _, data = await answer(reader)
            assert (status, data["error"]["code"]) == (400, "bad_http_request")
        async with client.raw() as (reader, writer):  # after the answer has begun
            refused = {**head, "Content_Type": "text/plain"}
            writer.write(client.head("POST /tasks HTTP/1.1", **refused))
            assert (await answer(reader))[0] == 415
            writer.write(b"zz\r\n")
            assert await reader.read() == b""
        await client.get("/tasks")


async def test_an_answer_does_not_wait_for_an_acknowledgement(serving: Serving) -> None:
    """Head and body are two writes; without TCP_NODELAY the second one waits 40 ms."""
    async with serving() as client:
        await client.get("/tasks")
        server = client.server._server
        assert server is not None
        (connection,) = server.server_state.connections
        ours = connection.transport.get_extra_info("socket")
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_an_engine_without_a_server_listens_nowhere(home: Path) -> None:
    psutil = pytest.importorskip("psutil")

    def listening() -> list[str]:
        states = psutil.Process().net_connections("inet")
        return [str(one.laddr) for one in states if one.status == psutil.CONN_LISTEN]

    async with opened(home) as engine:
        server = LocalServer(engine)
        assert not listening()
        assert not server.token_file.exists()
        await server.start()
        assert listening() == [f"addr(ip='127.0.0.1', port={server.port})"]
        await server.stop()
        assert not listening()


async def test_a_used_port_is_a_typed_error(home: Path) -> None:
    async with opened(home) as engine:
        first = LocalServer(engine)
        await first.start()
        second = LocalServer(engine, port=first.port)
        with pytest.raises(PortTaken):
            await second.start()
        await second.stop()
        with pytest.raises(PortRefused):
            await LocalServer(engine, port=70_000).start()
        await first.stop()


async def test_it_ends_soon_whatever_is_open(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "GRACE_S", 1_000.0)  # it is not waited for
    async with opened(home) as engine:
        server = LocalServer(engine)
        await server.start()
        async with aiohttp.ClientSession() as session:
            client = Client(server, engine, session)
            task_id = await client.envelope()
            stream = await client.events(f"/tasks/{task_id}/events")
            changes = await client.events("/events")
            web_socket = await client.socket()
            waiting = asyncio.ensure_future(client.code("POST", f"/tasks/{task_id}/wait", {}))
            mcp = await _mcp_stream(client)
            assert await stream.content.readline() == b"event: started\n"
            state = server._server.server_state  # type: ignore[union-attr]  # it runs
            await until(lambda: len(state.tasks) == 5)  # all have arrived, and stay
            async with asyncio.timeout(WAIT_S):
                await server.stop()
            assert await waiting == (503, "shutting_down")
            await stream.read()
            assert (await web_socket.receive()).type.name in ("CLOSE", "CLOSED")
            changes.close()
            mcp.close()
        assert not server.is_running
        await server.stop()


async def _mcp_stream(client: Client) -> aiohttp.ClientResponse:
    """Open the stream of a new MCP session, for what the server sends unasked."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    accepts = {"Accept": "application/json, text/event-stream"}
    headers = {**client.auth, **accepts}
    async with client.session.post(client.url + "/mcp", headers=headers, json=message) as made:
        assert made.status == 200
        await made.read()
        session = made.headers["Mcp-Session-Id"]
    opened_stream = await client.events("/mcp", **accepts, **{"Mcp-Session-Id": session})
    assert opened_stream.status == 200
    return opened_stream


async def test_it_ends_although_a_client_reads_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "STALL_S", 1_000.0)  # it ends before
    async with opened(home) as engine:
        server = LocalServer(engine)
        await server.start()
        async with aiohttp.ClientSession() as session:
            client = Client(server, engine, session)
            task_id = await client.envelope()
            _write_many_events(home, task_id)
            async with client.raw() as (reader, writer):
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(client.head(f"GET /tasks/{task_id}/events HTTP/1.1"))
                await until(lambda: is_held_up(server))
                async with asyncio.timeout(WAIT_S):
                    await server.stop()
                assert not _open(client)


async def test_it_starts_again_in_the_same_process(home: Path) -> None:
    async with opened(home) as engine:
        port = 0
        for _ in range(3):
            server = LocalServer(engine, port=port)
            await server.start()
            port = server.port
            async with asyncio.timeout(WAIT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
                assert b"200" in await reader.readline()
                writer.close()
            await server.stop()


def _write_many_events(home: Path, task_id: str) -> None:
    """Write more events than the buffers of both ends hold."""
    line = json.dumps({"ts": 1, "kind": "progress", "data": {"message": "x" * 4_000}}) + "\n"
    with (home / "tasks" / task_id / "events.jsonl").open("a") as out:
        out.write(line * 8_000)


async def _trickle(writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then, until the other end has closed."""
    for _ in range(2_000):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


def _open(client: Client) -> int:
    server = client.server._server
    assert server is not None
    return len(server.server_state.connections)
