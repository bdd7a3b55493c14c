"""A file in the place of the lease folder is reported with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.octask import Octask


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_start_reports_a_blocked_lease_folder(octask: Octask, kind: str) -> None:
    root = octask.home / "tasks"
    root.mkdir(parents=True)
    place = root / ".runners"
    place.touch() if kind == "file" else place.symlink_to(Path("elsewhere"))
    said = octask("start", "crawl", "http://127.0.0.1:1/", code=1)
    assert f"{place} is not a folder" in said
    assert "Rename what is there" in said
    assert "Free some space" not in said
