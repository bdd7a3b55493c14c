"""Time slices for long work in a thread, so that the GUI loop is not blocked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

AT_ONCE = 32  # tasks: about a millisecond of reading
BUSY_S = 0.002
REST_S = 0.0002  # long enough for a waiting thread to wake up and take the GIL

Item = TypeVar("Item")


def slices(items: Iterable[Item], size: int = AT_ONCE) -> Iterator[tuple[Item, ...]]:
    """Yield `items` in small parts, with a short pause for other threads every few ms."""
    source = iter(items)
    until = time.perf_counter() + BUSY_S
    while part := tuple(islice(source, size)):
        yield part
        if time.perf_counter() >= until:
            time.sleep(REST_S)
            until = time.perf_counter() + BUSY_S
