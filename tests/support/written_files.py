"""Read what a folder holds while programs write there: they replace and remove files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def contents(folder: Path) -> dict[Path, bytes]:
    """Return each file below a folder, but for links and for what is removed meanwhile."""
    found: dict[Path, bytes] = {}
    for inside, _, names in os.walk(folder):  # which passes over folders that are gone
        for place in (Path(inside) / name for name in names):
            with suppress(FileNotFoundError):
                if place.is_file() and not place.is_symlink():
                    found[place] = place.read_bytes()
    return found
