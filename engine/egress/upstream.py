"""Connections through an upstream proxy: HTTP, HTTPS (TLS to the proxy) and SOCKS5.

Everything but plain http through an HTTP proxy is a tunnel: CONNECT, or SOCKS with an address or a
name. Plain http goes to an HTTP proxy in absolute form, as browsers send it, because many allow
CONNECT to port 443 only. An error page of the proxy then looks like the site's, so the proxy is
asked for a tunnel before one is relayed (`UpstreamDialer.own_failure`).
Source: RFC 9110, sections 9.3.6 and 11.7; RFC 9112, section 3.2.2; RFC 1928; RFC 1929.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from engine.egress import public_addresses
from engine.egress.connecting import CONNECT_S, Connect, connect, dial
from engine.egress.egress_policy import KEPT_S, Addresses, Lookup, Place, Policy, Route, look_up
from engine.egress.public_addresses import IPAddress
from engine.model.errors import (
    AddressBlocked,
    PageError,
    PageOutOfFiles,
    ProxyCut,
    ProxyDenied,
    ProxyFailed,
    ProxyRefusedUser,
    ProxyUnreachable,
)
from engine.model.process_limits import is_shortage
from engine.model.proxies import UpstreamProxy

ANSWER_S = 30.0  # for the proxy's answer, which waits for its own connection
PROBE_S = 10.0
FAREWELL_S = 2.0  # for the proxy's own end of TLS, after the connection is of no use
MAX_HEAD_BYTES = 64 * 1024
MAX_TRIES = 3  # addresses of a name that a SOCKS proxy is given in turn
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?![0-9])")
_HTTP: Final = b"HTTP/"
# A name that does not exist, by RFC 6761, for a question that is about the proxy alone.
_NOWHERE: Final = ("openchrome-monitor.invalid", 443)
_END_OF_HEAD = b"\r\n\r\n"
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
# With which proxies answer a request of plain http that they filter, or cannot forward.
DOUBTFUL: Final = frozenset({403, 500, 502, 503, 504})
TUNNEL_KEPT_S: Final = 10.0  # how long a place's answer to CONNECT is used
_TUNNEL_PLACES: Final = 256
# Programs that are forward proxies and name themselves in the pages that they make.
_PROGRAMS = re.compile(rb"(?:tinyproxy|squid|mitmproxy)(?![a-z])", re.IGNORECASE)
DENIED = 407
# With which proxies say that they did not reach the server of a tunnel. Others forbid it.
_NOT_REACHED: Final = frozenset({502, 503, 504})
_DENIED_ALSO = 401  # tinyproxy's answer to a wrong password; a tunnel has no other 401
_IPV4, _NAME, _IPV6 = 1, 3, 4  # kinds of addresses in SOCKS
MAX_NAME: Final = 255  # characters, as its length is one byte
_NO_METHOD = 0xFF
_USER_METHOD = 2
# RFC 1928, section 6; `True`: for good.
_REPLIES = {
    1: ("general failure", False),
    2: ("not allowed by its rules", True),
    3: ("network unreachable", False),
    4: ("host unreachable", False),
    5: ("connection refused", False),
    6: ("the time to live expired", False),
    7: ("command not supported", True),
    8: ("kind of address not supported", True),
}
_OTHER_ADDRESS = frozenset({1, 3, 4, 5, 6, 8})  # replies after which another address may work
_CUT = "the connection was cut"
_SILENT = "no answer in time"
_UNREADABLE = "its answer cannot be understood"


class Taking(Protocol):
    """A protocol that takes over a connection.

    `early` are bytes that arrived before, after which the server ended it if `is_over`.
    """

    early: bytes
    is_over: bool

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...


Made = TypeVar("Made", bound=Taking)
Target = IPAddress | str  # a string is a name


def _refusal(words: str, *, final: bool) -> str:
    if final:
        return f"the proxy refused the address: {words}"
    return f"the proxy did not reach the server: {words}"


class _Pipe(asyncio.Protocol):
    """The proxy's answers during the handshake."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.data = bytearray()
        self._ended = False
        self._arrived = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._arrived.set()

    def close(self) -> None:
        self.transport.abort()

    async def exactly(self, count: int) -> bytes:
        """Return the next `count` bytes. Raises ProxyCut."""
        await self._until(lambda: len(self.data) >= count)
        return self._take(count)

    async def head(self) -> bytes:
        """Return the next bytes, in HTTP, up to an empty line. Raises ProxyCut."""
        await self._until(
            lambda: self._is_other or _END_OF_HEAD in self.data or len(self.data) > MAX_HEAD_BYTES,
        )
        if self._is_other:
            raise ProxyCut(_UNREADABLE)
        end = self.data.find(_END_OF_HEAD)
        if end < 0:
            raise ProxyCut(_UNREADABLE)
        return self._take(end + len(_END_OF_HEAD))

    @property
    def _is_other(self) -> bool:
        """Whether what arrived is no HTTP, such as the greeting of an SSH server."""
        return not (self.data.startswith(_HTTP) or _HTTP.startswith(self.data))

    def _take(self, count: int) -> bytes:
        taken = bytes(self.data[:count])
        del self.data[:count]
        return taken

    async def _until(self, is_complete: Callable[[], bool]) -> None:
        while not is_complete():
            if self._ended:
                raise ProxyCut(_CUT)
            self._arrived.clear()
            await self._arrived.wait()

    def hand_over(self, to: Made) -> Made:
        """Give the connection to `to`, which gets what has arrived already."""
        if self._ended and not self.data:
            raise ProxyCut(_CUT)
        self.transport.pause_reading()
        to.early, to.is_over = bytes(self.data), self._ended
        # The bound of `Made` names what is used here; every protocol given is one of asyncio's.
        self.transport.set_protocol(to)  # type: ignore[arg-type]
        to.connection_made(self.transport)
        return to


