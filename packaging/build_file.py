"""`build.json`: what a packaged program knows of its own build."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write_build(path: Path, *, channel: str) -> None:
    """Write the file; `channel` is folder, deb, rpm, appimage, nsis, zip or dmg.

    Version, commit and the address of the update check come from the environment of the build.
    """
    told = {
        "version": os.environ["OC_VERSION"],
        "commit": os.environ["OC_COMMIT"],
        "channel": channel,
        "updates_url": os.environ.get("OC_UPDATES_URL", ""),
    }
    path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
