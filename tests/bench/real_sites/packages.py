"""Packages of npm and Debian in a cache folder outside the repository.

The folder is `$OC_BENCH_CACHE`, else `~/.cache/openchrome-monitor-bench`. A package is fetched
once, by its registry's ordinary client, and nothing of it is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

LIMIT_S = 180
NPM = {
    "swagger-ui-dist": "5.31.0",
    "redoc": "2.5.1",
    "rapidoc": "9.3.8",
    "@scalar/api-reference": "1.40.0",
    "@scalar/galaxy": "0.2.20",
    "@stoplight/elements": "9.0.12",
    "@shoelace-style/shoelace": "2.20.1",
    "docsify": "4.13.1",
    "fastify": "5.6.1",
    "graphiql": "3.8.3",
    "react": "18.3.1",
    "react-dom": "18.3.1",
    "vue": "3.5.22",
    "vue-router": "4.5.1",
}


class Missing(Exception):
    """A package that cannot be had here; the words say why."""


def cache() -> Path:
    given = os.environ.get("OC_BENCH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "openchrome-monitor-bench"


def npm(name: str) -> Path:
    """The folder of this npm package, in the version of the table above.

    Raises:
        Missing: there is no npm, or the package cannot be fetched.
    """
    target = cache() / "npm" / f"{name.replace('/', '+')}@{NPM[name]}"
    if not target.exists():
        _need("npm")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            _run(["npm", "pack", "--silent", f"{name}@{NPM[name]}"], folder, name)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as packed:
                packed.extractall(folder, filter="data")
            shutil.move(Path(folder) / "package", target)
    return target


def debian(path: str, *names: str) -> Path:
    """The folder `path` of the Debian packages `names`, which are unpacked but not installed.

    Raises:
        Missing: there is no apt-get, a package cannot be fetched, or it has no such folder.
    """
    root = cache() / "debian"
    for name in names:
        stamp = root / f".{name}"
        if not stamp.exists():
            _need("apt-get", "dpkg-deb")
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=root) as folder:
                _run(["apt-get", "download", "-qq", name], folder, name)
                file = next(Path(folder).glob("*.deb"))
                _run(["dpkg-deb", "-x", str(file), str(root)], folder, name)
            _turn_links_inwards(root)
            stamp.touch()
    if not (found := root / path).is_dir():
        raise Missing(f"{', '.join(names)} has no folder {path}")
    return found


def _turn_links_inwards(root: Path) -> None:
    """Let absolute links of the packages lead into `root` instead of this machine's folders."""
    for place in root.rglob("*"):
        if place.is_symlink() and (to := os.readlink(place)).startswith("/usr/"):
            place.unlink()
            place.symlink_to(root / to.lstrip("/"))


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"there is no {program} on this machine")


def _run(words: list[str], folder: str, name: str) -> None:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Missing(f"{words[0]} cannot fetch {name}: {said[-1] if said else 'no reason given'}")
