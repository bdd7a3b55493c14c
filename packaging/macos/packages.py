"""macOS: sign the bundle, and write the disk image and a zip of the same bundle."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from build_file import write_build

HERE = Path(__file__).resolve().parent
NAME = "openchrome-monitor"


def build(app: Path, dist: Path, version: str) -> None:
    """Write the disk image of the bundle; the architecture is that of the building machine.

    Raises:
        subprocess.CalledProcessError: a step of signing or notarizing failed.
        SystemExit: the bundle has no `build.json` to name its channel in.
    """
    # A signature covers this file, so it is written before. Frameworks has a link to it.
    told = app / "Contents" / "Resources" / "build.json"
    if not told.is_file():
        raise SystemExit(f"package: {told} is missing")
    write_build(told, channel="dmg")
    machine = {"arm64": "arm64", "x86_64": "x64"}[platform.machine()]
    name = f"{NAME}-{version}-macos-{machine}"
    subprocess.run([HERE / "sign_and_notarize.sh", app, dist / f"{name}.dmg"], check=True)
    # ditto keeps the links and the ticket of the notary service.
    zipped = dist / f"{name}.zip"
    subprocess.run(["ditto", "-c", "-k", "--keepParent", app, zipped], check=True)
