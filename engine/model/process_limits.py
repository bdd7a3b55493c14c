"""Limits of the system for this process: open files, the size of a file, and its umask.

The only place that knows that Windows has no such limits. A shortage of descriptors makes other
things look broken (a site, a name, a page), so its last time is kept: a failure that it can explain
is not blamed on them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections import deque
from typing import Final

WANTED_FILES: Final = 8192  # a window with many crawls needs some hundred; 512 connections a crawl
FEW_FILES: Final = 256  # below it a browser may fail, by the number of its pages
BROWSER_FILES: Final = 128  # Chromium 156: none of 12 pages with 100, all of them with 128
FEW_BYTES: Final = 64 * 1024 * 1024  # a browser writes files of some MB into its profile
_SPARE: Final = 4  # what looking a name up, or one connection with its page, needs
_DEEPEST: Final = 8  # causes of an error
_CODES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_shortages: Final = deque([float("-inf")], maxlen=1)  # the last one, by the monotonic clock


def keep_owner_access() -> None:
    """Remove the owner's bits from this process' umask, which would make new files useless."""
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask & 0o077)


def raise_open_files() -> None:
    """Raise the soft limit of open files, which many systems set to 256 or 1,024."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # the system may have a lower limit yet
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_open_files() -> int | None:
    """Return how many files this process may open; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def most_file_bytes() -> int | None:
    """Return the largest size of a file that this process may write; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY else soft


def is_shortage(error: BaseException | None) -> bool:
    """Return whether `error`, or what caused it, is a lack of descriptors; if so, note it."""
    for _ in range(_DEEPEST):  # an error that is raised again may be its own cause
        if error is None:
            break
        if isinstance(error, OSError) and error.errno in _CODES:
            _shortages.append(time.monotonic())
            return True
        error = error.__cause__ or error.__context__
    return False


def is_short() -> bool:
    """Return whether there are hardly any descriptors now; if so, note it.

    Libraries hide the reason: looking a name up without descriptors says that it does not exist.
    """
    spare: list[int] = []
    try:
        spare.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_SPARE))
    except OSError as error:
        return is_shortage(error)
    finally:
        for fd in spare:
            os.close(fd)
    return False


def was_short(since_s: float) -> bool:
    """Return whether there was a shortage since this moment of the monotonic clock, or is now."""
    return _shortages[-1] >= since_s or is_short()


def has_few_files() -> bool:
    """Return whether so few files may be open that a browser may die of it, unseen by us."""
    most = most_open_files()
    return most is not None and most < FEW_FILES
