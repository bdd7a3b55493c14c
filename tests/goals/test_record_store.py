"""One JSON file for each id: atomic, locked, and with the unknown fields of others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.ledger.record_store import (
    NotAnId,
    RecordExists,
    RecordNotFound,
    RecordStore,
    RecordUnreadable,
)
from engine.model.errors import LedgerReadOnly, LedgerUnusable, LedgerWriteFailed
from tests.support.faults import disk_full

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

ONE = "00000000000000a1"


@pytest.fixture
def record_store(home: Path) -> RecordStore:
    return RecordStore(home / "records", "record")


def test_looking_at_a_shelf_that_is_not_made_writes_nothing(record_store: RecordStore) -> None:
    assert record_store.ids() == []
    assert not record_store.has(ONE)
    with pytest.raises(RecordNotFound):
        record_store.read(ONE)
    with pytest.raises(RecordNotFound):
        record_store.change(ONE, lambda raw: None)
    assert not record_store.folder.exists()


@pytest.mark.case("R48")
def test_a_record_is_private_and_found_again(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})
    assert record_store.ids() == [ONE]
    assert record_store.read(ONE) == {"a": 1}
    if os.name == "posix":
        assert record_store.folder.stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in record_store.folder.iterdir())


def test_a_taken_id_is_refused_and_its_record_left(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})
    with pytest.raises(RecordExists):
        record_store.create(ONE, {"a": 2})
    assert record_store.read(ONE) == {"a": 1}


def test_fields_of_others_survive_a_change(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1, "theirs": {"x": [1, "\ud83d"]}})
    assert record_store.change(ONE, lambda raw: raw.update(a=2)) == record_store.read(ONE)
    assert record_store.read(ONE) == {"a": 2, "theirs": {"x": [1, "\ud83d"]}}


def test_a_change_that_changes_nothing_writes_nothing(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})
    before = (record_store.folder / f"{ONE}.json").stat()
    record_store.change(ONE, lambda raw: None)
    after = (record_store.folder / f"{ONE}.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_change_that_raises_leaves_the_file(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})

    def fail(raw: dict[str, object]) -> None:
        raw["a"] = 2
        raise NotAnId(given="x", noun="record")

    with pytest.raises(NotAnId):
        record_store.change(ONE, fail)
    assert record_store.read(ONE) == {"a": 1}
    assert [name for name in os.listdir(record_store.folder) if "tmp" in name] == []


@pytest.mark.parametrize("given", ["", "../x", "a1", ONE + "\n", "00000000000000A1", "٠" * 16])
def test_no_path_is_made_of_what_is_no_id(record_store: RecordStore, given: str) -> None:
    for call in (record_store.read, record_store.has, record_store.remove):
        with pytest.raises(NotAnId):
            call(given)
    with pytest.raises(NotAnId):
        record_store.create(given, {})
    assert not record_store.folder.exists()


def test_the_shape_of_ids_is_the_shelfs_own(home: Path) -> None:
    runs = RecordStore(home / "runs", "run", UUID)
    runs.create("6f1c2b9e-3a51-4b8e-9f5d-0d2a7c9b1e44", {"run": True})
    with pytest.raises(NotAnId):
        runs.read(ONE)
    assert runs.ids() == ["6f1c2b9e-3a51-4b8e-9f5d-0d2a7c9b1e44"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b'{"a": 1', "the file is cut short"),
        (b"[1]", "not a JSON object"),
        (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
        (b'{"a": ' + b"[" * 80 + b"]" * 80 + b"}", "nested deeper"),
        (b"\xff", "not valid UTF-8"),
        (b'{"a": "' + b"x" * 2**20 + b'"}', "larger than 1 MiB"),
    ],
)
def test_damaged_records_are_kept(record_store: RecordStore, content: bytes, says: str) -> None:
    record_store.create(ONE, {})
    path = record_store.folder / f"{ONE}.json"
    path.write_bytes(content)
    for call in (
        lambda: record_store.read(ONE),
        lambda: record_store.change(ONE, lambda raw: raw.clear()),
    ):
        with pytest.raises(RecordUnreadable, match=says):
            call()
    assert path.read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_record_links_are_not_followed(record_store: RecordStore, tmp_path: Path) -> None:
    record_store.create(ONE, {})
    outside = tmp_path / "outside.json"
    outside.write_text('{"secret": 1}')
    (record_store.folder / f"{ONE}.json").unlink()
    (record_store.folder / f"{ONE}.json").symlink_to(outside)
    with pytest.raises(RecordUnreadable, match="link"):
        record_store.read(ONE)


def test_a_record_that_would_be_too_large_is_refused(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})
    with pytest.raises(LedgerWriteFailed, match="larger than 1 MiB"):
        record_store.change(ONE, lambda raw: raw.update(a="x" * 2**20))
    assert record_store.read(ONE) == {"a": 1}


def test_a_file_in_the_folders_place_is_said(home: Path) -> None:
    (home / "records").write_text("x")
    with pytest.raises(LedgerUnusable):
        RecordStore(home / "records", "record").create(ONE, {})
    with pytest.raises(LedgerUnusable):
        RecordStore(home / "records", "record").ids()


def test_full_disk_keeps_record(record_store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    record_store.create(ONE, {"a": 1})

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(LedgerWriteFailed, match="No space left"):
        record_store.change(ONE, lambda raw: raw.update(a=2), durable=True)
    assert record_store.read(ONE) == {"a": 1}
    assert [name for name in os.listdir(record_store.folder) if "tmp" in name] == []


def test_what_a_dead_writer_staged_stands_in_nobodys_way(record_store: RecordStore) -> None:
    record_store.create(ONE, {"a": 1})
    (record_store.folder / f".{ONE}.json.tmp").write_bytes(b"half")
    record_store.change(ONE, lambda raw: raw.update(a=2))
    assert record_store.read(ONE) == {"a": 2}
    assert not (record_store.folder / f".{ONE}.json.tmp").exists()


@pytest.mark.case("R50")
def test_a_read_only_folder_is_reported(home: Path, record_store: RecordStore, read_only) -> None:
    record_store.create(ONE, {"a": 1})
    read_only(record_store.folder)
    with pytest.raises(LedgerReadOnly):
        record_store.change(ONE, lambda raw: raw.update(a=2))
    assert record_store.read(ONE) == {"a": 1}


COUNT = """
import sys
from pathlib import Path
from engine.ledger.record_store import RecordStore
from tests.support.lock_retries import patiently
shelf = RecordStore(Path(sys.argv[1]), "record")
for _ in range(int(sys.argv[2])):
    patiently(lambda: shelf.change(sys.argv[3], lambda raw: raw.update(n=raw["n"] + 1)))
"""


def test_changes_of_many_processes_are_all_counted(record_store: RecordStore) -> None:
    record_store.create(ONE, {"n": 0})
    command = [sys.executable, "-c", COUNT, str(record_store.folder), "100", ONE]
    programs = [
        subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2]) for _ in range(4)
    ]
    assert [program.wait(240) for program in programs] == [0] * 4
    assert record_store.read(ONE) == {"n": 400}
    assert json.loads((record_store.folder / f"{ONE}.json").read_text()) == {"n": 400}
