"""A site of numbered pages whose links are given, which counts requests and can hang."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from engine.sample.site import Answer, Request
from tests.support.serving import served

HELD_S = 60.0


class LinkedSite:
    """Pages /0, /1, …; `links` are the numbers that each leads to.

    A page in `statuses` answers with that status, one in `held` never. `extra` is more markup of a
    page, `answers` are those of other paths, and `delay_s` passes before each page.
    """

    def __init__(self, links: Mapping[int, Sequence[int]], delay_s: float = 0.0) -> None:
        self.links = links
        self.delay_s = delay_s
        self.requests: Counter[str] = Counter()
        self.statuses: dict[int, int] = {}
        self.held: set[int] = set()
        self.extra: dict[int, str] = {}
        self.answers: dict[str, Answer] = {}
        self.url = ""
        self._hangs = threading.Event()

    def answer(self, request: Request) -> Answer:
        path = request.path
        number = int(path[1:]) if path[1:].isdigit() else None
        self.requests[path] += 1
        if path in self.answers:
            return self.answers[path]
        if number is None or number not in self.links:
            return Answer(b"none", 404, delay_s=self.delay_s)
        if number in self.held:
            self._hangs.set()
            return Answer(stops="before")
        anchors = "".join(f'<a href="/{to}">page {to}</a> ' for to in self.links[number])
        body = f"<title>Page {number}</title><p>Text {number}</p>{anchors}"
        body += self.extra.get(number, "")
        return Answer(body.encode(), self.statuses.get(number, 200), delay_s=self.delay_s)

    def hangs(self) -> bool:
        """Wait for the request of a held page; return whether one came within a minute."""
        return self._hangs.wait(HELD_S)

    @contextmanager
    def running(self) -> Iterator[LinkedSite]:
        with served(self.answer) as self.url:
            yield self


def random_links(pages: int, seed: int, most: int = 3) -> dict[int, list[int]]:
    """Return links by which every page can be reached from page 0."""
    chance = random.Random(seed)
    links: dict[int, list[int]] = {number: [] for number in range(pages)}
    for number in range(1, pages):
        links[chance.randrange(max(0, number - 8), number)].append(number)
    for number in range(pages):
        links[number] += [chance.randrange(pages) for _ in range(chance.randrange(most))]
    return links
