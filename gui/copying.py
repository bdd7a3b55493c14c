"""Selected tasks as text for the clipboard."""

from __future__ import annotations

from collections.abc import Iterable

from gui.columns import COLUMNS
from gui.rows import Row


def ids_text(ids: Iterable[str]) -> str:
    """One id a line."""
    return "\n".join(ids)


def rows_text(rows: Iterable[Row], now_ms: float) -> str:
    """A table for a spreadsheet: tab-separated, the columns' titles first.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front (OWASP,
    "CSV injection"): addresses and titles come from strangers.
    """
    lines = ["\t".join(column.long_title for column in COLUMNS)]
    lines += ["\t".join(_cell(column.text(row, now_ms)) for column in COLUMNS) for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    return f"'{flat}" if flat[:1] in ("=", "+", "-", "@") else flat
