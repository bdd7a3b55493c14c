"""Context of a running command, and the element of the page that its selector resolves to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.chromium.browser_session import Instances
from engine.browser.interact.command_errors import CommandFailed
from engine.browser.interact.command_failures import HIDDEN, gone, is_bad_selector, too_slow
from engine.browser.interact.command_uploads import Uploads
from engine.browser.remote.remote_address import RemotePlace
from engine.egress.egress_policy import DomainAllowlist, Policy
from engine.model.errors import BrowserGone
from engine.secrets.given_secrets import Scrub

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator, Page

    from engine.browser.chromium.browser_instance import Instance


ANSWER_S: Final = 2.0
MOMENT_MS: Final = 500  # tolerance within which an end still counts as the limit's
CLOSE_S: Final = 2.0
Artifact = Callable[[str, bytes], Awaitable[str]]


@dataclass(slots=True)
class Stage:
    """Context shared by all commands of one task.

    `masked` lists the selectors of fields that were typed into, `frames_met` the frames that were
    found, and `hidden` the values masked in screenshots. `domains` are the task's `allowedDomains`,
    as a budget: they hold for each instance that it uses, until the next task does.
    """

    instances: Instances
    policy: Policy
    artifact: Artifact
    instance: Instance | None = None
    domains: Mapping[str, Any] = field(default_factory=dict)
    masked: list[str] = field(default_factory=list)
    hidden: Collection[str] = ()
    frames_met: set[tuple[str, ...]] = field(default_factory=set)
    uploads: Uploads = field(default_factory=Uploads)
    scrub: Scrub = field(default_factory=lambda: Scrub(()))  # applied before texts are cut
    remote: RemotePlace | None = None  # where its own instances run, if on another machine
    conceal: Callable[[str], None] = lambda _: None  # from now on, a value that a page may repeat

    def own_policy(self) -> DomainAllowlist:
        """Return the policy of an instance that this task opens."""
        allowlist = DomainAllowlist(self.policy)
        allowlist.narrow(self.domains)
        return allowlist

    def use(self, instance: Instance | None) -> None:
        """Act on this instance from now on, maybe one of an earlier task."""
        self.instance = instance
        if instance is not None and isinstance(instance.options.policy, DomainAllowlist):
            instance.options.policy.narrow(self.domains)

    async def page(self) -> Page:
        """Return the page that commands act on.

        Raises:
            InstanceDisconnected: the instance is gone.
        """
        if self.instance is None or not self.instance.alive:
            raise gone()
        try:
            page = await self.instance.page()
        except BrowserGone:
            raise gone() from None
        if self.instance.options.windows:
            self.instance.select(page)  # windows that it opens do not replace it
        return page

    async def drop_hung_page(self) -> None:
        """Close the page if it hangs: another task may have left it in a loop."""
        is_there = self.instance is not None and self.instance.alive
        page = self.instance.current if self.instance is not None and is_there else None
        if page is None:
            return
        try:
            async with asyncio.timeout(ANSWER_S):
                await page.evaluate("1")
        except (TimeoutError, Error):
            await _close(page)


async def _close(page: Page) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await page.close()
    except (TimeoutError, Error):
        return  # later commands on it report the failure


@dataclass(slots=True)
class Call:
    """One command: its resolved arguments, and its number in the task.

    `matches` is the number of elements that its selector matched, 0 while unknown; `target_matches`
    and `frame_matches` count the same for a drag's target and for its frames. `about` names the
    awaited condition if it is no selector. `used` is the alternative that replaced the selector,
    `met` the number of elements that the selector itself matched then; `used_target` and
    `target_met` are the same for a drag's target. `note` is a warning of the tool.
    """

    stage: Stage
    args: Mapping[str, Any]
    timeout_ms: int
    number: int
    matches: int = 0
    target_matches: int = 0
    frame_matches: int = 0
    about: str = ""
    used: str = ""
    met: int = 0
    used_target: str = ""
    target_met: int = 0
    note: str = ""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def selector(self) -> str:
        given: str = self.args.get("selector", "")
        return given

    @property
    def frames(self) -> tuple[str, ...]:
        """Selectors of the frames that lead to the element, outermost first."""
        given: tuple[str, ...] = self.args.get("frame", ())
        return given

    @property
    def waited_ms(self) -> float:
        """The command's limit; or the time spent, if the browser held it longer."""
        spent_ms = (time.monotonic() - self.started_s) * 1000
        over = spent_ms > self.timeout_ms + MOMENT_MS
        return round(spent_ms, -2) if over else self.timeout_ms

    @property
    def left_ms(self) -> float:
        """The rest of the command's time; never 0, which Playwright reads as no limit."""
        return max(1.0, self.timeout_ms - (time.monotonic() - self.started_s) * 1000)


Tool = Callable[[Call], Awaitable[Any]]


@cache
def script(name: str) -> str:
    """Read a script of the browser package, without its leading comment lines."""
    text = files("engine.browser").joinpath(name).read_text("utf-8")
    lines = text.splitlines()
    while lines and lines[0].startswith("//"):
        lines.pop(0)
    return "\n".join(lines).strip()


ENTER_FRAME: Final = " >> internal:control=enter-frame >> "  # as in Playwright's frame_locator
PATIENCE_MS: Final = 5_000  # a page may still be loading, so alternatives wait
LOOK_S: Final = 0.1
NO_FRAME: Final = "the frame selector met an element that is no frame"


