"""The browser server: lends the Chromium of this machine to engines on other machines.

A client gets a browser of its own, which Playwright's browser server (`launch-server`) starts on
this machine, and drives it through a relayed connection. The contexts of its tasks use ports of
this server as proxies, and each connection to such a port is carried back to the client, whose
egress policy decides about it. Only processes of that browser may use
the ports, where the system reports the owner of a connection. A client with the token can do all
that a program of this machine can do with a browser, so that the token is as valuable as a login.

The browser ends with the connection of its client, and with this process. Its profile and all of
Playwright's files are in a folder of its own, which is removed then.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import psutil
from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Error

from engine.browser.chromium.browser_options import DEFAULT, BrowserVariant
from engine.browser.chromium.driver import SETTLE_S, Family, Pairs, end, tree
from engine.browser.chromium.launch import (
    LAUNCH_S,
    NO_SCREEN,
    Load,
    dropped_defaults,
    is_root,
    own_flags,
    reason_of,
)
from engine.browser.chromium.locate import Found, locate
from engine.browser.page.failures import NoScreen, check_limits
from engine.browser.remote.remote_address import TOKEN_VARIABLE
from engine.browser.remote.remote_connection import (
    ENDED,
    HELLO_S,
    MOST_LINE,
    PING_S,
    SHUTDOWN_S,
    SILENT_S,
    Hello,
    Message,
    Pipe,
    WrongToken,
    greet,
    playwright_version,
    read_message,
    relay,
    send,
)
from engine.model.errors import BrowserFailed, EngineError
from engine.model.listening import close_server

SESSIONS: Final = 4
MOST_SESSIONS: Final = 32
MOST_STRANGERS: Final = 64  # connections that have not proved yet that they have the token
MOST_LISTENERS: Final = 64  # of one session; an engine has 32 instances at most
MOST_WAITING: Final = 512  # connections of a browser that the client has not taken yet
FETCH_S: Final = 20.0  # for the client to take such a connection
END_S: Final = 5.0
CLOSE_S: Final = 15.0  # for all browsers to end
MOST_SAID: Final = 65_536  # bytes of the output of a browser that does not start
# The browser ends with this process, whose end closes the standard input, however it comes: by its
# own handler, or before that is there with Node.js, which removes its folder then. An open input
# does not keep Node.js running. Playwright's server would report its secret path to every client:
# it answers no plain request.
_SCRIPT: Final = """
const stop = () => process.exit(1);
const remove = () => require('fs').rmSync(process.env.TMPDIR, { recursive: true, force: true });
process.stdin.on('close', () => {
  process.on('exit', remove);
  if (!process.emit('SIGTERM')) stop();
  setTimeout(stop, 10_000).unref();
}).resume().unref();
const { Server } = require('http');
const emit = Server.prototype.emit;
Server.prototype.emit = function (name, ...given) {
  if (name !== 'request') return emit.call(this, name, ...given);
  given[0].socket.destroy();
  return true;
};
require(process.argv[1]);
"""
_PIPE: Final = "--remote-debugging-pipe"  # a switch of the browser's first process alone
_FOLDER: Final = "oc-browser-"  # short, because paths of sockets are limited
_LEFT_OUT: Final = (TOKEN_VARIABLE, "DEBUG", "NODE_OPTIONS")  # of the browser's environment

Report = Callable[[str, Mapping[str, object]], None]


def _no_report(_: str, __: Mapping[str, object]) -> None:
    """Default that ignores events."""


class BrowserServer:
    """Listens for clients. Loop-bound; `close` ends all browsers."""

    def __init__(
        self,
        token: str,
        *,
        environ: Mapping[str, str],
        browser_path: str | None = None,
        most: int = SESSIONS,
        report: Report = _no_report,
    ) -> None:
        """Create a server that lends at most `most` browsers at a time.

        Its browsers get `environ` as their environment, without the token.
        `report` gets events, each with the client's address: `began` and `ended` with the number of
        browsers, `failed` with the reason of a browser that does not start, and `refused`.
        """
        self._token = token
        self._environ = {name: one for name, one in environ.items() if name not in _LEFT_OUT}
        self._browser_path = browser_path
        self._most = most
        self._report = report
        self._server: asyncio.Server | None = None
        self._blocking: asyncio.Server | None = None  # for requests outside any context
        self._sessions: dict[str, _Session] = {}
        self._strangers: dict[asyncio.StreamWriter, None] = {}  # oldest first
        self._clients: set[asyncio.StreamWriter] = set()
        self._is_closed = False
        self._work: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen, and return the port. Raises OSError."""
        given = {"ssl_handshake_timeout": HELLO_S, "ssl_shutdown_timeout": SHUTDOWN_S}
        self._blocking = await asyncio.start_server(_refuse, "127.0.0.1", 0)
        try:
            self._server = await asyncio.start_server(
                self._on_client, host, port, ssl=tls, limit=MOST_LINE, **(given if tls else {})
            )
        except OSError:
            self._blocking.close()
            raise
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Accept nothing more, and end every browser."""
        self._is_closed = True
        if self._server is not None:
            await close_server(self._server)
        for writer in self._clients:
            writer.transport.abort()  # each client's work ends with its connection
        if self._work:
            await asyncio.wait(self._work, timeout=CLOSE_S)
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        if self._blocking is not None:
            await close_server(self._blocking)

    def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:  # accepted before it stopped to listen
            writer.transport.abort()
            return
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        self._strangers[writer] = None
        task = asyncio.create_task(self._serve((reader, writer)), name="a client")
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _serve(self, pipe: Pipe) -> None:
        client = _peer(pipe)
        self._clients.add(pipe[1])
        try:
            try:
                async with asyncio.timeout(HELLO_S):
                    hello = await greet(pipe, self._token)
            finally:
                self._strangers.pop(pipe[1], None)
            if hello.role == "browser":
                await self._lend(pipe, hello, client)
            else:
                await self._join(pipe, hello)
        except WrongToken:
            self._report("refused", {"client": client, "reason": "it has another token"})
        except (EOFError, TimeoutError, OSError):
            return  # the client is gone, or is none
        finally:
            self._clients.discard(pipe[1])
            pipe[1].close()

    async def _lend(self, pipe: Pipe, hello: Hello, client: str) -> None:
        if hello.version != playwright_version():
            ours, theirs = playwright_version(), hello.version
            reason = f"it has Playwright {ours} and this program {theirs}; both need the same"
            self._refuse_client(pipe, client, reason)
            return
        if len(self._sessions) >= self._most:
            reason = f"all {self._most} browsers that it lends are in use (--most)"
            self._refuse_client(pipe, client, reason)
            return
        assert self._blocking is not None
        port = self._blocking.sockets[0].getsockname()[1]
        session = _Session(pipe, _Wish(self._browser_path, self._environ, port))
        self._sessions[session.id] = session

        def report(news: str, **facts: object) -> None:
            count = len(self._sessions)
            self._report(news, {"client": client, "browsers": count, **facts})

        began = False
        try:
            if not await session.start(report):
                return
            began = True
            report("began")
            await session.serve()
        finally:
            await session.end()
            del self._sessions[session.id]
            if began:
                report("ended")

    def _refuse_client(self, pipe: Pipe, client: str, reason: str) -> None:
        self._report("refused", {"client": client, "reason": reason})
        send(pipe[1], Message(error=reason))

    async def _join(self, pipe: Pipe, hello: Hello) -> None:
        """Connect a client to its browser, or to a connection that its browser made."""
        name, _, stream = hello.name.partition("/")
        session = self._sessions.get(name)
        if session is None:
            return
        if hello.role == "driver":
            await session.drive(pipe)
        else:
            await session.carry(pipe, stream)


class _Wish(NamedTuple):
    """What all browsers of a server have: requests outside any context go to `blocking_port`."""

    browser_path: str | None
    environ: Mapping[str, str]
    blocking_port: int


class _Session:
    """A browser and its client."""

    def __init__(self, pipe: Pipe, wish: _Wish) -> None:
        self.id = secrets.token_hex(16)
        self._reader, self._writer = pipe
        self._wish = wish
        self._browser: _Browser | None = None
        self._listeners: dict[int, asyncio.Server] = {}
        self._waiting: dict[str, tuple[Pipe, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._made: set[asyncio.StreamWriter] = set()  # connections that the browser made
        self._offered = 0  # connections of which it is not known yet whose they are
        self._looking: asyncio.Task[Pairs | None] | None = None
        self._ends = False

    async def start(self, report: Callable[..., None]) -> bool:
        """Start the browser; return False after the client got the reason.

        Raises:
            EOFError, TimeoutError: the client is gone.
        """
        async with asyncio.timeout(HELLO_S):
            asked = await read_message(self._reader)
        variant = BrowserVariant(lean=False, headed=asked.headed, windows=asked.windows)
        try:
            self._browser = await self._start(variant)
        except EngineError as failed:
            report("failed", reason=str(failed))
            send(self._writer, Message(error=str(failed).rstrip("."), code=failed.code))
            return False
        name = self._browser.found.name
        send(self._writer, Message(session=self.id, path=self._browser.path, browser=name))
        return True

    async def _start(self, variant: BrowserVariant) -> _Browser:
        """Start the browser, whose client may leave meanwhile."""
        starting = asyncio.create_task(_Browser.start(self._wish, variant), name="start a browser")
        left = asyncio.create_task(self._reader.read(1))  # a client says nothing now
        try:
            await asyncio.wait({starting, left}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                raise EOFError
            return await starting
        except BaseException:
            starting.cancel()
            await asyncio.wait({starting})
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().end()
            raise
        finally:
            left.cancel()
            await asyncio.gather(left, return_exceptions=True)

    async def serve(self) -> None:
        """Serve the client until it or the browser is gone."""
        assert self._browser is not None
        watching = self._run(self._browser.watch())
        serving = {watching, self._run(self._follow_requests()), self._run(self._ping())}
        await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():  # so that the client does not take it for a lost connection
            send(self._writer, Message(code=ENDED))

    async def end(self) -> None:
        """End the browser, and every connection of it."""
        self._ends = True
        for task in self._tasks:
            task.cancel()
        for listener in self._listeners.values():
            listener.close()
        for _, timer in self._waiting.values():
            timer.cancel()
        for writer in self._made:
            writer.transport.abort()
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            if self._browser is not None:
                await asyncio.shield(self._browser.end())

    async def _ping(self) -> None:
        while True:
            send(self._writer, Message())
            await asyncio.sleep(PING_S)

    async def _follow_requests(self) -> None:
        """Open and close ports for the client, until it is gone."""
        with suppress(EOFError, TimeoutError):
            while True:
                async with asyncio.timeout(SILENT_S):
                    asked = await read_message(self._reader)
                if asked.listen:
                    await self._listen(asked.listen)
                if asked.shut and (listener := self._listeners.pop(asked.shut, None)):
                    listener.close()

    async def _listen(self, number: int) -> None:
        if number in self._listeners or len(self._listeners) >= MOST_LISTENERS:
            send(self._writer, Message(listen=number, error="it has too many ports open"))
            return
        try:
            listener = await asyncio.start_server(
                lambda reader, writer: self._on_connection(number, (reader, writer)),
                "127.0.0.1",
                0,
            )
        except OSError as failed:
            send(self._writer, Message(listen=number, error=failed.strerror or "it has no port"))
            return
        self._listeners[number] = listener
        send(self._writer, Message(listen=number, port=listener.sockets[0].getsockname()[1]))

    def _on_connection(self, number: int, pipe: Pipe) -> None:
        if self._ends or self._offered + len(self._waiting) >= MOST_WAITING:
            pipe[1].transport.abort()
            return
        self._offered += 1
        self._made.add(pipe[1])
        self._run(self._offer(number, pipe))

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do work that ends with the session."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _offer(self, number: int, pipe: Pipe) -> None:
        """Offer the client a connection that the browser made; it has 20 s to take it."""
        own = False
        try:
            own = await self._is_own(pipe[1])
        finally:
            self._offered -= 1
            if not own:
                self._drop(pipe[1])
        if own:
            stream = secrets.token_hex(8)
            timer = asyncio.get_running_loop().call_later(FETCH_S, self._forget, stream)
            self._waiting[stream] = pipe, timer
            send(self._writer, Message(listen=number, stream=stream))

    def _forget(self, stream: str) -> None:
        (_, writer), _ = self._waiting.pop(stream)
        self._drop(writer)

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._made.discard(writer)
        writer.transport.abort()

    async def _is_own(self, writer: asyncio.StreamWriter) -> bool:
        """Return whether the browser made a connection, or the owner is unknown.

        One look at the system answers for all connections that were there when it began.
        """
        host, port, *_ = writer.get_extra_info("peername")
        pair = int(port), int(writer.get_extra_info("sockname")[1])
        if host != "127.0.0.1":
            return False
        running = self._looking
        if running is not None:
            await asyncio.wait({running})
        if self._looking is running:  # no other connection has begun the next look
            self._looking = asyncio.create_task(self._look())
        assert self._looking is not None
        found = await asyncio.shield(self._looking)
        return found is None or pair in found

    async def _look(self) -> Pairs | None:
        browser = self._browser
        return frozenset() if browser is None else await asyncio.to_thread(browser.connections)

    async def drive(self, pipe: Pipe) -> None:
        """Connect the client to Playwright's server."""
        if self._browser is None or self._ends:
            return
        other = await asyncio.open_connection("127.0.0.1", self._browser.port)
        await self._relay(pipe, other)

    async def carry(self, pipe: Pipe, stream: str) -> None:
        """Connect the client to a connection that the browser made."""
        found = self._waiting.pop(stream, None)
        if found is not None:
            other, timer = found
            timer.cancel()
            try:
                await self._relay(pipe, other)
            finally:
                self._drop(other[1])

    async def _relay(self, pipe: Pipe, other: Pipe) -> None:
        if self._ends:
            other[1].transport.abort()
            return
        await asyncio.wait({self._run(relay(pipe, other))})


