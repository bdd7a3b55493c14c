"""Bars around a list of units: chips, choice of columns and mistake above, selected unit below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import ELLIPSIS, display, display_lines
from engine.query import QueryError, as_words, corrected
from engine.results.units import Unit, custom_fields, whole_name
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import count
from gui.context.preferences import Preferences
from gui.context.window_context import Desk
from gui.details.screenshots import decoded
from gui.details.unit_columns import (
    KEYS_OF_NAMES,
    PAGE_COLUMNS,
    PAGE_FACTS,
    UnitColumn,
    earlier_of,
    fact_title,
    name_of,
    said_of,
    state_word,
    title_of,
)
from gui.engine_link.scheduling import Debounce
from gui.filters.filter_bar import MISTAKE_MS
from gui.i18n import language
from gui.style.accessibility import announce
from gui.style.editors import read_only_text
from gui.style.menu import Menu
from gui.style.tables import ColumnSwitch, PlainTable, fill_column_menu
from gui.style.theme import plain_keys, plain_label, plain_tip
from gui.style.widgets import LinkButton, arrange

CHOSEN: Final = "viewer.columns"
_FACTS = ("code", "depth", "response", "render", "size", "attempts", "redacted", "links_over")
_LINES = 4  # of text in the strip
_MOST_CHARS = 8_000  # of an address or a reason
_FACT_CHARS = 512
_THUMB = QSize(120, 80)


class KindChips(QWidget):
    """Row of filter chips; `changed` carries the checked kinds. Kinds without rows are hidden."""

    changed = Signal(object)

    def __init__(
        self, order: Sequence[str], word: Callable[[str], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._word, self._order = word, tuple(order)
        self._chips: dict[str, QToolButton] = {}
        self.setAccessibleName(self.tr("Which rows are shown"))
        self._row = arrange(QHBoxLayout(self), margins=0, spacing=4)
        for kind in self._order:
            self._add(kind)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset(kind for kind, chip in self._chips.items() if chip.isChecked())

    def clear(self) -> None:
        """Uncheck all chips for another task."""
        for chip in self._chips.values():
            chip.blockSignals(True)
            chip.setChecked(False)
            chip.blockSignals(False)

    def show_counts(self, kinds: Mapping[str, int]) -> None:
        for kind, chip in self._chips.items():
            number = kinds.get(kind, 0)
            text = self.tr("{0} ({1})").format(self._word(kind), count(number))
            chip.setText(plain_keys(text))
            chip.setVisible(number > 0 or chip.isChecked())

    def _add(self, kind: str) -> None:
        chip = QToolButton(self)
        chip.setCheckable(True)
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        chip.toggled.connect(lambda _: self.changed.emit(self.wanted))
        chip.hide()
        self._row.addWidget(chip)
        self._chips[kind] = chip


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
        button, menu = QPushButton(parent), Menu(parent)
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
        menu = Menu(header)
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


class FilterMistake(QWidget):
    """Mistake in a search, shown after a pause in typing; `corrected` carries a right search."""

    corrected = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._text = ""
        self._mistake: QueryError | None = None
        self.sentence = plain_label(tone="bad", wrap=True, parent=self)
        self.mend = QPushButton(self)
        self.as_words = QPushButton(self.tr("Look for it as text"), self)
        shown = self.tr("All rows are shown until the search is valid.")
        unused = plain_label(shown, self, tone="muted", wrap=True)
        texts = arrange(QVBoxLayout(), self.sentence, unused, spacing=1)
        arrange(QHBoxLayout(self), (texts, 1), self.mend, self.as_words, margins=0)
        self.mend.clicked.connect(lambda: self.corrected.emit(self._mended()))
        self.as_words.clicked.connect(lambda: self.corrected.emit(as_words(self._text)))
        self._patience = Debounce(self, MISTAKE_MS, self._show)
        self.hide()

    def show_mistake(self, text: str, mistake: QueryError | None) -> None:
        """Show the mistake in this search after a pause, or hide the line for None."""
        self._text, self._mistake = text, mistake
        if mistake is None:
            self._patience.cancel()
            self.hide()
        else:
            self._patience.request()

    def _show(self) -> None:
        if self._mistake is None:
            return
        said = language.sentence(self._mistake)
        right = self._mended()
        self.mend.setText(plain_keys(self.tr("Write {0}").format(right)))
        self.mend.setVisible(bool(right))
        if self.isHidden() or said != self.sentence.text():
            self.sentence.show_text(said)
            self.show()
            announce(self, said)

    def _mended(self) -> str:
        return corrected(self._text, self._mistake) if self._mistake is not None else ""


class UnitStrip(QWidget):
    """The unit of the current row in full, as text that can be selected and copied.

    `picture_wanted` and `source_wanted` carry the unit whose screenshot or source is to be shown.
    """

    picture_wanted = Signal(object)
    source_wanted = Signal(object)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk, self._task_id = desk, ""
        self._unit: Unit | None = None
        self.text: QPlainTextEdit = read_only_text(self, self.tr("The selected item in full"))
        self.picture = QToolButton(self)
        self.source = LinkButton(self.tr("Source"), self)
        self._lay_out()
        self.picture.clicked.connect(lambda: self.picture_wanted.emit(self._unit))
        self.source.clicked.connect(lambda: self.source_wanted.emit(self._unit))
        self.hide()

    def _lay_out(self) -> None:
        line, frame = self.fontMetrics().lineSpacing(), 2 * self.text.frameWidth() + 8
        self.text.setMinimumHeight(2 * line + frame)
        self.text.setMaximumHeight(_LINES * line + frame)
        self.picture.setIconSize(_THUMB)
        self.picture.setAutoRaise(True)
        self.picture.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.picture.setAccessibleName(self.tr("Show screenshot"))
        self.picture.setToolTip(plain_tip(self.tr("Show screenshot")))
        self.source.setToolTip(plain_tip(self.tr("Show what was stored of this item")))
        side = arrange(QVBoxLayout(), self.source, 1, margins=0)
        arrange(QHBoxLayout(self), (self.text, 1), self.picture, side, margins=0)

    def show_unit(self, task_id: str, unit: Unit | None) -> None:
        """Show this unit; None hides the strip."""
        if (task_id, unit) == (self._task_id, self._unit):
            return
        self._task_id, self._unit = task_id, unit
        for what in ("row", "picture"):
            self._desk.bridge.call_off(self._name(what))
        self.picture.hide()
        self.setVisible(unit is not None)
        if unit is None:
            return
        self._show_text(unit, {})
        if _is_cut(unit) or is_address(unit):
            self._desk.bridge.ask(
                lambda engine: engine.reading.unit(task_id, unit),
                lambda row: self._show_text(unit, row or {}),
                name=self._name("row"),
            )
        if unit.shot:
            self._desk.bridge.ask(
                lambda engine: _thumbnail(engine, task_id, unit.shot),
                self._show_picture,
                lambda _: None,
                name=self._name("picture"),
            )

    def _name(self, what: str) -> str:
        return f"strip {what} {id(self)}"

    def _show_text(self, unit: Unit, row: Mapping[str, Any]) -> None:
        self.text.setPlainText("\n".join(filter(None, _lines(unit, row))))

    def _show_picture(self, image: QImage) -> None:
        self.picture.setVisible(not image.isNull())
        self.picture.setIcon(QIcon(QPixmap.fromImage(image)))


def _full_name(unit: Unit, row: Mapping[str, Any]) -> str:
    """Return the unit's name from its record, where the list holds the start of it only."""
    found = display(whole_name(row), _MOST_CHARS) if unit.is_cut else ""
    return found or name_of(unit)


