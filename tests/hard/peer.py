"""A Node program that locks and writes as OpenChrome does, by the packages that it uses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("proper-lockfile@4.1.2", "write-file-atomic@5")
PEER = Path(__file__).with_name("peer.mjs")
LIMIT_S = 240
NPM_S = 25  # a network that does not answer must not hold a test up to its own limit


def node_modules(folder: Path) -> tuple[Path | None, str]:
    """Install the two packages below `folder`; where they are, or why they are not there."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None, "there is no npm on this machine"
    quick = ("--fetch-timeout=10000", "--fetch-retries=0")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", *quick]
    command += ["--prefix", str(folder)]
    try:
        done = subprocess.run(
            [*command, *PACKAGES], capture_output=True, text=True, timeout=NPM_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"npm did not answer within {NPM_S} s"
    if done.returncode:
        return None, f"npm could not install: {done.stderr.strip()[-200:]}"
    return folder, ""


def start_node(modules: Path, folder: Path, number: int, updates: int) -> subprocess.Popen[bytes]:
    command = ["node", str(PEER), str(modules), str(folder), f"peer{number}", str(updates)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def answer(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What a Node program printed at its end; one that crashed acknowledged nothing by it."""
    out, _ = program.communicate(timeout=LIMIT_S)
    if program.returncode:
        return {"done": 0, "refused": 0, "longestMs": 0, "crashed": 1}
    word: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return {**word, "crashed": 0}
