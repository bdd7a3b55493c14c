"""The kind `oc_session_snapshot`, for the open tabs of agents or for given addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from engine.browser.chromium.browser_options import InstanceOptions
from engine.kinds.context import Context
from engine.kinds.egress_log import telling
from engine.kinds.private_reach import reach
from engine.kinds.snapshot.session_snapshot import Browser, snapshot, snapshot_head
from engine.kinds.snapshot.snapshot_args import ARGUMENTS, SnapshotArgs, parse_snapshot
from engine.kinds.snapshot.snapshot_tabs import OpenBrowser, OpenTab, visited
from engine.kinds.snapshot.snapshot_traits import SNAPSHOT_TRAITS
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden


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
