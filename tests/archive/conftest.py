"""The rich site, and archives that real crawls of it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from engine.archive.task_archive import FILE_PATH
from tests.archive.rich_site import Rich, rich_site
from tests.support.far_limits import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def rich() -> Iterator[Rich]:
    with rich_site() as site:
        yield site


class Kept:
    """One record of a file, as warcio reads it."""

    def __init__(self, record: Any) -> None:
        self.kind = record.rec_type
        self.url = record.rec_headers.get_header("WARC-Target-URI") or ""
        self.warc = dict(record.rec_headers.headers)
        http = record.http_headers
        self.status = http.get_statuscode() if http is not None else ""
        self.line = http.statusline if http is not None else ""
        self.http = {name.lower(): value for name, value in http.headers} if http else {}
        self.body = record.content_stream().read()

    def __repr__(self) -> str:
        return f"{self.kind} {self.url}"


def records(file: Path) -> list[Kept]:
    """Every record; their digests are checked."""
    with file.open("rb") as stream:
        return [Kept(one) for one in ArchiveIterator(stream, check_digests="raise")]


def archive_of(home: Path, task_id: str) -> Path:
    return home / "tasks" / task_id / FILE_PATH