class _Asked(NamedTuple):
    """What a proxy answered to CONNECT: the head of a refusal, and the statuses of pages of plain
    http that are its own by that alone."""

    refusal: bytes = b""
    own: frozenset[int] = frozenset()


class UpstreamDialer:
    """Connects to places through their upstream proxy, on one event loop."""

    def __init__(self, through: Connect = connect, lookup: Lookup = look_up) -> None:
        self._through = through
        self._lookup = lookup
        self._kept: dict[str, Addresses] = {}
        self._encrypted: WeakSet[asyncio.Transport] = WeakSet()
        # By place: what a proxy answered to CONNECT, and until when that is used.
        self._asked: dict[Place, tuple[float, _Asked]] = {}

    async def connect(
        self, place: Place, route: Route, make: Callable[[], Made], *, tunnel: bool
    ) -> Made:
        """Return the protocol that `make` creates, with a connection to `place`.

        Without `tunnel`, the connection to an HTTP proxy is for requests in absolute form.

        Raises:
            ProxyFailed: the proxy cannot be reached, or refuses.
            PageOutOfFiles: this process may open no more files.
        """
        assert route.proxy is not None
        proxy = route.proxy
        failed: ProxyFailed = ProxyCut(_CUT)
        targets: list[Target] = [*route.found[:MAX_TRIES]] or [place.host]
        for target in targets if proxy.is_socks else targets[:1]:
            try:
                return await self._one(proxy, target, place.port, make, tunnel=tunnel)
            except ProxyFailed as refused:
                failed = refused
                if refused.reply not in _OTHER_ADDRESS:
                    break
        raise failed

    async def probe(self, proxy: UpstreamProxy, target: tuple[Target, int] | None = None) -> None:
        """Return if the proxy answers and accepts its user.

        `target` is a host and port that it may connect to: an HTTP proxy checks a user only then.

        Raises:
            ProxyCut, ProxyDenied: it does not.
            PageOutOfFiles: this process may open no more files.
        """
        pipe = await self._reach(proxy)
        try:
            if proxy.is_socks:
                await _in_time(_greet(pipe, proxy), PROBE_S)
            elif target is not None:
                await _in_time(_tunnel(pipe, proxy, *target), PROBE_S)
        except (ProxyCut, ProxyDenied) as failed:
            if proxy.is_socks or not (isinstance(failed, ProxyCut) and failed.reason == _SILENT):
                raise  # an HTTP proxy that is silent still waits for the site
        except ProxyFailed:
            return  # it refused this one address, in the language of a proxy
        finally:
            pipe.close()

    async def own_failure(
        self, proxy: UpstreamProxy, place: Place, answer: bytes, status: int
    ) -> ProxyFailed | None:
        """Return the failure of which `answer`, a head from `place`, tells; None: it is the site's.

        The proxy is asked for a tunnel to the place. If it opens one, it reaches the site; if it
        cannot connect, the answer was its own. If it allows no such tunnel, the answer is its own
        where the same program made both; if it is silent, where the answer says the same.
        """
        final = status not in _PASSING
        failed = ProxyFailed(_refusal(f"HTTP {status}", final=final), final=final)
        until_s, asked = self._asked.get(place, (0.0, _Asked()))
        if until_s < time.monotonic():
            try:
                asked = await self._ask(proxy, place)
            except PageOutOfFiles:
                return None
            while len(self._asked) >= _TUNNEL_PLACES:
                del self._asked[next(iter(self._asked))]
            self._asked[place] = (time.monotonic() + TUNNEL_KEPT_S, asked)
        is_own = status in asked.own or is_same_program(answer, asked.refusal)
        return failed if is_own else None

    async def _ask(self, proxy: UpstreamProxy, place: Place) -> _Asked:
        """Ask the proxy for a tunnel to `place`. Raises PageOutOfFiles."""
        try:
            pipe = await self._reach(proxy)
            try:
                async with asyncio.timeout(PROBE_S):
                    status, head = await _ask_for_tunnel(pipe, proxy, *place)
            finally:
                pipe.close()
        except TimeoutError:
            return _Asked(own=_NOT_REACHED)
        except ProxyFailed as failed:
            is_silent = isinstance(failed, ProxyCut) and failed.reason == _SILENT
            return _Asked(own=_NOT_REACHED if is_silent else frozenset())
        if status in _NOT_REACHED:
            return _Asked(own=DOUBTFUL)
        return _Asked() if 200 <= status < 300 else _Asked(head)

    async def _one(
        self,
        proxy: UpstreamProxy,
        target: Target,
        port: int,
        make: Callable[[], Made],
        *,
        tunnel: bool,
    ) -> Made:
        pipe = await self._reach(proxy)
        try:
            if proxy.is_socks:
                await _in_time(_socks(pipe, proxy, target, port))
            elif tunnel:
                await _in_time(_tunnel(pipe, proxy, target, port))
            return pipe.hand_over(make())
        except BaseException:
            pipe.close()
            raise

    async def _reach(self, proxy: UpstreamProxy) -> _Pipe:
        """Return a connection to the proxy, encrypted where its scheme is https."""
        try:
            found = await self._addresses(proxy)
            pipe = await dial(found, proxy.address.port, _Pipe, _Pipe.close, self._through)
            if proxy.address.scheme == "https":
                await self._encrypt(pipe, proxy)
        except OSError as failed:
            raise _reason(failed) from failed
        return pipe

    async def _encrypt(self, pipe: _Pipe, proxy: UpstreamProxy) -> None:
        try:
            transport = await asyncio.get_running_loop().start_tls(
                pipe.transport,
                pipe,
                _tls(),
                server_hostname=proxy.address.host.strip("[]"),
                ssl_handshake_timeout=CONNECT_S,
                ssl_shutdown_timeout=FAREWELL_S,
            )
        except BaseException:
            pipe.close()
            raise
        if transport is None:
            raise ConnectionResetError
        pipe.transport = transport
        self._encrypted.add(transport)

    def abort(self) -> None:
        """Abort encrypted connections, which wait for their peer after they were closed."""
        for transport in list(self._encrypted):
            transport.abort()

    async def _addresses(self, proxy: UpstreamProxy) -> tuple[IPAddress, ...]:
        host = proxy.address.host
        if proxy.allowed is not None:
            place = Place(host, proxy.address.port)
            try:
                return await Policy(None, proxy.allowed).addresses(place, str(proxy))
            except AddressBlocked as refused:
                raise ProxyCut(refused.reason) from refused
            except PageError as failed:
                raise ProxyCut(failed.args[0]) from failed
        number = public_addresses.literal(host)
        if number is not None:
            return (number,)
        kept = self._kept.get(host)
        if kept is None or kept.until < time.monotonic():
            async with asyncio.timeout(CONNECT_S):
                found = await self._lookup(host)
            self._kept[host] = kept = Addresses(found, time.monotonic() + KEPT_S)
        return kept.found


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _in_time(handshake: Awaitable[None], limit_s: float | None = None) -> None:
    try:
        async with asyncio.timeout(ANSWER_S if limit_s is None else limit_s):
            await handshake
    except TimeoutError as late:
        raise ProxyCut(_SILENT) from late


