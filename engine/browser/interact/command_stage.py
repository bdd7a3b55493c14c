"""Context of a running command: its instance, its page, and the artifact writer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.chromium.instances import Instances
from engine.browser.interact.command_failures import gone
from engine.browser.interact.command_uploads import Uploads
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserGone
from engine.secrets.given_secrets import Scrub

if TYPE_CHECKING:
    from playwright.async_api import Page

    from engine.browser.chromium.browser_instance import Instance

ANSWER_S: Final = 2.0
MOMENT_MS: Final = 500  # tolerance within which an end still counts as the limit's
CLOSE_S: Final = 2.0
Artifact = Callable[[str, bytes], Awaitable[str]]


@dataclass(slots=True)
class Stage:
    """Context shared by all commands of one task.

    `masked` lists the selectors of fields that were typed into, `frames_met` the frames that were
    found, and `hidden` the values masked in screenshots.
    """

    instances: Instances
    policy: Policy
    artifact: Artifact
    instance: Instance | None = None
    masked: list[str] = field(default_factory=list)
    hidden: Collection[str] = ()
    frames_met: set[tuple[str, ...]] = field(default_factory=set)
    uploads: Uploads = field(default_factory=Uploads)
    scrub: Scrub = field(default_factory=lambda: Scrub(()))  # applied before texts are cut
    conceal: Callable[[str], None] = lambda _: None  # from now on, a value that a page may repeat

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
