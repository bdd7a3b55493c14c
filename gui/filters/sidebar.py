"""Sidebar of facets with live counts: click replaces the selection, Ctrl+click toggles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QSplitter, QTreeWidgetItem, QVBoxLayout, QWidget

from engine.model.status import Facet
from engine.text import words
from gui.context.preferences import Memory
from gui.engine_link.scheduling import Throttle
from gui.filters.facet_tree import (
    KIND_SIGN,
    NO_UPDATE,
    VIEW,
    VIEWS,
    FacetItems,
    FacetTree,
    Lost,
    children,
    facet_name,
    hide,
    is_facet,
    key_of,
)
from gui.style.widgets import arrange
from gui.tasks.facets import (
    AGE,
    AGES,
    BUDGET,
    CLIENT,
    HOST,
    KIND,
    OLDER,
    ROOT,
    STATUS,
    FacetCounts,
    group_of,
)

MORE = "more:"
_MOVED = "sidebar-moved"  # Flag: the user has chosen the width
FEW, MANY = 8, 200
_PAD = 8
# Minimum interval in ms for kinds, hosts and ages while tasks keep changing.
_REFRESH_MS = 300
_AGEING_MS = 30_000
_EVERYTHING = Facet.ALL.value
# States that are always listed; others only while tasks have them or they are selected.
_ALWAYS = frozenset(
    {Facet.ALL, Facet.ATTENTION, Facet.PENDING, Facet.RUNNING, Facet.COMPLETED, Facet.FAILED}
)


class Sidebar(QWidget):
    """Sidebar that emits `facet_changed` with the selected keys; an empty tuple means all tasks.

    `replaced` comes before it, unless the facet was added with Ctrl: the query of a view ends.
    `all_wanted` asks for the whole list, typed words included. `view_chosen` carries the key of a
    view, `menu_wanted` an item's key and position. `content_width_changed` comes after names,
    counts or the font have changed the `content_width`.
    """

    facet_changed = Signal(object)
    replaced = Signal()
    all_wanted = Signal()
    view_chosen = Signal(str)
    menu_wanted = Signal(str, QPoint)
    content_width_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: Mapping[str, int] = {}
        self._facets = FacetCounts()
        self._now_ms: Callable[[], float] = lambda: 0.0
        self._chosen: tuple[str, ...] = ()
        self._shows_empty = False
        self._lost: Mapping[str, Lost] = {}
        self._open: set[str] = set()  # Groups that show more than a few facets
        self._content_width = 0
        self._soon = Throttle(self, _REFRESH_MS, self._refresh)
        self._ageing = QTimer(self, interval=_AGEING_MS)
        self._ageing.timeout.connect(self._refresh)
        self._tree = FacetTree(self)
        self._tree.setAccessibleName(words.say("sidebar.name"))
        control = "⌘" if QApplication.platformName() == "cocoa" else "Ctrl"
        self._items = FacetItems(self._tree, words.say("facet.hint", modifier=control))
        self._heads = self._items.heads
        self._lay_out()
        self._tree.itemSelectionChanged.connect(self._choose)
        self._tree.pressed_item.connect(self._press)
        self._tree.itemClicked.connect(self._choose_all)
        self._tree.itemActivated.connect(self._choose_all)
        self._tree.menu_for.connect(lambda item, at: self.menu_wanted.emit(key_of(item), at))
        self._tree.itemExpanded.connect(self._soon.expedite)
        self._tree.verticalScrollBar().rangeChanged.connect(lambda *_: self._soon.request())
        self.show_counts({})
        self._mark(())

    def _lay_out(self) -> None:
        for facet in Facet:
            name = words.say(f"facet.{facet.value}")
            self._items.add(STATUS, facet.value, name, sign=facet.value)
        for key in (*AGES, OLDER):
            self._items.add(AGE, key, self.name_of(key))
        everything = self._tree.indexFromItem(self._items.by_key[_EVERYTHING])
        self._tree.selectionModel().setCurrentIndex(everything, NO_UPDATE)
        arrange(QVBoxLayout(self), (self._tree, 1), margins=(_PAD, _PAD, 0, _PAD))

    def follow(self, facets: FacetCounts, now_ms: Callable[[], float]) -> None:
        """Set the source of the counts that `show_counts` displays."""
        self._facets, self._now_ms = facets, now_ms

    @property
    def chosen(self) -> tuple[str, ...]:
        """The keys of the selected facets, to be saved and passed to `select` at the next start."""
        return self._chosen

    def select(self, keys: Iterable[str]) -> None:
        """Select these facets and emit the change; unknown keys are ignored, none selects all."""
        wanted = tuple(key for key in dict.fromkeys(keys) if group_of(key))
        if wanted != self._chosen:
            self._mark(wanted)
            self.facet_changed.emit(wanted)

    def name_of(self, facet: str) -> str:
        """Return the name of a facet."""
        return facet_name(facet, self._facets)

    def show_counts(self, counts: Mapping[str, int]) -> None:
        """Show the number of tasks of each state; other groups are updated after a delay."""
        self._counts = dict(counts)
        for facet in Facet:
            if self._items.count(facet.value, self._counts.get(facet.value, 0)):
                self._hide_empty_one(facet.value)
        self._soon.request()

    def show_lost(self, lost: Mapping[str, Lost]) -> None:
        """Show these explanations, by key, instead of the counts of unreachable ledgers."""
        if lost != self._lost:
            self._lost = lost
            self._refresh()

    def show_views(self, views: Sequence[tuple[str, str, str]], current: str) -> None:
        """Show the views as (key, name, query); `current` is the active one."""
        self._items.show_views(views, current)
        self._soon.request()

    def count_view(self, key: str, number: int) -> None:
        """Show the number of tasks of a view."""
        self._items.count_view(key, number)

    @property
    def shows_views(self) -> bool:
        """True while the counts of the views are visible."""
        return self.isVisible() and self._heads[VIEWS].isExpanded()

    @property
    def shows_empty(self) -> bool:
        return self._shows_empty

    def show_empty(self, shown: bool) -> None:
        """Show or hide the states that no task has."""
        self._shows_empty = shown
        self._hide_empty()

    def save_state(self) -> str:
        """Return the selection and the collapsed groups, for `restore_state`."""
        state = {"chosen": self._chosen, "folded": self.folded, "empty": self._shows_empty}
        return json.dumps(state)

    def restore_state(self, text: str) -> bool:
        """Restore the state from `save_state`, or change nothing and return False if invalid."""
        try:
            state = json.loads(text)
            chosen, folded = map(str, state["chosen"]), [str(each) for each in state["folded"]]
            empty = bool(state["empty"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        self.fold(folded)
        self.show_empty(empty)
        self.select(chosen)
        return True

    @property
    def folded(self) -> tuple[str, ...]:
        """The groups that are collapsed."""
        return tuple(group for group, head in self._heads.items() if not head.isExpanded())

    def fold(self, groups: Iterable[str]) -> None:
        """Collapse these groups and expand all others."""
        folded = set(groups)
        for group, head in self._heads.items():
            head.setExpanded(group not in folded)

    # Updates from changed tasks.

    def _refresh(self) -> None:
        if not self.isVisible():
            return
        now_ms = self._now_ms()
        for group in (ROOT, KIND, HOST, CLIENT, BUDGET):
            self._show_group(group)
        for key in (*AGES, OLDER):
            self._items.count(key, self._facets.of(key, now_ms))
        self._measure()

    @property
    def content_width(self) -> int:
        """The width in which all names and counts are whole, within a limit."""
        return self._content_width

    def _measure(self) -> None:
        width = self._tree.content_width() + _PAD
        if width != self._content_width:
            self._content_width = width
            self.content_width_changed.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._soon.request()

    def _show_group(self, group: str) -> None:
        head, size = self._heads[group], self._facets.size(group)
        kept = [key for key in self._chosen if group_of(key) == group]
        hide(head, not size and not kept)
        if not head.isExpanded() and not kept:
            return
        limit = MANY if group in self._open else FEW
        most = self._facets.most(group, limit)
        wanted = sorted({*most, *kept}) if group == BUDGET else [*most, *(set(kept) - set(most))]
        self._arrange(group, wanted)
        for key in wanted:
            lost = self._lost.get(key)
            self._items.show_lost(key, self.name_of(key), lost)
            if lost is None:
                self._items.count(key, self._facets.of(key, 0))
        self._show_more(group, size, limit)

    def _arrange(self, group: str, wanted: list[str]) -> None:
        items = children(self._heads[group])
        shown = [key_of(item) for item in items if is_facet(item)]
        if shown == wanted:
            return
        blocked = self._tree.blockSignals(True)
        current = self._tree.currentItem()
        held = key_of(current) if current is not None else ""
        for key in shown:
            self._items.drop(key)
        for key in wanted:
            kind = self._facets.value_of(key) if group == KIND else ""
            self._items.add(group, key, self.name_of(key), kind and f"{KIND_SIGN}{kind}")
        if held in self._items.by_key and held in shown:
            index = self._tree.indexFromItem(self._items.by_key[held])
            self._tree.selectionModel().setCurrentIndex(index, NO_UPDATE)
        self._tree.blockSignals(blocked)
        self._mark(self._chosen)

    def _show_more(self, group: str, size: int, limit: int) -> None:
        key = MORE + group
        if key in self._items.by_key:
            self._items.drop(key)
        if size > FEW:
            more = self.tr("Show more of {0}").format(words.count(size))
            self._items.add_button(group, key, more if limit == FEW else self.tr("Show fewer"))

    def _hide_empty(self) -> None:
        for facet in Facet:
            self._hide_empty_one(facet.value)

    def _hide_empty_one(self, key: str) -> None:
        if group_of(key) == STATUS:
            has = self._counts.get(key, 0) > 0 or self._shows_empty
            hide(self._items.by_key[key], not (key in _ALWAYS or key in self._chosen or has))

    # Selection.

    def _press(self, item: QTreeWidgetItem) -> None:
        key = key_of(item)
        if key.startswith(VIEW):
            self.view_chosen.emit(key.removeprefix(VIEW))
        elif key.startswith(MORE):
            self._open ^= {key.removeprefix(MORE)}
            self._soon.expedite()

    def _mark(self, keys: tuple[str, ...]) -> None:
        self._chosen = keys
        missing = {group_of(key) for key in keys if key not in self._items.by_key}
        for group in missing:
            self._heads[group].setExpanded(True)
            self._show_group(group)
        blocked = self._tree.blockSignals(True)
        for key, item in self._items.by_key.items():
            item.setSelected(key in keys or (not keys and key == _EVERYTHING))
        self._tree.blockSignals(blocked)
        self._hide_empty()
        self._tree.viewport().update()

    def _choose(self) -> None:
        keys = tuple(key_of(item) for item in self._tree.selectedItems())
        # "All" excludes other facets: the one clicked last wins.
        latest = self._tree.currentItem()
        last_key = key_of(latest) if latest is not None else ""
        if not keys or keys == (_EVERYTHING,) or (_EVERYTHING in keys and last_key == _EVERYTHING):
            wanted: tuple[str, ...] = ()
        else:
            wanted = tuple(key for key in keys if key != _EVERYTHING)
        changed = wanted != self._chosen
        self._mark(wanted)
        if changed:
            if not QApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier:
                self.replaced.emit()
            self.facet_changed.emit(wanted)

    def _choose_all(self, item: QTreeWidgetItem) -> None:
        if key_of(item) == _EVERYTHING:  # also when no facet is selected: words may be typed
            self.all_wanted.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ageing.start()
        self._soon.expedite()


class SidebarWidth(QObject):
    """Widen the sidebar for its content, until the user moves its edge.

    It grows only, because a sidebar that follows each change would move the list all the time,
    and takes at most a third of the window.
    """

    def __init__(
        self, splitter: QSplitter, sidebar: Sidebar, memory: Memory, *, least: int
    ) -> None:
        super().__init__(splitter)
        self._splitter, self._sidebar, self._memory = splitter, sidebar, memory
        self._least = least
        self._wanted = 0
        sidebar.content_width_changed.connect(self._fit)
        splitter.splitterMoved.connect(lambda *_: memory.keep_flag(_MOVED, True))
        splitter.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            QTimer.singleShot(0, self, self._fit)  # after the splitter has its new sizes
        elif event.type() == QEvent.Type.FontChange:
            self._wanted = 0
        return False

    def _fit(self) -> None:
        if self._memory.flag(_MOVED, False) or not self._sidebar.isVisible():
            return
        self._wanted = max(self._wanted, self._sidebar.content_width)
        whole = self._splitter.width()
        width = max(min(self._wanted, whole // 3), self._least)
        if width != self._sidebar.width():
            self._splitter.setSizes([width, whole - width - self._splitter.handleWidth()])