def _reason(failed: OSError) -> PageError:
    """Return why there is no connection to the proxy, without the address or details."""
    if is_shortage(failed):
        return PageOutOfFiles()
    if isinstance(failed, ssl.SSLCertVerificationError):
        return ProxyCut("its certificate is not valid")
    if isinstance(failed, ssl.SSLError):
        return ProxyCut("no secure connection could be made")
    if isinstance(failed, TimeoutError):
        return ProxyCut(_SILENT)
    if isinstance(failed, ConnectionRefusedError):
        return ProxyCut("connection refused")
    if isinstance(failed, ConnectionError):
        return ProxyCut(_CUT)
    if isinstance(failed, socket.gaierror):
        return ProxyCut("name not found")
    return ProxyCut("no connection")


def authorization(proxy: UpstreamProxy) -> bytes:
    """Return the field with user and password for an HTTP proxy; empty without a user."""
    if not proxy.username:
        return b""
    pair = f"{proxy.username}:{proxy.password}".encode()
    return b"Proxy-Authorization: Basic " + b64encode(pair) + b"\r\n"


def is_same_program(answer: bytes, refusal: bytes) -> bool:
    """Return whether a forward proxy made both heads.

    It names itself in both, and nothing stands between it and the first: an answer that it relays
    has one `Via` more than its own pages.
    """
    own, other = _fields(answer), _fields(refusal)
    server = own.get(b"server", [])
    return (
        any(map(_PROGRAMS.match, server))
        and server == other.get(b"server")
        and own.get(b"via") == other.get(b"via")
    )


