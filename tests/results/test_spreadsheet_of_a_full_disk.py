"""A spreadsheet that cannot be written is one sentence, wherever the disk became full."""

from __future__ import annotations

import gc
import io
from types import SimpleNamespace
from typing import Any

import pytest

from engine.export import report


class Full(io.BytesIO):
    """A disk with room for some bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._room:
            raise OSError(28, "No space left on device")
        return super().write(data)


class Filled:
    """Sheets with some rows, instead of those of a task."""

    def __init__(self, book: Any, *_: object) -> None:
        self._book = book

    def fill(self) -> None:
        page = self._book.add_worksheet("pages")
        for row in range(2_000):
            page.write_string(row, 0, f"http://site.test/{row * row}")


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
def test_a_disk_full_at_any_byte_is_a_caught_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_Sheets", Filled)
    for room in (0, 40, 300, 1_000, 4_000, 7_000, 9_000):
        with pytest.raises(OSError, match="No space left"):
            # A file and a table in place of the real ones.
            report.write_xlsx(Full(room), SimpleNamespace())  # type: ignore[arg-type]
        gc.collect()
