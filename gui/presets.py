"""Requests that a person keeps: presets by name, and the last ones that were started.

Kept in the preferences, without anything secret: what was taken out has to be typed in again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from engine.again import Asked
from engine.drafts import asked_of, storable
from engine.errors import InvalidArguments
from gui.preferences import Preferences

MOST_RECENT: Final = 20
MOST_PRESETS: Final = 50
MOST_TITLE: Final = 60
PRESETS, RECENT = "start.presets", "start.recent"


@dataclass(frozen=True, slots=True)
class Kept:
    """One request; `title` is a preset's name, `lost` says that a secret was taken out."""

    asked: Asked
    title: str = ""
    lost: bool = False


class Presets(QObject):
    """`changed` when a list is another one; damaged entries are passed over."""

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences

    @property
    def presets(self) -> tuple[Kept, ...]:
        """By name."""
        return tuple(sorted(self._read(PRESETS), key=lambda kept: kept.title.casefold()))

    @property
    def recent(self) -> tuple[Kept, ...]:
        """The newest first, each once."""
        return tuple(self._read(RECENT))[:MOST_RECENT]

    def keep(self, title: str, asked: Asked) -> Kept:
        """Keep a preset; one of the same name is replaced."""
        title = title.strip()[:MOST_TITLE]
        entry = {"title": title, **_entry(asked)}
        others = [one for one in self._raw(PRESETS) if one.get("title") != title]
        self._write(PRESETS, [entry, *others][:MOST_PRESETS])
        return _kept(entry) or Kept(asked, title)

    def forget(self, title: str) -> None:
        """Let a preset go."""
        self._write(PRESETS, [one for one in self._raw(PRESETS) if one.get("title") != title])

    def remember(self, asked: Asked) -> None:
        """It was started: the first of the recent ones."""
        entry = _entry(asked)
        others = [one for one in self._raw(RECENT) if one.get("request") != entry["request"]]
        self._write(RECENT, [entry, *others][:MOST_RECENT])

    def forget_recent(self) -> None:
        self._write(RECENT, [])

    def _read(self, key: str) -> Iterator[Kept]:
        found = map(_kept, self._raw(key))
        return (kept for kept in found if kept is not None)

    def _raw(self, key: str) -> list[dict[str, Any]]:
        return [one for one in self._preferences.get(key, list) if isinstance(one, dict)]

    def _write(self, key: str, entries: list[dict[str, Any]]) -> None:
        self._preferences.set(key, entries)
        self.changed.emit()


def _entry(asked: Asked) -> dict[str, Any]:
    request, lost = storable(asked)
    return {"request": request, "lost": lost}


def _kept(entry: dict[str, Any]) -> Kept | None:
    try:
        asked = asked_of(entry.get("request"))
    except InvalidArguments:
        return None
    title = entry.get("title")
    return Kept(asked, title if isinstance(title, str) else "", entry.get("lost") is True)
