"""Messages of Dask's servers: nothing is unpickled, and no length is believed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pickle
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from engine.cluster.cluster_address import ClusterAddress, cluster_address, import_library
from engine.cluster.cluster_connection import certificate
from engine.cluster.wire import Misbehaviour, Wire, WireError
from tests.cluster.dask_peers import HEAD, Answer, Peer, message

NO_ANSWER_S = 0.2


class Bomb:
    """Unpickling it fails the test."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("it was unpickled",)


def pickled_frames() -> bytes:
    """A message that refers to a pickled object in its other frames, as Dask writes them."""
    frames = [
        msgspec.msgpack.encode({"__Pickled__": 1}),
        msgspec.msgpack.encode({"pickled-obj": pickle.dumps(Bomb()), "num-sub-frames": 0}),
    ]
    prelude = len(frames).to_bytes(8, "little")
    prelude += b"".join(len(one).to_bytes(8, "little") for one in frames)
    body = prelude + b"".join(frames)
    return len(body).to_bytes(8, "little") + body


async def called(
    answer: bytes | Answer | None, limit_s: float = 60.0, most: int = 1_000, expect: Any = Any
) -> Any:
    async def fixed(_: dict[str, Any]) -> bytes | None:
        assert not callable(answer)
        return answer

    peer = Peer(ask=answer if callable(answer) else fixed)
    await peer.start()
    try:
        wire = await Wire.open(cluster_address(peer.address), None)
        try:
            return await wire.call("ask", {}, limit_s, most, expect)
        finally:
            wire.abort()
    finally:
        await peer.close()


async def test_an_answer_of_plain_values_is_returned() -> None:
    assert await called(message({"a": [1, "b", b"c"]})) == {"a": [1, "b", b"c"]}


async def test_a_pickled_object_is_refused_and_never_unpickled() -> None:
    with pytest.raises(Misbehaviour, match="serialized objects"):
        await called(pickled_frames())
    # Inside the one frame it is a plain value.
    assert await called(message({"__Pickled__": pickle.dumps(Bomb())}))


async def test_an_object_by_name_is_not_imported() -> None:
    named = {"__Enum__": True, "name": "OK", "__module__": "os", "__type__": "system"}
    assert await called(message(named)) == named


@pytest.mark.parametrize(
    "head",
    [
        HEAD.pack(16 + 2**60, 1, 2**60),
        HEAD.pack(16 + 1_001, 1, 1_001),
        HEAD.pack(5, 1, 500),
        HEAD.pack(2**63, 1, 3),
        HEAD.pack(16, 0, 0),
        HEAD.pack(16, 2**60, 0),
        b"\xff" * HEAD.size,
    ],
)
async def test_a_length_is_refused_before_anything_of_it_is_read(head: bytes) -> None:
    with pytest.raises(Misbehaviour):
        await called(head)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xc1", b"\x91" * 900, b"\xdb\xff\xff\xff\xff", b"\xa1\xff", b"\x81\x80\x01"),
        *(b"\xc7\x0c\xff" + b"\xff" * 12, b"\x81\x81\x01\x02\x01"),
    ],
)
async def test_what_is_no_msgpack_is_refused(body: bytes) -> None:
    with pytest.raises(Misbehaviour, match="decoded"):
        await called(HEAD.pack(16 + len(body), 1, len(body)) + body)


async def test_an_answer_of_another_type_is_not_decoded() -> None:
    with pytest.raises(Misbehaviour, match="decoded"):
        await called(message([[]] * 900), expect=bytes)


async def test_a_peer_that_hangs_up_is_an_error_at_once() -> None:
    with pytest.raises(WireError, match="connection ended"):
        await called(None)


async def test_a_peer_that_does_not_answer_is_given_up() -> None:
    never = asyncio.Event()

    async def silent(_: dict[str, Any]) -> bytes | None:
        await never.wait()
        return None

    with pytest.raises(WireError, match=r"no answer within 0.2 s"):
        await called(silent, NO_ANSWER_S)


