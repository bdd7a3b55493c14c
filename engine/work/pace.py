"""When a host may be asked again: one delay per host, across all workers of a crawl."""

from __future__ import annotations

from engine.work.context import Context

MAX_RETRY_AFTER_S = 60.0


class Pace:
    """Gives each request to a host its own moment, at least a delay after the one before."""

    def __init__(self, ctx: Context, delay_s: float) -> None:
        self._ctx = ctx
        self._delay_s = delay_s
        self._next: dict[str, float] = {}

    async def turn(self, host: str, asked_s: float = 0.0) -> None:
        """Wait for this host's next moment; `asked_s` is its Crawl-delay. Raises UnitStopped."""
        now = self._ctx.monotonic()
        at = max(now, self._next.get(host, now))
        self._next[host] = at + max(self._delay_s, asked_s)
        if at > now:
            await self._ctx.pause(at - now)

    def hold(self, host: str, seconds: float) -> None:
        """The host asked for silence (429 or 503 with Retry-After): nobody asks it before."""
        until = self._ctx.monotonic() + min(seconds, MAX_RETRY_AFTER_S)
        self._next[host] = max(until, self._next.get(host, until))
