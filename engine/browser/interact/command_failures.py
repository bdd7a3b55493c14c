"""Playwright errors mapped to the command error codes, each with a one-line reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_errors import (
    BadCommand,
    CommandFailed,
    CommandTimeout,
    InstanceDisconnected,
)
from engine.browser.page.failures import net_failure
from engine.model import redact

MAX_REASON: Final = 300  # characters
MAX_COVER: Final = 200
GONE: Final = "the browser instance is gone"
CRASHED: Final = "the page crashed"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ERROR_PREFIX = re.compile(r"^(?:\w+\.\w+: )?(?:Error: )?")
HIDDEN: Final = "it is not there or hidden"
COVERED: Final = "something else lies over it"
_COVER = re.compile(r"(<\S.*?) intercepts pointer events")
_CUT_TEXT = re.compile(r">[^<>]*…(?=</)")
_CUT_VALUE = re.compile(r'="[^"]*…"')
# Phrases of Playwright's call log about an awaited element -> reasons for readers.
_HINDRANCES: Final[Mapping[str, str]] = {
    "intercepts pointer events": COVERED,
    "element is outside of the viewport": "it lies outside of the page",
    "element is not enabled": "it is disabled",
    "element is not editable": "it is read-only",
    "element is not stable": "it does not come to rest",
    "element is not visible": "it is hidden",
    "to be visible": HIDDEN,
    "did not find some options": "it has no such option",
    'event "filechooser"': "it asked for no file",
}
_BAD_SELECTOR = (
    "is not a valid selector",
    "Unknown engine",
    "Unexpected token",
    "Malformed selector",
    "while parsing selector",
    "while parsing css selector",
    "SyntaxError: Failed to execute",
)
_BAD_TARGET = {
    "Element is not an <input>": "the element is not one that text can be typed into",
    "Element is not a <select>": "the element is not a dropdown",
    'Input of type "': "nothing can be typed into this kind of field",
    "Malformed value": "the field does not take this value",
    "Cannot type text into input[type=number]": "the field takes numbers only",
    "Unknown key": "the browser knows no such key",
    "Element is not attached": "the element went away",
    "Non-multiple file input": "the field takes one file only",
    "Not a checkbox or radio button": "the element is nothing that can be checked",
    "Cannot uncheck radio button": "a radio button is unchecked by checking another one",
    "Clicking the checkbox did not change its state": "it was clicked and did not change",
    "<iframe> was expected": "the frame selector met an element that is no frame",
}
_DEAD = ("Target page, context or browser has been closed", "Browser has been closed")
_PAGE_CRASH = ("Target crashed", "Page crashed")


def too_slow(timeout_ms: float, what: str = "", hint: str = "") -> CommandTimeout:
    """Return the error for a command that exceeded its time limit."""
    about = f": {redact.quoted(what)}" if what else ""
    why = f" ({hint})" if hint else ""
    return CommandTimeout(f"not done within {timeout_ms / 1000:g} s{about}{why}")


def no_frame(frame: str, timeout_ms: float) -> CommandTimeout:
    """Return the error for a frame that was not found; its elements were never searched."""
    named, within = redact.quoted(frame), f"{timeout_ms / 1000:g} s"
    return CommandTimeout(
        f"the frame {named} was not found on the page within {within}; "
        "check its selector, or wait for the frame first"
    )


def gone() -> InstanceDisconnected:
    return InstanceDisconnected(GONE)


def as_failure(
    error: Error, timeout_ms: float, subject: str, hide: Callable[[str], str] = redact.text
) -> CommandFailed:
    """Map a Playwright error to a reason that needs no knowledge of Playwright.

    Args:
        hide: removes secrets from a page's text before the text is cut.
    """
    message = _COLOURS.sub("", error.message)
    if isinstance(error, PlaywrightTimeout):
        return too_slow(timeout_ms, subject, _hindrance(message, hide))
    if any(sign in message for sign in _DEAD):
        return InstanceDisconnected("the page was closed while the command ran")
    if any(sign in message for sign in _PAGE_CRASH):
        return CommandFailed(CRASHED)
    if is_bad_selector(error):
        return BadCommand("the selector is not one that the browser can read")
    for sign, sentence in _BAD_TARGET.items():
        if sign in message:
            return CommandFailed(sentence)
    if "Download is starting" in message:
        return CommandFailed("the address is a download, and downloads are refused")
    net = net_failure(message)
    return CommandFailed(str(net) if net else one_line(message))


def is_bad_selector(error: Error) -> bool:
    """Return whether the browser could not parse the selector."""
    return any(sign in error.message for sign in _BAD_SELECTOR)


def one_line(message: str) -> str:
    """Return the first non-empty line, without Playwright's own prefix."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    text = _ERROR_PREFIX.sub("", first, count=1) or "it failed without a reason"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def _hindrance(message: str, hide: Callable[[str], str]) -> str:
    """Return the last hindrance in the call log, at which Playwright gave up."""
    # Playwright's wait before the action is no hindrance: it may have met none yet.
    log = message.replace("waiting for element to be visible", "")
    found = {log.rfind(sign): reason for sign, reason in _HINDRANCES.items()}
    found.pop(-1, None)
    if found:
        hindrance = found[max(found)]
        cover = _cover(message, hide) if hindrance is COVERED else ""
        return f"{hindrance}: {cover}" if cover else hindrance
    if "waiting for locator" not in message or "locator resolved to" in message:
        return ""  # the element was found, and the time ended before any hindrance was seen
    return "there is no such element"


def _cover(message: str, hide: Callable[[str], str]) -> str:
    """Return the element that intercepted the click, as Playwright describes it, or "".

    Playwright cuts long texts, and the beginning of a secret would not be recognised.
    """
    found = _COVER.findall(message)
    if not found:
        return ""
    cover = str(found[-1]).removesuffix(" subtree")
    cover = redact.quoted(hide(_CUT_VALUE.sub('="…"', _CUT_TEXT.sub(">…", cover))))
    return cover if len(cover) <= MAX_COVER else cover[: MAX_COVER - 1] + "…"
