"""A made-up internet: names, public addresses that lead to servers of the test, and a canary."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.connecting import connect
from engine.egress.egress_policy import Policy, place_of
from engine.egress.proxy import Proxy
from engine.egress.public_addresses import IPAddress
from fixtures.hostile.site import HostileSite
from tests.support.far_limits import be_patient

PUBLIC = "11.0.0.1"  # an address that is public by every rule, and nobody's here
START = "http://trap.example/"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


class World:
    """Names and what they lead to; `reached` is every connection that the proxy made."""

    def __init__(self, session: type[BrowserSession] = BrowserSession) -> None:
        self._session = session
        self.names: dict[str, list[str]] = {"trap.example": [PUBLIC]}
        self.routes: dict[str, int] = {}
        self.asked: list[str] = []
        self.reached: list[tuple[str, int]] = []

    def lookup(self, host: str) -> asyncio.Future[tuple[IPAddress, ...]]:
        """Each answer of a name in turn; the last one stays."""
        self.asked.append(host)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[IPAddress, ...]] = loop.create_future()
        answers = self.names.get(host)
        if not answers:
            loop.call_soon(future.set_exception, socket.gaierror(socket.EAI_NONAME, "unknown"))
            return future
        said = answers.pop(0) if len(answers) > 1 else answers[0]
        loop.call_soon(future.set_result, tuple(map(ipaddress.ip_address, said.split())))
        return future

    async def through(self, address: IPAddress, port: int, make: Callable[[], Any]) -> Any:
        """Connect, but for the public addresses: these lead to a port of this machine."""
        self.reached.append((str(address), port))
        local = self.routes.get(str(address))
        if local is None:
            return await connect(address, port, make)
        return await connect(ipaddress.ip_address("127.0.0.1"), local, make)

    def policy(self, start: str = START, **options: Any) -> Policy:
        return Policy(place_of(start), lookup=self.lookup, **options)

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[BrowserSession]:
        """Real Chromium whose proxy lives in this world."""
        session = self._session(os.environ.get("OC_BROWSER"))
        session.proxy = Proxy(self.through)
        try:
            yield session
        finally:
            await session.aclose()

    @property
    def strangers(self) -> set[tuple[str, int]]:
        """Connections to what is not one of the public addresses."""
        return {place for place in self.reached if place[0] not in self.routes}


@pytest.fixture
def world(kept_browser: type[BrowserSession]) -> World:
    return World(kept_browser)


@pytest.fixture
def trap() -> Iterator[HostileSite]:
    """The hostile site with its canary on another port of this machine."""
    with HostileSite() as running:
        yield running


@pytest.fixture
def public_trap(world: World, trap: HostileSite) -> HostileSite:
    """The same, as `http://trap.example/` of the made-up internet."""
    world.routes[PUBLIC] = int(trap.url.rpartition(":")[2])
    return trap
