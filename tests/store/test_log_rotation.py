"""The log begins a new file when it is full, and loses nothing where it cannot."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from engine.logging import logs


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "MAX_BYTES", 200)
    handler = logs.open_handler(tmp_path / "a.log")
    logger = logging.getLogger("tests.log_rotation")
    logger.addHandler(handler)
    logger.propagate = False
    yield logger
    logger.removeHandler(handler)
    handler.close()


def texts(folder: Path) -> dict[str, str]:
    return {place.name: place.read_text("utf-8") for place in folder.iterdir()}


def test_a_full_log_begins_a_new_file(log: logging.Logger, tmp_path: Path) -> None:
    for number in range(10):
        log.warning("line %s %s", number, "x" * 40)
    assert set(texts(tmp_path)) == {"a.log", "a.log.1", "a.log.2"}
    assert "line 9" in texts(tmp_path)["a.log"]


def test_a_log_that_another_process_has_open_on_windows_goes_on_and_keeps_the_older_files(
    log: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 4):
        (tmp_path / f"a.log.{number}").write_text(f"older {number}", "utf-8")
    rename = os.rename

    def refused(old: str, new: str) -> None:
        if Path(old).name == "a.log":
            raise PermissionError(13, "The process cannot access the file", old)
        rename(old, new)

    monkeypatch.setattr(os, "rename", refused)
    for number in range(20):
        log.warning("line %s %s", number, "x" * 40)
    found = texts(tmp_path)
    assert [f"line {number} " in found["a.log"] for number in range(20)] == [True] * 20
    assert [found[f"a.log.{number}"] for number in range(1, 4)] == ["older 1", "older 2", "older 3"]
