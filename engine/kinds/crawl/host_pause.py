"""Pauses of hosts that answer with temporary errors only.

After `FAILED_PAGES` pages of one origin in a row have failed at their first attempt, no page of it
starts for a pause. Then one page probes: an answer ends the pause, another failure prolongs it, and
after the last of `PAUSES_S` the host is given up. Repeated attempts do not begin a pause: the
broken pages of a working site are repeated one after another, at the end of their level.

Before each of these steps a page of the origin that was loaded earlier is loaded once more. If it
is answered, only a part of the site is broken: there is no pause, and the failed pages are stored
as any others. The next time this takes twice as many failed pages, up to `MOST_FAILED_PAGES`: a
large broken part costs few such requests, and a host that goes down later is paused nevertheless.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from engine.kinds.context import Context
from engine.kinds.host_delay import MAX_RETRY_AFTER_S
from engine.model.addresses import Address
from engine.model.errors import EngineError, PageError, UnitTimeout
from engine.pages import fetch
from engine.text import words

FAILED_PAGES: Final = 8  # small sites with a broken section have fewer, and stay without a pause
MOST_FAILED_PAGES: Final = 128  # of a host that answers
PAUSES_S: tuple[float, ...] = (30.0, 60.0, 120.0, 300.0)  # 8.5 min until a host is given up
EVENT: Final = "host"  # phase of the `log` events about the end of a pause
_OF_THE_HOST: Final = fetch.PASSING - {"open_files", "proxy"}  # those are of this machine


def is_host_failure(failed: EngineError) -> bool:
    """Return whether a page failed because its host did not answer, or only with an error."""
    if isinstance(failed, UnitTimeout):
        return failed.label == fetch.ROBOTS
    if not isinstance(failed, PageError) or failed.proved or failed.unproved:
        return False
    return failed.kind in _OF_THE_HOST or fetch.is_passing_status(failed.status)


def is_answer(failed: EngineError) -> bool:
    """Return whether the host of a failed page did answer, as with an empty 404."""
    status = failed.status if isinstance(failed, PageError) else 0
    return status > 0 and not fetch.is_passing_status(status)


@dataclass(slots=True)
class _Host:
    failed: int = 0  # first attempts since the last answer
    most: int = FAILED_PAGES  # of them until a pause
    pauses: int = 0
    until_s: float = 0.0
    probe: str = ""  # the page that probes
    given_up: bool = False


StillAnswers = Callable[[Address], Awaitable[bool | None]]
"""Loads a page again; does its host answer?"""


class HostPauses:
    """The pauses of one crawl, by origin; `is_on` switches the rule."""

    def __init__(self, ctx: Context, still_answers: StillAnswers, *, is_on: bool) -> None:
        self._ctx = ctx
        self._still_answers = still_answers
        self._is_on = is_on
        self._loaded: dict[str, Address] = {}  # the first page of each origin
        self._hosts: dict[str, _Host] = {}
        self._paused: set[str] = set()
        self.given_up: list[str] = []
        self.reason = ""  # of the last failure of a host that was given up

    def holds(self, origin: str) -> bool:
        """Return whether no page of this origin may start, except for a probe."""
        return origin in self._paused

    def gave_up(self, origin: str) -> bool:
        return bool(self.given_up) and origin in self.given_up

    def due(self, origins: Iterable[str], now_s: float) -> list[str]:
        """Return those of the paused origins that may be probed at this time."""
        return [one for one in origins if self._waits(one) and self._hosts[one].until_s <= now_s]

    def next_s(self, origins: Iterable[str], now_s: float) -> float | None:
        """Return the seconds until the next pause of these origins ends; None without one.

        `now_s` is that of `due`: a pause that ends between two readings would belong to neither.
        """
        ends = (self._hosts[one].until_s - now_s for one in origins if self._waits(one))
        return min((left_s for left_s in ends if left_s > 0), default=None)

    def _waits(self, origin: str) -> bool:
        return origin in self._paused and not self._hosts[origin].probe

    def end(self) -> None:
        """End all pauses, because the crawl loads no further page."""
        self._paused.clear()

    def begin_probe(self, address: Address) -> None:
        self._hosts[address.origin].probe = address.key

    def end_probe(self, address: Address) -> None:
        """Let another page probe, after one that showed nothing about its host."""
        host = self._hosts.get(address.origin)
        if host is not None and host.probe == address.key:
            host.probe = ""

    def loaded(self, address: Address) -> None:
        """Keep the first loaded page of each origin, to tell later whether the host answers."""
        if self._is_on:
            self._loaded.setdefault(address.origin, address)

    async def answered(self, address: Address) -> bool:
        """Count an answer of a host; return whether it ended a pause."""
        host = self._hosts.get(address.origin)
        if host is None or host.given_up:
            return False
        del self._hosts[address.origin]
        return await self._end_pause(address, host)

    async def _end_pause(self, address: Address, host: _Host) -> bool:
        if address.origin not in self._paused:
            return False
        self._paused.remove(address.origin)
        if host.pauses:
            note = f"{address.place} answers again; its pages are loaded"
            await self._ctx.log(EVENT, note, host=address.place)
        return True

    async def failed(
        self,
        address: Address,
        reason: str,
        *,
        is_first: bool,
        retry_after_s: float | None = None,
        asks_to_wait: bool = False,
    ) -> bool:
        """Count a failed page; return whether the pages of its host no longer wait.

        Args:
            is_first: it was the page's first attempt.
            retry_after_s: what the answer asked for.
            asks_to_wait: the host answered 429, by which it means all of its pages.
        """
        if not self._is_on:
            return False
        host = self._hosts.setdefault(address.origin, _Host())
        if host.given_up:
            return False
        host.failed += is_first
        if address.origin in self._paused:
            if host.probe != address.key:
                return False  # it began before the pause
        elif host.failed < host.most:
            return False
        is_up = not asks_to_wait and await self._is_up(address, host)
        if is_up:
            return True
        if is_up is None or self._hosts.get(address.origin) is not host or self._ctx.stopping:
            return False  # the crawl ends, or meanwhile another page was answered
        host.probe = ""
        if host.pauses == len(PAUSES_S):
            await self._give_up(address, host, reason)
            return True
        await self._pause(address, host, reason, retry_after_s or 0.0)
        return False

    async def _is_up(self, address: Address, host: _Host) -> bool | None:
        """Load a page again that was loaded before; return whether its answer ended a pause.

        None: the crawl ends before it could be asked.
        """
        known = self._loaded.get(address.origin)
        if known is None:
            return False
        self._paused.add(address.origin)  # no page starts meanwhile
        host.probe = address.key
        answers = await self._still_answers(known)
        if not answers:
            return answers
        self._hosts[address.origin] = _Host(most=min(2 * host.most, MOST_FAILED_PAGES))
        return await self._end_pause(address, host)

    async def _pause(
        self, address: Address, host: _Host, reason: str, retry_after_s: float
    ) -> None:
        seconds = max(PAUSES_S[host.pauses], min(retry_after_s, MAX_RETRY_AFTER_S))
        host.pauses += 1
        host.until_s = self._ctx.monotonic() + seconds
        self._paused.add(address.origin)
        place = address.place
        note = f"Waiting {seconds:g} s for {place}: its pages fail one after another ({reason})"
        facts = {"host": place, "seconds": seconds, "reason": words.HOST_ERRORS}
        await self._ctx.log(words.PHASE, note, **facts, error=reason, pause=host.pauses)
        await self._ctx.reached(note)

    async def _give_up(self, address: Address, host: _Host, reason: str) -> None:
        host.given_up = True
        self._paused.remove(address.origin)
        self.given_up.append(address.origin)
        self.reason = reason
        note = f"Gave up {address.place}: it still fails after {host.pauses} pauses ({reason})"
        await self._ctx.log(EVENT, note, host=address.place, error=reason, pauses=host.pauses)
