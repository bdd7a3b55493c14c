"""Which pages are loaded once more, because what happened may not have been their own fault."""

from __future__ import annotations

from typing import Final

from engine.errors import BrowserGone, EngineError, PageError

# What a sleep of the machine explains as well as anything that the site did.
_OF_A_SLEEP: Final = frozenset({"timeout", "connection", "network", "dns", "protocol"})


def is_of_a_sleep(failed: EngineError) -> bool:
    """Would a machine that slept meanwhile explain it?"""
    return not isinstance(failed, PageError) or failed.kind in _OF_A_SLEEP


def is_a_death(failed: EngineError) -> bool:
    """Did the browser, or the part of it that held the page, die?"""
    return isinstance(failed, BrowserGone) or _has_crashed(failed)


def told(failed: EngineError) -> str:
    """Why a page failed for good: of a death, that it was the second one."""
    if isinstance(failed, BrowserGone):
        return "crashed the browser twice"
    return f"{failed} twice" if _has_crashed(failed) else str(failed)


def _has_crashed(failed: EngineError) -> bool:
    return isinstance(failed, PageError) and failed.kind == "crash"
