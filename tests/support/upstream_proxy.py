"""An upstream proxy of a test: HTTP, HTTPS (TLS to the proxy) or SOCKS5, and what it was asked."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.update_server import certificate

START_S = 60.0
SETTLE_TURNS = 20
Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Wanted(NamedTuple):
    """What a client asked for: `CONNECT`, `absolute`, `socks address` or `socks name`."""

    way: str
    host: str
    port: int


class RecordingProxy:
    """Connects to this machine alone: a name or address leads to a port in `routes`.

    Places without a route are connected to as they are, if they are 127.0.0.1. `refusals` are
    answers in place of a connection: an HTTP status, or a SOCKS reply. Without `tunnels`, CONNECT
    is forbidden.
    """

    def __init__(
        self,
        scheme: str = "http",
        *,
        user: tuple[str, str] | None = None,
        routes: Mapping[str, int] = {},
        refusals: Mapping[str, int] = {},
        tls: Path | None = None,
        tunnels: bool = True,
    ) -> None:
        self.scheme, self.user, self.tunnels = scheme, user, tunnels
        self.routes, self.refusals = dict(routes), dict(refusals)
        self.wanted: list[Wanted] = []
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._writers: set[Writer] = set()
        self._loop = asyncio.new_event_loop()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Its address, as the option `--proxy` has it."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def hosts(self) -> set[str]:
        """The hosts that it was asked for."""
        return {one.host for one in self.wanted}

    @property
    def ways(self) -> set[str]:
        """The ways in which it was asked."""
        return {one.way for one in self.wanted}

    def start(self) -> None:
        self._thread.start()
        assert self._opened.wait(START_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)

    def _run(self) -> None:
        context = None
        if self._tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._tls)

        async def serve() -> asyncio.Server:
            return await asyncio.start_server(self._client, "127.0.0.1", self.port, ssl=context)

        server = self._loop.run_until_complete(serve())
        self.port = server.sockets[0].getsockname()[1]
        self._opened.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end(server))
            self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for _ in range(SETTLE_TURNS):  # transports close step by step
            await asyncio.sleep(0)

    async def _client(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            # Streams log a cancelled client as an error.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                if self.scheme.startswith("socks"):
                    await self._socks(reader, writer)
                else:
                    await self._http(reader, writer)
        finally:
            writer.close()

    async def _http(self, reader: Reader, writer: Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            first, *fields = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            if not self._knows(fields):
                writer.write(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 6\r\n"
                    b'Proxy-Authenticate: Basic realm="x"\r\nConnection: close\r\n\r\nwho?!\n'
                )
                return
            is_tunnel = method == "CONNECT"
            place, _, path = target.removeprefix("http://").partition("/")
            host, port = _split(place)
            self.wanted.append(Wanted("CONNECT" if is_tunnel else "absolute", host, port))
            if (status := self.refusals.get(host)) is not None:
                writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)
                continue
            if is_tunnel and not self.tunnels:
                writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
                continue
            server = await self._connect(host, port)
            if server is None:
                writer.write(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")
                continue
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _relay((reader, writer), server)
                return
            kept = [one for one in fields if not one.lower().startswith(("proxy-", "connection:"))]
            lines = [f"{method} /{path} HTTP/1.1", *kept]
            lines[-2:-2] = ["Connection: close"]
            server[1].write("\r\n".join(lines).encode("latin-1"))
            await _relay((reader, writer), server)
            return

    def _knows(self, fields: list[str]) -> bool:
        if self.user is None:
            return True
        pair = b64encode(":".join(self.user).encode()).decode()
        return f"Proxy-Authorization: Basic {pair}" in fields

    async def _socks(self, reader: Reader, writer: Writer) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        method = 2 if self.user else 0
        writer.write(bytes([5, method if method in methods else 255]))
        if method not in methods:
            return
        if self.user is not None:
            _, length = await reader.readexactly(2)
            user = (await reader.readexactly(length)).decode()
            password = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            writer.write(bytes([1, int((user, password) != self.user)]))
            if (user, password) != self.user:
                return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.wanted.append(Wanted("socks name" if kind == 3 else "socks address", host, port))
        reply = self.refusals.get(host, 0)
        server = None if reply else await self._connect(host, port)
        reply = reply or (4 if server is None else 0)
        writer.write(bytes([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        if server is not None:
            await _relay((reader, writer), server)

    async def _connect(self, host: str, port: int) -> tuple[Reader, Writer] | None:
        port = self.routes.get(f"{host}:{port}", self.routes.get(host, port))
        if host not in ("127.0.0.1", "localhost") and not (
            {host, f"{host}:{port}"} & self.routes.keys() or host in self.routes
        ):
            return None
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return None


def _split(place: str) -> tuple[str, int]:
    host, mark, port = place.rpartition(":")
    return (host, int(port)) if mark and port.isdigit() else (place, 80)


async def _relay(one: tuple[Reader, Writer], other: tuple[Reader, Writer]) -> None:
    async def pump(reader: Reader, writer: Writer) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            with suppress(OSError):
                writer.close()

    await asyncio.gather(pump(one[0], other[1]), pump(other[0], one[1]))


@contextmanager
def upstream(
    scheme: str = "http",
    *,
    user: tuple[str, str] | None = None,
    routes: Mapping[str, int] = {},
    refusals: Mapping[str, int] = {},
    folder: Path | None = None,
    tunnels: bool = True,
) -> Iterator[RecordingProxy]:
    """A running proxy; with https, `folder` gets its certificate."""
    tls = certificate(folder) if scheme == "https" and folder is not None else None
    proxy = RecordingProxy(
        scheme, user=user, routes=routes, refusals=refusals, tls=tls, tunnels=tunnels
    )
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
