"""Work on the built folder and its archives: symbols, unneeded libraries, times, checksums."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

# patchelf has moved parts of these libraries, and `strip` would damage them.
_PATCHED = ("numpy.libs/", "PySide6/")
# Every desktop has these, and its graphics drivers and font settings fit its own ones only.
# nfpm.yaml depends on their packages; those who unpack the archive have them with their X server.
_OF_THE_DESKTOP = (
    *("libstdc++.so.", "libgcc_s.so.", "libX11.so.", "libX11-xcb.so.", "libfontconfig.so."),
    *("libfreetype.so.", "libexpat.so.", "libz.so."),
)
_ELF = b"\x7fELF"
_NEEDED = re.compile(r"\(NEEDED\)[^\[]*\[([^\]]+)\]")


def files(folder: Path) -> Iterator[Path]:
    """Yield every file and link in `folder`, in one order on every system."""
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
        if path.is_symlink() or path.is_file():
            yield path


def is_elf(path: Path) -> bool:
    """Return whether it is a program or a library of Linux."""
    if path.is_symlink() or path.stat().st_size < len(_ELF):
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def strip_symbols(folder: Path) -> None:
    """Remove what only debuggers read: 33 MB of node, 25 MB of libraries."""
    for path in files(folder / "_internal"):
        inside = path.relative_to(folder / "_internal").as_posix()
        if is_elf(path) and not inside.startswith(_PATCHED):
            subprocess.run(["strip", "--strip-unneeded", path], check=True)


def keep_needed(folder: Path) -> None:
    """Delete the libraries that only left-out plugins needed, and those that a desktop has.

    PyInstaller adds the libraries of all plugins before the build description leaves some out.
    """
    inner = folder / "_internal"
    places = (inner, inner / "PySide6" / "Qt" / "lib")
    for path in [*inner.iterdir()]:
        if path.name.startswith(_OF_THE_DESKTOP):
            path.unlink()
    libraries = {
        path.name: path
        for place in places
        for path in place.iterdir()
        if path.name.startswith("lib") and ".so" in path.name and not path.is_symlink()
    }
    left = [path for path in files(folder) if path not in libraries.values()]
    needed = {name for name in libraries if name.startswith(("libpython", "libcrypto", "libssl"))}
    left += [libraries[name] for name in needed]
    while left:
        path = left.pop()
        if path.is_symlink() or not is_elf(path):
            continue
        told = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        found = (set(_NEEDED.findall(told.stdout)) & libraries.keys()) - needed
        needed |= found
        left += [libraries[name] for name in found]
    for name, path in libraries.items():
        if name not in needed:
            path.unlink()
    for path in list(files(folder)):
        if path.is_symlink() and not path.exists():
            path.unlink()


def link_node_libraries(folder: Path) -> None:
    """Link the libraries that Playwright's node needs into a folder of their own.

    The program starts node with this folder on its path and without the other libraries, because
    node passes its path on to browsers, which need those of the system (`locate.leave_bundle`).
    """
    inner = folder / "_internal"
    node = inner / "playwright" / "driver" / "node"
    told = subprocess.run(["readelf", "-d", node], capture_output=True, text=True, check=True)
    (inner / "node-libraries").mkdir()
    for name in _NEEDED.findall(told.stdout):
        if (inner / name).exists():
            (inner / "node-libraries" / name).symlink_to(f"../{name}")


def system_libraries(folder: Path) -> list[str]:
    """Return the names of the libraries that came from the building system, not from a wheel."""
    return sorted(
        path.name
        for path in (folder / "_internal").iterdir()
        if path.name.startswith("lib") and ".so" in path.name and not path.is_symlink()
    )


def normalise(folder: Path, epoch: int) -> None:
    """Give every file the time of the commit, and plain permissions."""
    for path in files(folder):
        if path.is_symlink():
            os.utime(path, (epoch, epoch), follow_symlinks=False)
            continue
        path.chmod(0o755 if _is_run(path, folder) else 0o644)
        os.utime(path, (epoch, epoch))
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
            os.utime(path, (epoch, epoch))


def _is_run(path: Path, folder: Path) -> bool:
    if path.parent == folder or path.name == "node":
        return True
    if path.suffix == ".js":  # node is given these by name; the system would look for a node
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def size(folder: Path) -> int:
    """Return the bytes of all files, each hard link once."""
    found = {
        (path.stat().st_dev, path.stat().st_ino): path.stat().st_size
        for path in files(folder)
        if not path.is_symlink()
    }
    return sum(found.values())


def copy(folder: Path, target: Path) -> None:
    """Copy with links and times; an old copy goes."""
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(folder, target, symlinks=True)


def tar_gz(folder: Path, name: str, target: Path, epoch: int) -> None:
    """Pack `folder` as `name/…`, the same bytes for the same files."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        return entry

    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted([folder, *folder.rglob("*")]):
            inside = Path(name) / path.relative_to(folder)
            archive.add(path, inside.as_posix(), recursive=False, filter=plain)


def zip_folder(folder: Path, name: str, target: Path, epoch: int) -> None:
    """Pack `folder` as `name/…`, the same bytes for the same files."""
    at = time.gmtime(max(epoch, 315_532_800))[:6]  # zip knows no time before 1980
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in files(folder):
            entry = zipfile.ZipInfo((Path(name) / path.relative_to(folder)).as_posix(), at)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0xFFFF) << 16
            archive.writestr(entry, path.read_bytes())


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in `folder`, by name."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != "SHA256SUMS":
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def write_checksums(folder: Path) -> None:
    """Write `SHA256SUMS`, as `sha256sum --check` reads it."""
    lines = [f"{digest}  {name}\n" for name, digest in checksums(folder).items()]
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")