def whole_selector(call: Call, selector: str) -> str:
    """Prefix `selector` with the command's frames; the first match of each frame counts."""
    frames = (f"{each} >> nth=0" for each in call.frames)
    return ENTER_FRAME.join((*frames, selector))


def frame_path(frames: Sequence[str]) -> str:
    """Return the selector of the innermost frame, through the first match of each outer one."""
    *outer, last = frames
    return ENTER_FRAME.join((*(f"{each} >> nth=0" for each in outer), last))


async def count_frames(call: Call, page: Page) -> None:
    """Store the number of matches of the frame selectors; of nested ones, the largest."""
    depths = range(1, len(call.frames) + 1)
    met = [await page.locator(frame_path(call.frames[:depth])).count() for depth in depths]
    call.frame_matches = max([call.frame_matches, *met])
    if all(met):
        call.stage.frames_met.add(call.frames)


async def has_frames(call: Call, page: Page) -> bool:
    """Return whether the command's frames exist, or existed earlier in the task.

    The content of a frame that never existed is unknown: its selector may be mistyped.
    """
    known = call.stage.frames_met
    if call.frames and call.frames not in known and not await missing_frame(call, page):
        known.add(call.frames)
    return not call.frames or call.frames in known


async def missing_frame(call: Call, page: Page) -> str:
    """Return the first of the command's frames that the page lacks; empty if none."""
    for depth in range(1, len(call.frames) + 1):
        if not await page.locator(frame_path(call.frames[:depth])).count():
            return call.frames[depth - 1]
    return ""


def every(page: Page, call: Call, selector: str = "") -> Locator:
    """Return all elements matching the command's selector (or `selector`) in its frame."""
    return page.locator(whole_selector(call, selector or call.selector))


async def element(call: Call) -> Locator:
    """Wait for the first element that matches the command's selector.

    The call stores the number of matches, because pages often repeat elements.
    """
    page = await call.stage.page()
    others: tuple[str, ...] = call.args.get("alternatives", ())
    chosen = await _chosen(page, call, call.selector, others, "attached")
    call.matches, call.used, call.met = chosen.matches, chosen.used, chosen.met
    await count_frames(call, page)
    return chosen.element


async def target_element(call: Call) -> Locator:
    """Return a drag's end: the first visible element of its target, or of an alternative.

    Raises:
        CommandTimeout: no such element appeared.
    """
    page, target = await call.stage.page(), call.args["target"]
    others: tuple[str, ...] = call.args.get("target_alternatives", ())
    try:
        chosen = await _chosen(page, call, target, others, "visible")
    except PlaywrightTimeout:
        raise too_slow(call.waited_ms, target, HIDDEN) from None
    call.target_matches, call.used_target = chosen.matches, chosen.used
    call.target_met = chosen.met
    return chosen.element


class _Chosen(NamedTuple):
    """An element, the number of matches, and the alternative that found it, if any.

    `met` is the number of elements that the selector itself matched then.
    """

    element: Locator
    matches: int
    used: str = ""
    met: int = 0


async def _chosen(
    page: Page,
    call: Call,
    selector: str,
    others: tuple[str, ...],
    state: Literal["attached", "visible"],
) -> _Chosen:
    found, met = every(page, call, selector), 0
    patience_ms = min(PATIENCE_MS, call.left_ms / 2) if others else call.left_ms
    try:
        await found.first.wait_for(state=state, timeout=patience_ms)
        met = await found.count()
    except Error as failed:
        if not others or not (isinstance(failed, PlaywrightTimeout) or is_bad_selector(failed)):
            raise
    if met == 1 or not others:
        return _Chosen(found.first, met)
    while True:
        if other := await _alternative(page, call, found if met else None, others):
            return _Chosen(every(page, call, other), 1, other, met)
        if met:
            return _Chosen(found.first, met)
        if (now := await _count(found)) or call.left_ms <= LOOK_S * 2_000:
            await found.first.wait_for(state=state, timeout=call.left_ms)
            return _Chosen(found.first, now)
        await asyncio.sleep(LOOK_S)


async def _alternative(
    page: Page, call: Call, found: Locator | None, others: tuple[str, ...]
) -> str:
    """Return the first alternative with exactly one match, which must be one of `found`."""
    for each in others:
        other = every(page, call, each)
        if await _count(other) == 1 and (found is None or await _is_among(other, found)):
            return each
    return ""


async def _count(found: Locator) -> int:
    """Count the matches; 0 if the browser cannot parse the selector."""
    try:
        return await found.count()
    except Error as failed:
        if is_bad_selector(failed):
            return 0
        raise


async def _is_among(one: Locator, several: Locator) -> bool:
    node = await one.element_handle()
    return bool(await several.evaluate_all("(all, one) => all.includes(one)", node))


async def frame_element(call: Call) -> Locator | None:
    """Return the element of the innermost frame of the command; None without frames."""
    if not call.frames:
        return None
    page = await call.stage.page()
    return page.locator(frame_path(call.frames)).first


async def document(call: Call) -> Page | Frame:
    """Return the command's document: the page, or the frame that it names.

    Raises:
        CommandFailed: the frame selector matches no frame.
    """
    found = await frame_element(call)
    if found is None:
        return await call.stage.page()
    handle = await found.element_handle(timeout=call.left_ms)
    frame = await handle.content_frame()
    if frame is None:
        raise CommandFailed(NO_FRAME)
    await count_frames(call, await call.stage.page())
    return frame