async def test_a_peer_without_a_handshake_is_given_up() -> None:
    server = socket.create_server(("127.0.0.1", 0))  # the system accepts, nobody answers
    address = ClusterAddress("tcp", "127.0.0.1", server.getsockname()[1])
    try:
        with pytest.raises(WireError, match="no connection within"):
            await Wire.open(address, None, NO_ANSWER_S)
    finally:
        server.close()


class ClosedSocket:
    """A connection as macOS shows it when its peer has closed it already."""

    def setsockopt(self, *_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


async def test_a_peer_that_has_hung_up_is_the_reason_and_no_option_of_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    closed = ClosedSocket()
    monkeypatch.setattr(asyncio.StreamWriter, "get_extra_info", lambda *_: closed)
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        address = cluster_address(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(WireError, match="the connection ended"):
            await Wire.open(address, None)


async def test_a_closed_port_is_an_error_at_once() -> None:
    peer = Peer()
    await peer.start()
    await peer.stop()  # it keeps the port, so that no other process answers
    try:
        with pytest.raises(WireError, match="connection refused"):
            await Wire.open(cluster_address(peer.address), None)
    finally:
        await peer.close()


async def test_plain_and_secure_addresses_are_not_mixed() -> None:
    with pytest.raises(WireError, match="unlike that of the scheduler"):
        await Wire.open(ClusterAddress("tls", "127.0.0.1", 1), None)
    with pytest.raises(WireError, match="unlike that of the scheduler"):
        await Wire.open(ClusterAddress("tcp", "127.0.0.1", 1), ssl.create_default_context())


async def unanswered(_: dict[str, Any]) -> bytes | None:
    await asyncio.Event().wait()
    return None


async def test_a_network_that_ends_without_a_word_is_noticed_by_the_system() -> None:
    peer = Peer(ask=unanswered)
    await peer.start()
    wire = await Wire.open(cluster_address(peer.address), None)
    try:
        connection = wire._writer.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            limit_ms = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert 0 < limit_ms <= 20_000
            asked_s = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            assert 0 < asked_s * 1_000 < limit_ms
        calling = asyncio.create_task(wire.call("ask", {}, 1_000.0))
        await asyncio.sleep(0)
        wire._reader.set_exception(OSError(errno.ETIMEDOUT, "timed out"))  # as the system does
        with pytest.raises(WireError, match="the network connection was lost"):
            await calling
    finally:
        wire.abort()
        await peer.close()


@contextlib.asynccontextmanager
async def greeting(first: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that says `first` and then waits; its host and port."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(first)
            await reader.read()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=tls) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "first", [b"SSH-2.0-OpenSSH_9.6p1 Ubuntu\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
async def test_another_server_is_told_as_such(first: bytes) -> None:
    async with greeting(first) as place:
        with pytest.raises(Misbehaviour, match="no server of Dask answers there"):
            await Wire.open(cluster_address(f"tcp://{place}"), None)


async def test_a_plain_server_at_a_secure_address_is_told_with_the_way_out() -> None:
    _, tls = certificate()
    async with greeting(b"\x18" + bytes(23)) as place:
        with pytest.raises(WireError, match="a server without certificates needs tcp://"):
            await Wire.open(cluster_address(f"tls://{place}"), tls)


def refusing(listening: socket.socket, tls: ssl.SSLContext) -> None:
    """Refuse the certificate of one client, and wait for its end."""
    connection, _ = listening.accept()
    with connection, contextlib.suppress(OSError):
        with contextlib.suppress(ssl.SSLError):
            tls.wrap_socket(connection.dup(), server_side=True)
        while connection.recv(1_000):
            pass


async def test_a_certificate_that_the_server_refuses_is_told_as_such() -> None:
    security = import_library("distributed.security").Security.temporary()
    _, stranger = certificate()
    stranger.verify_mode = ssl.CERT_NONE  # it trusts the server, which does not trust it
    server = security.get_listen_args("scheduler")["ssl_context"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        refused = asyncio.create_task(asyncio.to_thread(refusing, listening, server))
        address = cluster_address(f"tls://127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(WireError, match="does not accept the certificate of this machine"):
            await Wire.open(address, stranger)
        await refused
