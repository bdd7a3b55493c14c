"""The tabs of a session snapshot: those that agents have open, and those opened for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from engine.egress.egress_policy import Policy
from engine.kinds.snapshot.session_snapshot import LOOK_S
from engine.kinds.snapshot.snapshot_args import GivenTab, SnapshotArgs

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.interact.agent_tab import AgentTab
    from engine.browser.page.tab_snapshot import Look

AcquireTab = Callable[[float], "AbstractAsyncContextManager[AgentTab]"]


class OpenTab:
    """An open tab. `acquire` waits until no other task uses it."""

    def __init__(
        self, told: dict[str, Any], acquire: AcquireTab, visit: GivenTab | None = None
    ) -> None:
        self._told = told
        self._acquire = acquire
        self._visit = visit

    @property
    def told(self) -> dict[str, Any]:
        return self._told

    async def look(self, args: SnapshotArgs) -> Look:
        async with self._acquire(LOOK_S) as tab:
            from engine.browser.page.tab_snapshot import capture  # imports Playwright

            status = await self._go(tab, args) if self._visit is not None else None
            async with tab.within(LOOK_S):
                return await capture(
                    tab,
                    storage=args.include_storage,
                    screenshot=args.screenshot,
                    redact_content=args.redact_content,
                    status=status,
                )

    async def _go(self, tab: AgentTab, args: SnapshotArgs) -> int:
        assert self._visit is not None
        async with tab.within(args.timeout_ms / 1_000):
            return (await tab.go(self._visit.url, args.timeout_ms, anew=True)).status


class OpenBrowser:
    """The tabs and cookies of one browser context."""

    def __init__(self, agent: str, instance: Instance, tabs: Sequence[OpenTab]) -> None:
        self.agent = agent
        self.tabs = tabs
        self._instance = instance

    async def cookies(self) -> list[dict[str, Any]]:
        return await self._instance.cookies(LOOK_S)


async def visited(instance: Instance, policy: Policy, args: SnapshotArgs) -> OpenBrowser:
    """Return a browser that opens each given address when it is captured.

    Raises:
        BrowserGone: the browser died.
    """
    from engine.browser.interact.agent_tab import open_tab  # imports Playwright

    tab = await open_tab(1, instance, policy)
    for given in args.tabs or ():
        tab.mask.add_given(given.secrets)

    @asynccontextmanager
    async def acquire(_: float) -> AsyncIterator[AgentTab]:
        yield tab

    tabs = [
        OpenTab({"url": tab.mask.text(given.url), "visited": True}, acquire, given)
        for given in args.tabs or ()
    ]
    return OpenBrowser("", instance, tabs)
