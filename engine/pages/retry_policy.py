"""Retry policy: pages whose failure may have an outside cause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from engine.model.errors import BrowserGone, EngineError, PageError, UnitTimeout
from engine.pages.fetch import Fetched

ROBOTS: Final = "robots.txt"  # label of a unit that waits for robots.txt instead of the page

# Network failures that may not recur on the next attempt; a sleep of the machine causes the same
# failures.
_PASSING: Final = frozenset({"timeout", "connection", "network", "dns", "protocol"})
_ASKS_FOR_LATER: Final = frozenset({408, 429})  # in addition to every 5xx
_SEEN_TO_DO_IT: Final = frozenset({"flood", "memory"})
_PAUSE_S: Final = 0.25  # before the first retry, doubled for each later one
_LONGEST_PAUSE_S: Final = 5.0


class Failure(NamedTuple):
    """Failure of a page: the message, its `error_code`, and the status if any."""

    error: str
    code: str
    status: int = 0


def is_passing(failed: EngineError) -> bool:
    """Return whether a retry may succeed, as after a reset, a timeout or a sleep."""
    if isinstance(failed, PageError):
        if failed.proved:
            return False
        return failed.kind in _PASSING or is_passing_status(failed.status)
    return not isinstance(failed, BrowserGone)


def is_passing_status(status: int) -> bool:
    """Return whether this HTTP status is temporary."""
    return status >= 500 or status in _ASKS_FOR_LATER


def passing_failure(fetched: Fetched) -> Failure | None:
    """Return the temporary failure of an answer; None for any other answer."""
    if is_passing_status(fetched.status):
        return Failure(f"HTTP {fetched.status}", "http", fetched.status)
    if fetched.cut_off:
        return Failure("the page ended too early", "protocol", fetched.status)
    return None


def pause_s(tries: int) -> float:
    """Return the delay before the retry after `tries` failures, without the host's throttle."""
    return min(_PAUSE_S * 2.0 ** (tries - 1), _LONGEST_PAUSE_S)


async def patiently(fetch: Callable[[], Awaitable[Fetched]], retries: int) -> Fetched:
    """Fetch a file that the whole crawl needs, with pauses between the attempts.

    Raises:
        PageError: the error of the last attempt.
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
    """Return whether a sleep of the machine explains the failure."""
    return not isinstance(failed, PageError) or failed.kind in _PASSING


def is_unproved(failed: EngineError) -> bool:
    """Return whether another page may be the cause: browser, renderer, cookie jar or proxy."""
    if isinstance(failed, PageError) and failed.unproved:
        return True
    return isinstance(failed, BrowserGone) or _has_crashed(failed)


def rank(failed: EngineError) -> int:
    """Return the priority of an isolated page: 0 before 1.

    A page that was observed to be busy or heavy may use all of its time again.
    """
    return int(isinstance(failed, PageError) and failed.kind in _SEEN_TO_DO_IT)


def first_error(failed: EngineError) -> str:
    """Return the error of the first attempt, for the page's record."""
    return "the browser stopped" if isinstance(failed, BrowserGone) else reason_of(failed)


def reason_of(failed: Exception) -> str:
    """Return the message of a failure without the page's address, which the record already has."""
    if not isinstance(failed, UnitTimeout):
        return str(failed)
    if failed.label == ROBOTS:
        return f"robots.txt did not answer within {failed.limit_s:g} s"
    return f"the page did not answer within {failed.limit_s:g} s"


def failure_of(failed: EngineError) -> Failure:
    """Return the final failure of a page; a crash is reported as the second."""
    if isinstance(failed, BrowserGone):
        return Failure("crashed the browser twice", "crash")
    if not isinstance(failed, PageError):
        return Failure(reason_of(failed), "timeout")
    return Failure(
        f"{failed} twice" if _has_crashed(failed) else str(failed), failed.kind, failed.status
    )


def _has_crashed(failed: EngineError) -> bool:
    return isinstance(failed, PageError) and failed.kind == "crash"
