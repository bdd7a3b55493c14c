"""The kind `oc_evidence_bundle`: the state of a page, in immutable files.

Each part is a unit: a failed one has an error and does not affect the others. For a page that does
not open, network and console are still stored, and the task ends FAILED with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.kinds.context import Context, UnitStopped
from engine.kinds.evidence.evidence_args import EvidenceArgs, Part
from engine.model import redact
from engine.model.display import display
from engine.model.errors import EngineError, TaskFailed
from engine.model.records import ARTIFACTS_NAME, Units

if TYPE_CHECKING:
    from engine.browser.page.evidence import Opened, Piece  # imports Playwright

FILES: Final[Mapping[Part, str]] = {
    "dom": "dom.html",
    "screenshot": "screenshot.png",
    "phash": "phash.json",
    "network": "network.json",
    "console": "console.jsonl",
}
OF_THE_PAGE: Final = frozenset({"dom", "screenshot", "phash"})
PART_S: Final = 30.0
LEAST_S: Final = 10.0  # minimum for the parts of a page with a shorter page timeout
SLACK_S: Final = 10.0
OPEN_S: Final = 30.0  # time limit for a tab that is busy with its agent


class TabMissing(EngineError):
    """The requested tab of an agent does not exist in this process."""

    code = "tab_missing"
    title = "There is no such tab"
    sentence = "No agent of this process has the tab {tab} open."
    advice_text = "Look at the open tabs, or give an address instead."


class PartMissing(EngineError):
    """A part was skipped: the page had used up the parts' time limit."""

    code = "part_missing"
    title = "A part is missing"
    sentence = "Not taken: the page did not answer within {limit_s:.0f} s."


class Camera(Protocol):
    """Collector of the parts of one page, which it observes from its creation."""

    async def open(self) -> Opened:
        """Open the page and wait until it is ready. Raises EngineError.

        If the network is requested, wait for the end of its window as well.
        """
        ...

    async def take(self, part: Part) -> Piece:
        """Collect one part of the page's current state. Raises EngineError."""
        ...


OpenCamera = Callable[[EvidenceArgs, Callable[[], float]], AbstractAsyncContextManager[Camera]]


async def evidence(args: EvidenceArgs, ctx: Context, open_camera: OpenCamera) -> dict[str, Any]:
    """Collect the parts; return the head of the result.

    Raises:
        TaskFailed: the page did not open, or all parts failed; the collected ones are stored.
        BrowserMissing, BrowserFailed: no browser is available.
    """
    bundle = _Bundle(args, ctx)
    try:
        async with open_camera(args, ctx.monotonic) as camera:
            await bundle.fill(camera)
    except UnitStopped:
        return bundle.head()
    if bundle.failure is not None:
        raise TaskFailed(bundle.failure.code, str(bundle.failure), bundle.head())
    return bundle.head()


class _Bundle:
    def __init__(self, args: EvidenceArgs, ctx: Context) -> None:
        self._args, self._ctx = args, ctx
        self._taken_at = ctx.now_ms()
        self._opened: Opened | None = None
        self._unopened: EngineError | None = None
        self._errors: list[EngineError] = []
        self._size = self._redacted = 0
        # The parts share one limit per page: a page that hangs would use up the limit of each.
        self._page_s = min(PART_S, max(LEAST_S, args.timeout_ms / 1_000))
        self._page_until = 0.0

    @property
    def failure(self) -> EngineError | None:
        """The error that makes the whole bundle a failure, if any."""
        if self._unopened is not None:
            return self._unopened
        all_failed = len(self._errors) == len(self._args.include)
        return self._errors[0] if all_failed else None

    async def fill(self, camera: Camera) -> None:
        try:
            async with self._ctx.unit("open the page", self._open_s()):
                self._opened = await camera.open()
        except EngineError as failed:
            self._unopened = failed
            await self._ctx.log("evidence", f"the page did not open: {failed}")
        self._page_until = self._ctx.monotonic() + self._page_s
        for number, part in enumerate(self._args.include, 1):
            await self._keep(number, part, await self._take(camera, part))

    def _open_s(self) -> float:
        """Return the limit for the load, the rest of the network's window, and settling again."""
        args = self._args
        window_ms = args.timeout_ms + args.network_window_ms if "network" in args.include else 0
        return (args.timeout_ms + window_ms) / 1_000 + SLACK_S

    async def _take(self, camera: Camera, part: Part) -> Piece | EngineError:
        if self._unopened is not None and part in OF_THE_PAGE:
            return self._unopened
        limit_s = PART_S
        if part in OF_THE_PAGE:
            limit_s = self._page_until - self._ctx.monotonic()
            if limit_s <= 0:
                return PartMissing(limit_s=self._page_s)
        try:
            async with self._ctx.unit(part, limit_s):
                return await camera.take(part)
        except EngineError as failed:
            return failed

    async def _keep(self, number: int, part: Part, taken: Piece | EngineError) -> None:
        record: dict[str, Any] = {"part": part}
        if isinstance(taken, EngineError):
            self._errors.append(taken)
            record["error"] = display(redact.text(str(taken)), 500)
        else:
            record |= await self._file(part, taken)
        said = f"{part}: {record['error']}" if "error" in record else part
        units = Units(number, len(self._args.include), said, len(self._errors))
        await self._ctx.page(record, units)

    async def _file(self, part: Part, piece: Piece) -> dict[str, Any]:
        file = await self._ctx.artifact(FILES[part], piece.data)
        self._size += len(piece.data)
        self._redacted += int(piece.told.get("redacted", 0))
        record = {
            "file": file,
            "bytes": len(piece.data),
            "sha256": sha256(piece.data).hexdigest(),
            **piece.told,
        }
        return {**record, "truncated": True} if piece.truncated else record

    def head(self) -> dict[str, Any]:
        told = bundle_head(self._ctx.task_id, self._args, self._size)
        told["captured_at"] = self._taken_at
        if self._redacted:
            told["redacted"] = self._redacted
        if self._opened is not None:
            told |= {
                "final_url": self._opened.url,
                "title": self._opened.title,
                "status": self._opened.status or None,
                "settled": self._opened.settled,
            }
        return told


def bundle_head(task_id: str, args: EvidenceArgs, size_bytes: int) -> dict[str, Any]:
    """Return the fields that every bundle's head has; `path` is relative to the task's folder."""
    told: dict[str, Any] = {
        "bundle_id": f"bundle-{task_id}",
        "path": f"{ARTIFACTS_NAME}/",
        "size_bytes": size_bytes,
    }
    if args.url is not None:
        told["url"] = redact.url(args.url)
    if args.tab is not None:
        told["tab"] = args.tab
    if args.label is not None:
        told["label"] = redact.text(args.label)
    return told


def size_of(parts: Iterable[Mapping[str, Any]]) -> int:
    """Return the size in bytes of the parts on disk."""
    return sum(part["bytes"] for part in parts if isinstance(part.get("bytes"), int))
