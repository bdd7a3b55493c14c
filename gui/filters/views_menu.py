"""Saved views: facets, query, order and columns by name, in the menu and the sidebar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QByteArray, QCoreApplication, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QMenu, QPushButton, QVBoxLayout, QWidget

from engine.model.display import display
from engine.query import Filter, QueryError, SortKey, term
from gui.context.preferences import Preferences
from gui.context.window_context import WindowContext
from gui.engine_link.scheduling import Throttle
from gui.filters.active_filter import ActiveFilter, Counting, joined
from gui.filters.facet_tree import VIEW
from gui.filters.filter_bar import FilterBar
from gui.filters.sidebar import Sidebar
from gui.style.banners import Choice
from gui.style.editors import NameLine
from gui.style.menu import Menu
from gui.style.questions import Question
from gui.style.theme import plain_keys, plain_label
from gui.style.widgets import arrange
from gui.tasks.facets import ROOT, group_of, query_of

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
        ("slow", _tr("Running > 10 min"), "status:live took:>10m"),
        ("budget", _tr("Near budget"), "status:live (budget:near OR budget:exceeded)"),
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

    def restore(self, view: SavedView, place: int) -> None:
        """Put back a removed view, unless its name was given to another one meanwhile."""
        own = self.own
        if all(each.key != view.key for each in own):
            own.insert(place, view)
            self._keep(own[-MOST:])  # of more than that, the newest would be the one not read

    def rename(self, key: str, name: str) -> None:
        """Rename a view, replacing another of that name."""
        wanted = own_key(name)
        kept = [view for view in self.own if view.key not in {wanted} - {key}]
        self._keep(
            replace(view, key=wanted, name=clean_name(name)) if view.key == key else view
            for view in kept
        )

    def rename_ledger(self, label: str, wanted: str) -> None:
        """Rename the facet of a ledger in every saved view."""
        facet, name = term(ROOT, label), term(ROOT, wanted)
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


# Dialog for the name of a view.

_FIELD_HEIGHT = 28


class SaveView(Question):
    """Dialog for a name; calls `save` with it and whether to include order and columns."""

    def __init__(
        self, taken: Collection[str], save: Callable[[str, bool], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._taken = taken
        self.ask(self.tr("Save view"), self.tr("Keep what the list shows as a view"))
        self.name = NameLine(self)
        self.name.setMaxLength(MOST_NAME)
        self.name.setMinimumHeight(_FIELD_HEIGHT)
        self.name.setAccessibleName(self.tr("Name of the view"))
        self._lay_out()
        self._ok = self.add_button("save", self.tr("Save"))
        self.add_button("", self.tr("Cancel"))
        self._ok.setDefault(True)  # Enter on the check box then saves; Esc never does
        self.name.textChanged.connect(lambda _: self._judge())
        self.name.returnPressed.connect(self._ok.click)
        self.when_answered(
            lambda answer: save(self.name.text(), self.layout_too.isChecked()) if answer else None
        )
        self._judge()
        self.name.setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self) -> None:
        label = plain_label(self.tr("&Name"), self)
        label.setBuddy(self.name)
        self.layout_too = QCheckBox(self.tr("With its &order and columns"), self)
        self._note = plain_label("", self, tone="muted", wrap=True)
        form = arrange(QVBoxLayout(), label, self.name, self._note, self.layout_too, spacing=4)
        self.body.addLayout(form)

    def start_with(self, name: str) -> None:
        """Suggest a name."""
        self.name.setText(name)
        self.name.selectAll()

    @property
    def save_button(self) -> QPushButton:
        return self._ok

    def _judge(self) -> None:
        key = own_key(self.name.text())
        named = bool(self.name.text().strip())
        self._ok.setEnabled(named)
        self._ok.setToolTip("" if named else self.tr("A view needs a name"))
        note = ""
        if key in self._taken:
            note = self.tr("Replaces the view of this name.")
        elif any(own_key(view.name) == key for view in system_views()):
            note = self.tr("A view of the program has this name, too; both are listed.")
        self._note.show_text(note if named else "")
        if self.isVisible():
            self.fit_height()


class RenameView(SaveView):
    """Dialog for the new name of a view."""

    def __init__(
        self, taken: Collection[str], save: Callable[[str, bool], object], parent: QWidget
    ) -> None:
        super().__init__(taken, save, parent)
        self.ask(self.tr("Rename view"), self.tr("Give the view another name"))
        self.layout_too.hide()


def opened(dialog: QDialog) -> QDialog:
    """Show `dialog` and delete it when it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
    return dialog


