"""Columns of unit tables, and the words for states of units."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from engine.results.unit_filter import UNIT_FIELDS, facts_of
from engine.results.units import Unit, UnitState
from engine.text.messages import ENGLISH, retold, say
from engine.text.words import count, size_words, took

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

    By default an `is_rare` column is shown only while a unit has a value that is not 0 or empty
    (`has`, if it is sorted by another value), and an `is_extra` one is hidden. Only crawled pages
    have an `is_of_pages` column. `least` is the width where room is short, 0: the same.
    """

    key: str
    text: Callable[[Unit], str]
    value: Callable[[Unit], Any]
    width: int = 0
    is_number: bool = False
    is_toned: bool = False
    is_rare: bool = False
    is_extra: bool = False
    is_of_pages: bool = False
    least: int = 0
    has: Callable[[Unit], object] | None = None


REASONS: Final = ("reason", "error")
_PAGE_PROSE: Final = ("description", "h1", "robots", "structured_data")
PROSE: Final = (
    "state",
    "title",
    "fields",
    "earlier",
    *_PAGE_PROSE,
    *REASONS,
)  # elided at the right
_SIGN_CHARS = 3  # extra width of the sign
_SHORT_CHARS = 12  # of a text that is less important than the address


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
        "transferred": _tr("Transferred"),
        "redirects": _tr("Redirects"),
        "links": _tr("Links"),
        "fields": _tr("Custom fields"),
        "consent": _tr("Consent banner"),
        "worker": _tr("Cluster worker"),
    }
    if noun == "commands":  # without address and title, but with an intention and a tool
        titles.update(url=_tr("What for"), title=_tr("Tool"))
    elif noun == "parts":
        titles.update(name=_tr("Part"), url=_tr("Part"))
    elif noun == "actions":
        titles.update(name=_tr("Action"), url=_tr("Action"), title=_tr("Page"))
    return titles[key] if key in titles else fact_title(key)


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
        "content_type": _tr("Content type"),
        "charset": _tr("Charset"),
        "content_hash": _tr("Content hash"),
    }[name]


def spoken(unit: Unit) -> str:
    """Describe a unit in a sentence for screen readers."""
    parts = (state_word(unit)[2:], name_of(unit), unit.title, said_of(unit), earlier_of(unit))
    return ", ".join(part for part in parts if part)


def name_of(unit: Unit) -> str:
    """Return the name of a unit; the parts of a bundle have words of their own."""
    message = f"part.{unit.name}"
    return say(message) if message in ENGLISH else unit.name


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
    if value is None:
        return ""
    return took(value) if value >= 1 else "< 1 ms"  # "under 1 ms" has no room in a column


def _bytes(value: float | None) -> str:
    return "" if value is None else size_words(value)


def _whole(value: float | None) -> str:
    return "" if value is None else count(int(value))


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


_EARLIER = UnitColumn(
    "earlier", earlier_of, lambda unit: unit.earlier, 30, is_rare=True, least=_SHORT_CHARS
)
_RARE: Final = (
    _rare("attempts", lambda unit: unit.attempts, 9),
    _EARLIER,
    _rare("redacted", lambda unit: unit.redacted, 10),
    _rare("links_over", lambda unit: unit.links_over, 18),
)


def _page_number(
    key: str,
    value: Callable[[Unit], float | None],
    width: int,
    text: Callable[[float | None], str] = _whole,
    *,
    is_extra: bool = True,
) -> UnitColumn:
    """Column of a number of crawled pages that may be unknown."""
    return UnitColumn(
        key,
        lambda unit: text(value(unit)),
        lambda unit: _number(value(unit)),
        width,
        is_number=True,
        is_extra=is_extra,
        is_of_pages=True,
        least=width if is_extra else width - 2,
    )


def _fact_number(key: str) -> UnitColumn:
    fact = attrgetter(key)
    return _page_number(key, lambda unit: fact(facts_of(unit)), 8)


def _fact_text(key: str, width: int) -> UnitColumn:
    fact = attrgetter(key)
    return UnitColumn(
        key,
        lambda unit: fact(facts_of(unit)),
        lambda unit: fact(facts_of(unit)).casefold(),
        width,
        is_extra=True,
        is_of_pages=True,
        least=min(width, _SHORT_CHARS),
    )


