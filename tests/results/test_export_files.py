"""Exported files are complete or absent, and existing files stay."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from engine.export import output
from engine.export.exporter import FORMATS, ExportProgress, Order, export_file
from engine.export.exports import Exports
from engine.export.output import (
    ExportExists,
    ExportFailed,
    ExportRefused,
    ExportStopped,
    ResultDamaged,
)
from tests.results.conftest import page


def exported(ledger, task_id: str, place: Path, form: str = "csv", *, force: bool = False):
    return export_file(ledger, Order(task_id, form), place, ExportProgress(), force=force)


def raises(error: Exception):
    def fail(*_: object, **__: object):
        raise error

    return fail


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_leaves_its_file_and_nothing_else(ledger, crawled, tmp_path, form) -> None:
    out = tmp_path / "out"
    out.mkdir()
    made = exported(ledger, crawled(page(1), page(2)), out / f"a.{form}", form)
    assert os.listdir(out) == [f"a.{form}"]
    assert (made.rows, made.partial, made.path) == (2, False, str(out / f"a.{form}"))


def test_a_file_that_is_there_is_kept_unless_it_may_be_replaced(ledger, crawled, tmp_path) -> None:
    task_id, place = crawled(page(1)), tmp_path / "a.csv"
    place.write_text("mine")
    with pytest.raises(ExportExists):
        exported(ledger, task_id, place)
    assert place.read_text() == "mine"
    exported(ledger, task_id, place, force=True)
    assert place.read_text().startswith("url,")


@pytest.mark.parametrize(("damaged", "said"), [(1, "1 damaged line"), (2, "2 damaged lines")])
def test_an_export_says_how_many_damaged_lines_it_could_not_read(
    ledger, crawled, tmp_path, damaged, said
) -> None:
    task_id = crawled(page(1), page(2), page(3), page(4))
    place = ledger.root / task_id / "pages.jsonl"
    whole = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(b'{"url": "http://si\n' * damaged + b"".join(whole[damaged:]))
    made = exported(ledger, task_id, tmp_path / "a.csv")
    assert made.rows == 4 - damaged
    assert [note for note in made.notes if note.startswith(said)]


@pytest.mark.parametrize("links", [True, False])
def test_a_concurrent_file_is_kept(ledger, crawled, tmp_path, monkeypatch, links) -> None:
    """Also on a file system without hard links, where the place is taken another way."""
    if not links:
        monkeypatch.setattr(os, "link", raises(OSError(errno.EPERM, "no links here")))
    place = tmp_path / "out.csv"
    watch = ExportProgress(on_progress=lambda *_: place.write_text("quicker") and None)
    with pytest.raises(ExportExists):
        export_file(ledger, Order(crawled(page(1)), "csv"), place, watch)
    assert place.read_text() == "quicker"
    assert sorted(os.listdir(tmp_path)) == ["home", "out.csv"]


def test_exports_work_without_hard_links(ledger, crawled, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "link", raises(OSError(errno.EPERM, "no links here")))
    exported(ledger, crawled(page(1)), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("url,")


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_that_is_stopped_leaves_no_file(ledger, crawled, tmp_path, form) -> None:
    out = tmp_path / "out"
    out.mkdir()
    watch = ExportProgress()
    watch.on_progress = lambda rows, *_: watch.stop.set() if rows else None
    task_id = crawled(*(page(n) for n in range(30)))
    with pytest.raises(ExportStopped):
        export_file(ledger, Order(task_id, form), out / "a", watch)
    assert os.listdir(out) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_result_leaves_no_half_file(ledger, with_result, tmp_path, form) -> None:
    out = tmp_path / "out"
    out.mkdir()
    rows = ",".join('{"url": "http://site.test/"}' for _ in range(1_100))
    task_id = with_result("crawl", f'{{"pages": [{rows}, {{"url"'.encode())
    with pytest.raises(ResultDamaged):
        exported(ledger, task_id, out / "a", form)
    assert os.listdir(out) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_full_disk_leaves_no_file(ledger, crawled, tmp_path, monkeypatch, form, call) -> None:
    out = tmp_path / "out"
    out.mkdir()
    task_id = crawled(page(1))
    monkeypatch.setattr(os, call, raises(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(ExportFailed, match="No space left"):
        exported(ledger, task_id, out / "a", form)
    assert os.listdir(out) == []


def test_a_full_disk_fails_a_workbook(ledger, crawled, tmp_path, monkeypatch) -> None:
    import zipfile

    monkeypatch.setattr(zipfile.ZipFile, "write", raises(OSError(errno.ENOSPC, "disk full")))
    with pytest.raises(ExportFailed, match="disk full"):
        exported(ledger, crawled(page(1)), tmp_path / "a.xlsx", "xlsx")
    assert os.listdir(tmp_path) == ["home"]


def test_workbooks_leave_no_temporary_file(ledger, crawled, tmp_path, monkeypatch) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    watch = ExportProgress()
    watch.on_progress = lambda rows, *_: watch.stop.set() if rows else None
    task_id = crawled(*(page(n) for n in range(5)))
    exported(ledger, task_id, tmp_path / "a.xlsx", "xlsx")
    with pytest.raises(ExportStopped):
        export_file(ledger, Order(task_id, "xlsx"), tmp_path / "b.xlsx", watch)
    assert os.listdir(place) == []


def test_a_place_that_is_none_is_refused(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    with pytest.raises(ExportRefused, match="a folder"):
        exported(ledger, task_id, tmp_path, force=True)
    with pytest.raises(ExportFailed):
        exported(ledger, task_id, tmp_path / "no" / "folder" / "a.csv")
    assert not (tmp_path / "no").exists()


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="a device of POSIX systems")
def test_a_device_is_never_replaced(ledger, crawled) -> None:
    with pytest.raises(ExportRefused, match="no regular file"):
        exported(ledger, crawled(page(1)), Path("/dev/null"), force=True)


def test_nothing_is_exported_into_the_ledger(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    result = ledger.root / task_id / "result.json"
    before = result.read_bytes()
    (tmp_path / "way").symlink_to(ledger.root / task_id)
    for place in (result, ledger.root / "a.csv", tmp_path / "way" / "result.json"):
        with pytest.raises(ExportRefused, match="inside the ledger"):
            exported(ledger, task_id, place, force=True)
    assert result.read_bytes() == before


def test_a_link_of_the_users_own_leads_to_the_file(ledger, crawled, tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.csv").write_text("old")
    (tmp_path / "a.csv").symlink_to(tmp_path / "real" / "a.csv")
    exported(ledger, crawled(page(1)), tmp_path / "a.csv", force=True)
    assert (tmp_path / "a.csv").is_symlink()
    assert (tmp_path / "real" / "a.csv").read_text().startswith("url,")


def test_exporting_changes_nothing_in_the_ledger(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))

    def state() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in (ledger.root / task_id).iterdir() if p.is_file()}

    before = state()
    for form in FORMATS:
        exported(ledger, task_id, tmp_path / f"a.{form}", form)
    assert state() == before


async def test_who_leaves_an_export_leaves_no_thread_writing(ledger, crawled, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    began, loop = asyncio.Event(), asyncio.get_running_loop()
    watch = ExportProgress()

    def told(*_: object) -> None:
        loop.call_soon_threadsafe(began.set)
        watch.stop.wait(60)

    watch.on_progress = told
    order = Order(crawled(page(1), page(2), page(3)), "csv")
    work = asyncio.create_task(Exports(ledger.root).to_file(order, out / "a.csv", watch=watch))
    await began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert watch.stop.is_set()
    await loop.shutdown_default_executor()
    assert os.listdir(out) == []


def test_staging_happens_beside_the_place(ledger, crawled, tmp_path, monkeypatch) -> None:
    """A rename from another disk would copy, and could break off in the middle."""
    staged: list[str] = []
    put = output._publish

    def seen(source, *rest):
        staged.append(str(source))
        put(source, *rest)

    monkeypatch.setattr(output, "_publish", seen)
    exported(ledger, crawled(page(1)), tmp_path / "a.csv")
    assert Path(staged[0]).parent == tmp_path


def test_a_name_may_be_as_long_as_the_system_takes(ledger, crawled, tmp_path) -> None:
    place = tmp_path / ("\U0001f600" * 62 + ".csv")  # 252 bytes
    export_file(ledger, Order(crawled(page(1)), "csv"), place, ExportProgress())
    assert place.exists()
    assert not [*tmp_path.glob(".export-*")]


def test_a_name_with_a_nul_is_refused(ledger, crawled, tmp_path) -> None:
    with pytest.raises(ExportRefused, match="NUL"):
        export_file(ledger, Order(crawled(page(1)), "csv"), tmp_path / "a\0b.csv", ExportProgress())
