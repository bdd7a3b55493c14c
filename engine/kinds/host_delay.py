"""The delay between two requests to a host, which all crawls of one engine keep together.

A crawl reserves a turn for each request. Two turns of one crawl are at least its delay apart,
those of two crawls at least the shorter of their delays. A crawl without a delay reserves nothing.
A `Retry-After` holds the requests of every crawl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.text import words

if TYPE_CHECKING:
    from engine.kinds.context import Context

MAX_RETRY_AFTER_S: Final = 60.0
TOLD_FROM_S: Final = 3.0  # minimum wait for a Retry-After, or for other crawls, that is logged
TOLD_AGAIN_S: Final = 60.0  # waits for other crawls follow each other
SLOW_FROM_S: Final = 1.0  # minimum Crawl-delay that is logged: it slows the crawl down many times
LOOK_S: Final = 2.0  # of a wait, until it is looked whether an earlier turn has become free
FEWEST_SWEPT: Final = 1_000


@dataclass(eq=False, slots=True)
class _Taken:
    """A reserved turn, and the delay that its crawl keeps before and after it."""

    owner: object
    at_s: float
    delay_s: float

    def distance_s(self, owner: object, delay_s: float) -> float:
        """Return the least time between it and a turn of `owner`."""
        return max(self.delay_s, delay_s) if owner is self.owner else min(self.delay_s, delay_s)


@dataclass(slots=True)
class _Host:
    taken: list[_Taken] = field(default_factory=list)
    held_until_s: float = 0.0
    freed: int = 0  # turns that were given back

    def first_free(self, owner: object, delay_s: float, now_s: float) -> float:
        """Return the first turn that a request of `owner` could have."""
        return _first_free(self.taken, owner, delay_s, max(now_s, self.held_until_s))

    def forget(self, now_s: float) -> bool:
        """Drop the turns that no later one can be too close to; return whether nothing is left."""
        self.taken = [one for one in self.taken if one.at_s + one.delay_s > now_s]
        return not self.taken and self.held_until_s <= now_s

    def drop(self, turn: _Taken) -> None:
        self.taken = [one for one in self.taken if one is not turn]


class Turn:
    """When a request may begin, and which part of the wait until then is for other crawls."""

    def __init__(self, host: _Host, taken: _Taken, others_s: float) -> None:
        self._host, self._taken, self._freed = host, taken, host.freed
        self.others_s = others_s

    @property
    def at_s(self) -> float:
        return self._taken.at_s

    def advance(self, now_s: float) -> None:
        """Take an earlier turn, if others were given back meanwhile."""
        if self._freed == self._host.freed:
            return
        self._freed = self._host.freed
        mine = self._taken
        self._host.drop(mine)
        mine.at_s = min(mine.at_s, self._host.first_free(mine.owner, mine.delay_s, now_s))
        self._host.taken.append(mine)


class HostTurns:
    """The turns of the requests to each host, of all crawls of one engine; times are monotonic."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._most = FEWEST_SWEPT

    def __len__(self) -> int:
        """Return the number of hosts that are known."""
        return len(self._hosts)

    def held_until(self, host: str) -> float:
        """Return when the time ends that an answer of the host named; 0 without one."""
        known = self._hosts.get(host)
        return 0.0 if known is None else known.held_until_s

    def hold(self, host: str, until_s: float) -> None:
        """Allow no turn before `until_s` to requests from now on."""
        known = self._hosts.setdefault(host, _Host())
        known.held_until_s = max(until_s, known.held_until_s)

    @contextmanager
    def reserve(self, owner: object, host: str, delay_s: float, now_s: float) -> Iterator[Turn]:
        """Reserve the first free turn for a request of `owner`; an error within frees it again."""
        self._sweep(now_s)
        known = self._hosts.setdefault(host, _Host())
        known.forget(now_s)
        start_s = max(now_s, known.held_until_s)
        own = [one for one in known.taken if one.owner is owner]
        at_s = known.first_free(owner, delay_s, now_s)
        taken = _Taken(owner, at_s, delay_s)
        known.taken.append(taken)
        try:
            yield Turn(known, taken, at_s - _first_free(own, owner, delay_s, start_s))
        except BaseException:
            known.drop(taken)
            known.freed += 1
            raise

    def _sweep(self, now_s: float) -> None:
        """Forget hosts without turns, from time to time."""
        if len(self._hosts) < self._most:
            return
        for host in [host for host, one in self._hosts.items() if one.forget(now_s)]:
            del self._hosts[host]
        self._most = max(FEWEST_SWEPT, 2 * len(self._hosts))


