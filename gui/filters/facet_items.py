"""Items of the sidebar by key: facets in groups, views, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeWidgetItem

from engine.model.display import display
from engine.text import words
from gui.filters.facet_names import VIEWS, group_name
from gui.filters.facet_tree import COUNT, GROUP, KEY, MARK, SIGN, FacetTree, children, hide, key_of
from gui.style.theme import plain_tip
from gui.tasks.facets import AGE, BUDGET, GROUPS, HOST, KIND

VIEW = "view:"
_FOLDED = frozenset({HOST, AGE})
_LOST_SIGN = "orphaned"
_ENABLED = Qt.ItemFlag.ItemIsEnabled


class Lost(NamedTuple):
    """Label and explanation shown instead of the count of an unreachable ledger."""

    word: str
    truth: str


class FacetItems:
    """Create, count and remove sidebar items; only facets can be selected."""

    def __init__(self, tree: FacetTree, hint: str) -> None:
        self._tree, self._hint = tree, hint
        self.by_key: dict[str, QTreeWidgetItem] = {}
        self.heads = {group: self._head(group) for group in (VIEWS, *GROUPS)}

    def add(self, group: str, key: str, name: str, sign: str = "") -> QTreeWidgetItem:
        """Append a facet to its group."""
        item = QTreeWidgetItem(self.heads[group], [name])
        item.setData(0, KEY, key)
        item.setData(0, SIGN, sign)
        item.setToolTip(0, plain_tip(f"{name}\n{self._hint}"))  # A long host is elided in the list
        self.by_key[key] = item
        return item

    def add_button(self, group: str, key: str, name: str, sign: str = "") -> QTreeWidgetItem:
        """Append an item that acts as a button to a group."""
        item = self.add(group, key, name, sign)
        item.setFlags(_ENABLED)
        return item

    def drop(self, key: str) -> None:
        item = self.by_key.pop(key)
        head = item.parent()
        assert head is not None
        head.removeChild(item)

    def count(self, key: str, number: int) -> bool:
        """Show the number of tasks of an item; False if it was shown already."""
        item, said = self.by_key.get(key), words.count(number)
        if item is None or item.data(0, COUNT) == said:
            return False
        item.setData(0, COUNT, said)
        spoken = words.say("facet.sentence", name=item.text(0), count=said)
        item.setData(0, Qt.ItemDataRole.AccessibleTextRole, spoken)
        return True

    def show_lost(self, key: str, name: str, lost: Lost | None) -> None:
        """Mark an item whose tasks cannot be read, or unmark it when `lost` is None."""
        item = self.by_key.get(key)
        said = "" if lost is None else _LOST_SIGN
        if item is None or (item.data(0, SIGN) or "") == said:
            return
        item.setData(0, SIGN, said)
        item.setText(0, name if lost is None else lost.word)
        item.setToolTip(0, plain_tip(f"{name}\n{self._hint if lost is None else lost.truth}"))
        if lost is not None:  # A number would suggest that there are no tasks
            item.setData(0, COUNT, "")
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, f"{lost.word}\n{lost.truth}")

    def show_views(self, views: Sequence[tuple[str, str, str]], current: str) -> None:
        """Show views as (key, name, query); `current` is the active one.

        Views appear before they are counted, since items added later would move others under the
        pointer.
        """
        wanted = [VIEW + key for key, _, _ in views]
        shown = [key_of(item) for item in children(self.heads[VIEWS])]
        if shown != wanted:
            for key in shown:
                self.drop(key)
        for key, name, says in views:
            item = self.by_key.get(VIEW + key) or self.add_button(VIEWS, VIEW + key, "", "view")
            item.setText(0, display(name))
            item.setToolTip(0, plain_tip(f"{name}\n{says}"))
            item.setData(0, MARK, key == current)
        hide(self.heads[VIEWS], not views)

    def count_view(self, key: str, number: int) -> None:
        """Show the number of tasks of a view."""
        self.count(VIEW + key, number)

    def _head(self, group: str) -> QTreeWidgetItem:
        head = QTreeWidgetItem(self._tree, [group_name(group)])
        head.setFlags(_ENABLED)
        head.setData(0, KEY, GROUP + group)
        head.setExpanded(group not in _FOLDED)
        head.setHidden(group in (VIEWS, KIND, HOST, BUDGET))
        return head
