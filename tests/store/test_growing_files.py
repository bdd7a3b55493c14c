"""A file that grows by whole parts has no part of a write that failed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.ledger import files
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, LedgerWriteFailed

NAME = "archive.warc.gz"


def place(ledger: Ledger, task_id: str) -> Path:
    return ledger.root / task_id / "artifacts" / NAME


def test_parts_are_appended_in_their_order(ledger: Ledger, task_id: str) -> None:
    for part in (b"one", b"two", b"three"):
        ledger.append_artifact(task_id, NAME, part)
    assert place(ledger, task_id).read_bytes() == b"onetwothree"


def test_the_part_of_a_failed_write_is_overwritten(
    ledger: Ledger, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append_artifact(task_id, NAME, b"one")

    def half(fd: int, data: bytes) -> None:
        os.write(fd, data[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as fault:
        fault.setattr(files, "write_fully", half)
        with pytest.raises(EngineError):
            ledger.append_artifact(task_id, NAME, b"two, which is longer")
    assert place(ledger, task_id).read_bytes() == b"onetw"
    ledger.append_artifact(task_id, NAME, b"3")
    assert place(ledger, task_id).read_bytes() == b"one3"


def test_a_file_that_another_program_shortened_is_not_continued(
    ledger: Ledger, task_id: str
) -> None:
    ledger.append_artifact(task_id, NAME, b"one")
    place(ledger, task_id).write_bytes(b"o")
    with pytest.raises(LedgerWriteFailed, match="another program has shortened it"):
        ledger.append_artifact(task_id, NAME, b"two")
    assert place(ledger, task_id).read_bytes() == b"o"


def test_a_copy_of_another_tasks_file_is_continued(ledger: Ledger, task_id: str) -> None:
    ledger.append_artifact(task_id, NAME, b"whole, torn")
    other = ledger.create("crawl", {"url": "https://example.com/"}).task_id
    size = ledger.carry_artifact(other, task_id, NAME, lambda file: len(b"whole"), lambda: None)
    assert size == len(b"whole")
    ledger.append_artifact(other, NAME, b", and more")
    assert place(ledger, other).read_bytes() == b"whole, and more"
    assert place(ledger, task_id).read_bytes() == b"whole, torn"
    assert ledger.carry_artifact(other, task_id, "none", lambda file: 5, lambda: None) == 0
