"""Which pages are loaded once more, because what happened may not have been their own fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from engine.kinds.context import UnitTimeout
from engine.model.errors import BrowserGone, EngineError, PageError
from engine.pages.fetch import Fetched

ROBOTS: Final = "robots.txt"  # what is waited for where it is not the page itself

# A failure of the network that the next attempt may not meet; a sleep of the machine explains
# it as well as anything that the site did.
_PASSING: Final = frozenset({"timeout", "connection", "network", "dns", "protocol"})
_ASKS_FOR_LATER: Final = frozenset({408, 429})  # beside every 5xx
_SEEN_TO_DO_IT: Final = frozenset({"flood", "memory"})
_PAUSE_S: Final = 0.25  # before the first retry, doubled for each later one
_LONGEST_PAUSE_S: Final = 5.0


class Failure(NamedTuple):
    """Why a page could not be taken: the sentence, its `error_code`, and the status if any."""

    error: str
    code: str
    status: int = 0


def is_passing(failed: EngineError) -> bool:
    """May the next attempt succeed, as after a reset, a timeout or a sleep of the machine?"""
    if isinstance(failed, PageError):
        if failed.proved:
            return False
        return failed.kind in _PASSING or is_passing_status(failed.status)
    return not isinstance(failed, BrowserGone)


def is_passing_status(status: int) -> bool:
    """Is this HTTP status one that the server itself may not repeat?"""
    return status >= 500 or status in _ASKS_FOR_LATER


def passing_failure(fetched: Fetched) -> Failure | None:
    """What is wrong with an answer that the next attempt may not meet; None with any other."""
    if is_passing_status(fetched.status):
        return Failure(f"HTTP {fetched.status}", "http", fetched.status)
    if fetched.cut_off:
        return Failure("the page ended too early", "protocol", fetched.status)
    return None


def pause_s(tries: int) -> float:
    """How long a page waits after it has failed `tries` times, whatever its host allows."""
    return min(_PAUSE_S * 2.0 ** (tries - 1), _LONGEST_PAUSE_S)


async def patiently(fetch: Callable[[], Awaitable[Fetched]], retries: int) -> Fetched:
    """Fetch a file on which a whole crawl depends, with pauses between the attempts.

    Raises:
        PageError: as the last attempt did.
    """
    for tries in range(1, retries + 1):
        try:
            fetched = await fetch()
            if not (is_passing_status(fetched.status) or fetched.cut_off):
                return fetched
        except PageError as failed:
            if not is_passing(failed):
                raise
        await asyncio.sleep(pause_s(tries))
    return await fetch()


def is_of_a_sleep(failed: EngineError) -> bool:
    """Would a machine that slept meanwhile explain it?"""
    return not isinstance(failed, PageError) or failed.kind in _PASSING


def is_unproved(failed: EngineError) -> bool:
    """May another page have caused it: in the browser, the renderer, the cookie jar, the proxy?"""
    if isinstance(failed, PageError) and failed.unproved:
        return True
    return isinstance(failed, BrowserGone) or _has_crashed(failed)


def rank(failed: EngineError) -> int:
    """Which of the pages that come again alone goes first: 0 before 1.

    One that was seen to be busy or heavy may take all of its time again.
    """
    return int(isinstance(failed, PageError) and failed.kind in _SEEN_TO_DO_IT)


def first_error(failed: EngineError) -> str:
    """What the first attempt failed of, for the page's record."""
    return "the browser stopped" if isinstance(failed, BrowserGone) else reason_of(failed)


def reason_of(failed: Exception) -> str:
    """Its sentence beside the address that it is about: no kind of failure names that again."""
    if not isinstance(failed, UnitTimeout):
        return str(failed)
    if failed.label == ROBOTS:
        return f"robots.txt did not answer within {failed.limit_s:g} s"
    return f"the page did not answer within {failed.limit_s:g} s"


def failure_of(failed: EngineError) -> Failure:
    """Why a page failed for good: of a death, that it was the second one."""
    if isinstance(failed, BrowserGone):
        return Failure("crashed the browser twice", "crash")
    if not isinstance(failed, PageError):
        return Failure(reason_of(failed), "timeout")
    return Failure(
        f"{failed} twice" if _has_crashed(failed) else str(failed), failed.kind, failed.status
    )


def _has_crashed(failed: EngineError) -> bool:
    return isinstance(failed, PageError) and failed.kind == "crash"
