"""Faults of the system, to put in the place of its calls."""

from __future__ import annotations

import errno
from typing import NoReturn


def disk_full(*_: object, **__: object) -> NoReturn:
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")
