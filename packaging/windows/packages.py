"""Windows: the portable zip, and the installer with the exact list of its files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import archives
from build_file import write_build
from windows.installer import compile_installer

NAME = "openchrome-monitor"


def build(folder: Path, dist: Path, work: Path, version: str, epoch: int) -> None:
    """Build the zip and the installer; both programs are signed first where OC_SIGN is set."""
    _sign(folder)
    name = f"{NAME}-{version}-windows-x64"
    write_build(folder / "_internal" / "build.json", channel="zip")
    archives.zip_folder(folder, name, dist / f"{name}.zip", epoch)
    write_build(folder / "_internal" / "build.json", channel="nsis")
    icon = work / "generated" / "icon.ico"
    compile_installer(folder, version, dist / f"{name}-setup.exe", icon)


def _sign(folder: Path) -> None:
    command = os.environ.get("OC_SIGN")
    for program in folder.glob("*.exe") if command else ():
        subprocess.run(f'{command} "{program}"', shell=True, check=True)
