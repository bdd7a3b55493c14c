"""Start what was built the way its user does: an empty environment, a home of its own.

python smoke_test.py [--install]: the self-test of the built folder, and `octask --version`.
With --install also the installer of Windows: install, self-test, uninstall, nothing left.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "package" / "dist"
DIST = ROOT / "dist"
NAME = "openchrome-monitor"
SELF_TEST_S, SETUP_S, GONE_S = 240, 300, 60
# Without these Windows finds neither its libraries nor a folder for temporary files.
_WINDOWS = (
    *("SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "LOCALAPPDATA", "APPDATA", "PROGRAMDATA"),
    *("PROGRAMFILES", "PROGRAMFILES(X86)", "COMSPEC", "USERNAME"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    check(programs(BUILT))
    if options.install:
        check_installer()
    return 0


def programs(built: Path) -> Path:
    """Return the folder with both programs."""
    if sys.platform == "darwin":
        return built / "OpenChrome Monitor.app" / "Contents" / "MacOS"
    return built / NAME


def check(folder: Path) -> None:
    suffix = ".exe" if sys.platform == "win32" else ""
    version = run(folder / f"octask{suffix}", "--version").strip()
    command: list[object] = [folder / f"{NAME}{suffix}", "--self-test"]
    if sys.platform == "linux":
        command = ["xvfb-run", "-a", *command]
    began = time.monotonic()
    told = run(*command).strip()  # a program with a window has no output on Windows
    say(f"{version}: self-test passed in {time.monotonic() - began:.0f} s. {told}")


def check_installer() -> None:
    (setup,) = DIST.glob("*-setup.exe")
    with tempfile.TemporaryDirectory(prefix="setup ä ") as place:
        folder = Path(place) / "OpenChrome Monitor"
        # NSIS takes /D to the end of the line and without quotes: a list would get some.
        subprocess.run(f'"{setup}" /S /D={folder}', check=True, timeout=SETUP_S)
        expected = files(BUILT / NAME) | {"uninstall.exe"}
        if files(folder) != expected:
            fail(f"installed and built files differ: {sorted(files(folder) ^ expected)[:5]}")
        check(folder)
        subprocess.run(f'"{folder}\\uninstall.exe" /S _?={folder}', check=True, timeout=SETUP_S)
        left = files(folder) - {"uninstall.exe"}  # it cannot delete itself when it runs in place
        if left:
            fail(f"the uninstaller left {sorted(left)[:5]}")
    say("installer: installs, works, and leaves nothing")


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def run(*command: object) -> str:
    """Run a program with an empty environment; return its output."""
    home = Path(tempfile.mkdtemp(prefix="home "))
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env=bare(home),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SELF_TEST_S,
            check=False,
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if done.returncode != 0:
        fail(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def bare(home: Path) -> dict[str, str]:
    """Return an environment with nothing of ours in it."""
    if sys.platform == "win32":
        kept = {name: os.environ[name] for name in _WINDOWS if name in os.environ}
        return {**kept, "USERPROFILE": str(home), "PATH": f"{os.environ['SYSTEMROOT']}\\System32"}
    return {"HOME": str(home), "PATH": "/usr/bin:/bin"}


def fail(text: str) -> None:
    sys.exit(f"smoke test: {text}")


def say(text: str) -> None:
    sys.stderr.write(f"smoke test: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
