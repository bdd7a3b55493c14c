"""The traces of runs that an engine leaves on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def only_run(home: Path) -> dict[str, Any]:
    (place,) = (home / "comet-runs").glob("*.json")
    found: dict[str, Any] = json.loads(place.read_bytes())
    return found


def marks(home: Path) -> list[str]:
    folder = home / "comet-runs" / "open"
    return os.listdir(folder) if folder.exists() else []