def _first_free(taken: Sequence[_Taken], owner: object, delay_s: float, start_s: float) -> float:
    """Return the first time from `start_s` on that is far enough from all turns taken."""
    spans = [(one.at_s, one.distance_s(owner, delay_s)) for one in taken]
    at_s = start_s
    for begin_s, end_s in sorted((at - width, at + width) for at, width in spans):
        if begin_s >= at_s:
            break
        at_s = max(at_s, end_s)
    return at_s


class Pace:
    """Throttle of one crawl: its requests to each host take turns with those of the others."""

    def __init__(self, ctx: Context, delay_s: float, turns: HostTurns | None = None) -> None:
        self._ctx = ctx
        self._delay_s = delay_s
        self._turns = HostTurns() if turns is None else turns
        self._told: dict[str, float] = {}  # end of the Retry-After that was logged
        self._shared: dict[str, float] = {}  # when waits for others are logged again
        self._slow: set[str] = set()

    async def turn(self, host: str, asked_s: float = 0.0) -> None:
        """Wait for this host's next turn; `asked_s` is its Crawl-delay. Raises UnitStopped."""
        delay_s = max(self._delay_s, asked_s)
        is_held = True
        while is_held:  # a Retry-After may arrive while pages wait for their turns
            now = self._ctx.monotonic()
            with self._turns.reserve(self, host, delay_s, now) as turn:
                if turn.at_s > now:
                    await self._tell_held(host, now)
                    await self._tell_slow(host, asked_s)
                    await self._tell_shared(host, turn.others_s, now)
                    await self._wait(turn)
            is_held = self._turns.held_until(host) > max(turn.at_s, self._ctx.monotonic())

    async def _wait(self, turn: Turn) -> None:
        """Wait for a turn, which may come earlier because another crawl is stopped."""
        is_due = False
        while not is_due:
            left_s = turn.at_s - self._ctx.monotonic()
            is_due = left_s <= LOOK_S
            await self._ctx.pause(max(0.0, min(left_s, LOOK_S)))
            if not is_due:
                turn.advance(self._ctx.monotonic())

    def hold(self, host: str, seconds: float) -> None:
        """Suspend the requests to a host after 429 or 503 with Retry-After."""
        self._turns.hold(host, self._ctx.monotonic() + min(seconds, MAX_RETRY_AFTER_S))

    async def _tell_held(self, host: str, now: float) -> None:
        """Log the wait for a Retry-After, once for each."""
        until = self._turns.held_until(host)
        if until - max(now, self._told.get(host, now)) < TOLD_FROM_S:
            return
        self._told[host] = until
        note = f"Waiting {until - now:.0f} s for {host}: its answer asked for it (Retry-After)"
        await self._log(host, until - now, words.RETRY_AFTER, note)

    async def _tell_slow(self, host: str, asked_s: float) -> None:
        """Log a Crawl-delay, once for each host."""
        if asked_s <= self._delay_s or asked_s < SLOW_FROM_S or host in self._slow:
            return
        self._slow.add(host)
        note = f"{host} asks for {asked_s:g} s between two requests (Crawl-delay)"
        await self._log(host, asked_s, words.CRAWL_DELAY, note)

    async def _tell_shared(self, host: str, others_s: float, now: float) -> None:
        """Log a wait for other crawls, once a minute."""
        if others_s < TOLD_FROM_S or now < self._shared.get(host, now):
            return
        self._shared[host] = now + max(others_s, TOLD_AGAIN_S)
        note = f"Waiting {others_s:.0f} s for {host}: other tasks load its pages, too"
        await self._log(host, others_s, words.OTHER_TASKS, note)

    async def _log(self, host: str, seconds: float, reason: str, note: str) -> None:
        facts = {"host": host, "seconds": round(seconds, 1), "reason": reason}
        await self._ctx.log(words.PHASE, note, **facts)
