"""What the tests of contracts and task runs need of the system."""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only until the test ends; modes do not bind root, a mount does."""
    undo: list[Callable[[], object]] = []

    def make(folder: Path) -> None:
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            mounted = subprocess.run(
                ["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False
            )
            if mounted.returncode:
                pytest.skip("root without the right to mount cannot be kept from writing")
            undo.append(lambda: subprocess.run(["umount", "-l", str(folder)], check=False))
            subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
            return
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        undo.append(lambda: folder.chmod(stat.S_IRWXU))

    yield make
    for step in undo:
        step()