# Views are counted at most at this interval, within a fiftieth of the time.
_COUNT_MS = 2000
_COUNT_SHARE = 50
_AGEING_MS = 60_000


class Views(QObject):
    """List the views and mark the active one."""

    def __init__(
        self, ctx: WindowContext, narrowing: ActiveFilter, sidebar: Sidebar, filter_bar: FilterBar
    ) -> None:
        super().__init__(ctx.parent)
        self._narrowing = narrowing
        self._sidebar = sidebar
        self._filter_bar = filter_bar
        self._ctx = ctx
        self.saved = SavedViews(ctx.preferences, self)
        ctx.ledgers.renamed.connect(self.saved.rename_ledger)
        self._counting = Counting(ctx.model, self)
        self._missed = False
        # Measured from the last count, so that a change after a pause is counted at once.
        self._soon = Throttle(self, _COUNT_MS, self._count, leading=True)
        self._ageing = QTimer(self, interval=_AGEING_MS)
        self._ageing.timeout.connect(self._soon.request)
        self._ageing.start()
        acts = ctx.actions
        save = acts.add("save_view", self.tr("Save vie&w…"), ["Ctrl+Alt+S"])
        save.triggered.connect(lambda _=False: self.save())
        clear = acts.add("clear_filter", self.tr("Cl&ear the filter"), ["Ctrl+Shift+X"])
        clear.triggered.connect(lambda _=False: narrowing.clear())
        self._menu = acts.add_menu("views", self.tr("&Views"))
        self._menu.aboutToShow.connect(self._fill)
        self._connect()
        self._show()

    def _connect(self) -> None:
        ctx = self._ctx
        self.saved.changed.connect(self._show)
        self._narrowing.changed.connect(self._show)
        self._filter_bar.chips.save_wanted.connect(self.save)
        self._sidebar.view_chosen.connect(self._choose)
        self._sidebar.menu_wanted.connect(self._menu_for)
        ctx.model.counts_changed.connect(lambda _: self._count_soon())
        ctx.bridge.loaded.connect(self._count_first)
        self._counting.counted.connect(self._sidebar.count_view)
        self._counting.done.connect(self._counted)

    # The active view.

    @property
    def current(self) -> SavedView | None:
        """The view that equals the active filter, or None."""
        narrowing = self._narrowing
        facets, text = frozenset(narrowing.facets), narrowing.typed
        for view in self.saved.all:
            if frozenset(view.facets) == facets and _plainly(view.query) == text:
                return view
        return None

    def show_view(self, view: SavedView) -> None:
        """Apply the filter and the layout of `view`."""
        ctx = self._ctx
        if view.columns:
            ctx.table.restore_header(QByteArray(view.columns.encode()))
        if view.sort:
            ctx.model.set_sort(list(view.sort))
        self._narrowing.show(view.query, view.facets)
        self.saved.use(view)

    def _choose(self, key: str) -> None:
        view = self.saved.find(key)
        if view is None:
            return
        current = self.current
        # Choosing the active view again clears the filter.
        if current is not None and current.key == key:
            self._narrowing.clear()
        else:
            self.show_view(view)

    def _show(self) -> None:
        current = self.current
        views = [(view.key, view.name, view_query(view)) for view in self.saved.all]
        self._sidebar.show_views(views, current.key if current is not None else "")
        self._count_soon()

    # Counts.

    def _count_soon(self) -> None:
        if self._counting.is_busy:  # The running count does not include new changes
            self._missed = True
        else:
            self._soon.request()

    def _count_first(self) -> None:
        """Count at once when the list is complete, anew if only a part of it is being counted."""
        self._ctx.bridge.loaded.disconnect(self._count_first)
        self._counting.stop()
        self._missed = False
        self._soon.run()

    def _count(self) -> None:
        if not self._sidebar.shows_views or self._counting.is_busy:
            return
        self._counting.count(
            {view.key: wanted for view in self.saved.all if (wanted := _filter(view)) is not None}
        )

    def _counted(self) -> None:
        self._soon.interval_ms = max(_COUNT_MS, self._counting.took_ms * _COUNT_SHARE)
        if self._missed:
            self._missed = False
            self._soon.request()

    # Saving.

    def save(self) -> None:
        """Open the dialog that saves the active filter as a view."""
        taken = {view.key for view in self.saved.own}
        dialog = SaveView(taken, self._save, self._ctx.parent)
        current = self.current
        if current is not None and current.is_own:  # saved anew, it keeps what it had
            dialog.start_with(current.name)
            dialog.layout_too.setChecked(bool(current.columns or current.sort))
        opened(dialog)

    def _save(self, name: str, with_layout: bool) -> None:
        ctx = self._ctx
        header = bytes(ctx.table.header().saveState().data()).decode() if with_layout else ""
        view = SavedView(
            key=own_key(name),
            name=clean_name(name),
            query=self._narrowing.typed,
            facets=self._narrowing.facets,
            sort=tuple(ctx.model.sort_keys) if with_layout else (),
            columns=header,
        )
        self.saved.save(view)
        self.saved.use(view)

    def _rename(self, view: SavedView) -> None:
        taken = {each.key for each in self.saved.own if each.key != view.key}
        dialog = RenameView(
            taken, lambda name, _: self.saved.rename(view.key, name), self._ctx.parent
        )
        dialog.start_with(view.name)
        opened(dialog)

    # Menus.

    def _fill(self) -> None:
        menu, current, last = self._menu, self.current, self.saved.last
        menu.clear()
        if last is not None and (current is None or current.key != last.key):
            again = menu.addAction(self.tr("&Back to {0}").format(plain_keys(last.name)))
            again.triggered.connect(lambda _=False: self.show_view(last))
            menu.addSeparator()
        own = True
        for view in self.saved.all:
            if own and not view.is_own and self.saved.own:
                menu.addSeparator()
            own = view.is_own
            action = menu.addAction(plain_keys(view.name))
            action.setCheckable(True)
            action.setChecked(current is not None and view.key == current.key)
            action.triggered.connect(lambda _=False, view=view: self.show_view(view))

    def _menu_for(self, key: str, at: QPoint) -> None:
        """Open the menu of a facet or a view, for all of its tasks."""
        menu = Menu(self._sidebar)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        view = self.saved.find(key.removeprefix(VIEW)) if key.startswith(VIEW) else None
        if view is not None:
            self.show_view(view)
        elif group_of(key) and key not in self._sidebar.chosen:
            self._sidebar.select((key,))
        elif key == "all":
            self._narrowing.clear()
        if view is not None or group_of(key) or key == "all":
            self._narrowing.settle()  # Otherwise the menu applies to the tasks of the last filter
            self._fill_for_all(menu)
        if view is not None:
            self._fill_for_view(menu, view)
        else:
            menu.addSeparator()
            empty = menu.addAction(self.tr("Show &empty states"))
            empty.setCheckable(True)
            empty.setChecked(self._sidebar.shows_empty)
            empty.toggled.connect(self._sidebar.show_empty)
        menu.popup(at)

    def _fill_for_view(self, menu: QMenu, view: SavedView) -> None:
        if view.is_own:
            menu.addSeparator()
            rename = menu.addAction(self.tr("Re&name the view…"))
            rename.triggered.connect(lambda _=False: self._rename(view))
            remove = menu.addAction(self.tr("&Remove the view"))
            remove.triggered.connect(lambda _=False: self._remove(view))

    def _remove(self, view: SavedView) -> None:
        """Remove a view, with a way back until another one is removed."""
        places = {each.key: at for at, each in enumerate(self.saved.own)}
        if view.key not in places:  # another window removed it while the menu was open
            return
        place = places[view.key]
        bar, undo = self._ctx.news_bar, self._ctx.services.wishes.undo
        name = display(view.name, MOST_NAME)
        said = self.tr("The view “{0}” was removed").format(name)

        def put_back() -> None:
            undo.emit("view", "", None)
            if bar.title == said:
                bar.setVisible(False)
            self.saved.restore(view, place)

        self.saved.remove(view.key)
        bar.tell(said, "", (Choice(self.tr("Undo"), put_back),), "accent")
        words = self.tr("&Undo removing the view “{0}”")
        undo.emit("view", words.format(plain_keys(name)), put_back)

    def _fill_for_all(self, menu: QMenu) -> None:
        """Fill in the context menu of a row, applied to all filtered tasks."""
        ctx = self._ctx
        ctx.table.selectAll()
        title = menu.addAction(plain_keys(ctx.scope.describes()))
        title.setEnabled(False)
        menu.addSeparator()
        if len(ctx.scope):
            ctx.actions.fill_context_menu(menu)


def view_query(view: SavedView) -> str:
    return " ".join(each for each in (query_of(view.facets), view.query) if each)


def _filter(view: SavedView) -> Filter | None:
    try:
        return joined(query_of(view.facets), view.query)
    except QueryError:  # The view was saved by another version with unknown fields
        return None


def _plainly(query: str) -> str:
    try:
        return Filter.of(query).text
    except QueryError:
        return query
