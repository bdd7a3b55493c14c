"""The kind `oc_session_snapshot`: the state of a session, for a later continuation.

Cookies and storage are the session itself: they are read only on request, and stored only in
`artifacts/session-state.json` in the task's folder (readable by its owner alone, in the shape of
Playwright's storage_state), because the redactor removes them from every other place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from engine.kinds.context import Context, UnitStopped
from engine.kinds.snapshot.snapshot_args import GivenTab, SnapshotArgs
from engine.model import redact
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.records import Units

if TYPE_CHECKING:
    from engine.browser.page.tab_snapshot import Look  # imports Playwright

LOOK_S: Final = 30.0
SLACK_S: Final = 10.0
MAX_STATE: Final = 32 * 1024 * 1024  # bytes of the stored state of one browser


class Living(Protocol):
    """A readable tab. `told` has the fields that need no access to the page."""

    @property
    def told(self) -> dict[str, Any]: ...

    async def look(self, args: SnapshotArgs) -> Look:
        """Read the state of the tab. Raises EngineError."""
        ...


class Browser(Protocol):
    """One browser with its own cookies and tabs; `agent` is its agent's id, if any."""

    @property
    def agent(self) -> str: ...

    @property
    def tabs(self) -> Sequence[Living]: ...

    async def cookies(self) -> list[dict[str, Any]]:
        """Read its cookies. Raises EngineError."""
        ...


OpenBrowsers = Callable[[SnapshotArgs], AbstractAsyncContextManager[Sequence[Browser]]]


async def snapshot(args: SnapshotArgs, ctx: Context, browsers: OpenBrowsers) -> dict[str, Any]:
    """Store the session; return the head of the result. A stop keeps the finished part.

    Raises:
        BrowserMissing, BrowserFailed: tabs were to be visited, and no browser is available.
    """
    work = _Snapshot(args, ctx)
    try:
        if args.tabs is not None and not args.visit:
            await work.keep_given(args.tabs)
        else:
            async with browsers(args) as opened:
                await work.keep_living(opened)
    except UnitStopped:
        return work.head()
    return work.head()


class _Snapshot:
    def __init__(self, args: SnapshotArgs, ctx: Context) -> None:
        self._args, self._ctx = args, ctx
        self._taken_at = ctx.now_ms()
        self._done = self._failed = self._total = 0
        self._states: list[dict[str, Any]] = []

    async def keep_given(self, tabs: Sequence[GivenTab]) -> None:
        self._total = len(tabs)
        for tab in tabs:
            record: dict[str, Any] = {"url": redact.url(tab.url), "visited": False}
            if tab.title is not None:
                record["title"] = display(redact.text(tab.title), 500)
            async with self._ctx.unit(record["url"], LOOK_S):
                await self._keep(record)

    async def keep_living(self, browsers: Sequence[Browser]) -> None:
        self._total = sum(len(browser.tabs) for browser in browsers)
        for number, browser in enumerate(browsers, 1):
            origins: dict[str, list[dict[str, str]]] = {}
            for tab in browser.tabs:
                await self._look_at(tab, origins)
            if self._args.wants_state:
                await self._keep_state(number, browser, origins)

    async def _look_at(self, tab: Living, origins: dict[str, list[dict[str, str]]]) -> None:
        record = dict(tab.told)
        try:
            label = str(record.get("tab") or record.get("url"))
            async with self._ctx.unit(label, LOOK_S + self._args.timeout_ms / 1_000 + SLACK_S):
                look = await tab.look(self._args)
        except EngineError as failed:
            self._failed += 1
            await self._keep({**record, "error": display(redact.text(str(failed)), 500)})
            return
        if look.origin and look.storage:
            origins[look.origin] = look.storage
        record |= {"title": look.title, "scroll": {"x": look.scroll_x, "y": look.scroll_y}}
        record |= {"final_url" if self._args.visit else "url": look.url}
        if look.status:
            record["status"] = look.status
        if look.png is not None:
            name = f"tab-{self._done + 1:03d}.png"
            record["screenshot"] = await self._ctx.artifact(name, look.png)
        await self._keep(record)

    async def _keep(self, record: dict[str, Any]) -> None:
        self._done += 1
        said = str(record.get("final_url") or record.get("url") or record.get("tab"))
        said = f"{said}: {record['error']}" if "error" in record else said
        await self._ctx.page(record, Units(self._done, self._total, said, self._failed))

    async def _keep_state(
        self, number: int, browser: Browser, origins: Mapping[str, list[dict[str, str]]]
    ) -> None:
        told: dict[str, Any] = {"agent": browser.agent} if browser.agent else {}
        try:
            async with self._ctx.unit("cookies and storage", LOOK_S):
                cookies = await browser.cookies() if self._args.include_cookies else []
        except EngineError as failed:
            self._states.append({**told, "error": display(redact.text(str(failed)), 500)})
            return
        stored = [{"origin": origin, "localStorage": held} for origin, held in origins.items()]
        data = msgspec.json.encode({"cookies": cookies, "origins": stored})
        if len(data) > MAX_STATE:
            self._states.append({**told, "error": "it is larger than 32 MiB"})
            return
        name = "session-state.json" if number == 1 else f"session-state-{number}.json"
        file = await self._ctx.artifact(name, data)
        self._states.append({**told, "file": file, "bytes": len(data)})

    def head(self) -> dict[str, Any]:
        told = snapshot_head(self._ctx.task_id, self._args)
        told["captured_at"] = self._taken_at
        if self._args.wants_state:
            told["states"] = self._states
        return told


def snapshot_head(task_id: str, args: SnapshotArgs) -> dict[str, Any]:
    """Return the fields that every snapshot's head has: the redacted memo."""
    memo: dict[str, Any] = {
        "objective": redact.text(args.objective),
        "current_step": redact.text(args.current_step),
        "next_actions": _texts(args.next_actions),
    }
    if args.completed_steps is not None:
        memo["completed_steps"] = _texts(args.completed_steps)
    if args.notes is not None:
        memo["notes"] = redact.text(args.notes)
    told: dict[str, Any] = {"snapshot_id": f"snap-{task_id}", "memo": memo}
    if args.label is not None:
        told["label"] = redact.text(args.label)
    return told


def _texts(given: Iterable[str]) -> list[str]:
    return [redact.text(one) for one in given]
