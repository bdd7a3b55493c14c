"""The ledger away, its disk full, its owner killed, its record rewritten: two of these at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hard.rewriter import rewrite
from tests.support.endless_site import asked_pages, endless, run_out
from tests.support.line_files import whole_lines
from tests.support.octask import ENDLESS, LIMIT_S, Octask, said_until, until

# A page after the other, slowly: the crawl goes on until the test lets the site run out of pages.
CHAIN = ("--delay-ms", "400")  # of the hundred pages that a crawl goes deep


class Disk:
    """A disk of 384 KiB with a ledger, whose folder can be put aside and which can be filled."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place, place / "home"
        self.root, self.aside = self.home / "tasks", self.home / "aside"
        self.filler = place / "filler"

    def fill(self) -> None:
        with self.filler.open("ab", buffering=0) as file:
            size = 4096
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def free(self) -> None:
        self.filler.unlink()

    def away(self) -> None:
        self.root.rename(self.aside)

    def back(self) -> None:
        self.aside.rename(self.root)

    @property
    def folder(self) -> Path:
        (found,) = [one for one in self.root.iterdir() if one.name[0] != "."]
        return found

    def pages(self) -> list[str]:
        """What was kept; a line that a full disk cut off is none."""
        return [page["url"] for page in whole_lines(self.folder / "pages.jsonl")]

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "meta.json").read_bytes())
        return found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=384k,mode=0700", "none", str(place)]
    if os.name != "posix" or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.fixture
def octask(disk: Disk) -> Octask:
    return Octask(disk.home)


@pytest.fixture
def crawl(octask: Octask, disk: Disk, site: Any) -> Iterator[subprocess.Popen[str]]:
    """A crawl in the foreground that has two pages."""
    program = octask.start("start", "crawl", endless(site, links=1), *ENDLESS, *CHAIN)
    until(lambda: [*disk.root.glob("*/pages.jsonl")] and len(disk.pages()) >= 2)
    yield program
    program.kill()
    program.communicate()


def judge(disk: Disk, status: str) -> None:
    """Ended so, every page once, and each of them in the result."""
    assert disk.record()["status"] == status
    urls = disk.pages()
    assert len(urls) == len(set(urls))
    result = json.loads((disk.folder / "result.json").read_bytes())
    assert [page["url"] for page in result["pages"]] == urls


@pytest.mark.case("R99")
def test_a_full_disk_of_an_away_ledger(crawl: subprocess.Popen[str], disk: Disk, site: Any) -> None:
    assert crawl.stderr is not None
    disk.away()
    said = said_until(crawl.stderr, "The ledger folder is away, waiting.")
    disk.fill()
    disk.back()
    said += said_until(crawl.stderr, "No space left")
    disk.free()
    run_out(site)
    _, errors = crawl.communicate(timeout=LIMIT_S)
    assert "Traceback" not in said + errors
    ended = disk.record()
    if ended["status"] == "COMPLETED":
        assert len(disk.pages()) == asked_pages(site)
    else:
        assert "No space left" in ended["error"]["message"]
    judge(disk, ended["status"])


@pytest.mark.thorough("away")
@pytest.mark.case("R99")
@pytest.mark.parametrize("killed", ["away", "back"])
def test_a_program_killed_while_its_ledger_is_away_and_the_disk_full_is_reaped_with_its_pages(
    crawl: subprocess.Popen[str], disk: Disk, octask: Octask, killed: str
) -> None:
    assert crawl.stderr is not None
    disk.away()
    said_until(crawl.stderr, "The ledger folder is away, waiting.")
    disk.fill()
    if killed == "away":
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
        assert not disk.root.exists()
        assert "away, or was removed" in octask("reap", code=1)
        assert not disk.root.exists()
        disk.back()
    else:
        disk.back()
        said_until(crawl.stderr, "No space left on device. Waiting; the task goes on")
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
    kept = disk.pages()
    assert "Orphaned" in octask("list")
    assert "No space left" in octask("reap", code=1)
    assert disk.record()["status"] == "RUNNING"
    disk.free()
    octask("reap")
    judge(disk, "FAILED")
    assert disk.pages() == kept


@pytest.mark.case("R99")
def test_rewriting_an_away_record_loses_no_page(
    crawl: subprocess.Popen[str], disk: Disk, site: Any
) -> None:
    assert crawl.stderr is not None
    for _ in range(3):
        disk.away()
        folder = next(one for one in disk.aside.iterdir() if one.name[0] != ".")
        tool = threading.Thread(target=rewrite, args=(folder / "meta.json", 0.3))
        tool.start()
        said_until(crawl.stderr, "The ledger folder is away, waiting.")
        tool.join()
        disk.back()
        said_until(crawl.stderr, "The ledger folder is back")
    run_out(site)
    _, errors = crawl.communicate(timeout=LIMIT_S)
    assert "Traceback" not in errors
    judge(disk, "COMPLETED")
    assert len(disk.pages()) == asked_pages(site)