class _Browser:
    """Playwright's browser server with one browser, in a separate process."""

    def __init__(self, found: Found, process: asyncio.subprocess.Process, folder: str) -> None:
        self.found = found
        self.port = 0
        self.path = ""
        self._process = process
        self._folder = folder
        self._family: Family | None = None

    @classmethod
    async def start(cls, wish: _Wish, variant: BrowserVariant) -> _Browser:
        """Start a browser.

        Raises:
            BrowserMissing, NoScreen, BrowserFailed
        """
        check_limits()
        found = await asyncio.to_thread(locate, wish.browser_path, headless=not variant.headed)
        options = {
            "host": "127.0.0.1",
            "port": 0,
            "wsPath": f"/{secrets.token_hex(16)}",  # the key to the port
            "executablePath": found.path,
            "headless": not variant.headed,
            "args": own_flags(variant),
            "proxy": {"server": f"http://127.0.0.1:{wish.blocking_port}", "bypass": "<-loopback>"},
            "ignoreDefaultArgs": dropped_defaults(),
            "chromiumSandbox": not is_root(),
            "handleSIGINT": False,
            "handleSIGHUP": False,
            "timeout": LAUNCH_S * 1000,
        }
        try:
            folder = _folder_with(msgspec.json.encode(options))  # a small file
        except OSError as failed:
            raise BrowserFailed(reason=f"no temporary folder: {failed.strerror}") from failed
        try:
            process = await _node(folder, wish.environ)
        except (OSError, Error) as failed:
            shutil.rmtree(folder, ignore_errors=True)  # one file
            raise BrowserFailed(reason=f"its driver does not start: {failed}") from failed
        except asyncio.CancelledError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        started = cls(found, process, folder)
        try:
            await started._read_address(variant)
            await asyncio.to_thread(started._find_family)
        except BaseException:
            await asyncio.shield(started.end())
            raise
        return started

    async def _read_address(self, variant: BrowserVariant) -> None:
        """Read where the server listens. Raises NoScreen, BrowserFailed: it does not start."""
        said = await _first_words(self._process)
        lines = [line.strip() for line in said.splitlines()]
        line = next((line for line in lines if line.startswith("ws://127.0.0.1:")), "")
        port, _, path = line.removeprefix("ws://127.0.0.1:").partition("/")
        if port.isdecimal():
            self.port, self.path = int(port), f"/{path}"
            return
        if variant.headed and NO_SCREEN.search(said):
            raise NoScreen
        raise BrowserFailed(reason=f"{self.found.path}: {reason_of(said)}")

    def _find_family(self) -> None:
        with suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if _PIPE in child.cmdline():
                        self._family = Family.of(child.pid)
                        return

    def connections(self) -> Pairs | None:
        """Return the ports of its connections, or None if unknown. For a thread."""
        return frozenset() if self._family is None else self._family.connections()

    async def watch(self) -> None:
        """End pages that take too much memory, until the browser ends."""
        load = Load()
        ended = asyncio.create_task(_drain(self._process))
        try:
            while not ended.done():
                await asyncio.wait({ended}, timeout=DEFAULT.look_s)
                if self._family is not None and not ended.done():
                    await asyncio.to_thread(load.weigh, self._family, DEFAULT)
        finally:
            ended.cancel()

    async def end(self) -> None:
        """End the browser and its server at once, and remove their files."""
        await asyncio.to_thread(self._kill)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    def _kill(self) -> None:
        members = self._family.members() if self._family is not None else []
        if self._process.returncode is None:
            with suppress(psutil.Error):
                members += tree(psutil.Process(self._process.pid))
        end(members)
        # Without Node.js, whose exit code asyncio waits for: a dying browser still writes.
        mine = self._process.pid
        psutil.wait_procs([one for one in members if one.pid != mine], timeout=SETTLE_S)


