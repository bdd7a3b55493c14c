"""Long work of a thread in small parts, so that a window's loop is not kept waiting."""

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
    """`items` in small parts, with a short rest for other threads after every few ms of work."""
    source = iter(items)
    until = time.perf_counter() + BUSY_S
    while part := tuple(islice(source, size)):
        yield part
        if time.perf_counter() >= until:
            time.sleep(REST_S)
            until = time.perf_counter() + BUSY_S
