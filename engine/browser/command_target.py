"""Resolve the selector and the frame of a command to the element that it acts on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.browser.command_stage import Call
from engine.work.command_errors import CommandFailed

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator, Page

ENTER_FRAME: Final = " >> internal:control=enter-frame >> "  # what Playwright's frame_locator adds
NO_FRAME: Final = "the frame selector met an element that is no frame"


def whole_selector(call: Call, selector: str) -> str:
    """`selector` inside of the command's frames; of several frames the first, as of elements."""
    frames = (f"{each} >> nth=0" for each in call.frames)
    return ENTER_FRAME.join((*frames, selector))


def every(page: Page, call: Call, selector: str = "") -> Locator:
    """All elements that the selector of the command (or `selector`) matches in its frame."""
    return page.locator(whole_selector(call, selector or call.selector))


async def element(call: Call) -> Locator:
    """The first element that the command's selector matches, once there is one.

    The number of matches is kept in the call: pages often hold the same thing twice.
    """
    page = await call.stage.page()
    found = every(page, call)
    await found.first.wait_for(state="attached", timeout=call.left_ms)
    call.matches = await found.count()
    return found.first


async def frame_element(call: Call) -> Locator | None:
    """The element of the innermost frame that the command names; None where it names none."""
    if not call.frames:
        return None
    *outer, last = call.frames
    page = await call.stage.page()
    whole = ENTER_FRAME.join((*(f"{each} >> nth=0" for each in outer), last))
    return page.locator(whole).first


async def document(call: Call) -> Page | Frame:
    """The document that the command works in: the page, or the frame that it names.

    Raises:
        CommandFailed: what the frame selector matches is no frame.
    """
    found = await frame_element(call)
    if found is None:
        return await call.stage.page()
    handle = await found.element_handle(timeout=call.left_ms)
    frame = await handle.content_frame()
    if frame is None:
        raise CommandFailed(NO_FRAME)
    return frame
