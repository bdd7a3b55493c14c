"""A task folder that is swapped for a link while it is read: nothing is read through the link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.files import HAS_DIR_FD, Folder
from engine.ledger.reader import LedgerReader
from engine.model.records import META_NAME, TaskRecord
from tests.support.task_folders import task_id, write_meta

pytestmark = pytest.mark.skipif(not HAS_DIR_FD, reason="folders cannot be held open here")

LOOKS: dict[str, Callable[[LedgerReader], object]] = {
    "list": lambda look: look.list(),
    "entries": lambda look: look.entries([task_id(1)]),
    "ended": lambda look: look.ended([task_id(1)])[0],
    "read_many": lambda look: [found.entry for found in look.read_many([task_id(1)])],
}


@pytest.mark.case("R44")
@pytest.mark.parametrize("before", ["the folder", "its file"])
@pytest.mark.parametrize("look", LOOKS)
def test_what_a_link_leads_to_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str, before: str
) -> None:
    root, elsewhere = tmp_path / "tasks", tmp_path / "elsewhere"
    write_meta(root, 1, "COMPLETED")
    write_meta(elsewhere, 1, "COMPLETED", kind="foreign")
    real, ledger = os.open, LedgerReader(root)

    def swapping(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        first = task_id(1) if before == "the folder" else META_NAME
        if first in str(path) and not (root / task_id(1)).is_symlink():
            (root / task_id(1)).rename(tmp_path / "aside")
            (root / task_id(1)).symlink_to(elsewhere / task_id(1))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)
    found = LOOKS[look](ledger)
    assert (root / task_id(1)).is_symlink()
    assert isinstance(found, list)
    kinds = [entry.kind for entry in found if isinstance(entry, TaskRecord)]
    assert "foreign" not in kinds


def test_a_folder_holds_on_to_what_it_opened(tmp_path: Path) -> None:
    write_meta(tmp_path / "tasks", 1, "COMPLETED")
    with Folder.at(str(tmp_path / "tasks")) as root, root.enter(task_id(1)) as folder:
        (tmp_path / "tasks" / task_id(1)).rename(tmp_path / "aside")
        (tmp_path / "tasks" / task_id(1)).symlink_to(tmp_path)
        assert folder.read(META_NAME, 1 << 20)
