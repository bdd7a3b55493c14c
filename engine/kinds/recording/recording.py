"""A recording: an operator's actions in a browser, stored one by one as they occur.

It ends in order at its time limit, on a stop, or when the operator closes the browser; a cancel
ends it, too. In every case the actions so far are on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from engine.browser.recording.recorder_messages import Closed, Happening, OpenRecorder, Recorder
from engine.kinds.context import Context, UnitStopped
from engine.kinds.recording.recording_actions import Action, Scribe
from engine.kinds.recording.recording_args import MAX_DURATION_MS, RecordingArgs
from engine.kinds.recording.recording_masks import Masks
from engine.model import redact
from engine.model.errors import UnitTimeout
from engine.model.records import Units

OPEN_S: Final = 60.0
PICTURE_S: Final = 10.0
STILL_S: Final = 1.0  # maximum wait for a page to load before its action is stored
MAX_ACTIONS: Final = 10_000


async def record(
    args: RecordingArgs, context: Context, open_recorder: OpenRecorder
) -> dict[str, Any]:
    """Record until the end; return the head of the result without actions.

    Raises:
        PageError: the start address cannot be opened.
        BrowserMissing, BrowserFailed, BrowserGone, NoDisplay
    """
    began_ms, began = context.now_ms(), context.monotonic()
    async with open_recorder(args, context.now_ms) as recorder:
        recording = _Recording(args, context, recorder)
        stopped_by = await recording.run()
        head = recording.head()
    lasted_ms = round((context.monotonic() - began) * 1000)
    return _head(args, context.task_id, stopped_by, lasted_ms) | {"started_at": began_ms, **head}


class _Recording:
    def __init__(self, args: RecordingArgs, context: Context, recorder: Recorder) -> None:
        self._args = args
        self._context = context
        self._recorder = recorder
        self._masks = Masks(
            keep_text=args.keep_text, given=args.secrets, key_shapes=args.redact_content
        )
        self._scribe = Scribe(self._masks)
        self._artifacts: list[dict[str, Any]] = []

    async def run(self) -> str:
        """Open the start address and record; return the reason for the end."""
        try:
            async with self._context.unit(self._args.url, OPEN_S):
                await self._recorder.open(self._args.url)
            ended = await self._listen()
        except UnitStopped:
            ended = self._context.stop_reason
        for happening in self._recorder.rest():
            await self._take(happening, pictures=False)
        for action in self._scribe.close():
            await self._keep(action)
        return ended

    async def _listen(self) -> str:
        limit_s = (self._args.duration_ms or MAX_DURATION_MS) / 1000
        deadline = asyncio.get_running_loop().time() + limit_s
        while self._scribe.count < MAX_ACTIONS:
            left_s = deadline - asyncio.get_running_loop().time()
            wait_s = min(left_s, STILL_S) if self._scribe.is_loading else left_s
            try:
                async with self._context.unit("recording", max(0.0, wait_s)):
                    happening = await self._recorder.next()
            except UnitTimeout:
                if wait_s == left_s:
                    return "duration"
                for action in self._scribe.close():
                    await self._finish(action, pictures=True)
                continue
            if isinstance(happening, Closed):
                return "closed"
            await self._take(happening, pictures=True)
        return "max_actions"

    async def _take(self, happening: Happening, *, pictures: bool) -> None:
        if isinstance(happening, Closed):
            return
        for action in self._scribe.take(happening):
            await self._finish(action, pictures=pictures)

    async def _finish(self, action: Action, *, pictures: bool) -> None:
        wanted = self._args.screenshots
        moved = action.type in ("navigate", "navigated")
        if pictures and (wanted == "each" or (wanted == "navigation" and moved)):
            await self._picture(action)
        await self._keep(action)

    async def _picture(self, action: Action) -> None:
        """Take a screenshot after the action; a stop interrupts it."""
        try:
            async with self._context.unit("picture", PICTURE_S):
                shot = await self._recorder.screenshot(
                    action.tab, self._masks.echoes, bare=self._args.keep_text
                )
        except (UnitStopped, UnitTimeout):
            return
        if shot is not None:
            action.screenshot = await self._context.artifact(f"{action.n:04}.png", shot)
            self._artifacts.append(_artifact(action.screenshot, action.n))

    async def _keep(self, action: Action) -> None:
        units = Units(done=action.n, message=action.words())
        await self._context.page(msgspec.to_builtins(action), units)

    def head(self) -> dict[str, Any]:
        """Return the fields of the head that exist only in memory."""
        network = self._recorder.network()
        for failure in network["failures"]:
            failure["url"] = self._masks.hide_url(failure["url"])
        return {
            "action_count": self._scribe.count,
            "dropped": self._recorder.dropped,
            "windows_refused": self._scribe.windows,
            "variables": list(self._masks.variables.values()),
            "network": network,
            "artifacts": self._artifacts,
        }


def partial_head(
    args: RecordingArgs,
    task_id: str,
    actions: Iterable[Mapping[str, Any]],
    stopped_by: str,
    lasted_ms: int,
) -> dict[str, Any]:
    """Build a head from the actions on disk, after an interrupted recording."""
    kept = list(actions)
    names = {str(one["variable"]): bool(one.get("secret")) for one in kept if "variable" in one}
    return {
        **_head(args, task_id, stopped_by, lasted_ms),
        "action_count": len(kept),
        "windows_refused": sum(one.get("type") == "window" for one in kept),
        "variables": [{"name": name, "secret": secret} for name, secret in names.items()],
        "artifacts": [
            _artifact(str(one["screenshot"]), one["n"]) for one in kept if "screenshot" in one
        ],
    }


def _head(args: RecordingArgs, task_id: str, stopped_by: str, lasted_ms: int) -> dict[str, Any]:
    return {
        "recording_id": f"rec-{task_id}",
        "label": args.label,
        "url": redact.url(args.url),
        "keep_text": args.keep_text,
        "headed": not args.headless,
        "viewport": {"width": args.width, "height": args.height},
        "stopped_by": stopped_by,
        "duration_ms": lasted_ms,
    }


def _artifact(path: str, action: int) -> dict[str, Any]:
    return {"path": path, "kind": "screenshot", "action": action}
