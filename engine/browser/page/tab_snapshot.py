"""Session snapshots of tabs that agents have open, and of tabs opened for the snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from playwright.async_api import Error

from engine.browser.chromium.browser_instance import Instance
from engine.browser.interact.agent_tab import AgentTab, open_tab
from engine.browser.page.isolated_world import evaluate
from engine.browser.page.screenshot import picture
from engine.egress.egress_policy import Policy, without_credentials
from engine.kinds.snapshot.session_snapshot import LOOK_S, Look
from engine.kinds.snapshot.snapshot_args import GivenTab, SnapshotArgs
from engine.model import addresses
from engine.model.errors import BrowserGone

_HERE: Final = """(() => ({
  x: Math.round(scrollX), y: Math.round(scrollY), title: document.title.slice(0, 2000),
  url: location.href,
}))()"""
_STORED: Final = """(() => {
  try {
    return Object.entries(localStorage).map(([name, value]) => ({ name, value }));
  } catch { return []; }
})()"""
AcquireTab = Callable[[float], AbstractAsyncContextManager[AgentTab]]


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
            status = await self._go(tab, args) if self._visit is not None else None
            async with tab.within(LOOK_S):
                return await _capture(tab, args, status)

    async def _go(self, tab: AgentTab, args: SnapshotArgs) -> int:
        assert self._visit is not None
        async with tab.within(args.timeout_ms / 1_000):
            return (await tab.go(self._visit.url, args.timeout_ms, anew=True)).status


async def _capture(tab: AgentTab, args: SnapshotArgs, status: int | None) -> Look:
    wire = tab.instance.wire(tab.page)
    here = await evaluate(wire, _HERE)
    url = str(here["url"])
    stored = await evaluate(wire, _STORED) if args.include_storage else []
    shot = await picture(tab, ref=None, full_page=False) if args.screenshot else None
    return Look(
        url=tab.mask.text(without_credentials(url), 2_048),
        title=tab.mask.content(str(here["title"]), 500, key_shapes=args.redact_content),
        scroll_x=int(here["x"]),
        scroll_y=int(here["y"]),
        status=status,
        png=shot.png if shot else None,
        origin=_origin(url) if stored else "",
        storage=stored,
    )


def _origin(url: str) -> str:
    found = addresses.parse(url)
    return "" if found is None else found.origin


class OpenBrowser:
    """The tabs and cookies of one browser context."""

    def __init__(self, agent: str, instance: Instance, tabs: Sequence[OpenTab]) -> None:
        self.agent = agent
        self.tabs = tabs
        self._instance = instance

    async def cookies(self) -> list[dict[str, Any]]:
        try:
            async with self._instance.within(LOOK_S):
                return [dict(cookie) for cookie in await self._instance.context.cookies()]
        except (Error, TimeoutError) as gone:
            raise BrowserGone(url="its cookies") from gone


async def visited(instance: Instance, policy: Policy, args: SnapshotArgs) -> OpenBrowser:
    """Return a browser that opens each given address when it is captured.

    Raises:
        BrowserGone: the browser died.
    """
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
