"""Browsers of agents: one per agent, with its tabs; closed when idle.

A tab belongs to the agent that opened it. Calls on one tab run in order of arrival; calls of
different agents, and on different tabs, run concurrently.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.agents.reply import (
    NoTabOpen,
    TabNotFound,
    TooManyAgents,
    TooManyTabs,
    WindowTooShort,
)
from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from engine.kinds.arguments import proxy_secrets
from engine.model.errors import OwnershipError, ShuttingDown
from engine.model.proxies import DIRECT, DefaultProxy

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.interact.agent_tab import AgentTab

IDLE_S = 15 * 60.0
MOST_AGENTS = 8
MOST_TABS = 20


class QueuedTab:
    """A tab with the lock that serialises its calls."""

    def __init__(self, tab: AgentTab) -> None:
        self.tab = tab
        self.turn = asyncio.Lock()

    @asynccontextmanager
    async def locked(self, limit_s: float) -> AsyncIterator[AgentTab]:
        """Lock the tab for one call, after the calls before it.

        Raises:
            WindowTooShort: the lock was not acquired within `limit_s`.
        """
        try:
            async with asyncio.timeout(limit_s):
                await self.turn.acquire()
        except TimeoutError as busy:
            raise WindowTooShort(tab_id=self.tab.id, limit_s=limit_s) from busy
        try:
            yield self.tab
        finally:
            self.turn.release()


class Session:
    """One agent's browser. `current` is the tab of calls without a tab id."""

    def __init__(self, agent_id: str, instance: Instance) -> None:
        self.agent_id = agent_id
        self.instance = instance
        self.tabs: dict[str, QueuedTab] = {}
        self.current: str | None = None
        self.busy = 0
        self.used_at = 0.0

    def drop_closed(self) -> None:
        """Remove closed tabs."""
        self.tabs = {name: held for name, held in self.tabs.items() if not held.tab.closed}
        if self.current not in self.tabs:
            self.current = next(reversed(self.tabs), None)


class Sessions:
    """Browsers of all agents. Bound to the event loop; `close` ends them all."""

    def __init__(
        self,
        browser: BrowserSession,
        policy: Policy,
        *,
        proxy: DefaultProxy = DIRECT,
        idle_s: float = IDLE_S,
        most: int = MOST_AGENTS,
    ) -> None:
        self._browser = browser
        self._policy = policy
        self._proxy = proxy
        self._idle_s = idle_s
        self._most = most
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._numbers = 0
        self._watching: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents with an open browser."""
        return tuple(self._sessions)

    def living(self) -> list[tuple[str, list[QueuedTab]]]:
        """Return each agent with its open tabs."""
        found = [(agent_id, self.find(agent_id)) for agent_id in self._sessions]
        return [(agent_id, [*one.tabs.values()]) for agent_id, one in found if one is not None]

    def find(self, agent_id: str) -> Session | None:
        """Return the agent's running browser, or None."""
        session = self._sessions.get(agent_id)
        if session is None or not session.instance.alive:
            return None
        session.drop_closed()
        return session

    @asynccontextmanager
    async def using(self, agent_id: str) -> AsyncIterator[Session]:
        """Yield the agent's browser, opened if necessary, and protected from the idle timeout.

        Raises:
            TooManyAgents, ShuttingDown, BrowserMissing, BrowserFailed, BrowserGone, ProxyUnusable.
        """
        session = self.find(agent_id)
        if session is None:
            async with self._opening:
                session = self.find(agent_id) or await self._open(agent_id)
        session.busy += 1
        try:
            yield session
        finally:
            session.busy -= 1
            session.used_at = time.monotonic()

    def tab_for(self, session: Session, tab_id: str | None, action: str) -> QueuedTab:
        """Return the tab of a call, if it is the agent's own.

        Raises:
            OwnershipError: it is another agent's. TabNotFound, NoTabOpen.
        """
        wanted = tab_id or session.current
        if wanted is None:
            raise NoTabOpen()
        if wanted in session.tabs:
            return session.tabs[wanted]
        owner = self._owner(wanted)
        if owner is None:
            raise TabNotFound(tab_id=wanted[:40])
        raise OwnershipError(
            agentId=session.agent_id, tabId=wanted, ownerAgentId=owner, action=action
        )

    async def open_tab(self, session: Session) -> QueuedTab:
        """Open a new tab of the agent.

        Raises:
            TooManyTabs, BrowserGone.
        """
        from engine.browser.interact.agent_tab import open_tab

        session.drop_closed()
        if len(session.tabs) >= MOST_TABS:
            raise TooManyTabs(most=MOST_TABS)
        self._numbers += 1
        held = QueuedTab(await open_tab(self._numbers, session.instance, self._policy))
        session.tabs[held.tab.id] = held
        return held

    async def allow(self, private: Iterable[str]) -> None:
        """Replace the private `host:port` that may be opened.

        Where one is removed, all browsers end: they may show its pages and connect to it directly.
        """
        if self._policy.allow(private):
            async with self._opening:  # a browser that is being opened may have the old list
                await self._close_all()

    async def close(self) -> None:
        """End every agent's browser within a time limit; later calls are refused."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._close_all()

    async def _close_all(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.instance.close() for session in sessions))

    def _owner(self, tab_id: str) -> str | None:
        for agent_id, session in self._sessions.items():
            if tab_id in session.tabs and not session.tabs[tab_id].tab.closed:
                return agent_id
        return None

    async def _open(self, agent_id: str) -> Session:
        self._expect_open()
        await self._remove_dead()
        if len(self._sessions) >= self._most:
            raise TooManyAgents(most=self._most, idle_min=self._idle_s / 60)
        self._policy.proxy = self._proxy.upstream()
        secrets = proxy_secrets(self._policy.proxy)
        options = InstanceOptions(policy=self._policy, secrets=secrets)
        instance = await self._browser.open_instance(options)
        try:
            self._expect_open()
        except ShuttingDown:  # the engine was closed during the browser's start
            await instance.close()
            raise
        session = self._sessions[agent_id] = Session(agent_id, instance)
        session.used_at = time.monotonic()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="close idle agents")
        return session

    def _expect_open(self) -> None:
        if self._closed:
            raise ShuttingDown()

    async def _remove_dead(self) -> None:
        """Remove the sessions of dead browsers."""
        for agent_id, session in list(self._sessions.items()):
            if not session.instance.alive:
                del self._sessions[agent_id]
                await session.instance.close()

    async def _watch(self) -> None:
        while self._sessions:
            await asyncio.sleep(max(0.01, self._next_idle_s()))
            async with self._opening:
                await self._close_idle()

    def _next_idle_s(self) -> float:
        """Return the seconds until the next session can time out."""
        now = time.monotonic()
        waits = [
            self._idle_s if session.busy else session.used_at + self._idle_s - now
            for session in self._sessions.values()
        ]
        return min(waits, default=self._idle_s)

    async def _close_idle(self) -> None:
        now = time.monotonic()
        for agent_id, session in list(self._sessions.items()):
            if not session.busy and now - session.used_at >= self._idle_s:
                del self._sessions[agent_id]
                await session.instance.close()
