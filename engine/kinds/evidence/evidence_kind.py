"""The kind `oc_evidence_bundle`, with its own browser or an open tab of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from engine.browser.chromium.browser_options import InstanceOptions
from engine.kinds.context import Context
from engine.kinds.egress_log import telling
from engine.kinds.evidence.evidence_args import ARGUMENTS, EvidenceArgs, parse_evidence
from engine.kinds.evidence.evidence_bundle import (
    OPEN_S,
    PART_S,
    Camera,
    TabMissing,
    bundle_head,
    evidence,
    size_of,
)
from engine.kinds.evidence.evidence_traits import EVIDENCE_TRAITS
from engine.kinds.private_reach import reach
from engine.kinds.spec import Column, Head, HeldTab, KindForm, KindSpec, Tools, defaults_of
from engine.model.display import display
from engine.model.tally import StoppedBy

if TYPE_CHECKING:
    from engine.browser.interact.agent_tab import AgentTab


async def _evidence(args: EvidenceArgs, context: Context, tools: Tools) -> Head:
    @asynccontextmanager
    async def open_camera(
        args: EvidenceArgs, monotonic: Callable[[], float]
    ) -> AsyncIterator[Camera]:
        async with (
            _tab_for(args, context, tools) as tab,
            telling(context, tab.instance.options.policy),
        ):
            from engine.browser.page.evidence import camera_on

            async with camera_on(tab, args, monotonic, PART_S) as camera:
                yield camera

    return await evidence(args, context, open_camera)


@asynccontextmanager
async def _tab_for(args: EvidenceArgs, context: Context, tools: Tools) -> AsyncIterator[AgentTab]:
    """Yield the given tab when it is free, or one in a new browser.

    Raises:
        TabMissing: no agent of this process has such a tab.
    """
    if args.url is None:
        async with _held(args.tab or "", tools).locked(OPEN_S) as tab:
            yield tab
        return
    policy = reach(tools.settings, args.url)
    options = InstanceOptions(
        policy, credentials=args.credentials, secrets=args.secrets, task_id=context.task_id
    )
    async with tools.browser.instance(options) as instance:
        from engine.browser.interact.agent_tab import (
            open_tab,  # imports Playwright, so only on first use
        )

        tab = await open_tab(1, instance, policy)
        tab.mask.add_given(args.secrets)
        yield tab


def _held(tab_id: str, tools: Tools) -> HeldTab:
    for _, tabs in tools.living():
        for held in tabs:
            if held.tab.id == tab_id:
                return held
    raise TabMissing(tab=display(tab_id, 40))


def _partial(
    args: EvidenceArgs, parts: Iterable[Mapping[str, Any]], _: StoppedBy, lasted_ms: int
) -> Head:
    return bundle_head("", args, size_of(parts))


EVIDENCE = KindSpec(
    EVIDENCE_TRAITS.name,
    parse_evidence,
    _evidence,
    _partial,
    traits=EVIDENCE_TRAITS,
    form=KindForm(
        "Evidence",
        "Keep a page as it is",
        "camera",
        summary="document, picture, requests and messages of a page",
        options_title="Evidence bundle",
        listed="{0} addresses, evidence of {1}",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(EvidenceArgs),
    columns=(
        *(Column("part", 14), Column("file", 40), Column("bytes", 12), Column("sha256", 66)),
        *(Column("truncated", 10), Column("error", 40)),
    ),
)