def is_address(unit: Unit) -> bool:
    """Return whether the unit is a page with an address."""
    return unit.name.startswith(("http://", "https://"))


def _is_cut(unit: Unit) -> bool:
    return unit.is_cut or unit.reason.endswith(ELLIPSIS)


def _lines(unit: Unit, row: Mapping[str, Any]) -> Iterator[str]:
    yield _full_name(unit, row)
    facts = [
        f"{title_of(column.key)}: {column.text(unit)}"
        for column in PAGE_COLUMNS
        if column.key in _FACTS and column.text(unit) and (column.key != "code" or unit.code)
    ]
    yield " · ".join((state_word(unit), *facts))
    yield unit.title
    yield _whole_reason(unit, row)
    if unit.earlier:
        yield f"{title_of('earlier')}: {earlier_of(unit)}"
    yield _redirect_line(row)
    yield display(custom_fields(row), _MOST_CHARS)
    yield from _page_fact_lines(row)


def _whole_reason(unit: Unit, row: Mapping[str, Any]) -> str:
    error = row.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    if unit.reason.endswith(ELLIPSIS) and isinstance(error, str):
        return display_lines(retold(error), _MOST_CHARS)
    return said_of(unit)


def _redirect_line(row: Mapping[str, Any]) -> str:
    """Return the addresses that led to a page, each with its status; "" without any."""
    hops = row.get("redirects")
    said = [
        f"{display(str(hop['url']), _FACT_CHARS)} ({hop.get('status')})"
        for hop in (hops if isinstance(hops, list) else ())
        if isinstance(hop, dict) and isinstance(hop.get("url"), str)
    ]
    if not said:
        return ""
    final = row.get("final_url")
    led = display(final, _FACT_CHARS) if isinstance(final, str) else ""
    return f"{title_of('redirects')}: {' → '.join((*said, led))}"


def _page_fact_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts of a crawled page, `Language: de · Words: 12`; counts of 0 are left out."""
    facts = row.get("facts")
    if not isinstance(facts, Mapping):
        return
    for names in PAGE_FACTS:
        said = [(fact_title(name), _fact(facts.get(name))) for name in names]
        if line := " · ".join(f"{title}: {text}" for title, text in said if text):
            yield line


def _fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(display(one, _FACT_CHARS) for one in value if isinstance(one, str))
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value) if value else ""
    return display(value, _FACT_CHARS) if isinstance(value, str) else ""


async def _thumbnail(engine: Engine, task_id: str, shot: str) -> QImage:
    data = await engine.reading.picture(task_id, f"artifacts/{shot}")
    image, _ = await asyncio.to_thread(decoded, data or b"", _THUMB)
    return image
