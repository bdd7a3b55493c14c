"""What a session keeps in memory."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from gui.startup.session import Session
from tests.gui.windows import opened


async def test_a_loaded_window_keeps_no_source_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    real = Session.open

    def open_and_import(session: Session) -> None:
        real(session)
        linecache.getlines(linecache.__file__)  # as PySide does for each imported module

    monkeypatch.setattr(Session, "open", open_and_import)
    async with opened(tmp_path / "home"):
        assert linecache.__file__ not in linecache.cache
