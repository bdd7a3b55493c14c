"""Signals that ask the process to end, handled on its asyncio loop.

The only place that knows that Windows has no `loop.add_signal_handler`. A handler of
`signal.signal` alone may not run while the loop waits: Python runs it between two steps of the
main thread, and a signal that comes right before the wait, or that the system gives to another
thread, does not end that wait. The loop's own handlers write to a pipe that does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def handled_on_loop(*handlers: tuple[int, Callable[[], object]]) -> Iterator[None]:
    """Call each signal's handler on the running loop inside the block; not for nested blocks."""
    loop = asyncio.get_running_loop()
    before = [(number, signal.getsignal(number)) for number, _ in handlers]
    for number, handler in handlers:
        if sys.platform == "win32":  # the proactor's loop is woken by each signal
            signal.signal(number, lambda *_, run=handler: loop.call_soon_threadsafe(run))
        else:
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, old in before:
            if sys.platform != "win32":
                loop.remove_signal_handler(number)
            signal.signal(number, old)
