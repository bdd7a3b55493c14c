"""Saved views of the list: facets, query, order and columns by name; user views and presets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QCoreApplication, QObject, Signal

from engine.query import SortKey
from gui.state.preferences import Preferences

KEPT: Final = "views.saved"
LAST: Final = "views.last"
MOST: Final = 50
MOST_NAME: Final = 60
OURS: Final = "system:"  # Prefix of the keys of built-in views
OWN: Final = "own:"


@dataclass(frozen=True, slots=True)
class SavedView:
    """A filter with an optional layout; without order or columns the current ones stay."""

    key: str
    name: str
    query: str = ""
    facets: tuple[str, ...] = ()
    sort: tuple[SortKey, ...] = ()
    columns: str = ""

    @property
    def is_own(self) -> bool:
        return self.key.startswith(OWN)


def system_views() -> tuple[SavedView, ...]:
    """Return the built-in views."""
    given = (
        ("failed", _tr("Failed, last day"), "status:failed updated:<1d"),
        ("slow", _tr("Runs over 10 min"), "status:live took:>10m"),
        (
            "budget",
            _tr("Short of budget"),
            "status:live (budget:near OR budget:exceeded)",
        ),
        ("parts", _tr("Ended with failures"), "status:ended failed:>0"),
        ("forced", _tr("Forced"), "forced:yes"),
    )
    return tuple(SavedView(OURS + key, name, query) for key, name, query in given)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Views", text)


class SavedViews(QObject):
    """The views in menu order; `changed` reports a different set."""

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        preferences.changed.connect(lambda key: self.changed.emit() if key == KEPT else None)

    @property
    def own(self) -> list[SavedView]:
        """The views saved by the user."""
        kept = self._preferences.get(KEPT, list)
        found = (_read(each) for each in kept[:MOST])
        return list({view.key: view for view in found if view is not None}.values())

    @property
    def all(self) -> list[SavedView]:
        return [*self.own, *system_views()]

    def find(self, key: str) -> SavedView | None:
        return next((view for view in self.all if view.key == key), None)

    @property
    def last(self) -> SavedView | None:
        """The view that was chosen last."""
        return self.find(self._preferences.get(LAST, str))

    def use(self, view: SavedView) -> None:
        """Store this view as the last one chosen."""
        self._preferences.set(LAST, view.key)

    def save(self, view: SavedView) -> None:
        """Save `view`, replacing one of the same name."""
        own = self.own
        places = {each.key: at for at, each in enumerate(own)}
        if view.key in places:
            own[places[view.key]] = view
        else:
            own = [*own, view][-MOST:]
        self._keep(own)

    def remove(self, key: str) -> None:
        self._keep(view for view in self.own if view.key != key)

    def rename(self, key: str, name: str) -> None:
        """Rename a view, replacing another of that name."""
        wanted = own_key(name)
        kept = [view for view in self.own if view.key not in {wanted} - {key}]
        self._keep(
            SavedView(wanted, clean_name(name), view.query, view.facets, view.sort, view.columns)
            if view.key == key
            else view
            for view in kept
        )

    def rename_facet(self, facet: str, name: str) -> None:
        """Rename a facet in every saved view."""
        self._keep(
            replace(view, facets=tuple(name if one == facet else one for one in view.facets))
            for view in self.own
        )

    def _keep(self, views: Iterable[SavedView]) -> None:
        self._preferences.set(KEPT, [_written(view) for view in views])


def own_key(name: str) -> str:
    """Return the key of a user view; names that differ only in case or spaces are equal."""
    return OWN + clean_name(name).casefold()


def clean_name(name: str) -> str:
    return " ".join(name.split())[:MOST_NAME]


def _written(view: SavedView) -> dict[str, Any]:
    return {
        "name": view.name,
        "query": view.query,
        "facets": list(view.facets),
        "sort": [list(key) for key in view.sort],
        "columns": view.columns,
    }


def _read(kept: object) -> SavedView | None:
    """Return the stored view, or None for an invalid entry."""
    name = kept.get("name") if isinstance(kept, Mapping) else None
    if not isinstance(kept, Mapping) or not isinstance(name, str) or not clean_name(name):
        return None
    query, columns = kept.get("query", ""), kept.get("columns", "")
    facets, sort = kept.get("facets", []), kept.get("sort", [])
    if not _is_text(query) or not _is_text(columns):
        return None
    return SavedView(
        key=own_key(name),
        name=clean_name(name),
        query=query,
        facets=tuple(filter(_is_text, facets)) if isinstance(facets, list) else (),
        sort=tuple(map(_sort_key, filter(_is_sort_key, sort))) if isinstance(sort, list) else (),
        columns=columns,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_sort_key(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _sort_key(value: list[Any]) -> SortKey:
    return str(value[0]), bool(value[1])