def _folder_with(options: bytes) -> str:
    """Make the folder of a browser, which others cannot enter, with its options."""
    folder = tempfile.mkdtemp(prefix=_FOLDER)
    Path(folder, "options.json").write_bytes(options)
    return folder


async def _node(folder: str, environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start Playwright's browser server with the options in its folder."""
    node, playwright = compute_driver_executable()
    own = {**environ, **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder)}
    return await asyncio.create_subprocess_exec(
        *(node, "-e", _SCRIPT, playwright, "launch-server", "--browser", "chromium"),
        *("--config", os.path.join(folder, "options.json")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=own,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


async def _first_words(process: asyncio.subprocess.Process) -> str:
    """Return the output of a server up to its address, or up to its end."""
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(LAUNCH_S + END_S):
            while data := await process.stdout.read(MOST_SAID):
                said += data
                if (b"ws://" in said and said.endswith(b"\n")) or len(said) > MOST_SAID:
                    break
    except TimeoutError:
        return "Timeout"
    return said.decode("utf-8", "replace")


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read the output of a server until it ends, so that it never waits for a reader."""
    assert process.stdout is not None
    while await process.stdout.read(MOST_SAID):
        continue
    await process.wait()


def _refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def _peer(pipe: Pipe) -> str:
    name = pipe[1].get_extra_info("peername")
    return str(name[0]) if name else "?"
