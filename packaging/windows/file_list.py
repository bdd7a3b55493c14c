"""The files that the installer of Windows installs and its uninstaller removes.

python file_list.py FOLDER LISTS writes `install.nsh` and `uninstall.nsh` into LISTS.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath

# Windows opens no path beyond this without a setting that most machines lack.
MAX_PATH = 259
# Quotes end a string, and "${" begins a constant, also where "$" needs no second one.
_UNUSABLE = re.compile(r'["`\r\n]|\$\{')
_REMOVED = re.compile(r'^Delete "\$INSTDIR\\(.*)"$', re.MULTILINE)


def payload(folder: Path) -> list[PurePath]:
    """Return every file in `folder` by its place there, in one order on every system.

    Raises:
        ValueError: a name cannot stand in a script of NSIS, or a file is a link.
    """
    found = []
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise ValueError(f"{path} is a link; NSIS would install what it leads to")
        if path.is_file():
            found.append(path.relative_to(folder))
    wrong = [path for path in found if _UNUSABLE.search(str(path))]
    if wrong:
        raise ValueError(f"{wrong[0]} has a character that no script of NSIS can name")
    return sorted(found, key=lambda path: path.parts)


def longest(folder: Path) -> int:
    """Return the length of the longest place of a file inside `folder`."""
    return max(len(str(path)) for path in payload(folder))


def write_lists(folder: Path, lists: Path) -> None:
    """Write what is installed and what is removed: the same files, and then their folders."""
    lists.mkdir(parents=True, exist_ok=True)
    files = payload(folder)
    install: list[str] = []
    for parent in sorted({path.parent for path in files}, key=lambda path: path.parts):
        install.append(f'SetOutPath "$INSTDIR{_below(parent)}"')
        install += [
            f'File "/oname={_quoted(path.name)}" "{folder / path}"'
            for path in files
            if path.parent == parent
        ]
    remove = [f'Delete "$INSTDIR{_below(path)}"' for path in files]
    remove += [f'RMDir "$INSTDIR{_below(parent)}"' for parent in _folders(files)]
    for name, lines in (("install.nsh", install), ("uninstall.nsh", remove)):
        (lists / name).write_text("\n".join(lines) + "\n", "utf-8-sig")


def removed(uninstall: str) -> set[str]:
    """Return the places that the text of an `uninstall.nsh` deletes, with `/` between folders."""
    return {place.replace("\\", "/").replace("$$", "$") for place in _REMOVED.findall(uninstall)}


def _folders(files: Iterable[PurePath]) -> list[PurePath]:
    """Return all folders of the files, the deepest first."""
    folders = {parent for path in files for parent in path.parents if parent.parts}
    return sorted(folders, key=lambda path: (-len(path.parts), path.parts))


def _below(path: PurePath) -> str:
    return "".join(f"\\{_quoted(part)}" for part in path.parts)


def _quoted(text: str) -> str:
    return text.replace("$", "$$")


def main() -> None:
    folder, lists = map(Path, sys.argv[1:])
    write_lists(folder, lists)
    told = removed((lists / "uninstall.nsh").read_text("utf-8-sig"))
    assert told == {path.as_posix() for path in payload(folder)}


if __name__ == "__main__":
    main()