def _fields(head: bytes) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


async def _tunnel(pipe: _Pipe, proxy: UpstreamProxy, target: Target, port: int) -> None:
    """Request a tunnel of an HTTP proxy. Raises ProxyFailed."""
    status, _ = await _ask_for_tunnel(pipe, proxy, target, port)
    if not 200 <= status < 300:
        final = status not in _PASSING
        raise ProxyFailed(_refusal(f"HTTP {status}", final=final), final=final)


async def _ask_for_tunnel(
    pipe: _Pipe, proxy: UpstreamProxy, target: Target, port: int
) -> tuple[int, bytes]:
    """Return status and head of the proxy's answer. Raises ProxyCut, ProxyDenied."""
    host = target if isinstance(target, str) else public_addresses.host(target)
    place = f"{host}:{port}".encode("ascii")
    head = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (place, place, authorization(proxy))
    pipe.transport.write(head)
    told = await pipe.head()
    found = _STATUS.match(told)
    if found is None:
        raise ProxyCut(_UNREADABLE)
    status = int(found[1])
    if status in (_DENIED_ALSO, DENIED):
        raise ProxyDenied
    return status, told


async def _socks(pipe: _Pipe, proxy: UpstreamProxy, target: Target, port: int) -> None:
    """Connect to an address or a name by a SOCKS5 proxy. Raises ProxyFailed."""
    await _greet(pipe, proxy)
    if isinstance(target, str):
        name = target.encode("ascii")
        if len(name) > MAX_NAME:
            words = "the name is too long for a SOCKS proxy"
            raise ProxyFailed(_refusal(words, final=True), final=True)
        place = bytes([_NAME, len(name)]) + name
    else:
        place = bytes([_IPV4 if target.version == 4 else _IPV6]) + target.packed
    pipe.transport.write(bytes([5, 1, 0]) + place + port.to_bytes(2, "big"))
    version, reply, _, kind = await pipe.exactly(4)
    if version != 5:
        raise ProxyCut(_UNREADABLE)
    if reply:
        words, final = _REPLIES.get(reply, (f"SOCKS reply {reply}", False))
        raise ProxyFailed(_refusal(words, final=final), final=final, reply=reply)
    lengths = {_IPV4: 4, _IPV6: 16}
    if kind == _NAME:
        lengths[_NAME] = (await pipe.exactly(1))[0]
    if kind not in lengths:
        raise ProxyCut(_UNREADABLE)
    await pipe.exactly(lengths[kind] + 2)  # the address and port of the proxy's own connection


