"""A browser server, and engines that use its browser; none shares a browser with other tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.remote.browser_server import BrowserServer
from engine.browser.remote.remote_address import RemotePlace
from engine.egress.egress_policy import Policy
from engine.model.addresses import ServiceAddress
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.support.far_limits import FAR_S, be_patient

TOKEN = "a token of twenty characters and more"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these limits is for a connection that is lost; the tests end theirs themselves."""
    be_patient(monkeypatch)
    for name in ("HELLO_S", "SILENT_S", "LAUNCH_S", "FETCH_S", "END_S"):
        monkeypatch.setattr(f"engine.browser.remote.browser_server.{name}", FAR_S)
    for name in ("SILENT_S", "START_S", "PUBLISH_S", "NEWS_S"):
        monkeypatch.setattr(f"engine.browser.remote.remote_browser.{name}", FAR_S)
    monkeypatch.setattr("engine.browser.remote.remote_connection.HELLO_S", FAR_S)
    monkeypatch.setattr("engine.browser.chromium.browser_session.START_S", 2 * FAR_S)
    monkeypatch.setattr("engine.egress.proxy.START_S", FAR_S)


@dataclass
class Lent:
    """A browser server, its news, and where clients find it."""

    server: BrowserServer
    port: int
    news: list[str] = field(default_factory=list)
    scheme: str = "tcp"

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def place(self) -> RemotePlace:
        return RemotePlace(ServiceAddress("tcp", "127.0.0.1", self.port), TOKEN)

    @property
    def session(self) -> Any:
        """The only session of a client."""
        (only,) = self.server._sessions.values()
        return only

    @property
    def environ(self) -> dict[str, str]:
        return {"OC_BROWSER_TOKEN": TOKEN}

    async def ended(self) -> None:
        """Wait until no browser is lent."""
        await until(lambda: not self.server._sessions)


async def until(condition: Any) -> None:
    """Wait for what no signal tells of; the test's own limit ends what hangs."""
    while not condition():
        await asyncio.sleep(0.01)


@asynccontextmanager
async def lending(tls: SSLContext | None = None, **given: Any) -> AsyncIterator[Lent]:
    """A server, which must have no browser left at the end."""
    news: list[str] = []
    path = os.environ.get("OC_BROWSER")
    given |= {"environ": {**os.environ}, "browser_path": path}
    server = BrowserServer(TOKEN, report=lambda what, _: news.append(what), **given)
    port = await server.start("127.0.0.1", 0, tls)
    try:
        yield Lent(server, port, news, "tcp" if tls is None else "tls")
    finally:
        await server.close()
        assert not server._sessions


@asynccontextmanager
async def engine_at(home: Path, environ: Mapping[str, str], **given: Any) -> AsyncIterator[Engine]:
    settings = Settings.at(home=home)
    made = {name: getattr(settings, name) for name in ("home", "root")}
    engine = Engine(Settings(**made, environ=environ, **given), accepts=True)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


def options(lent: Lent, *places: str, **given: Any) -> InstanceOptions:
    return InstanceOptions(Policy(None, places), remote=lent.place, **given)
