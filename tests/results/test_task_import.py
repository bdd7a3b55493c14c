"""A task that was exported as a zip file comes into another ledger unchanged, and nothing else."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.export.exporter import ExportProgress
from engine.export.exports import zip_folder
from engine.ledger import task_import
from engine.ledger.ledger import Ledger
from engine.ledger.listing import is_task_id
from engine.ledger.lock import NAMES
from engine.ledger.reader import LedgerReader
from engine.ledger.task_import import (
    ImportExists,
    ImportProgress,
    ImportRefused,
    ImportStopped,
    import_task,
)
from engine.model.records import Status, TaskRecord
from tests.results.conftest import page

ID = "0123456789abcdef"
META = {"task_id": ID, "kind": "crawl", "status": "COMPLETED", "created_at": 1, "updated_at": 2}


@pytest.fixture
def zipped(ledger: Ledger, crawled: Callable[..., str], tmp_path: Path) -> Path:
    """An exported crawl with two pages, a picture in a folder, and a lock."""
    task_id = crawled(page(0), page(1))
    ledger.write_artifact(task_id, "page-1.png", os.urandom(3_000_000))
    (ledger.root / task_id / "lock").write_bytes(b"")
    place = tmp_path / "task.zip"
    with place.open("wb") as out:
        zip_folder(ledger, task_id, out, ExportProgress())
    return place


@pytest.fixture
def other(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "other" / "tasks")


def packed(place: Path, files: dict[str | zipfile.ZipInfo, str | bytes]) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return place


def task_with(**files: str) -> dict[str | zipfile.ZipInfo, str | bytes]:
    return {f"{ID}/meta.json": json.dumps(META), **{f"{ID}/{key}": files[key] for key in files}}


def left_in(ledger: Ledger) -> list[str]:
    """Return the names in the ledger, but for its leases."""
    if not ledger.root.exists():
        return []
    return sorted(one for one in os.listdir(ledger.root) if one != ".runners")


def status_in(root: Path, task_id: str) -> str:
    found = LedgerReader(root).read(task_id)
    assert isinstance(found, TaskRecord)
    return found.status


def files_of(root: Path, task_id: str) -> dict[str, bytes]:
    paths = [path for path in (root / task_id).rglob("*") if path.is_file()]
    return {str(path.relative_to(root / task_id)): path.read_bytes() for path in paths}


def test_a_task_is_the_same_in_the_ledger_that_it_is_imported_into(
    zipped: Path, ledger: Ledger, other: Ledger
) -> None:
    seen: list[tuple[int, int, int]] = []
    watch = ImportProgress(lambda *told: seen.append(told))
    made = import_task(other, zipped, watch)
    before, after = files_of(ledger.root, made.task_id), files_of(other.root, made.task_id)
    events = after.pop("events.jsonl")
    assert events.startswith(before.pop("events.jsonl"))
    assert json.loads(events.splitlines()[-1])["data"] == {
        "phase": "import",
        "note": "Imported from task.zip",
    }
    was, record = (json.loads(one.pop("meta.json")) for one in (before, after))
    assert record == {**was, "result_path": str(other.root / made.task_id / "result.json")}
    assert after == {name: data for name, data in before.items() if name not in NAMES}
    assert status_in(other.root, made.task_id) == Status.COMPLETED
    assert seen[-1][1:] == (made.size_bytes, made.size_bytes)
    assert made.files == len(after) + 2


def test_a_task_that_is_there_is_not_replaced(zipped: Path, ledger: Ledger) -> None:
    (task_id,) = [one for one in os.listdir(ledger.root) if is_task_id(one)]
    before = files_of(ledger.root, task_id)
    with pytest.raises(ImportExists):
        import_task(ledger, zipped, ImportProgress())
    assert files_of(ledger.root, task_id) == before


def test_an_import_that_is_stopped_leaves_nothing(zipped: Path, other: Ledger) -> None:
    watch = ImportProgress()
    watch.on_progress = lambda *_: watch.stop.set()
    with pytest.raises(ImportStopped):
        import_task(other, zipped, watch)
    assert left_in(other) == []


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        f"{ID}/../evil",
        f"/{ID}/evil",
        "fedcba9876543210/meta.json",
        f"{ID}/a\\b",
        f"{ID}/C:evil",
        f"{ID}/.hidden",
        f"{ID}/artifacts/con.png",
        f"{ID}/artifacts/a. ",
        f"{ID}//evil",
        f"{ID}/\u202egnp.exe",
        f"{ID}/" + "a/" * 20 + "b",
        f"{ID}/META.json",
    ],
)
def test_a_zip_with_a_name_that_is_not_safe_is_refused_whole(
    tmp_path: Path, other: Ledger, name: str
) -> None:
    place = packed(tmp_path / "a.zip", {**task_with(), name: "x"})
    with pytest.raises(ImportRefused):
        import_task(other, place, ImportProgress())
    assert left_in(other) == []
    assert [one.name for one in tmp_path.rglob("evil*")] == []


def test_a_link_in_a_zip_is_refused(tmp_path: Path, other: Ledger) -> None:
    link = zipfile.ZipInfo(f"{ID}/result.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    place = packed(tmp_path / "a.zip", {**task_with(), link: "/etc/passwd"})
    with pytest.raises(ImportRefused, match=r"not allowed.*result\.json"):
        import_task(other, place, ImportProgress())


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "does not contain the folder of a task"),
        ({"notes.txt": "x"}, "does not contain the folder of a task"),
        ({f"{ID}/result.json": "{}"}, "record of its task cannot be read"),
        ({f"{ID}/meta.json": "no json"}, "record of its task cannot be read"),
        ({f"{ID}/meta.json": " " * 2_000_000}, "record of its task cannot be read"),
        ({f"{ID}/meta.json": json.dumps({**META, "status": "RUNNING"})}, "had not ended"),
    ],
)
def test_a_zip_of_something_else_is_refused_with_the_reason(
    tmp_path: Path, other: Ledger, files: dict[str | zipfile.ZipInfo, str | bytes], reason: str
) -> None:
    with pytest.raises(ImportRefused, match=reason):
        import_task(other, packed(tmp_path / "a.zip", files), ImportProgress())
    assert left_in(other) == []


@pytest.mark.parametrize("broken", ["cut", "changed", "none", "folder"])
def test_a_file_that_is_no_whole_zip_is_refused(zipped: Path, other: Ledger, broken: str) -> None:
    data = bytearray(zipped.read_bytes())
    if broken == "cut":
        zipped.write_bytes(data[: len(data) // 2])
    elif broken == "changed":
        data[len(data) // 2] ^= 0xFF  # in the picture, which is by far the largest
        zipped.write_bytes(data)
    else:
        zipped.unlink()
        if broken == "folder":
            zipped.mkdir()
    with pytest.raises(ImportRefused):
        import_task(other, zipped, ImportProgress())
    assert left_in(other) == []


def test_a_zip_that_needs_more_room_than_there_is_is_refused_before_it_is_unpacked(
    tmp_path: Path, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_import, "SPARE_BYTES", 10**18)
    with pytest.raises(ImportRefused, match="free"):
        import_task(other, packed(tmp_path / "a.zip", task_with()), ImportProgress())
    assert left_in(other) == []


def test_files_without_content_can_be_stopped_too(tmp_path: Path, other: Ledger) -> None:
    place = packed(tmp_path / "a.zip", {**task_with(), f"{ID}/a": "", f"{ID}/b": ""})
    watch = ImportProgress()
    watch.on_progress = lambda *_: watch.stop.set()  # of the record, which is the first file
    with pytest.raises(ImportStopped):
        import_task(other, place, watch)
    assert left_in(other) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (6, b"\xff"),  # a version of the format that is not known
        (8, b"\x20"),  # a patch
        (8, b"\x40"),  # strong encryption
        (46, b"\0"),  # no name
    ],
)
def test_a_zip_of_an_unknown_form_is_refused(
    tmp_path: Path, other: Ledger, place: int, value: bytes
) -> None:
    file = packed(tmp_path / "a.zip", task_with())
    data = bytearray(file.read_bytes())
    at = data.index(b"PK\1\2") + place
    file.write_bytes(data[:at] + value + data[at + 1 :])
    with pytest.raises(ImportRefused):
        import_task(other, file, ImportProgress())
    assert left_in(other) == []


def test_a_list_of_files_that_is_too_long_is_not_read(
    tmp_path: Path, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_import, "MOST_LIST", 100)
    with pytest.raises(ImportRefused, match="list of its files is too long"):
        import_task(other, packed(tmp_path / "a.zip", task_with(a="", b="")), ImportProgress())


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "A"), ("a/b/c", "a/B"), ("a/b/c", "a")])
def test_a_file_with_the_name_of_a_folder_is_refused(
    tmp_path: Path, other: Ledger, names: tuple[str, str]
) -> None:
    place = packed(tmp_path / "a.zip", task_with(**dict.fromkeys(names, "x")))
    with pytest.raises(ImportRefused, match="the same name"):
        import_task(other, place, ImportProgress())


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_with_the_name_of_a_lock_is_left_out(
    tmp_path: Path, other: Ledger, name: str
) -> None:
    import_task(
        other, packed(tmp_path / "a.zip", task_with(**{f"{name}/x": "y"})), ImportProgress()
    )
    assert sorted(files_of(other.root, ID)) == ["events.jsonl", "meta.json"]
    assert not (other.root / ID / name).is_dir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_without_a_writer_is_refused(tmp_path: Path, other: Ledger) -> None:
    os.mkfifo(tmp_path / "a.zip")
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(import_task, other, tmp_path / "a.zip", ImportProgress())
        try:
            assert isinstance(refused.exception(5.0), ImportRefused)
        finally:
            os.close(os.open(tmp_path / "a.zip", os.O_RDWR | os.O_NONBLOCK))  # ends a wait


def test_a_name_that_is_too_long_for_a_disk_is_refused(tmp_path: Path, other: Ledger) -> None:
    with pytest.raises(ImportRefused, match="not allowed"):
        import_task(
            other, packed(tmp_path / "a.zip", task_with(**{"ä" * 150: "x"})), ImportProgress()
        )


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=4))
def test_no_name_leads_out_of_the_folder_of_the_task(parts: list[str]) -> None:
    entry = zipfile.ZipInfo("x")
    entry.filename = "/".join([ID, *parts])
    top, *rest = entry.filename.split("/")
    if top != ID or not task_import._may_be_unpacked(entry, tuple(rest)):
        return
    place = os.path.normpath(os.path.join("/ledger", *rest))
    assert place == "/ledger/" + "/".join(rest)
    assert place.startswith("/ledger/")


def test_octask_imports_each_file_and_names_those_that_it_cannot(
    zipped: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    foreign = tmp_path / "notes.zip"
    foreign.write_text("no zip")
    words = [sys.executable, "-m", "engine.cli", "import", str(foreign), str(zipped), "--json"]
    environ = {**os.environ, "HOME": str(home), "USERPROFILE": str(home)}
    environ.pop("OPENCHROME_TASK_ROOT", None)
    done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)
    refused, made = json.loads(done.stdout)
    assert (done.returncode, refused["error"]["code"]) == (1, "import_refused")
    root = home / ".openchrome" / "tasks"
    assert status_in(root, made["task_id"]) == Status.COMPLETED
    again = subprocess.run(words[:-1], capture_output=True, text=True, env=environ, check=False)
    assert "in this ledger already" in again.stderr
