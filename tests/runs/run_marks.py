"""An engine whose tasks have runs, and what it leaves of them on disk."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.config import Settings
from engine.service import Engine


@asynccontextmanager
async def opened(home: Path, *, accepts: bool = True, **settings: Any) -> AsyncIterator[Engine]:
    engine = Engine(Settings(home=home, root=home / "tasks", **settings), accepts=accepts)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


def only_run(home: Path) -> dict[str, Any]:
    (place,) = (home / "comet-runs").glob("*.json")
    found: dict[str, Any] = json.loads(place.read_bytes())
    return found


def marks(home: Path) -> list[str]:
    folder = home / "comet-runs" / "open"
    return os.listdir(folder) if folder.exists() else []
