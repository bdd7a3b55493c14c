"""Columns of unit tables, the words for states of units, and the filter chips by kind of row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from engine.results.units import Unit, UnitState
from engine.text.messages import retold
from engine.text.words import count, size_words, took
from gui.style.theme import plain_keys
from gui.style.widgets import arrange

TONES: Final = {
    "done": "good",
    "failed": "bad",
    "skipped": "muted",
    "refused": "warning",
    "waiting": "muted",
    "running": "running",
    "2xx": "good",
    "3xx": "muted",
    "4xx": "bad",
    "5xx": "bad",
}


class UnitColumn(NamedTuple):
    """Column of a unit table: `text` is shown, `value` sorted; `width` in characters, 0: the rest.

    An `is_rare` column is shown only while a unit has a value that is not 0 or empty.
    """

    key: str
    text: Callable[[Unit], str]
    value: Callable[[Unit], Any]
    width: int = 0
    is_number: bool = False
    is_toned: bool = False
    is_rare: bool = False


REASONS: Final = ("reason", "error")
PROSE: Final = ("state", "title", "earlier", *REASONS)  # elided at the right
_SIGN_CHARS = 3  # extra width of the sign


def kind_word(kind: str) -> str:
    """Return the word for a state or a class of answers, with its sign."""
    words = {
        "done": _tr("✓ Done"),
        "failed": _tr("✕ Failed"),
        "skipped": _tr("– Skipped"),
        "refused": _tr("⊘ Refused"),
        "waiting": _tr("… Waiting"),
        "running": _tr("▸ Running"),
    }
    return words.get(kind, kind)


def state_word(unit: Unit) -> str:
    """Return the state; for a failed page HTTP error or not loaded."""
    if unit.state != UnitState.FAILED or not unit.failure:
        return kind_word(unit.state)
    return _tr("✕ HTTP error") if unit.failure == "http" else _tr("✕ Not loaded")


def longest_state() -> int:
    """Return the width in characters of the longest state in this language."""
    words = (*map(kind_word, UnitState), _tr("✕ HTTP error"), _tr("✕ Not loaded"))
    return max(map(len, words)) + _SIGN_CHARS


def title_of(key: str, noun: str = "") -> str:
    """Return the column's title, for units of this noun."""
    titles = {
        "number": _tr("#"),
        "state": _tr("State"),
        "code": _tr("Status"),
        "name": _tr("Item"),
        "url": _tr("URL"),
        "title": _tr("Title"),
        "reason": _tr("Reason"),
        "depth": _tr("Depth"),
        "response": _tr("Response"),
        "render": _tr("Render"),
        "size": _tr("Size"),
        "attempts": _tr("Attempts"),
        "earlier": _tr("Earlier errors"),
        "redacted": _tr("Redacted"),
        "links_over": _tr("Links over limit"),
        "error": _tr("Error"),
    }
    if noun == "commands":  # without address and title, but with an intention and a tool
        titles.update(url=_tr("What for"), title=_tr("Tool"))
    elif noun == "actions":
        titles.update(name=_tr("Action"), url=_tr("Action"), title=_tr("Page"))
    return titles[key]


# Facts of a page in the strip, by line.
PAGE_FACTS: Final = (
    ("h1", "description"),
    ("canonical", "robots", "structured_data"),
    (
        *("language", "words", "h1_count", "links_internal", "links_external", "links_nofollow"),
        *("images", "images_without_alt"),
    ),
)


def fact_title(name: str) -> str:
    """Return the title of a page's fact."""
    return {
        "h1": _tr("H1"),
        "h1_count": _tr("Number of H1"),
        "description": _tr("Description"),
        "canonical": _tr("Canonical address"),
        "robots": _tr("Robots"),
        "structured_data": _tr("Structured data"),
        "language": _tr("Page language"),
        "words": _tr("Words"),
        "links_internal": _tr("Internal links"),
        "links_external": _tr("External links"),
        "links_nofollow": _tr("Nofollow links"),
        "images": _tr("Images"),
        "images_without_alt": _tr("Images without alt text"),
    }[name]


def spoken(unit: Unit) -> str:
    """Describe a unit in a sentence for screen readers."""
    parts = (state_word(unit)[2:], unit.name, unit.title, said_of(unit), earlier_of(unit))
    return ", ".join(part for part in parts if part)


def said_of(unit: Unit) -> str:
    """Return why a page failed, or the remarks on a stored one."""
    return retold(unit.reason) or unit.remark_words


def earlier_of(unit: Unit) -> str:
    """Return the errors of earlier attempts, oldest first."""
    return "; ".join(map(retold, unit.earlier))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Units", text)


def _number(value: float | None) -> float:
    return -1.0 if value is None else value


def _code(unit: Unit) -> str:
    return state_word(unit) if unit.code is None else str(unit.code)


def _ms(value: float | None) -> str:
    return "" if value is None else took(value)


_NUMBER = UnitColumn(
    "number", lambda unit: count(unit.number + 1), lambda unit: unit.number, 6, is_number=True
)


def _rare(key: str, value: Callable[[Unit], int], width: int) -> UnitColumn:
    """Column of a count that most units do not have."""
    return UnitColumn(
        key,
        lambda unit: count(value(unit)) if value(unit) else "",
        value,
        width,
        is_number=True,
        is_rare=True,
    )


_EARLIER = UnitColumn("earlier", earlier_of, lambda unit: unit.earlier, 30, is_rare=True)
_RARE: Final = (
    _rare("attempts", lambda unit: unit.attempts, 9),
    _EARLIER,
    _rare("redacted", lambda unit: unit.redacted, 10),
    _rare("links_over", lambda unit: unit.links_over, 18),
)
_TITLE = UnitColumn("title", lambda unit: unit.title, lambda unit: unit.title.casefold(), 24)
ITEM_COLUMNS: Final = (
    _NUMBER,
    UnitColumn("state", state_word, lambda unit: (unit.state, unit.failure), 12, is_toned=True),
    UnitColumn("name", lambda unit: unit.name, lambda unit: unit.name, 56),
    _TITLE,
    *_RARE,
    UnitColumn("reason", said_of, lambda unit: (unit.reason.casefold(), unit.remark)),
)
PAGE_COLUMNS: Final = (
    _NUMBER,
    UnitColumn("code", _code, lambda unit: (_number(unit.code), unit.state), 10, is_toned=True),
    UnitColumn("url", lambda unit: unit.name, lambda unit: unit.name, 42),
    _TITLE,
    UnitColumn(
        "depth",
        lambda unit: "" if unit.depth is None else str(unit.depth),
        lambda unit: _number(unit.depth),
        8,
        is_number=True,
    ),
    UnitColumn(
        "response",
        lambda unit: _ms(unit.response_ms),
        lambda unit: _number(unit.response_ms),
        10,
        is_number=True,
    ),
    UnitColumn(
        "render",
        lambda unit: _ms(unit.render_ms),
        lambda unit: _number(unit.render_ms),
        10,
        is_number=True,
    ),
    UnitColumn(
        "size",
        lambda unit: "" if unit.size_bytes is None else size_words(unit.size_bytes),
        lambda unit: _number(unit.size_bytes),
        9,
        is_number=True,
    ),
    *_RARE,
    UnitColumn("error", said_of, lambda unit: (unit.reason.casefold(), unit.remark)),
)


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
