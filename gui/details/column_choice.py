"""Columns of a list of units that the user shows or hides, kept in the preferences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from gui.context.preferences import Preferences
from gui.details.unit_columns import KEYS_OF_NAMES, UnitColumn
from gui.style.tables import ColumnSwitch, PlainTable, fill_column_menu
from gui.style.theme import plain_tip

CHOSEN: Final = "viewer.columns"


class ColumnChoice(QObject):
    """Shown columns of `table`, and their menu under `button` and the header.

    `used` returns whether the rare columns have a value, `title` the title of a column by number. A
    choice is stored only where it differs from the default, and holds in every window.
    """

    def __init__(
        self,
        table: PlainTable,
        columns: Sequence[UnitColumn],
        used: Callable[[], Mapping[int, bool]],
        title: Callable[[int], str],
        preferences: Preferences,
    ) -> None:
        super().__init__(table)
        self._table, self._columns, self._preferences = table, columns, preferences
        self._used, self._title = used, title
        self._of_pages = True
        self.button = self._make_button(table)
        header = table.horizontalHeader()
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._open_menu)
        preferences.changed.connect(self._on_preference)

    def show_pages(self, of_pages: bool) -> None:
        """Set whether the units are crawled pages; others have no columns of pages."""
        if of_pages != self._of_pages:
            self._of_pages = of_pages
            self.apply()

    def apply(self) -> None:
        """Show and hide the columns as they are chosen and used now."""
        self._table.show_columns({at: self._is_shown(at) for at in range(len(self._columns))})

    def show_column(self, key: str, wanted: bool) -> None:
        """Show or hide a column and keep this choice."""
        at = next(at for at, one in enumerate(self._columns) if one.key == key)
        chosen = self._chosen()
        chosen.pop(key, None)
        if wanted != self._is_usual(at):
            chosen[key] = wanted
        self._set(chosen)

    def reset(self) -> None:
        """Restore the default columns."""
        self._set({})

    def _set(self, chosen: dict[str, bool]) -> None:
        self._preferences.set(CHOSEN, chosen)
        header = self._table.horizontalHeader()
        at = header.sortIndicatorSection()
        if at >= 0 and header.isSectionHidden(at):  # nothing would show the order
            self._table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)

    def fill_menu(self, menu: QMenu) -> None:
        """Add a switch for each column and an action that restores the defaults."""
        switches = [
            ColumnSwitch(
                column.key,
                self._title(at),
                self._is_shown(at),
                stays=column.key in KEYS_OF_NAMES,
                is_there=self._of_pages or not column.is_of_pages,
            )
            for at, column in enumerate(self._columns)
        ]
        fill_column_menu(menu, switches, self.show_column, self.reset)

    def _make_button(self, parent: QWidget) -> QPushButton:
        button, menu = QPushButton(parent), QMenu(parent)
        button.setText(self.tr("Columns"))
        button.setToolTip(plain_tip(self.tr("Choose the columns of the list")))
        button.setMenu(menu)
        menu.aboutToShow.connect(lambda: self._fill_again(menu))
        return button

    def _fill_again(self, menu: QMenu) -> None:
        menu.clear()
        self.fill_menu(menu)

    def _open_menu(self, at: QPoint) -> None:
        header = self._table.horizontalHeader()
        menu = QMenu(header)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_menu(menu)
        menu.popup(header.mapToGlobal(at))

    def _on_preference(self, key: str) -> None:
        if key == CHOSEN:
            self.apply()

    def _chosen(self) -> dict[str, bool]:
        kept = self._preferences.get(CHOSEN, dict)
        return {key: shown for key, shown in kept.items() if isinstance(shown, bool)}

    def _is_shown(self, at: int) -> bool:
        column = self._columns[at]
        if column.key in KEYS_OF_NAMES:
            return True
        if column.is_of_pages and not self._of_pages:
            return False
        return self._chosen().get(column.key, self._is_usual(at))

    def _is_usual(self, at: int) -> bool:
        """Return whether the column is shown by default now."""
        return self._used().get(at, not self._columns[at].is_extra)
