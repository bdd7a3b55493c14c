"""The kind `oc_session_snapshot`, for the open tabs of agents or for given addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from engine.kinds.context import Context
from engine.kinds.egress_log import reach, telling
from engine.kinds.snapshot.session_snapshot import LOOK_S, Browser, snapshot, snapshot_head
from engine.kinds.snapshot.snapshot_args import ARGUMENTS, GivenTab, SnapshotArgs, parse_snapshot
from engine.kinds.snapshot.snapshot_traits import SNAPSHOT_TRAITS
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden

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


async def _snapshot(args: SnapshotArgs, context: Context, tools: Tools) -> Head:
    @asynccontextmanager
    async def browsers(args: SnapshotArgs) -> AsyncIterator[Sequence[Browser]]:
        if not args.visit:
            yield _living(tools)
            return
        policy = reach(tools.settings, *(tab.url for tab in args.tabs or ()))
        options = InstanceOptions(policy, secrets=tuple(_secrets(args)), task_id=context.task_id)
        opened = tools.browser.instance(options)
        async with opened as instance, telling(context, policy):
            yield [await visited(instance, policy, args)]

    return await snapshot(args, context, browsers)


def _living(tools: Tools) -> list[Browser]:
    """Return the browsers of this process' agents, each with its tabs."""
    found: list[Browser] = []
    for agent_id, held in tools.living():
        tabs = [OpenTab({"tab": each.tab.id, "agent": agent_id}, each.locked) for each in held]
        if tabs:
            found.append(OpenBrowser(agent_id, held[0].tab.instance, tabs))
    return found


def _partial(
    args: SnapshotArgs, _: Iterable[Mapping[str, Any]], __: StoppedBy, lasted_ms: int
) -> Head:
    return snapshot_head("", args)


def _secrets(args: SnapshotArgs) -> list[Hidden]:
    return [one for tab in args.tabs or () for one in tab.secrets]


SNAPSHOT = KindSpec(
    SNAPSHOT_TRAITS.name,
    parse_snapshot,
    _snapshot,
    _partial,
    secrets=_secrets,
    traits=SNAPSHOT_TRAITS,
    form=KindForm(
        "Snapshot",
        "Remember a session",
        "tabs",
        summary="where a piece of work stands, to go on later",
        options_title="Session snapshot",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(SnapshotArgs),
    columns=(
        *(Column("url", 50), Column("final_url", 50), Column("title", 40), Column("status", 8)),
        *(Column("screenshot", 30), Column("error", 40)),
    ),
)
