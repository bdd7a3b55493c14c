"""Compile the installer of Windows from a built folder with makensis, on Windows or on Linux.

python installer.py FOLDER VERSION OUTPUT [ICON]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from file_list import longest, payload, write_lists  # noqa: E402

SCRIPT = HERE / "installer.nsi"
# Where the installer of NSIS puts it on Windows, without an entry in PATH.
_PLACES = (
    Path("C:/Program Files (x86)/NSIS/makensis.exe"),
    Path("C:/Program Files/NSIS/makensis.exe"),
)


def compile_installer(folder: Path, version: str, target: Path, icon: Path | None = None) -> None:
    """Write the installer of `folder`; `OC_SIGN` is the command that signs it and its uninstaller.

    Raises:
        SystemExit: there is no makensis, or it refused the script.
    """
    found = shutil.which("makensis") or next((str(one) for one in _PLACES if one.is_file()), None)
    if found is None:
        sys.exit("package: makensis was not found; install NSIS 3.08 or later")
    facts: dict[str, object] = {
        "VERSION": version,
        "NUMBERS": _four_numbers(version),
        "OUTPUT": target.resolve(),
        "SIZE_KB": sum((folder / path).stat().st_size for path in payload(folder)) // 1024,
        "LONGEST": longest(folder),
    }
    if icon is not None:
        facts["ICON"] = icon.resolve()
    if os.environ.get("OC_SIGN"):
        facts["SIGN"] = os.environ["OC_SIGN"]
    if os.environ.get("OC_NSIS_TARGET"):  # a test under a Wine without 32-bit programs
        facts["TARGET"] = os.environ["OC_NSIS_TARGET"]
    with tempfile.TemporaryDirectory() as lists:
        facts["LISTS"] = lists
        write_lists(folder.resolve(), Path(lists))
        mark = "/" if sys.platform == "win32" else "-"
        options = [f"{mark}V2", f"{mark}WX", f"{mark}INPUTCHARSET", "UTF8"]
        words = [f"{mark}D{name}={value}" for name, value in facts.items()]
        done = subprocess.run(
            [found, *options, *words, str(SCRIPT)],
            cwd=HERE,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode != 0:
        sys.exit(f"package: makensis refused the script:\n{done.stdout}{done.stderr}")


def _four_numbers(version: str) -> str:
    """Return the version as the resources of Windows need it: `0.2.0rc1` becomes `0.2.0.0`."""
    found = [part for part in version.split(".") if part.isdecimal()]
    return ".".join([*found, "0", "0", "0", "0"][:4])


def main() -> None:
    folder, version, output, *icon = sys.argv[1:]
    compile_installer(Path(folder), version, Path(output), Path(icon[0]) if icon else None)


if __name__ == "__main__":
    main()
