"""Version, commit and channel of the running program, as its package recorded them.

A packaged program carries `build.json`. Run from source or from a wheel there is none: then the
channel is empty, and no update is offered.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from engine.model.config import VERSION

FILE_NAME: Final = "build.json"
_MAX_BYTES: Final = 64 * 1024
_MAX_CHARS: Final = 2_048  # of one value
# A distribution updates its packages itself.
DISTRIBUTION_CHANNELS: Final = frozenset({"deb", "rpm"})


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """Facts of a build; `commit`, `channel` and `updates_url` are empty where unknown."""

    version: str = VERSION
    commit: str = ""
    channel: str = ""
    updates_url: str = ""

    @property
    def offers_updates(self) -> bool:
        """Whether this program may ask for newer versions."""
        return bool(self.updates_url) and self.channel not in DISTRIBUTION_CHANNELS

    def __str__(self) -> str:
        """Return the version, with channel and commit where known: `0.1.0 (deb, 1a2b3c4d5e6f)`."""
        commit, mark, rest = self.commit.partition("-")
        known = ", ".join(part for part in (self.channel, commit[:12] + mark + rest) if part)
        return f"{self.version} ({known})" if known else self.version


def bundle() -> Path | None:
    """Return the folder of the packaged program's data; None from source or from a wheel."""
    place = getattr(sys, "_MEIPASS", "") if getattr(sys, "frozen", False) else ""
    return Path(place) if place else None


@lru_cache(maxsize=1)
def build_info() -> BuildInfo:
    """Return the facts of the running program, read once."""
    folder = bundle()
    return BuildInfo() if folder is None else read_build_info(folder / FILE_NAME)


def read_build_info(file: Path) -> BuildInfo:
    """Return the facts in `file`; the defaults for a file that is missing or damaged."""
    try:
        with file.open("rb") as opened:
            found = msgspec.json.decode(opened.read(_MAX_BYTES))
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return BuildInfo()
    if not isinstance(found, dict):
        return BuildInfo()
    return BuildInfo(
        version=_text(found, "version") or VERSION,
        commit=_text(found, "commit"),
        channel=_text(found, "channel"),
        updates_url=_text(found, "updates_url"),
    )


def _text(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    is_plain = isinstance(value, str) and len(value) <= _MAX_CHARS and value.isprintable()
    return str(value) if is_plain else ""
