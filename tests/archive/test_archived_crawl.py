"""A crawl keeps what its pages really received, without logins, and counts what it lacks."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.sitemap.sitemap_crawl import SitemapArgs, parse_sitemap
from engine.ledger.ledger import Ledger
from engine.model.errors import InvalidArguments, LedgerWriteFailed
from engine.model.records import Status, TaskRecord
from engine.service.engine import Engine
from tests.archive.conftest import Kept, archive_of, records
from tests.archive.rich_site import BIG_BYTES, CSS, HOME, RED, SECRET, Rich, png
from tests.support.engines import opened, until
from tests.support.line_files import whole_lines

CRAWL: dict[str, Any] = {"delay_ms": 0, "archive": "warc", "retries": 0, "max_pages": 20}


async def crawled(program: Engine, url: str, kind: str = "crawl", **more: Any) -> TaskRecord:
    record = await program.requests.start(kind, {"url": url, **CRAWL, **more})
    return await program.tasks.wait(record.task_id, 100_000)


def responses(kept: list[Kept], path: str) -> list[Kept]:
    return [one for one in kept if one.kind in ("response", "revisit") and one.url.endswith(path)]


def summary(home: Path, task_id: str) -> dict[str, Any]:
    found = json.loads((home / "tasks" / task_id / "result.json").read_text())["summary"]
    return dict(found)


async def test_the_browser_keeps_documents_and_all_that_they_load(home: Path, rich: Rich) -> None:
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/")
    assert task.status == Status.COMPLETED
    kept = records(archive_of(home, task.task_id))
    assert kept[0].kind == "warcinfo"
    (document,) = (one for one in kept if one.url == f"{rich.url}/" and one.kind == "response")
    assert (document.status, document.body) == ("200", HOME)
    assert "set-cookie" not in document.http
    assert document.warc["WARC-IP-Address"] == "127.0.0.1"
    bodies = {
        "/picture.png": png(64, 48, RED),
        "/site.css": CSS,
        "/font.woff2": b"wOF2" + bytes(200),
        "/data.json": b'{"words": "words that a script loaded"}',
        "/ask": b'answer to {"query":"wren","more":[1,2]}',
        "/robots.txt": b"User-agent: *\nAllow: /\n",
    }
    for path, body in bodies.items():
        first = responses(kept, path)[0]
        assert (path, first.status, first.body) == (path, "200", body)
    sheet = responses(kept, "/site.css")[0]
    assert sheet.http["x-orig-content-encoding"] == "gzip"
    assert sheet.http["content-length"] == str(len(CSS))
    assert "content-encoding" not in sheet.http
    (moved,) = responses(kept, "/moved")
    assert (moved.status, moved.http["location"], moved.body) == ("302", "/target", b"")
    (asked,) = (one for one in kept if one.kind == "request" and one.url.endswith("/ask"))
    assert asked.body == b'{"query":"wren","more":[1,2]}'
    assert asked.warc["WARC-Concurrent-To"] == responses(kept, "/ask")[0].warc["WARC-Record-ID"]
    told = summary(home, task.task_id)["archive"]
    size = archive_of(home, task.task_id).stat().st_size
    assert told == {
        "file": "artifacts/archive.warc.gz",
        "records": len(kept),
        "bytes": size,
        "left_out": 0,
    }


async def test_a_payload_that_was_received_before_is_a_revisit(home: Path, rich: Rich) -> None:
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/", concurrency=1)
    kept = records(archive_of(home, task.task_id))
    first, *later = responses(kept, "/site.css")
    assert rich.asked["/site.css"] == 1  # later ones came out of the browser's cache
    assert (first.kind, len(later) > 1) == ("response", True)
    assert {one.kind for one in later} == {"revisit"}
    assert later[0].body == b""
    assert later[0].warc["WARC-Refers-To-Target-URI"] == first.url
    assert later[0].warc["WARC-Refers-To-Date"] == first.warc["WARC-Date"]
    assert later[0].warc["WARC-Payload-Digest"] == first.warc["WARC-Payload-Digest"]
    assert later[0].warc["WARC-Profile"].endswith("1.1/revisit/identical-payload-digest")
    image, again = responses(kept, "/tagged.png")
    assert (image.status, again.status, again.body) == ("200", "304", b"")


async def test_the_static_engine_keeps_documents_redirects_and_robots(
    home: Path, rich: Rich
) -> None:
    rich.extra["/second"] = (200, {"Content-Type": "application/pdf"}, b"%PDF")
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/", engine="static")
    kept = records(archive_of(home, task.task_id))
    for path, body in (("/robots.txt", b"User-agent: *\nAllow: /\n"), ("/site.css", CSS)):
        assert responses(kept, path)[0].body == body
    (document,) = (one for one in kept if one.url == f"{rich.url}/" and one.kind == "response")
    assert document.body == HOME
    assert "set-cookie" not in document.http
    assert responses(kept, "/moved")[0].status == "302"
    told = summary(home, task.task_id)["archive"]
    assert (told["left_out"], told["unread"]) == (1, 1)


@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_an_archive_ends_at_its_limit_and_the_crawl_goes_on(
    home: Path, rich: Rich, engine_name: str
) -> None:
    noise = secrets.token_hex(2_000_000).encode()  # 2 MB when packed
    # In a comment: to lay out a word of 4 MB takes the browser up to its limit on a busy machine.
    body = b"<p>Second</p><!--" + noise + b"-->"
    rich.extra["/second"] = (200, {"Content-Type": "text/html"}, body)
    args: dict[str, Any] = {"engine": engine_name, "max_archive_mb": 1, "concurrency": 1}
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/", **args)
        events = await engine.tasks.events(task.task_id, 0)
    assert task.status == Status.COMPLETED
    file = archive_of(home, task.task_id)
    kept = records(file)
    assert responses(kept, "/")[0].body == HOME
    assert not responses(kept, "/second")
    told = summary(home, task.task_id)["archive"]
    assert told["bytes"] == file.stat().st_size < 1_000_000
    assert told["over_limit"] == told["left_out"] >= 1
    data = [one.data or {} for one in events.events]
    notes = [one["note"] for one in data if one.get("phase") == "archive"]
    assert notes == ["The web archive has reached 1 MB; later answers are left out"]


async def test_a_sitemap_crawl_keeps_the_sitemap_as_well(home: Path, rich: Rich) -> None:
    listed = f"<urlset><url><loc>{rich.url}/second</loc></url></urlset>".encode()
    rich.extra["/sitemap.xml"] = (200, {"Content-Type": "text/xml"}, listed)
    async with opened(home) as engine:
        task = await crawled(engine, rich.url, "crawl_sitemap", engine="static")
    kept = records(archive_of(home, task.task_id))
    assert responses(kept, "/sitemap.xml")[0].body == listed
    assert responses(kept, "/second")[0].status == "200"
    assert summary(home, task.task_id)["archive"]["records"] == len(kept)


@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_no_login_and_no_given_secret_is_in_the_file(
    home: Path, rich: Rich, engine_name: str
) -> None:
    rich.extra["/"] = (
        200,
        {"Content-Type": "text/html", "X-Echo": f"it is {SECRET}", "Set-Cookie": "sid=of-a-login"},
        f"<p>Your password is {SECRET}, or in an address <a href=/second?k={SECRET}>here</a></p>"
        "<img src=/tagged.png>".encode(),
    )
    place = rich.url.removeprefix("http://")
    async with opened(home) as engine:
        task = await crawled(engine, f"http://ann:{SECRET}@{place}/", engine=engine_name)
    assert task.status == Status.COMPLETED
    kept = records(archive_of(home, task.task_id))
    whole = repr([(one.url, one.line, one.http, one.warc, one.body) for one in kept])
    for secret in (SECRET, "of-a-login", "ann:", "Authorization", "authorization", "YW5uO"):
        assert secret not in whole, secret
    (document,) = (one for one in kept if one.url == f"{rich.url}/" and one.kind == "response")
    assert b"Your password is [redacted], or" in document.body
    assert document.http["x-echo"] == "it is [redacted]"
    assert responses(kept, "/second?k=[redacted]")


async def test_a_body_that_the_browser_does_not_give_out_is_counted(home: Path, rich: Rich) -> None:
    rich.extra["/big.bin"] = (200, {"Content-Type": "text/plain"}, bytes(BIG_BYTES) + b"end")
    rich.extra["/"] = (
        200,
        {"Content-Type": "text/html"},
        b"<p>Text</p><script>fetch('/big.bin').then(r => r.text())</script>",
    )
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/")
    told = summary(home, task.task_id)["archive"]
    kept = records(archive_of(home, task.task_id))
    assert (told["left_out"], told["unreadable"]) == (1, 1)
    assert not responses(kept, "/big.bin")
    assert responses(kept, "/")[-1].body.startswith(b"<p>Text")


async def test_an_answer_that_breaks_off_is_counted(home: Path, rich: Rich) -> None:
    rich.extra["/tagged.png"] = (200, {"Content-Type": "image/png", "X-Lacks": "9"}, png(9, 9, RED))
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/second", max_pages=1)
    told = summary(home, task.task_id)["archive"]
    # Chromium may ask once more, also when the page has been taken.
    assert 1 <= told["left_out"] == told["unfinished"] <= rich.asked["/tagged.png"]
    kept = records(archive_of(home, task.task_id))
    assert not responses(kept, "/tagged.png")


@pytest.mark.thorough
async def test_what_a_worker_loads_is_kept(home: Path, rich: Rich) -> None:
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/busy", max_pages=1, timeout_ms=60_000)
    kept = records(archive_of(home, task.task_id))
    assert responses(kept, "/worker.js")
    assert responses(kept, "/from-worker.txt")[0].body == b"for the worker"


async def test_without_the_option_there_is_no_file(home: Path, rich: Rich) -> None:
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/second", archive="none", max_pages=1)
    assert not archive_of(home, task.task_id).exists()
    assert "archive" not in summary(home, task.task_id)


async def test_a_resumed_crawl_goes_on_in_a_copy_of_the_file(home: Path, rich: Rich) -> None:
    async with opened(home) as engine:
        asked = {**CRAWL, "url": f"{rich.url}/", "engine": "static", "max_pages": 2}
        first = await engine.requests.start("crawl", {**asked, "delay_ms": 60_000})
        file = archive_of(home, first.task_id)
        await until(lambda: whole_lines(home / "tasks" / first.task_id / "pages.jsonl"))
        await engine.commands.cancel(first.task_id)
        await engine.tasks.wait(first.task_id, 100_000)
        before = records(file)
        assert len(before) >= 5
        whole = file.stat().st_size
        with file.open("ab") as torn:  # as a killed program leaves it
            torn.write(file.read_bytes()[:300])
        second = await engine.requests.resume(first.task_id)
        copy = archive_of(home, second.task_id)
        await until(lambda: copy.exists() and copy.stat().st_size > whole)
        await engine.commands.cancel(second.task_id)
        await engine.tasks.wait(second.task_id, 100_000)
    after = records(archive_of(home, second.task_id))
    assert [one.warc["WARC-Record-ID"] for one in after[: len(before)]] == [
        one.warc["WARC-Record-ID"] for one in before
    ]
    assert len(after) > len(before)
    told = summary(home, second.task_id)["archive"]
    assert told["bytes"] == archive_of(home, second.task_id).stat().st_size


@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_a_record_that_cannot_be_written_fails_the_crawl_with_the_reason(
    home: Path, rich: Rich, engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Ledger.append_artifact

    def full(ledger: Ledger, task_id: str, name: str, data: bytes) -> None:
        if rich.asked["/frame"]:  # a part of the page, whose own failures count for nothing
            raise LedgerWriteFailed(reason="No space left on device", path=name)
        append(ledger, task_id, name, data)

    monkeypatch.setattr(Ledger, "append_artifact", full)
    async with opened(home) as engine:
        task = await crawled(engine, f"{rich.url}/", max_pages=1, engine=engine_name)
    assert task.status == Status.FAILED
    assert task.error is not None
    assert "No space left on device" in task.error.message
    assert records(archive_of(home, task.task_id))


def test_an_archive_needs_images_fonts_and_media() -> None:
    for parse in (parse_crawl, parse_sitemap):
        given = {"url": "https://example.com/", "archive": "warc"}
        with pytest.raises(InvalidArguments) as refused:
            parse({**given, "block_resources": True})
        assert [one.path for one in refused.value.problems] == ["block_resources"]
        read = parse(given)
        pages = read.pages if isinstance(read, SitemapArgs) else read
        assert pages.block_resources is False
    assert parse_crawl({"url": "https://example.com/"}).block_resources is True
