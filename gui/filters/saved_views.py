"""Views of the list: facets, text, order and columns by name; own ones and a few of ours."""

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
OURS: Final = "system:"  # before the key of a view that comes with the program
OWN: Final = "own:"


@dataclass(frozen=True, slots=True)
class SavedView:
    """What the list is narrowed to, and how it is laid out; no order or columns: as they are."""

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
    """The views that come with the program."""
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
    """The views in the order in which they are offered; `changed` when there are others."""

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        preferences.changed.connect(lambda key: self.changed.emit() if key == KEPT else None)

    @property
    def own(self) -> list[SavedView]:
        """A person's own views."""
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
        """Remember that this view was chosen."""
        self._preferences.set(LAST, view.key)

    def save(self, view: SavedView) -> None:
        """Keep `view`, in place of one of the same name."""
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
        """Give a view another name; one that has it already is replaced."""
        wanted = own_key(name)
        kept = [view for view in self.own if view.key not in {wanted} - {key}]
        self._keep(
            SavedView(wanted, clean_name(name), view.query, view.facets, view.sort, view.columns)
            if view.key == key
            else view
            for view in kept
        )

    def rename_facet(self, facet: str, name: str) -> None:
        """What the list was narrowed to by is called `name` now, in every view."""
        self._keep(
            replace(view, facets=tuple(name if one == facet else one for one in view.facets))
            for view in self.own
        )

    def _keep(self, views: Iterable[SavedView]) -> None:
        self._preferences.set(KEPT, [_written(view) for view in views])


def own_key(name: str) -> str:
    """The key of a person's view of this name; names that look the same are the same."""
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
    """A view as it was kept; None for what another program, or a slip, has put there."""
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
