"""A mounted disk of 64 KiB without a free byte, as a home; root alone may mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk_at(place: Path, before: Callable[[Path], object] = lambda _: None) -> Iterator[Path]:
    """The disk, with what `before` left on it; skips the test where none can be mounted."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", str(place)]
    if os.name != "posix" or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (place / "tasks").mkdir(mode=0o700)
        before(place)
        filler = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(filler, bytes(4096)):
                pass
        except OSError:
            os.close(filler)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
