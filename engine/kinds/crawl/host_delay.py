"""Throttle: one delay per host, across all workers of a crawl."""

from __future__ import annotations

from engine.kinds.context import Context
from engine.text import words

MAX_RETRY_AFTER_S = 60.0
TOLD_FROM_S = 3.0  # minimum Retry-After wait that is logged
SLOW_FROM_S = 1.0  # minimum Crawl-delay that is logged, because it slows the crawl down many times


class Pace:
    """Throttle of the requests to each host, with a minimum delay between two."""

    def __init__(self, ctx: Context, delay_s: float) -> None:
        self._ctx = ctx
        self._delay_s = delay_s
        self._next: dict[str, float] = {}
        self._held: dict[str, float] = {}
        self._told: dict[str, float] = {}  # end of the wait that was logged
        self._slow: set[str] = set()

    async def turn(self, host: str, asked_s: float = 0.0) -> None:
        """Wait for this host's next slot; `asked_s` is its Crawl-delay. Raises UnitStopped."""
        is_held = True
        while is_held:  # a Retry-After may arrive while pages wait for their slots
            now = self._ctx.monotonic()
            at = max(now, self._next.get(host, now))
            self._next[host] = at + max(self._delay_s, asked_s)
            if at > now:
                await self._tell(host, asked_s, now)
                await self._ctx.pause(max(0.0, at - self._ctx.monotonic()))
            is_held = self._held.get(host, at) > max(at, self._ctx.monotonic())

    def hold(self, host: str, seconds: float) -> None:
        """Suspend the requests to a host after 429 or 503 with Retry-After."""
        until = self._ctx.monotonic() + min(seconds, MAX_RETRY_AFTER_S)
        self._next[host] = max(until, self._next.get(host, until))
        self._held[host] = max(until, self._held.get(host, until))

    async def _tell(self, host: str, asked_s: float, now: float) -> None:
        """Log the reason for a wait, once for each Retry-After."""
        until = self._held.get(host, now)
        if until - max(now, self._told.get(host, now)) >= TOLD_FROM_S:
            self._told[host] = until
            left_s = round(until - now, 1)
            await self._ctx.log(
                words.PHASE,
                f"Waiting {left_s:.0f} s for {host}: its answer asked for it (Retry-After)",
                host=host,
                seconds=left_s,
                reason=words.RETRY_AFTER,
            )
        if asked_s > self._delay_s and asked_s >= SLOW_FROM_S and host not in self._slow:
            self._slow.add(host)
            await self._ctx.log(
                words.PHASE,
                f"{host} asks for {asked_s:g} s between two requests (Crawl-delay)",
                host=host,
                seconds=asked_s,
                reason=words.CRAWL_DELAY,
            )
