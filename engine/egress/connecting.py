"""Connect to the first of several addresses that responds.

While an address has not responded for a quarter of a second, the next one is tried in parallel,
so that an unreachable address family costs no more than this. Source: RFC 8305, section 5.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from engine.egress.egress_policy import look_up
from engine.egress.public_addresses import IPAddress

STAGGER_S = 0.25
CONNECT_S = 20.0
MOST_ADDRESSES = 8
_PROBES = 3  # of an idle connection, without an answer

Made = TypeVar("Made")
# Tests replace it, so that a public address can lead to their own server.
Connect = Callable[[IPAddress, int, Callable[[], Any]], Awaitable[Any]]


async def connect(address: IPAddress, port: int, make: Callable[[], Any]) -> Any:
    """Connect to exactly this address and return the protocol that `make` created.

    Raises:
        OSError: the connection failed.
    """
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(make, str(address), port)
    return made


async def dial(
    found: Sequence[IPAddress],
    port: int,
    make: Callable[[], Made],
    give_up: Callable[[Made], None],
    through: Connect = connect,
) -> Made:
    """Return the first connection to one of `found`; pass later ones to `give_up`.

    Raises:
        OSError: none responded; TimeoutError (a subclass) after 20 s.
    """
    if len(found) == 1:
        async with asyncio.timeout(CONNECT_S):
            only: Made = await through(found[0], port, make)
            return only
    trying: list[asyncio.Task[Made]] = []
    try:
        async with asyncio.timeout(CONNECT_S):
            return await _race(found[:MOST_ADDRESSES], trying, port, make, through)
    finally:
        for each in trying:
            each.cancel()
            each.add_done_callback(lambda late: _drop(late, give_up))


async def _race(
    found: Sequence[IPAddress],
    trying: list[asyncio.Task[Made]],
    port: int,
    make: Callable[[], Made],
    through: Connect,
) -> Made:
    """Return the first connection and remove its task from `trying`; the others remain."""
    loop = asyncio.get_running_loop()
    failed: BaseException | None = None
    left = list(found)
    while left or trying:
        if left:
            trying.append(loop.create_task(_try(through, left.pop(0), port, make)))
        limit_s = STAGGER_S if left else None
        done, _ = await asyncio.wait(trying, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            trying.remove(each)
            failed = each.exception()
            if failed is None:
                return each.result()
    raise failed or OSError("there is no address")


async def _try(through: Connect, address: IPAddress, port: int, make: Callable[[], Made]) -> Made:
    made: Made = await through(address, port, make)
    return made


def _drop(late: asyncio.Task[Made], give_up: Callable[[Made], None]) -> None:
    if not late.cancelled() and late.exception() is None:
        give_up(late.result())


async def open_stream(
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    server_name: str | None,
    limit: int,
    shutdown_s: float | None = None,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of a host of the operator's that accepts; no policy is asked.

    With `tls` the certificate must be that of `server_name`, if the context checks names; None
    takes the address. After its end what was written is dropped after `shutdown_s` (None: 30 s).
    `limit` is the number of bytes that are held while nothing reads them. The
    threads of the name lookups are daemons: those of the loop would delay its end.

    Raises:
        OSError: see `why_not_connected`.
    """
    failed: OSError = ConnectionRefusedError()
    for found in await look_up(host):
        try:
            return await asyncio.open_connection(
                str(found),
                port,
                ssl=tls,
                server_hostname=(server_name or str(found)) if tls is not None else None,
                ssl_shutdown_timeout=shutdown_s if tls is not None else None,
                limit=limit,
            )
        except OSError as refused:
            failed = refused
    raise failed


def keep_alive(writer: asyncio.StreamWriter, lost_after_s: int) -> None:
    """Let the system probe an idle connection, and end it when the peer cannot be reached so long.

    A router forgets a connection on which nothing is sent.
    """
    connection = writer.get_extra_info("socket")
    probe_s = lost_after_s // (_PROBES + 1)
    with contextlib.suppress(OSError):  # macOS refuses it once the peer has closed the connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", probe_s),
        ("TCP_KEEPALIVE", probe_s),  # its name on macOS
        ("TCP_KEEPINTVL", probe_s),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", lost_after_s * 1_000),  # for what was sent and not received (Linux)
    ):
        if (option := getattr(socket, name, None)) is not None:
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def why_not_connected(failed: Exception) -> str:
    """Return the reason of a failed connection, to complete a sentence."""
    if isinstance(failed, ssl.SSLCertVerificationError):
        return f"its certificate is not valid here ({failed.verify_message})"
    if isinstance(failed, ssl.SSLError):
        return f"no secure connection ({failed.reason or 'TLS'})"
    if isinstance(failed, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(failed, ConnectionRefusedError):
        return "connection refused"
    if isinstance(failed, ConnectionError):
        return "the connection ended"
    if isinstance(failed, TimeoutError):
        return "it does not answer"
    return "no connection"