async def _greet(pipe: _Pipe, proxy: UpstreamProxy) -> None:
    """Agree on a method, and give user and password if the proxy asks for them."""
    methods = bytes([0, _USER_METHOD]) if proxy.username else bytes([0])
    pipe.transport.write(bytes([5, len(methods)]) + methods)
    version, method = await pipe.exactly(2)
    if version != 5:
        raise ProxyCut(_UNREADABLE)
    if method == _NO_METHOD or method not in methods:
        raise ProxyDenied
    if method == _USER_METHOD:
        user, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        pipe.transport.write(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await pipe.exactly(2))[1]:
            raise ProxyDenied


async def check_proxy(policy: Policy, *, with_start: bool = True) -> None:
    """Return if the policy's proxy is usable; `with_start` tries it with the start address.

    Raises:
        ProxyUnreachable, ProxyRefusedUser: it is not.
    """
    if policy.proxy is None:
        return
    target: tuple[Target, int] | None = None
    place = policy.first_place if with_start else None
    if place is not None and policy.proxy_for(place) is not None:
        try:
            route = await policy.route(place, f"//{place}")
            target = (route.found[0] if route.found else place.host, place.port)
        except PageError:
            pass  # the page will say it
    await probe_proxy(policy.proxy, target)


async def probe_proxy(proxy: UpstreamProxy, target: tuple[Target, int] | None = None) -> None:
    """Return if the proxy answers and accepts its user.

    Raises:
        ProxyUnreachable, ProxyRefusedUser: it does not.
        PageOutOfFiles: this process may open no more files.
    """
    try:
        await UpstreamDialer().probe(proxy, target)
    except ProxyDenied as denied:
        raise ProxyRefusedUser(proxy=str(proxy)) from denied
    except ProxyCut as failed:
        raise ProxyUnreachable(proxy=str(proxy), reason=failed.reason) from failed


async def probe_user(proxy: UpstreamProxy) -> None:
    """Return unless an HTTP proxy refuses its user, or what answers is no HTTP proxy.

    Nothing has to be known that the proxy reaches. Its silence and the end of the connection may be
    about the place, so that they count for nothing.

    Raises:
        ProxyUnreachable, ProxyRefusedUser
        PageOutOfFiles: this process may open no more files.
    """
    if proxy.is_socks:  # which checks a user before it is given a place
        return
    try:
        await probe_proxy(proxy, _NOWHERE)
    except ProxyUnreachable as failed:
        if failed.fields["reason"] == _UNREADABLE:
            raise
