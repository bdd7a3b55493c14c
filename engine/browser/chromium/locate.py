"""Find a Chromium to drive: the setting first, then the cheapest headless build, then the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from engine.model.build_info import bundle
from engine.model.errors import BrowserMissing

VERSION_LIMIT_S = 5.0
# Where Debian, Fedora, openSUSE and macOS have the certificates that they trust.
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
NODE_LIBRARIES = "node-libraries"  # folder of a packaged program, made by packaging/archives.py
# It needs about 40 % less CPU for a page than the full browser and starts 2 s sooner.
HEADLESS_SHELL = "chromium-headless-shell"
_SHELL_NAMES = (HEADLESS_SHELL, "chrome-headless-shell", "headless_shell")
_ON_PATH = (
    ("Chrome", ("google-chrome", "google-chrome-stable", "chrome")),
    ("Edge", ("microsoft-edge", "microsoft-edge-stable", "msedge")),
    ("Chromium", ("chromium", "chromium-browser")),
)
_LINUX = (
    ("Chrome", "/opt/google/chrome/chrome"),
    ("Edge", "/opt/microsoft/msedge/msedge"),
    ("Chromium", "/usr/lib/chromium/chromium"),
    ("Chromium", "/usr/lib/chromium-browser/chromium-browser"),
    ("Chromium", "/usr/lib64/chromium-browser/chromium-browser"),
    ("Chromium", "/snap/bin/chromium"),
)
_MAC = (
    ("Chrome", "Google Chrome.app/Contents/MacOS/Google Chrome"),
    ("Edge", "Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
    ("Chromium", "Chromium.app/Contents/MacOS/Chromium"),
)
_WINDOWS = (
    ("Chrome", "Google/Chrome/Application/chrome.exe"),
    ("Edge", "Microsoft/Edge/Application/msedge.exe"),
    ("Chromium", "Chromium/Application/chrome.exe"),
)
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}", re.ASCII)
# That of every Chromium; the fewer numbers of other programs would pass for a browser.
WHOLE_VERSION = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
# Playwright writes this file into the folder of a browser when its last file is there.
COMPLETE = "INSTALLATION_COMPLETE"


@dataclass(frozen=True, slots=True)
class Found:
    """A browser that can be started: its display name, and its program."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Place:
    """One searched place; `found` is the program there, if any."""

    name: str
    where: str
    found: str | None


@dataclass(frozen=True, slots=True)
class Description:
    """Browser search for the doctor: the chosen browser, its version, and every searched place."""

    found: Found | None
    version: str
    places: tuple[Place, ...]


def downloads() -> Path:
    """Return the folder of browsers that this program downloaded."""
    return Path(platformdirs.user_data_dir("openchrome-monitor", appauthor=False)) / "browsers"


def leave_bundle(environ: MutableMapping[str, str]) -> None:
    """Keep the child processes of a packaged program apart from its bundle.

    Playwright would look for browsers inside the bundle, which an update replaces. Browsers would
    load the bundle's libraries: its launcher sets LD_LIBRARY_PATH, and keeps the former value.
    Only those that Playwright's node needs stay on the path: not every system has them.
    The bundle's OpenSSL looks for certificates where the system that built it has them.
    """
    import ssl  # only packaged programs need it here

    environ["PLAYWRIGHT_BROWSERS_PATH"] = str(downloads())
    trusted = ssl.get_default_verify_paths()
    if sys.platform != "win32" and not (trusted.cafile or trusted.capath):
        system = next((file for file in CERTIFICATES if Path(file).is_file()), None)
        if system is not None:
            environ.setdefault("SSL_CERT_FILE", system)
    if sys.platform == "linux":
        environ.pop("LD_LIBRARY_PATH", None)
        former, inside = environ.pop("LD_LIBRARY_PATH_ORIG", None), bundle()
        of_node = inside / NODE_LIBRARIES if inside is not None else None
        kept = [former, str(of_node) if of_node is not None and of_node.is_dir() else None]
        if any(kept):
            environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, kept))


def locate(setting: str | None = None, *, headless: bool = True) -> Found:
    """Return the browser to start.

    Args:
        setting: a path or program name from the user; nothing else is tried then.

    Raises:
        BrowserMissing: there is none; the doctor lists the searched places.
    """
    for place in places(setting, headless=headless):
        if place.found is not None:
            return Found(place.name, place.found)
    if setting:
        raise BrowserMissing(reason=f"{setting} is not a program that can be run")
    raise BrowserMissing(reason="no browser was found on this machine")