_TITLE = UnitColumn(
    "title", lambda unit: unit.title, lambda unit: unit.title.casefold(), 24, least=_SHORT_CHARS
)
ITEM_COLUMNS: Final = (
    _NUMBER,
    UnitColumn("state", state_word, lambda unit: (unit.state, unit.failure), 12, is_toned=True),
    UnitColumn("name", name_of, lambda unit: unit.name, 56),
    _TITLE,
    *_RARE,
    UnitColumn("reason", said_of, lambda unit: (unit.reason.casefold(), unit.remark)),
)
_FIELDS_COLUMN = UnitColumn(
    "fields",
    lambda unit: unit.fields,
    lambda unit: unit.fields.casefold(),
    30,
    is_rare=True,
    least=_SHORT_CHARS,
)
_CONSENT_COLUMN = UnitColumn(
    "consent", lambda unit: unit.consent_words, lambda unit: unit.consent_words, 24, is_rare=True
)
_WORKER_COLUMN = UnitColumn(
    "worker", lambda unit: unit.worker, lambda unit: unit.worker.casefold(), 16, is_rare=True
)
PAGE_COLUMNS: Final = (
    _NUMBER,
    UnitColumn("code", _code, lambda unit: (_number(unit.code), unit.state), 10, is_toned=True),
    UnitColumn("url", name_of, lambda unit: unit.name, 90, least=24),
    _TITLE,
    _page_number("depth", lambda unit: unit.depth, 8, is_extra=False),
    _page_number("response", lambda unit: unit.response_ms, 10, _ms, is_extra=False),
    _page_number("render", lambda unit: unit.render_ms, 10, _ms, is_extra=False),
    _page_number("size", lambda unit: unit.size_bytes, 9, _bytes, is_extra=False),
    _page_number("transferred", lambda unit: unit.transferred_bytes, 9, _bytes),
    _page_number("redirects", lambda unit: unit.redirects, 8),
    _page_number("links", lambda unit: unit.links_found, 8),
    _fact_text("content_type", 14),
    _fact_text("charset", 10),
    _fact_text("language", 8),
    _fact_text("canonical", 30),
    _fact_text("description", 36),
    _fact_text("robots", 16),
    _fact_text("h1", 24),
    _fact_number("h1_count"),
    _fact_number("words"),
    _fact_number("links_internal"),
    _fact_number("links_external"),
    _fact_number("links_nofollow"),
    _fact_number("images"),
    _fact_number("images_without_alt"),
    _fact_text("structured_data", 20),
    _fact_text("content_hash", 18),
    _FIELDS_COLUMN,
    _CONSENT_COLUMN,
    _WORKER_COLUMN,
    *_RARE,
    UnitColumn(
        "error",
        said_of,
        lambda unit: (unit.reason.casefold(), unit.remark),
        120,
        is_rare=True,
        least=20,
        has=lambda unit: unit.reason or unit.remark,
    ),
)
# Columns that share the room by their longest text, and what tells its length without rendering it.
SHARING: Final[dict[str, Callable[[Unit], str]]] = {
    "url": lambda unit: unit.name,
    "title": lambda unit: unit.title,
    "error": lambda unit: unit.reason or unit.remark,
}
KEYS_OF_NAMES: Final = ("name", "url")  # the column that grows, and is always shown
_TITLE_PAD = 3  # extra width of the arrow of a sorted column
# Columns whose field in the search has another name.
_FIELDS: Final = {"code": "status", "name": "url", "reason": "error"}


def width_of(column: UnitColumn) -> int:
    """Return the width of a column in characters; an extra one has room for its title."""
    if column.is_toned:
        return max(column.width, longest_state())
    title = len(title_of(column.key)) + _TITLE_PAD if column.is_extra else 0
    return max(column.width, title)


def least_of(column: UnitColumn) -> int:
    """Return the width of a column in characters where room is short."""
    return column.least or width_of(column)


def search_example(column: UnitColumn) -> str:
    """Return a term that searches this column, `words:<100`; "" where there is none."""
    name = _FIELDS.get(column.key, column.key)
    return f"{name}:{UNIT_FIELDS[name].example}" if name in UNIT_FIELDS else ""
