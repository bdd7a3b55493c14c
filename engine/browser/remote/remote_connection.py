"""Authenticated connections between an engine and the browser server of another machine.

Each connection begins with three lines: the server's challenge, the client's request with a proof,
and the server's proof. A proof is an HMAC of both challenges and of the request with the common
token, so that the token itself is never sent, and neither side talks to an impostor. What follows
is either a few lines of JSON, or bytes that are relayed unchanged.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import ssl
from importlib.metadata import version
from typing import Final, Literal

import msgspec

from engine.browser.remote.remote_address import RemotePlace
from engine.egress.connecting import keep_alive, open_stream

GREETING: Final = b"openchrome-browser/1 "
MOST_LINE: Final = 65_536  # bytes of a line, and of a connection that are held while it is read
HELLO_S: Final = 15.0
SILENT_S: Final = 60.0  # after which the other side is taken for lost; it sends every `PING_S`
PING_S: Final = 10.0
ENDED: Final = "ended"  # the code of the message that the browser itself has ended
SHUTDOWN_S: Final = 3_600.0  # for the last bytes of a TLS connection; it ends with its session

Role = Literal["browser", "driver", "stream"]
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class WrongToken(Exception):
    """The other side has another token, or none."""


class Hello(msgspec.Struct, frozen=True):
    """The request of a client: `name` is a session or a stream, `proof` shows the token.

    `version` is Playwright's, whose two sides must be of one version.
    """

    role: Role
    name: str
    challenge: str
    proof: str
    version: str


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a session: a request of the client, or an answer of the server.

    `listen` and `shut` name a listener by the client's number; `stream` is a connection of the
    browser to one. A line without fields is a sign of life.
    """

    proof: str = ""
    error: str = ""
    code: str = ""
    headed: bool = False
    windows: bool = False
    session: str = ""
    path: str = ""
    browser: str = ""
    listen: int = 0
    shut: int = 0
    port: int = 0
    stream: str = ""


def playwright_version() -> str:
    """Return the version whose first two numbers both sides must share."""
    return ".".join(version("playwright").split(".")[:2])


def _proof(token: str, side: str, *parts: str) -> str:
    text = "\n".join((side, *parts))
    return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()


def send(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    """Send one line; a connection that is lost is noticed by its reader."""
    if not writer.is_closing():
        writer.write(msgspec.json.encode(message) + b"\n")


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Read one line. Raises EOFError: the connection ended, or its line is too long."""
    try:
        line = await reader.readuntil(b"\n")
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as failed:
        raise EOFError("the connection ended") from failed
    return line


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read one line of a session. Raises EOFError, also if it is no such line."""
    try:
        return msgspec.json.decode(await read_line(reader), type=Message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise EOFError("the other side does not keep to the protocol") from wrong


async def greet(pipe: Pipe, token: str) -> Hello:
    """Check a client at the server's end of a new connection.

    Raises:
        EOFError: it is no client.
        WrongToken: it has another token.
    """
    reader, writer = pipe
    challenge = secrets.token_hex(16)
    writer.write(GREETING + challenge.encode() + b"\n")
    try:
        hello = msgspec.json.decode(await read_line(reader), type=Hello)
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise EOFError("this is no client") from wrong
    signed = challenge, hello.challenge, hello.role, hello.name, hello.version
    if not hmac.compare_digest(hello.proof.encode(), _proof(token, "client", *signed).encode()):
        send(writer, Message(error="it has another token", code="token"))
        raise WrongToken
    send(writer, Message(proof=_proof(token, "server", hello.challenge, challenge)))
    return hello


async def introduce(pipe: Pipe, token: str, role: Role, name: str = "") -> None:
    """Introduce this client to a server.

    Raises:
        EOFError: there is no browser server.
        WrongToken: it has another token, or cannot prove that it has this one.
    """
    reader, writer = pipe
    line = await read_line(reader)
    if not line.startswith(GREETING):
        raise EOFError("no browser server answers there")
    theirs = line.removeprefix(GREETING).strip().decode("ascii", "replace")
    ours, version_ = secrets.token_hex(16), playwright_version()
    proof = _proof(token, "client", theirs, ours, role, name, version_)
    send(writer, Hello(role, name, ours, proof, version_))
    message = await read_message(reader)
    if message.code == "token":
        raise WrongToken
    if not hmac.compare_digest(
        message.proof.encode(), _proof(token, "server", ours, theirs).encode()
    ):
        raise WrongToken


async def trust(place: RemotePlace) -> ssl.SSLContext | None:
    """Return the certificates that connections to a tls:// address trust: those of the system."""
    if place.address.scheme != "tls":
        return None
    return await asyncio.to_thread(ssl.create_default_context)  # it reads all of them


async def connect(
    place: RemotePlace, tls: ssl.SSLContext | None, role: Role, name: str = ""
) -> Pipe:
    """Open a connection to a browser server. Raises as `introduce`, and OSError."""
    address = place.address
    async with asyncio.timeout(HELLO_S):
        pipe = await open_stream(
            address.host,
            address.port,
            tls=tls,
            server_name=address.host,
            limit=MOST_LINE,
            shutdown_s=SHUTDOWN_S,
        )
        keep_alive(pipe[1], int(SILENT_S))
        try:
            await introduce(pipe, place.token, role, name)
        except BaseException:
            pipe[1].transport.abort()
            raise
    return pipe


async def relay(one: Pipe, other: Pipe) -> None:
    """Carry bytes both ways until both directions have ended, or one connection is lost."""
    writers = one[1], other[1]
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(one[0], other[1]))
            group.create_task(_carry(other[0], one[1]))
        for writer in writers:
            writer.close()
            await writer.wait_closed()  # what was written is sent, however slowly it is read
    except* (OSError, EOFError):
        pass  # the other side notices the end of its own connection
    finally:
        for writer in writers:
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(MOST_LINE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    else:  # with TLS one direction cannot end alone
        writer.close()
