"""What the page showed when a command failed: its address, a masked picture and its source.

Every part has a limit of its own, because the page may hang; a part that cannot be had is left out
with the reason. Typed texts and secrets are removed as in the results of commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_reading import MAX_PNG, masked_picture
from engine.browser.page.screenshot_masking import MaskingFailed
from engine.browser.page.secret_mask import without_secret_values

if TYPE_CHECKING:
    from playwright.async_api import Page

    from engine.browser.interact.command_target import Stage

PICTURE_S: Final = 3.0
SOURCE_S: Final = 2.0
WHOLE_S: Final = PICTURE_S + SOURCE_S + 1.0
MOST_SOURCE: Final = 1024 * 1024  # characters
_EDGE: Final = 64 * 1024  # characters; a secret that a cut splits would not be found
_SLOW: Final = "the page did not answer"


async def failure_evidence(stage: Stage, number: int) -> dict[str, str]:
    """Keep what the page shows after the failure of command `number`, as artifacts of the task.

    Returns `url`, `screenshot` and `source` (paths in the task's folder), each if it could be had,
    and `missing` with the reason for a missing picture; {} without an open page.

    Raises:
        EngineError: an artifact could not be written.
    """
    instance = stage.instance
    page = instance.current if instance is not None and instance.alive else None
    if page is None or page.is_closed():
        return {}
    name = f"command-{number + 1:03d}-failed"
    found = {"url": stage.scrub.text(page.url)}
    png, missing = await _tried(lambda: _picture(stage, page), PICTURE_S)
    if png is not None:
        found["screenshot"] = await stage.artifact(f"{name}.png", png)
    elif missing:
        found["missing"] = missing
    html, _ = await _tried(page.content, SOURCE_S)
    if html is not None:
        source = await asyncio.to_thread(_clean, stage, html)
        found["source"] = await stage.artifact(f"{name}.html", source)
    return found


async def _picture(stage: Stage, page: Page) -> bytes:
    data = await masked_picture(stage, page, round(PICTURE_S * 1_000))
    if len(data) > MAX_PNG:
        raise MaskingFailed
    return data


async def _tried(take: Callable[[], Awaitable[Any]], limit_s: float) -> tuple[Any, str]:
    """Return the part, or None and why there is none."""
    try:
        async with asyncio.timeout(limit_s):
            return await take(), ""
    except MaskingFailed:
        return None, "the page shows a secret that could not be painted over"
    except (TimeoutError, PlaywrightTimeout):
        return None, _SLOW
    except Error:
        return None, "the page was gone"


def _clean(stage: Stage, html: str) -> bytes:
    """Return the masked source; of a long one the start, without the edge of the cut."""
    cut = html[: MOST_SOURCE + _EDGE]
    kept = str(stage.scrub.published({"html": without_secret_values(cut)})["html"])
    most = MOST_SOURCE if len(cut) == len(html) else min(MOST_SOURCE, len(kept) - _EDGE)
    return kept[: max(0, most)].encode("utf-8", "replace")
