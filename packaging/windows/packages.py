"""Windows: the portable zip, and the installer with the exact list of its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import archives
from build_file import write_build

HERE = Path(__file__).resolve().parent
NAME = "openchrome-monitor"
_PLACES = (
    Path("C:/Program Files (x86)/NSIS/makensis.exe"),
    Path("C:/Program Files/NSIS/makensis.exe"),
)


def build(folder: Path, dist: Path, work: Path, version: str, epoch: int) -> None:
    """Build the zip and the installer; both programs are signed first where OC_SIGN is set."""
    _sign(folder)
    name = f"{NAME}-{version}-windows-x64"
    write_build(folder / "_internal" / "build.json", channel="zip")
    archives.zip_folder(folder, name, dist / f"{name}.zip", epoch)
    write_build(folder / "_internal" / "build.json", channel="nsis")
    icon = work / "generated" / "icon.ico"
    installer(folder, work / "lists", version, dist / f"{name}-setup.exe", icon)


def installer(folder: Path, lists: Path, version: str, target: Path, icon: Path | None) -> None:
    """Compile the installer of `folder`.

    Raises:
        SystemExit: there is no makensis, or it refused the script.
    """
    found = shutil.which("makensis") or next((str(one) for one in _PLACES if one.is_file()), None)
    if found is None:
        sys.exit("package: makensis was not found; install NSIS 3.08 or later")
    write_lists(folder, lists)
    mark = "/" if sys.platform == "win32" else "-"
    told = {
        "VERSION": version,
        "LISTS": lists,
        "OUTPUT": target,
        "SIZE_KB": archives.size(folder) // 1024,
    }
    if icon is not None:
        told["ICON"] = icon
    if os.environ.get("OC_SIGN"):
        told["SIGN"] = os.environ["OC_SIGN"]
    words = [f"{mark}D{key}={value}" for key, value in told.items()]
    command = [found, f"{mark}V2", f"{mark}WX", f"{mark}INPUTCHARSET", "UTF8", *words]
    script = HERE / "installer.nsi"
    done = subprocess.run([*command, script], cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"package: makensis refused the script:\n{done.stdout}{done.stderr}")


def write_lists(folder: Path, lists: Path) -> None:
    """Write what is installed and what is removed: the same files, and then their folders."""
    lists.mkdir(parents=True, exist_ok=True)
    install, remove = [], []
    inside = [path.relative_to(folder) for path in archives.files(folder)]
    for parent in sorted({path.parent for path in inside}):
        install.append(f'SetOutPath "$INSTDIR{_below(parent)}"')
        for path in (one for one in inside if one.parent == parent):
            install.append(f'File "{folder / path}"')
            remove.append(f'Delete "$INSTDIR{_below(path)}"')
    folders = {parent for path in inside for parent in path.parents if parent != Path()}
    deepest_first = sorted(folders, key=lambda one: (-len(one.parts), one.parts))
    remove += [f'RMDir "$INSTDIR{_below(one)}"' for one in deepest_first]
    for name, lines in (("install.nsh", install), ("uninstall.nsh", remove)):
        (lists / name).write_text("\n".join(lines) + "\n", "utf-8-sig")


def _below(path: Path) -> str:
    return "".join(f"\\{_quoted(part)}" for part in path.parts)


def _quoted(text: str) -> str:
    return text.replace("$", "$$").replace('"', '$\\"')


def _sign(folder: Path) -> None:
    command = os.environ.get("OC_SIGN")
    for program in folder.glob("*.exe") if command else ():
        subprocess.run(f'{command} "{program}"', shell=True, check=True)
