"""The list of tasks, a part of a result, and whole folders as files."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from engine.export.exporter import FORMATS, Comparison, ExportProgress, Order
from engine.export.exports import Exports
from engine.export.output import ExportExists, ExportRefused, ExportStopped
from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from engine.results.unit_filter import UnitFilter
from engine.results.units import Difference, Differences
from tests.results.conftest import page

VIEWS = [
    TaskView(
        TaskRecord(
            "a" * 16,
            "crawl",
            "FAILED",
            created_at=1_780_000_000_000,
            started_at=1_780_000_000_500,
            ended_at=1_780_000_002_000,
            args_summary={"url": "http://user:pw@site.test/?token=abc"},
            error=ErrorInfo("=HYPERLINK(1)", "X"),
            engine=EngineFields(name="weekly", client="=cmd()", route="mcp"),
        ),
        units=Units(41, 120, failed=3),
    ),
    TaskView(Unreadable("b" * 16, "not valid JSON", "/x")),
]


async def written(ledger, views, form: str, place: Path, **more):
    return await Exports(ledger.root).list_to_file(views, Order("", form), place, **more)


@pytest.mark.parametrize("form", FORMATS)
async def test_a_list_is_written_in_every_format(ledger, tmp_path, form) -> None:
    done = await written(ledger, VIEWS, form, tmp_path / f"list.{form}")
    assert (done.rows, (tmp_path / f"list.{form}").stat().st_size > 100) == (2, True)


async def test_a_row_of_the_list_holds_no_formula_and_no_secret(ledger, tmp_path) -> None:
    await written(ledger, VIEWS, "csv", tmp_path / "list.csv")
    with (tmp_path / "list.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["done"], first["total"], first["duration_ms"]) == ("41", "120", "1500")
    assert first["error"] == "'=HYPERLINK(1)"
    assert (first["client"], first["route"]) == ("'=cmd()", "mcp")
    assert "pw" not in first["url"]
    assert "abc" not in first["url"]
    assert (second["status"], second["error"]) == ("unreadable", "not valid JSON")


async def test_a_row_of_the_list_names_the_host_of_the_site_and_the_machine_that_ran_it(
    ledger, tmp_path
) -> None:
    args = ({"url": "http://ann:pw@site.test:81/x"}, {"sitemap_url": "https://map.test/s.xml"})
    views = [
        TaskView(
            TaskRecord(f"{n}" * 16, "crawl", args_summary=one, engine=EngineFields(host="vm7"))
        )
        for n, one in enumerate(args)
    ]
    await written(ledger, views, "csv", tmp_path / "list.csv")
    with (tmp_path / "list.csv").open(newline="") as file:
        rows = [(row["host"], row["machine"], row["url"]) for row in csv.DictReader(file)]
    assert [row[:2] for row in rows] == [("site.test:81", "vm7"), ("map.test", "vm7")]
    assert rows[1][2] == "https://map.test/s.xml"


def compared(*, loaded_all: bool = True) -> Comparison:
    found = (
        Difference("changed", "=http://a.test/", "200 · T", "404"),
        Difference("removed", "http://b.test/", "200 · T"),
    )
    all_ = Differences(found, added=0, removed=1, changed=1, same=7)
    return Comparison("d" * 16, VIEWS[0], all_, found, loaded_all)


@pytest.mark.parametrize("form", FORMATS)
async def test_differences_are_written_in_every_format(ledger, tmp_path, form) -> None:
    place, exports = tmp_path / f"diff.{form}", Exports(ledger.root)
    done = await exports.comparison_to_file(compared(), Order("", form), place)
    assert (done.rows, done.partial, place.stat().st_size > 50) == (2, False, True)


async def test_exported_differences_state_what_may_be_missing(ledger, tmp_path) -> None:
    place, exports = tmp_path / "diff.csv", Exports(ledger.root)
    done = await exports.comparison_to_file(compared(loaded_all=False), Order("", "csv"), place)
    assert done.partial
    assert ["may still exist" in note for note in done.notes] == [True]
    with place.open(newline="") as file:
        first, _ = csv.DictReader(file)
    assert first["item"] == "'=http://a.test/"


async def test_differences_are_not_written_into_a_ledger(ledger) -> None:
    with pytest.raises(ExportRefused):
        await Exports(ledger.root).comparison_to_file(
            compared(), Order("", "csv"), ledger.root / "diff.csv"
        )


async def test_no_task_of_a_list_took_less_than_no_time(ledger, tmp_path) -> None:
    orphan = TaskRecord(
        "c" * 16,
        "crawl",
        "FAILED",
        created_at=1_780_000_000_000,
        last_activity_at=1_780_000_000_000,
        started_at=1_780_000_000_019,
        ended_at=1_780_000_060_000,
        error=ErrorInfo("orphaned: process 7 is gone", "orphaned"),
    )
    await written(ledger, [TaskView(orphan)], "jsonl", tmp_path / "list.jsonl")
    (row,) = map(json.loads, (tmp_path / "list.jsonl").read_text().splitlines())
    assert row["duration_ms"] == 0


async def test_a_list_does_not_replace_a_file_unless_told(ledger, tmp_path) -> None:
    place = tmp_path / "list.csv"
    place.write_text("mine")
    with pytest.raises(ExportExists):
        await written(ledger, VIEWS, "csv", place)
    with pytest.raises(ExportRefused):
        await written(ledger, VIEWS, "csv", ledger.root / "list.csv", force=True)
    assert place.read_text() == "mine"


async def test_a_list_that_is_stopped_leaves_nothing(ledger, tmp_path) -> None:
    watch = ExportProgress()
    watch.stop.set()
    with pytest.raises(ExportStopped):
        await written(ledger, VIEWS, "jsonl", tmp_path / "list.jsonl", watch=watch)
    assert list(tmp_path.glob("*list*")) == []


async def test_only_what_passes_the_filter_is_written(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1), page(2, status=404, error="HTTP 404"), page(3))
    wanted = UnitFilter.of(frozenset({"4xx"}), "", by_answer=True)
    place = tmp_path / "part.jsonl"
    watch = ExportProgress(keep=wanted.wants)
    done = await Exports(ledger.root).to_file(Order(task_id, "jsonl"), place, watch=watch)
    assert done.rows == 1
    assert json.loads(place.read_text())["url"] == "http://site.test/2"


async def test_a_folder_becomes_a_zip_without_locks_and_links(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    folder = ledger.root / task_id
    (folder / "artifacts").mkdir()
    (folder / "artifacts" / "shot.png").write_bytes(b"\x89PNG" + bytes(3_000_000))
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (folder / "link.txt").symlink_to(secret)
    told: list[tuple[int, int]] = []
    watch = ExportProgress(lambda _, done, size: told.append((done, size)))
    place = tmp_path / "task.zip"
    await Exports(ledger.root).to_file(Order(task_id, "zip"), place, watch=watch)
    with zipfile.ZipFile(place) as archive:
        names = {name.removeprefix(f"{task_id}/") for name in archive.namelist()}
        assert archive.testzip() is None
    assert names == {
        "meta.json",
        "events.jsonl",
        "pages.jsonl",
        "result.json",
        "artifacts/shot.png",
    }
    assert told[-1][0] == told[-1][1]


async def test_a_zip_has_no_login_of_a_snapshot_and_says_so(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    artifacts = ledger.root / task_id / "artifacts"
    artifacts.mkdir()
    for name in ("session-state.json", "session-state-2.json", "tab-001.png"):
        (artifacts / name).write_text("s3Tk9wQz71LmX0")
    place = tmp_path / "task.zip"
    done = await Exports(ledger.root).to_file(Order(task_id, "zip"), place)
    with zipfile.ZipFile(place) as archive:
        inside = [name.rpartition("/")[2] for name in archive.namelist()]
    assert "tab-001.png" in inside
    assert not [name for name in inside if name.startswith("session-state")]
    assert done.rows == len(inside)
    assert done.notes == [
        "A sign-in is left out and stays in the task's folder: "
        "artifacts/session-state-2.json, artifacts/session-state.json."
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every file name is text")
async def test_a_file_whose_name_is_no_text_is_packed_as_well(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    artifacts = ledger.root / task_id / "artifacts"
    artifacts.mkdir()
    (artifacts / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"coffee")
    place = tmp_path / "task.zip"
    await Exports(ledger.root).to_file(Order(task_id, "zip"), place)
    with zipfile.ZipFile(place) as archive:
        assert archive.read(f"{task_id}/artifacts/caf%E9.txt") == b"coffee"


async def test_a_zip_that_is_left_leaves_no_half_file(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    out = tmp_path / "out"
    out.mkdir()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told(*_: int) -> None:
        loop.call_soon_threadsafe(begun.set)
        watch.stop.wait(60)

    watch = ExportProgress(told)
    work = asyncio.create_task(
        Exports(ledger.root).to_file(Order(task_id, "zip"), out / "task.zip", watch=watch)
    )
    await begun.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    async with asyncio.timeout(60):
        while list(out.iterdir()):
            await asyncio.sleep(0.01)
