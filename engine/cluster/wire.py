"""Messages between the engine and Dask's servers, in Dask's own framing, without Dask's decoding.

A message of Dask is a number of frames: the first one is MessagePack, the others are pickled or
otherwise serialized objects that it refers to. This module reads messages of one frame only, so
that nothing can be unpickled, and it refuses a length before it reads any of the content.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from engine.cluster.cluster_address import ClusterAddress
from engine.egress.connecting import keep_alive, open_stream, why_not_connected

MOST_BYTES: Final = 64 * 1024 * 1024  # of one message
MOST_HANDSHAKE_BYTES: Final = 64 * 1024
CONNECT_S: Final = 10.0
_LOST_AFTER_S: Final = 20  # a lost network is noticed, however long an answer may take
_BUFFER_BYTES: Final = 1024 * 1024
_MOST_UNREQUESTED_BYTES: Final = 1024
_HEAD: Final = struct.Struct("=QQQ")  # bytes that follow, frames, bytes of the first frame
_PRELUDE_BYTES: Final = 16  # of the two last ones, which count as content
# Reasons of OpenSSL for an answer that is not encrypted.
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
# What Dask's servers expect of a peer. They send frames of one kind only to us.
_HANDSHAKE: Final = {"compression": None, "python": (3, 11, 0), "pickle-protocol": 5}


class WireError(Exception):
    """The peer broke the protocol, or the connection ended; its text is the reason."""


class NoHandshake(WireError):
    """The peer accepted the connection, and ended it instead of greeting."""


class Misbehaviour(WireError):
    """The peer sent what no worker of this program sends."""


def framed(message: Mapping[str, Any]) -> bytes:
    """Return a message as Dask's servers read it."""
    body = msgspec.msgpack.encode(message)
    return _HEAD.pack(_PRELUDE_BYTES + len(body), 1, len(body)) + body


def body_bytes(head: bytes, most_bytes: int) -> int:
    """Return the number of bytes that follow a head.

    Raises:
        Misbehaviour: there are other frames than MessagePack, or too many bytes.
    """
    total: int
    frames: int
    size: int
    total, frames, size = _HEAD.unpack(head)
    if frames != 1:
        raise Misbehaviour("it sent serialized objects")
    if size > most_bytes:
        raise Misbehaviour(f"it sent more than {most_bytes:,} bytes")
    if total != _PRELUDE_BYTES + size:
        raise Misbehaviour("it sent a message of wrong lengths")
    return size


def decoded(body: bytes, expect: Any = Any) -> Any:
    """Decode the MessagePack of a message to the type `expect`. Raises Misbehaviour."""
    try:
        return msgspec.msgpack.decode(body, type=expect)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError, OverflowError) as failed:
        raise Misbehaviour("it sent a message that cannot be decoded") from failed


def _why_not_secure(failed: Exception) -> str:
    """Return what certificates have to do with a failed connection; empty: nothing is known.

    The names of the reasons are those of OpenSSL.
    """
    reason = failed.reason or "" if isinstance(failed, ssl.SSLError) else ""
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return f"it does not accept the certificate of this machine ({reason})"
    if reason in _NOT_TLS:
        return f"no secure connection ({reason}); a server without certificates needs tcp://"
    return ""


class Wire:
    """One connection, which carries one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(
        cls, address: ClusterAddress, tls: ssl.SSLContext | None, limit_s: float = CONNECT_S
    ) -> Self:
        """Connect to a server of Dask.

        Raises:
            WireError: there is no connection within `limit_s` seconds.
        """
        if (tls is None) == (address.scheme == "tls"):
            raise WireError(f"its address is {address.scheme}://, unlike that of the scheduler")
        try:
            async with asyncio.timeout(limit_s):
                host, port = address.host, address.port
                opened = open_stream(host, port, tls=tls, server_name=None, limit=_BUFFER_BYTES)
                wire = cls(*await opened)
                keep_alive(wire._writer, _LOST_AFTER_S)
                try:
                    await wire._send(_HANDSHAKE)
                    await wire._read(MOST_HANDSHAKE_BYTES, msgspec.Raw)
                except BaseException as failed:
                    wire.abort()
                    if type(failed) is WireError or isinstance(failed, ConnectionError):
                        raise NoHandshake("the connection ended") from failed
                    if isinstance(failed, Misbehaviour):  # as the greeting of an SSH server
                        raise Misbehaviour("no server of Dask answers there") from failed
                    raise
        except TimeoutError:
            raise WireError(f"no connection within {limit_s:g} s") from None
        except (OSError, ValueError) as failed:
            raise WireError(_why_not_secure(failed) or why_not_connected(failed)) from failed
        return wire

    @property
    def is_open(self) -> bool:
        """Whether the peer has not closed the connection."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def unrequested(self) -> bytes | None:
        """Return what the peer has sent since its last answer, or None.

        The connection cannot be used after a cancellation.
        """
        try:
            async with asyncio.timeout(0):
                found: bytes = await self._read(_MOST_UNREQUESTED_BYTES, bytes)
        except (TimeoutError, WireError, OSError):
            return None
        except BaseException:
            self.abort()
            raise
        return found

    async def call(
        self,
        operation: str,
        fields: Mapping[str, Any],
        limit_s: float,
        most_bytes: int = MOST_BYTES,
        expect: Any = bytes,
    ) -> Any:
        """Call a handler of the server, and return its answer, decoded to the type `expect`.

        A long message can hold millions of objects, so that it must be decoded to a type that
        limits them, or to `msgspec.Raw`. The connection cannot be used after an error or a
        cancellation.

        Raises:
            Misbehaviour: the answer is no MessagePack, of another type, or too long.
            WireError: there is no answer within `limit_s` seconds.
        """
        message = {"op": operation, "reply": True, "serializers": ["msgpack"], **fields}
        return await self._answer(message, limit_s, most_bytes, expect)

    async def more(self, limit_s: float, most_bytes: int) -> bytes:
        """Return the next message about the request of the last call; raises as `call`."""
        found: bytes = await self._answer(None, limit_s, most_bytes, bytes)
        return found

    async def _answer(
        self, message: Mapping[str, Any] | None, limit_s: float, most_bytes: int, expect: Any
    ) -> Any:
        try:
            async with asyncio.timeout(limit_s):
                if message is not None:
                    await self._send(message)
                return await self._read(most_bytes, expect)
        except TimeoutError as late:
            self.abort()
            if late.errno is not None:  # the system's own
                raise WireError("the network connection was lost") from None
            raise WireError(f"no answer within {limit_s:g} s") from None
        except OSError as failed:
            self.abort()
            raise WireError(why_not_connected(failed)) from failed
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _send(self, message: Mapping[str, Any]) -> None:
        self._writer.write(framed(message))
        await self._writer.drain()

    async def _read(self, most_bytes: int, expect: Any) -> Any:
        try:
            head = await self._reader.readexactly(_HEAD.size)
            body = await self._reader.readexactly(body_bytes(head, most_bytes))
        except asyncio.IncompleteReadError as ended:
            raise WireError("the connection ended") from ended
        return decoded(body, expect)
