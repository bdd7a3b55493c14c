"""kill -9 during a crawl leaves a file that can be read and packed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from engine.archive.warc_members import members, whole_size
from engine.export.exporter import Order
from fixtures.site.site import Site
from tests.archive.conftest import archive_of, records
from tests.hard.kill_program import ENDLESS, REPO, pages_of, wait_for
from tests.support.engines import opened


def killed_crawl(home: Path, url: str, bytes_written: int) -> str:
    """Kill a crawl once its archive has this size, and a page is stored; return its id."""
    args = json.dumps({"url": url, **ENDLESS, "archive": "warc"})
    command = [sys.executable, "-m", "engine.cli", "start", "crawl", "--args", args]
    program = subprocess.Popen(
        [*command, "--home", str(home)],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    root = home / "tasks"

    def written() -> list[Path]:
        found = root.glob("*/artifacts/archive.warc.gz")
        return [one for one in found if one.stat().st_size > bytes_written]

    try:
        wait_for(lambda: written() and pages_of(root))
        (file,) = written()
    finally:
        program.kill()
        program.wait()
    return file.parent.parent.name


async def test_a_killed_crawl_leaves_a_file_that_can_be_packed(
    home: Path, tmp_path: Path, site: Site
) -> None:
    task_id = killed_crawl(home, site.url, 30_000)
    file = archive_of(home, task_id)
    # A kill between two parts of one write.
    with file.open("rb") as warc:
        first = next(members(warc))
        warc.seek(0)
        torn = warc.read(first.length - 20)
        before = whole_size(warc)  # the kill itself may have come between two parts
    assert before > 0
    with file.open("ab") as warc:
        warc.write(torn)
    with file.open("rb") as warc:
        whole = whole_size(warc)
    assert whole == before
    async with opened(home) as engine:
        made = await engine.exports.to_file(Order(task_id, "wacz"), tmp_path / "x.wacz")
    assert made.partial
    assert made.rows > 0
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        (tmp_path / "x.warc.gz").write_bytes(archive.read("archive/data.warc.gz"))
    kept = records(tmp_path / "x.warc.gz")
    assert len([one for one in kept if one.kind == "response"]) >= made.rows
