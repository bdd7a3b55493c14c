"""A screen that nobody sees, for browsers with a window."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def screen_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set DISPLAY to a new screen, and yield its number; skip the test where there is no Xvfb."""
    program = shutil.which("Xvfb")
    if program is None:
        pytest.skip("there is no Xvfb to make a screen with")
    read, write = os.pipe()
    with subprocess.Popen(
        [program, "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stderr=subprocess.DEVNULL,
    ) as server:
        os.close(write)
        with os.fdopen(read) as told:
            number = told.readline().strip()
        monkeypatch.setenv("DISPLAY", f":{number}")
        yield number
        server.terminate()
