"""Programs run as a user whom modes bind: root's powers over files are laid down first."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.octask import Octask


def plainly(words: Sequence[str]) -> list[str]:
    """`words` as a command that modes bind; skips the test where root cannot be kept by them."""
    if os.name != "posix":
        pytest.skip("modes mean nothing on this system")
    if os.geteuid() != 0:
        return list(words)
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not on this machine, and root is bound by no mode")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]


def run_plainly(home: Path, *words: str, place: bool = True) -> subprocess.CompletedProcess[str]:
    """`octask` with these words on `home`, as a plain user; no traceback may be printed."""
    octask = Octask(home)
    where = ["--home", str(home)] if place else []
    ran = subprocess.run(
        plainly(octask.command(*words, *where)),
        env=octask.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert "Traceback" not in ran.stdout + ran.stderr
    return ran
