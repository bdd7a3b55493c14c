"""Build everything that this system can build, into `dist/`: `./dev package` runs it.

Every system: wheel, sdist, the folder with both programs, its archive, the list of components,
checksums. Linux: .deb, .rpm and an AppDir. Windows: the installer. macOS: the .app and its .dmg.
A second build of the same commit gives the same files: times come from the commit, and archives
are sorted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE)]

import archives  # noqa: E402
from build_file import write_build  # noqa: E402

WORK = ROOT / "build" / "package"
DIST = ROOT / "dist"
NAME = "openchrome-monitor"
ICON = ROOT / "resources" / "linux" / "io.github.openchrome.monitor.svg"
LOCK = HERE / "requirements.lock"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="then install and start what was built, and look at it"
    )
    parser.add_argument("--only-check", action="store_true", help="check what dist/ holds already")
    parser.add_argument(
        "--again", action="store_true", help="build twice and name every file that differs"
    )
    options = parser.parse_args()
    if not options.only_check:
        build()
    if options.again:
        first = archives.checksums(DIST)
        shutil.rmtree(WORK / "work", ignore_errors=True)
        build()
        second = archives.checksums(DIST)
        different = sorted(name for name in first if first[name] != second.get(name))
        say("the second build differs in: " + (", ".join(different) or "nothing"))
    if options.check or options.only_check:
        return subprocess.run([sys.executable, HERE / "check.py"], check=False).returncode
    return 0


def build() -> None:
    began = time.monotonic()
    commit, epoch = _commit()
    version = _version()
    os.environ |= {
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONHASHSEED": "1",
        "OC_COMMIT": commit,
        "OC_VERSION": version,
    }
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    WORK.mkdir(parents=True, exist_ok=True)
    with step("environment"):
        python = _environment()
    with step("wheel and sdist"):
        run(python, "-m", "hatchling", "build", "-d", DIST)
        wheel = next(DIST.glob("*.whl"))
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel)
    with step("generated files"):
        generated = _generate(python, version)
    with step("folder (PyInstaller)"):
        folder = _freeze(python, generated, version, epoch)
    with step("list of components"):
        run(python, HERE / "sbom.py", version, DIST / f"{NAME}-{version}.cdx.json")
    if sys.platform == "linux":
        from linux import packages

        packages.build(folder, DIST, WORK, version, epoch, python)
    elif sys.platform == "win32":
        from windows import packages as windows_packages

        windows_packages.build(folder, DIST, WORK, version, epoch)
    else:
        from macos import packages as macos_packages

        macos_packages.build(WORK / "dist" / "OpenChrome Monitor.app", DIST, version)
    archives.write_checksums(DIST)
    for path in sorted(DIST.iterdir()):
        if path.is_file():
            say(f"{path.stat().st_size / 1e6:8.1f} MB  {path.name}")
    say(f"{archives.size(folder) / 1e6:8.1f} MB  the folder, unpacked")
    say(f"built in {time.monotonic() - began:.0f} s")


def _commit() -> tuple[str, int]:
    """Return the commit, marked when files differ from it, and its time in seconds."""
    if not (ROOT / ".git").exists():  # a source archive
        return "", int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))
    told = run("git", "-C", ROOT, "log", "-1", "--format=%H %ct").split()
    changed = run("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no")
    return told[0] + ("-changed" if changed else ""), int(told[1])


def _version() -> str:
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def _environment() -> str:
    """Create the environment of the locked packages; return its Python."""
    folder = WORK / "venv"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / ".installed"
    wanted = f"{sys.version}\n{LOCK.read_text('utf-8')}"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return str(python)
    venv.create(folder, clear=True, with_pip=True)
    run(python, "-m", "pip", "install", "-q", "--require-hashes", "-r", LOCK)
    stamp.write_text(wanted, "utf-8")
    return str(python)


def _generate(python: str, version: str) -> Path:
    folder = WORK / "generated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_build(folder / "build.json", channel="folder")
    _list_licenses(python, folder / "THIRD-PARTY-LICENSES.txt")
    if sys.platform == "win32":
        import artwork
        from windows.version_info import version_info

        artwork.write_ico(ICON, folder / "icon.ico")
        for name, description in (
            (NAME, "OpenChrome Monitor"),
            ("octask", "OpenChrome Monitor command line"),
        ):
            text = version_info(version, name, description)
            (folder / f"{name}.version").write_text(text, "utf-8")
    elif sys.platform == "darwin":
        import artwork

        artwork.write_icns(ICON, folder / "icon.icns")
    return folder


def _list_licenses(python: str, target: Path, libraries: Sequence[str] = ()) -> None:
    named = [word for name in libraries for word in ("--system-library", name)]
    run(python, "-m", "engine.doctor.third_party_licenses", target, *named)


def _freeze(python: str, generated: Path, version: str, epoch: int) -> Path:
    os.environ["OC_BUILD"] = str(generated)
    places = ("--distpath", WORK / "dist", "--workpath", WORK / "work")
    spec = HERE / f"{NAME}.spec"
    run(python, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", *places, spec)
    folder = WORK / "dist" / NAME
    if sys.platform == "linux":
        archives.strip_symbols(folder)
        archives.keep_needed(folder)
        archives.link_node_libraries(folder)
        libraries = archives.system_libraries(folder)
        _list_licenses(python, folder / "_internal" / "THIRD-PARTY-LICENSES.txt", libraries)
    archives.normalise(folder, epoch)
    return folder


def run(*command: object) -> str:
    """Run a command; return its output. A failure ends the build with what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"package: {' '.join(words[:4])} … failed with {done.returncode}")
    return done.stdout


class step:
    """One stage of the build, told when it begins and how long it took."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._began = time.monotonic()
        say(f"{self._name} …")

    def __exit__(self, *_: object) -> None:
        say(f"{self._name}: {time.monotonic() - self._began:.0f} s")


def say(words: str) -> None:
    sys.stderr.write(f"package: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
