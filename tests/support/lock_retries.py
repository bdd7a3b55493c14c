"""Repeat a change that a lock's time limit refused on a slow machine."""

from __future__ import annotations

from collections.abc import Callable

from engine.model.errors import LockTimeout


def patiently(change: Callable[[], object]) -> None:
    """Make `change`, as often as it is refused because another stands still inside the lock."""
    while True:
        try:
            change()
        except LockTimeout:
            continue
        return