def installed_browsers() -> list[Found]:
    """Return each Chrome, Edge and Chromium of this machine once, without downloaded ones."""
    installed = (*_installed(), *((name, one) for name, names in _ON_PATH for one in names))
    programs = ((name, _program(where)) for name, where in installed)
    found = {name: path for name, path in programs if path is not None}
    return [Found(name, found[name]) for name, _ in _ON_PATH if name in found]


def describe(setting: str | None = None) -> Description:
    """Return all places of `locate`, and the version of its choice (up to 5 s)."""
    looked = tuple(places(setting, headless=True))
    first = next((place for place in looked if place.found is not None), None)
    if first is None or first.found is None:
        return Description(None, "", looked)
    return Description(Found(first.name, first.found), version_of(first.found), looked)


def places(setting: str | None, *, headless: bool) -> Iterator[Place]:
    """Yield each place in the order of preference, with its program."""
    if setting:
        yield Place(Path(setting).stem, setting, _program(setting))
        return
    if headless:
        for name in _SHELL_NAMES:
            yield Place("Chromium headless shell", name, _program(name))
        shell = f"/usr/lib/chromium/{HEADLESS_SHELL}"
        yield Place("Chromium headless shell", shell, _program(shell))
    yield from _downloaded(headless)
    installed = list(_installed())
    for name, commands in _ON_PATH:
        yield from (Place(name, where, _program(where)) for own, where in installed if own == name)
        yield from (Place(name, command, _program(command)) for command in commands)


def _downloaded(headless: bool) -> Iterator[Place]:
    folder = downloads()
    newest = sorted(_complete(folder), key=_revision, reverse=True)
    for program in _programs(headless):
        for revision in newest:
            for path in sorted(revision.rglob(program)):
                yield Place("downloaded Chromium", str(path), _program(str(path)))
    if not newest:
        yield Place("downloaded Chromium", str(folder), None)


def program_in(folder: Path, *, headless: bool) -> str | None:
    """Return the browser's program in the folder of one build."""
    files = (path for name in _programs(headless) for path in sorted(folder.rglob(name)))
    return next(filter(None, (_program(str(path)) for path in files)), None)


def _programs(headless: bool) -> tuple[str, ...]:
    suffix = ".exe" if sys.platform == "win32" else ""
    shells = (f"chrome-headless-shell{suffix}", f"headless_shell{suffix}") if headless else ()
    return (*shells, f"chrome{suffix}", "Google Chrome for Testing", "Chromium")


def _complete(folder: Path) -> list[Path]:
    """Return the builds in `folder` that are complete: one may be half copied or extracted."""
    try:
        return [one for one in folder.glob("chromium*-*") if (one / COMPLETE).is_file()]
    except OSError:
        return []


def _revision(folder: Path) -> int:
    digits = folder.name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _installed() -> Iterator[tuple[str, str]]:
    if sys.platform == "win32":
        roots = (
            Path("C:/Program Files"),
            Path("C:/Program Files (x86)"),
            Path.home() / "AppData" / "Local",
        )
        yield from ((name, str(root / tail)) for name, tail in _WINDOWS for root in roots)
    elif sys.platform == "darwin":
        roots = (Path("/Applications"), Path.home() / "Applications")
        yield from ((name, str(root / tail)) for name, tail in _MAC for root in roots)
    else:
        yield from _LINUX


def _program(name: str) -> str | None:
    """Return the full path of an executable; search a name on the path."""
    found = shutil.which(os.path.expanduser(name))
    if found is None:
        return None
    behind = Path("/usr/lib/chromium") / Path(found).name
    # Debian's launchers are shell scripts, which cost a process and hide the browser's pid.
    if found.startswith("/usr/bin/") and os.access(behind, os.X_OK):
        return str(behind)
    return os.path.abspath(found)


def version_of(path: str) -> str:
    """Return the program's version; empty after 5 s."""
    if sys.platform == "win32":  # chrome.exe opens a window instead
        return _version_beside(Path(path))
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            timeout=VERSION_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = done.stdout.decode("utf-8", "replace")
    match = WHOLE_VERSION.search(said) or _VERSION.search(said)
    return match.group() if match else ""


def _version_beside(program: Path) -> str:
    """Return the newest version among the folders beside the program; an update leaves two."""
    try:
        found = [name for name in os.listdir(program.parent) if _VERSION.fullmatch(name)]
    except OSError:  # the folders of the Store cannot be listed
        return ""
    return max(found, key=lambda name: [int(part) for part in name.split(".")], default="")
