"""Folders of Windows that are links are refused; those that only carry a tag are not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.ledger import files
from engine.ledger.files import Folder

JUNCTION, SYMLINK, ONEDRIVE = 0xA0000003, 0xA000000C, 0x9000001A


@pytest.fixture
def tagged(monkeypatch: pytest.MonkeyPatch):
    """Let `os.lstat` report a reparse tag, as Windows does."""
    lstat = os.lstat

    def tag(value: int) -> None:
        def with_tag(path: str) -> SimpleNamespace:
            return SimpleNamespace(st_mode=lstat(path).st_mode, st_reparse_tag=value)

        monkeypatch.setattr(files, "HAS_DIR_FD", False)
        monkeypatch.setattr(os, "lstat", with_tag)

    return tag


@pytest.mark.skipif(sys.platform == "win32", reason="imitates Windows")
@pytest.mark.parametrize("value", [JUNCTION, SYMLINK])
def test_a_junction_in_the_place_of_a_task_is_refused(tmp_path: Path, tagged, value: int) -> None:
    (tmp_path / "task").mkdir()
    tagged(value)
    with pytest.raises(NotADirectoryError):
        Folder(str(tmp_path), None).enter("task")


@pytest.mark.skipif(sys.platform == "win32", reason="imitates Windows")
@pytest.mark.parametrize("value", [0, ONEDRIVE])
def test_a_folder_that_a_cloud_service_keeps_is_a_folder(
    tmp_path: Path, tagged, value: int
) -> None:
    (tmp_path / "task").mkdir()
    tagged(value)
    with Folder(str(tmp_path), None).enter("task") as folder:
        assert folder.path == str(tmp_path / "task")
