"""Agents on real Chromium, and pages made of a few words."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import pytest

from engine.agents.reply import ToolReply
from engine.agents.tool_calls import Agents
from engine.browser.chromium.browser_session import BrowserSession
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.browser.conftest import Pages
from tests.support.at_once import ended
from tests.support.far_limits import be_patient
from tests.support.serving import running

Opening = Callable[..., AbstractAsyncContextManager["Desk"]]
Running = Callable[[], AbstractAsyncContextManager[Engine]]
Case = TypeVar("Case")
AGENTS = 4  # at once, where cases are not used one after the other


class Desk:
    """What a test of the tools works with."""

    def __init__(self, agents: Agents, pages: Pages, agent: str | None = None) -> None:
        self.agents = agents
        self.pages = pages
        self._agent = agent
        self._path = "" if agent is None else f"/{agent}"

    async def call(self, tool: str, agent: str | None = None, **args: Any) -> ToolReply:
        return await self.agents.call(tool, args, agent_id=agent or self._agent)

    async def show(self, html: str, agent: str | None = None) -> ToolReply:
        """Open a page of these words."""
        self.pages[self._path or "/"] = html
        return await self.call("navigate", agent, url=f"{self.pages.url}{self._path}")

    async def at_once(
        self,
        use: Callable[[Desk, Case], Coroutine[Any, Any, None]],
        cases: Mapping[str, Case],
    ) -> dict[str, asyncio.Task[None]]:
        """Use the desks of some agents, each with a page of its own; see `at_once.ended`."""
        free = [Desk(self.agents, self.pages, f"agent-{number}") for number in range(AGENTS)]

        async def used(case: Case) -> None:
            made = free.pop()
            try:
                await use(made, case)
            finally:
                free.append(made)

        return await ended({name: used(case) for name, case in cases.items()}, most=AGENTS)

    async def read(self, **args: Any) -> str:
        """The page's lines, without its title and address."""
        return (await self.call("read_page", **args)).text.split("\n\n", 1)[1]

    async def ref(self, role: str, name: str) -> str:
        """The reference of the one element with this role and name."""
        elements = (await self.call("read_page")).data["elements"]
        (found,) = [e for e in elements if (e["role"], e.get("name", "")) == (role, name)]
        return str(found["ref"])

    async def do(self, action: str, role: str, name: str, value: str | None = None) -> ToolReply:
        ref = await self.ref(role, name)
        return await self.call("interact", ref=ref, action=action, value=value)

    async def script(self, code: str) -> Any:
        return (await self.call("javascript_tool", code=code)).data["value"]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def pages() -> Iterator[Pages]:
    with running(Pages()) as made:
        yield made


@pytest.fixture
def elsewhere() -> Iterator[Pages]:
    """A second host and port."""
    with running(Pages()) as made:
        yield made


@pytest.fixture
def desk(pages: Pages, kept_browser: type[BrowserSession]) -> Opening:
    """`async with desk(idle_s=…) as made:`; the pages of the test may be opened."""

    @asynccontextmanager
    async def make(**options: Any) -> AsyncIterator[Desk]:
        browser = kept_browser(os.environ.get("OC_BROWSER"))
        place = f"127.0.0.1:{pages.server.port}"
        agents = Agents(browser, **{"allow_private": (place,), **options})
        try:
            yield Desk(agents, pages)
        finally:
            await agents.close()
            await browser.aclose()

    return make


@pytest.fixture
def engine(home: Any, pages: Pages, elsewhere: Pages, kept_browser: object) -> Running:
    """A whole engine that takes tasks; both hosts may be opened."""

    @asynccontextmanager
    async def make() -> AsyncIterator[Engine]:
        places = tuple(f"127.0.0.1:{one.server.port}" for one in (pages, elsewhere))
        settings = Settings(
            home=home,
            root=home / "tasks",
            browser_path=os.environ.get("OC_BROWSER"),
            allow_private=(*places, *(place.replace("127.0.0.1", "localhost") for place in places)),
        )
        running = Engine(settings, accepts=True)
        await running.open()
        try:
            yield running
        finally:
            await running.close()

    return make
