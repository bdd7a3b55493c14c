"""Stable reads of files that another tool rewrites in place: truncated, absent, and whole again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from engine.ledger import meta
from engine.ledger.files import Folder, Unusable
from engine.model.records import META_NAME

PAUSE_S: Final = 0.012  # longer than a rewrite takes
TRIES: Final = 40
QUIET: Final = 10  # pauses without a change, after which no writer is assumed
FRESH_NS: Final = 10 * 10**9

T = TypeVar("T")
Mark = tuple[int, int, int]  # changes with each rewrite; the second is a time (ns)


def read_stable(
    marks: Callable[[], list[Mark]], read: Callable[[], T], is_whole: Callable[[T], bool]
) -> T:
    """Repeat `read` for half a second while its result is not whole and `marks` change.

    A file that was not changed lately is not retried.
    """
    before, found = marks(), read()
    quiet = 0
    for _ in range(TRIES):
        if is_whole(found) or quiet == QUIET or not any(map(_is_fresh, before)):
            break
        time.sleep(PAUSE_S)
        after = marks()
        quiet = quiet + 1 if after == before else 0
        before, found = after, read()
    return found


def _is_fresh(mark: Mark) -> bool:
    return abs(time.time_ns() - mark[1]) < FRESH_NS


def read_meta(folder: Folder) -> tuple[bytes, dict[str, Any]]:
    """Read the meta.json in `folder`: its bytes and the whole dict, strictly.

    Raises Unusable, FileNotFoundError, OSError.
    """

    def read() -> tuple[bytes, dict[str, Any]] | Exception:
        try:
            data = folder.read(META_NAME, meta.META_CAP)
            return data, meta.decode_task(data)
        except (Unusable, FileNotFoundError) as error:
            return error

    found = read_stable(lambda: mark_of(folder), read, lambda one: not isinstance(one, Exception))
    if isinstance(found, Exception):
        raise found
    return found


def mark_of(folder: Folder) -> list[Mark]:
    """Mark of the meta.json in `folder`; of the folder itself while it is absent."""
    try:
        facts = folder.facts(META_NAME)
    except OSError:
        facts = folder.facts(".")
    return [(facts.st_ino, facts.st_mtime_ns, facts.st_size)]
