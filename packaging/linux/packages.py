"""Linux: the archive, the .deb and .rpm, and the AppDir, all from the one built folder."""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import archives
from build_file import write_build

HERE = Path(__file__).resolve().parent
DESKTOP = HERE.parent.parent / "resources" / "linux"
ID = "io.github.openchrome.monitor"
NAME = "openchrome-monitor"
PROGRAMS = (NAME, "octask")
# The release machine sets OC_MAINTAINER; a package that is built elsewhere says so.
MAINTAINER = "OpenChrome Monitor local build <openchrome-monitor@localhost>"
ARCHITECTURES = {"x86_64": ("amd64", "x86_64"), "aarch64": ("arm64", "aarch64")}


def build(folder: Path, dist: Path, work: Path, version: str, epoch: int, python: str) -> None:
    """Build every package of Linux into `dist`."""
    machine = platform.machine()
    name = f"{NAME}-{version}-linux-{machine}"
    shared = work / "shared"
    _shared_files(shared, version, epoch, python)
    portable = work / "portable"
    archives.copy(folder, portable)
    archives.copy(shared, portable / "share")
    archives.normalise(portable, epoch)
    archives.tar_gz(portable, name, dist / f"{name}.tar.gz", epoch)
    root = work / "packages" / "root"
    for kind in ("deb", "rpm"):
        _installed_tree(root, folder, shared, version, epoch, kind)
        _nfpm(kind, root.parent, dist, version, python)
    _app_dir(work / f"{NAME}.AppDir", folder, shared, dist, epoch)


def _shared_files(target: Path, version: str, epoch: int, python: str) -> None:
    """Write what belongs below /usr/share: menu entry, icons, man pages, completions."""
    shutil.rmtree(target, ignore_errors=True)
    pages, completions = target / "man" / "man1", target / "completions"
    generator = HERE / "manual.py"
    told = [python, str(generator), version, str(epoch), str(pages), str(completions)]
    subprocess.run(told, check=True, env=os.environ | {"QT_QPA_PLATFORM": "offscreen"})
    for page in pages.iterdir():
        _gzip(page)
    places = {
        "octask.bash": "bash-completion/completions/octask",
        "_octask": "zsh/vendor-completions/_octask",
        "octask.fish": "fish/vendor_completions.d/octask.fish",
    }
    for name, place in places.items():
        (target / place).parent.mkdir(parents=True)
        shutil.move(completions / name, target / place)
    completions.rmdir()
    for name, place in {
        f"{ID}.desktop": "applications",
        f"{ID}.metainfo.xml": "metainfo",
        f"{ID}.svg": "icons/hicolor/scalable/apps",
    }.items():
        (target / place).mkdir(parents=True)
        shutil.copy(DESKTOP / name, target / place / name)


def _gzip(page: Path) -> None:
    with (
        page.with_name(f"{page.name}.gz").open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
    ):
        packed.write(page.read_bytes())
    page.unlink()


def _installed_tree(
    root: Path, folder: Path, shared: Path, version: str, epoch: int, kind: str
) -> None:
    """Lay out the files as the package manager will install them."""
    shutil.rmtree(root.parent, ignore_errors=True)
    archives.copy(shared, root / "usr" / "share")
    inside = root / "usr" / "lib" / NAME
    archives.copy(folder, inside)
    write_build(inside / "_internal" / "build.json", channel=kind)
    (root / "usr" / "bin").mkdir()
    documents = root / "usr" / "share" / "doc" / NAME
    documents.mkdir(parents=True)
    if kind == "deb":
        shutil.copy(HERE / "copyright", documents / "copyright")
        day = subprocess.run(
            ["date", "-R", "-u", "-d", f"@{epoch}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = documents / "changelog.Debian"
        changes.write_text(
            f"{NAME} ({version}-1) stable; urgency=medium\n\n"
            f"  * Release {version}; the changes are listed in CHANGELOG.md of the source.\n\n"
            f" -- {os.environ.get('OC_MAINTAINER', MAINTAINER)}  {day}\n",
            "utf-8",
        )
        _gzip(changes)
        overrides = root / "usr" / "share" / "lintian" / "overrides"
        overrides.mkdir(parents=True)
        shutil.copy(HERE / "lintian-overrides", overrides / NAME)
    else:
        shutil.copy(HERE.parent.parent / "LICENSE", documents / "LICENSE")
    archives.normalise(root, epoch)
    for program in PROGRAMS:
        (inside / program).chmod(0o755)
        (root / "usr" / "bin" / program).symlink_to(f"../lib/{NAME}/{program}")


def _nfpm(kind: str, work: Path, dist: Path, version: str, python: str) -> None:
    debian, redhat = ARCHITECTURES[platform.machine()]
    glibc = platform.libc_ver()[1]
    told = os.environ | {
        "OC_ARCH": debian,
        "OC_VERSION": version,
        "OC_MAINTAINER": os.environ.get("OC_MAINTAINER", MAINTAINER),
        "OC_GLIBC": glibc,
    }
    target = {
        "deb": dist / f"{NAME}_{version}-1_{debian}.deb",
        "rpm": dist / f"{NAME}-{version}-1.{redhat}.rpm",
    }[kind]
    program = Path(python).with_name("nfpm")
    command: list[str | Path] = [
        program,
        "package",
        "-f",
        HERE / "nfpm.yaml",
        "-p",
        kind,
        "-t",
        target,
    ]
    done = subprocess.run(command, cwd=work, env=told, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"package: nfpm failed for the {kind}: {done.stdout}{done.stderr}")
    if kind == "deb":
        _compress_well(target, work / "unpacked")


def _compress_well(deb: Path, folder: Path) -> None:
    """Pack the .deb again with dpkg-deb, whose xz makes 89 MB of what nfpm's makes 121 MB."""
    if shutil.which("dpkg-deb") is None:
        return
    subprocess.run(["dpkg-deb", "-R", deb, folder], check=True)
    command: list[str | Path] = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "-b", folder, deb]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)


def _app_dir(target: Path, folder: Path, shared: Path, dist: Path, epoch: int) -> None:
    """Lay out the AppDir; a release machine with `appimagetool` makes the AppImage of it."""
    shutil.rmtree(target, ignore_errors=True)
    archives.copy(folder, target / "usr" / "lib" / NAME)
    write_build(target / "usr" / "lib" / NAME / "_internal" / "build.json", channel="appimage")
    archives.copy(shared, target / "usr" / "share")
    archives.normalise(target, epoch)
    (target / "usr" / "bin").mkdir()
    for program in PROGRAMS:
        (target / "usr" / "lib" / NAME / program).chmod(0o755)
        (target / "usr" / "bin" / program).symlink_to(f"../lib/{NAME}/{program}")
    shutil.copy(HERE / "AppRun", target / "AppRun")
    (target / "AppRun").chmod(0o755)
    for name in (f"{ID}.desktop", f"{ID}.svg"):
        shutil.copy(DESKTOP / name, target / name)
    (target / ".DirIcon").symlink_to(f"{ID}.svg")
    tool = shutil.which("appimagetool")
    if tool is not None:
        machine = platform.machine()
        made = dist / f"{NAME}-{machine}.AppImage"
        subprocess.run([tool, target, made], check=True, env=os.environ | {"ARCH": machine})
