"""Saved requests: named presets and recently started ones.

They are stored in the preferences without secrets, which must be typed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from engine.model import redact
from engine.model.errors import InvalidArguments
from engine.service.address_list import MOST
from engine.service.drafts import asked_of, storable
from engine.service.rerun import Asked
from gui.state.preferences import Preferences

MOST_RECENT: Final = 20
MOST_PRESETS: Final = 50
MOST_TITLE: Final = 60
MOST_LISTED: Final = 200_000  # Limit in characters of addresses, because the preferences hold 1 MiB
PRESETS, RECENT = "start.presets", "start.recent"


@dataclass(frozen=True, slots=True)
class Kept:
    """A saved request.

    `title` is the preset's name, `lost` marks removed secrets, `replaced` a replaced preset of this
    name, `refused` a lack of room. With `urls` it was a list: `asked` for each address, of `listed`
    in all.
    """

    asked: Asked
    title: str = ""
    lost: bool = False
    urls: tuple[str, ...] = ()
    listed: int = 0
    replaced: bool = False
    refused: bool = False


class Presets(QObject):
    """Presets and recent requests; `changed` reports changes, damaged entries are skipped."""

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences

    @property
    def presets(self) -> tuple[Kept, ...]:
        """The presets by name."""
        return tuple(sorted(self._read(PRESETS), key=lambda kept: kept.title.casefold()))

    @property
    def recent(self) -> tuple[Kept, ...]:
        """The recent requests, newest first, without duplicates."""
        return tuple(self._read(RECENT))[:MOST_RECENT]

    def keep(self, title: str, asked: Asked) -> Kept:
        """Save a preset, replacing one of this name; a full list refuses new ones."""
        title = title.strip()[:MOST_TITLE]
        entry = {"title": title, **_entry(asked)}
        known = self._raw(PRESETS)
        others = [one for one in known if one.get("title") != title]
        if len(others) >= MOST_PRESETS:
            return Kept(asked, title, refused=True)
        self._write(PRESETS, [entry, *others])
        replaced = len(others) < len(known) and entry not in known
        return replace(_kept(entry) or Kept(asked, title), replaced=replaced)

    def rename(self, title: str, wanted: str) -> None:
        """Rename a preset, replacing another of that name; an empty name changes nothing."""
        wanted = wanted.strip()[:MOST_TITLE]
        if not wanted or wanted == title:
            return
        others = [one for one in self._raw(PRESETS) if one.get("title") != wanted]
        self._write(
            PRESETS,
            [{**one, "title": wanted} if one.get("title") == title else one for one in others],
        )

    def forget(self, title: str) -> None:
        """Delete a preset."""
        self._write(PRESETS, [one for one in self._raw(PRESETS) if one.get("title") != title])

    def remember(self, asked: Asked) -> None:
        """Add a started request to the recent ones."""
        self.put(_entry(asked))

    def put(self, entry: dict[str, Any]) -> None:
        """Add an entry at the start of the recent ones."""
        others = [one for one in self._raw(RECENT) if _about(one) != _about(entry)]
        self._write(RECENT, list(_fitting([entry, *others]))[:MOST_RECENT])

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


def list_entry(requests: Sequence[Asked]) -> dict[str, Any]:
    """Return one entry for the requests of a list, which differ only in their address.

    Slow for a long list, for a worker thread.
    """
    first = requests[0]
    entry = _entry(replace(first, args={k: v for k, v in first.args.items() if k != "url"}))
    room, urls, lost = MOST_LISTED, list[str](), False
    for asked in requests:
        url = str(asked.args["url"])
        kept = redact.url(url)
        room -= len(kept)
        if room < 0:
            break
        lost |= kept != url
        urls.append(kept)
    return {**entry, "lost": entry["lost"] or lost, "urls": urls, "listed": len(requests)}


def _entry(asked: Asked) -> dict[str, Any]:
    request, lost = storable(asked)
    return {"request": request, "lost": lost}


def _about(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry.get("request"), entry.get("urls")


def _fitting(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the entries that fit; older lists are dropped first."""
    room = MOST_LISTED
    for entry in entries:
        urls = entry.get("urls")
        size = sum(len(str(url)) for url in urls) if isinstance(urls, list) else 0
        if size <= room:
            room -= size
            yield entry


def _kept(entry: dict[str, Any]) -> Kept | None:
    try:
        asked = asked_of(entry.get("request"))
    except InvalidArguments:
        return None
    title, urls, listed = (entry.get(name) for name in ("title", "urls", "listed"))
    kept = Kept(asked, title if isinstance(title, str) else "", entry.get("lost") is True)
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        return kept
    number = listed if isinstance(listed, int) else 0
    return replace(kept, urls=tuple(urls[:MOST]), listed=max(number, len(urls)))
