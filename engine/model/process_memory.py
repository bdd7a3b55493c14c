"""Memory of processes, in bytes.

The processes of one program, such as a browser, share its files, which may be two thirds of what
each has in memory. Only Linux reports them quickly, so elsewhere they count for each process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

_FILES: Final = re.compile(rb"^RssFile:\s+(\d+) kB$", re.MULTILINE)


def resident_bytes(process: psutil.Process) -> int:
    """Return what is in memory, shared parts included; 0 if the process is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def own_bytes(process: psutil.Process) -> int:
    """Return what its end would free: slower than `resident_bytes`, and not always permitted."""
    try:
        return int(process.memory_full_info().uss)
    except psutil.AccessDenied:
        return resident_bytes(process)
    except psutil.Error:
        return 0


def bytes_together(resident: Mapping[psutil.Process, int]) -> int:
    """Return what processes of one program, with their resident bytes, use together.

    The files in their memory count once, as many as the largest of them has.
    """
    files = [min(_file_bytes(process), held) for process, held in resident.items()]
    return sum(resident.values()) - sum(files) + max(files, default=0)


def _file_bytes(process: psutil.Process) -> int:
    """Return the part of the resident bytes that are files; 0 where this is not known."""
    try:
        found = _FILES.search(Path(f"/proc/{process.pid}/status").read_bytes())
    except OSError:
        return 0
    return 0 if found is None else int(found[1]) * 1024
