"""The kind `recording`, in its own browser window, or in a headless one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.instances import TooManyInstances
from engine.browser.page.failures import NoScreen
from engine.browser.recording.recorder_messages import Recorder
from engine.egress.egress_policy import Policy
from engine.kinds.context import Context
from engine.kinds.egress_log import telling
from engine.kinds.private_reach import reach
from engine.kinds.recording.recording import partial_head, record
from engine.kinds.recording.recording_args import ARGUMENTS, RecordingArgs, parse_recording
from engine.kinds.recording.recording_errors import NoDisplay
from engine.kinds.recording.recording_traits import RECORDING_TRAITS
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.model.errors import BrowserFailed
from engine.model.tally import StoppedBy

CLOSE_S = 0.5  # a stopped task must be settled within 2 s; the rest closes in the background


async def _record(args: RecordingArgs, context: Context, tools: Tools) -> Head:
    policy = reach(tools.settings, args.url)
    try:
        async with telling(context, policy):
            return await record(
                args, context, lambda args, now_ms: _opened(args, now_ms, policy, tools)
            )
    except NoScreen as failed:
        raise NoDisplay() from failed


@asynccontextmanager
async def _opened(
    args: RecordingArgs, now_ms: Callable[[], int], policy: Policy, tools: Tools
) -> AsyncIterator[Recorder]:
    options = InstanceOptions(
        policy=policy,
        headed=not args.headless,
        asks_person=not args.headless,
        credentials=args.credentials,
        secrets=args.secrets,
        width=args.width,
        height=args.height,
    )
    try:
        instance = await tools.instances.launch(options)
    except TooManyInstances:
        raise BrowserFailed(reason="too many instances are open; close one first") from None
    from engine.browser.recording.recorder import (
        PageRecorder,  # imports Playwright, so only on first use
    )

    try:
        yield PageRecorder(instance, now_ms)
    finally:
        await tools.instances.retire(instance.id, CLOSE_S)


def _partial(
    args: RecordingArgs, actions: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, lasted_ms: int
) -> Head:
    return partial_head(args, "", actions, stopped_by, lasted_ms)


RECORDING = KindSpec(
    RECORDING_TRAITS.name,
    parse_recording,
    _record,
    _partial,
    traits=RECORDING_TRAITS,
    form=KindForm(
        "Recording",
        "Record what you do",
        "record",
        summary="what somebody does in a browser window",
        options_title="Recording",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(RecordingArgs),
    columns=(
        *(Column("n", 6), Column("type", 12), Column("ts", 16), Column("tab", 5)),
        *(Column("url", 50), Column("role", 12), Column("name", 30), Column("selector", 40)),
        *(Column("found_by", 10), Column("alternatives", 40), Column("count", 7)),
        *(Column("button", 8), Column("on", 6), Column("key", 12), Column("append", 8)),
        *(
            Column("dialog", 12),
            Column("answer", 10),
            Column("target", 30),
            Column("target_alternatives", 40),
            Column("files", 30),
        ),
        *(Column("text", 30), Column("variable", 16), Column("screenshot", 30)),
    ),
    verbs_help="What a recording can become.",
)
