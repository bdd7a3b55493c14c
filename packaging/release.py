"""Gather the packages of all systems into one folder, with checksums and the file for updates.

python release.py ARTIFACTS RELEASE VERSION PAGE

ARTIFACTS has one folder for each system: linux, windows, macos-arm64, macos-x64. PAGE is the
address that the update check of an installed program shows. Nothing is written when a package is
missing.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from archives import write_checksums  # noqa: E402

# What each system gives to a release. The wheel and the sources are the same on every system.
EXPECTED = {
    "linux": ("*.whl", "openchrome_monitor-*.tar.gz", "*-linux-*.tar.gz", "*.deb", "*.rpm"),
    "windows": ("*-windows-*.zip", "*-windows-*-setup.exe"),
    "macos-arm64": ("*-macos-arm64.dmg", "*-macos-arm64.zip"),
    "macos-x64": ("*-macos-x64.dmg", "*-macos-x64.zip"),
}
COMPONENTS = ".cdx.json"


class Incomplete(Exception):
    """A package is missing, or two have one name."""


def gather(artifacts: Path, release: Path, version: str, page: str) -> list[str]:
    """Copy what belongs to the release; return the names.

    Raises:
        Incomplete: a package is missing, is of another version, or has the name of another one.
    """
    found: dict[str, Path] = {}
    for system, patterns in EXPECTED.items():
        for pattern in (*patterns, f"*{COMPONENTS}"):
            places = sorted((artifacts / system).glob(pattern))
            if len(places) != 1:
                raise Incomplete(f"{system}: {len(places)} files instead of one for {pattern}")
            (place,) = places
            name = place.name
            if version not in name.replace(
                "~", ""
            ):  # how a .deb marks a version before its release
                raise Incomplete(f"{system}: {name} is not of version {version}")
            if pattern == f"*{COMPONENTS}":  # each system has other libraries
                name = f"{name.removesuffix(COMPONENTS)}-{system}{COMPONENTS}"
            if name in found:
                raise Incomplete(f"{system}: {name} comes from two systems")
            found[name] = place
    release.mkdir(parents=True)
    for name, place in found.items():
        shutil.copyfile(place, release / name)
    latest = json.dumps({"version": version, "page": page}, indent=1) + "\n"
    (release / "latest.json").write_text(latest, "utf-8")
    write_checksums(release)
    return sorted([*found, "SHA256SUMS", "latest.json"])


def main() -> None:
    artifacts, release, version, page = sys.argv[1:]
    try:
        names = gather(Path(artifacts), Path(release), version, page)
    except Incomplete as problem:
        sys.exit(f"release: {problem}")
    sys.stdout.write("\n".join(names) + "\n")


if __name__ == "__main__":
    main()
