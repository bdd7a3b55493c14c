"""The packed archive is what its specification says, also of a file that a kill has cut."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.archive.exchange import MAX_BODY_BYTES, Exchange
from engine.archive.task_archive import FILE_NAME, TaskArchive, cleaned
from engine.archive.wacz import About, Page, captures, surt, write_wacz
from engine.archive.warc_members import members, whole_size
from engine.secrets.given_secrets import Hidden, Scrub
from tests.archive.conftest import records

HTML = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "1")]
ONE = Exchange(
    url="https://user:word@www.Example.com/Path/?b=2&a=1#part",
    method="GET",
    request_headers=[(":path", "/"), ("Accept", "*/*"), ("Cookie", "sid=1")],
    status=200,
    headers=[*HTML, ("Set-Cookie", "sid=1"), ("Transfer-Encoding", "chunked")],
    at_ms=1_700_000_000_123,
    body=b"<p>text</p>",
)


class Written:
    """An archive in memory."""

    def __init__(self, secrets: list[Hidden] | None = None) -> None:
        self.data = bytearray()
        self.archive = TaskArchive(self._append, Scrub(secrets or []))

    async def _append(self, name: str, data: bytes) -> None:
        assert name == FILE_NAME
        self.data += data

    @property
    def file(self) -> io.BytesIO:
        return io.BytesIO(bytes(self.data))


async def written(*exchanges: Exchange, secrets: list[Hidden] | None = None) -> Written:
    made = Written(secrets)
    for one in exchanges:
        await made.archive.record(one)
    return made


def packed(made: Written, pages: list[Page]) -> tuple[zipfile.ZipFile, Any]:
    out = io.BytesIO()
    told = write_wacz(out, made.file, pages, About("A title", "2026-01-01T00:00:00Z"), _quiet)
    return zipfile.ZipFile(out), told


def _quiet(*_: int) -> None:
    pass


async def test_the_parts_are_those_of_the_specification_with_their_digests() -> None:
    made = await written(ONE, replace(ONE, url="https://example.com/second", body=b"<p>2</p>"))
    address = "https://www.Example.com/Path/?b=2&a=1"
    pages = [Page((f"{address}#part",), "First", True), Page(("https://gone.example/",), "", False)]
    archive, told = packed(made, pages)
    assert (told.records, told.pages, told.missing) == (2, 1, 1)
    stored = {one.filename: one.compress_type == zipfile.ZIP_STORED for one in archive.infolist()}
    assert stored == {
        "archive/data.warc.gz": True,
        "indexes/index.cdx.gz": True,
        "indexes/index.idx": True,
        "pages/pages.jsonl": False,
        "datapackage.json": False,
        "datapackage-digest.json": False,
    }
    description = archive.read("datapackage.json")
    package = json.loads(description)
    assert (package["profile"], package["wacz_version"]) == ("data-package", "1.1.1")
    assert package["mainPageUrl"] == f"{address}#part"
    for one in package["resources"]:
        data = archive.read(one["path"])
        assert one["bytes"] == len(data)
        assert one["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert json.loads(archive.read("datapackage-digest.json")) == {
        "path": "datapackage.json",
        "hash": f"sha256:{hashlib.sha256(description).hexdigest()}",
    }
    head, page = map(json.loads, archive.read("pages/pages.jsonl").splitlines())
    assert head["format"] == "json-pages-1.0"
    assert (page["ts"], page["title"], page["seed"]) == ("2023-11-14T22:13:20.123Z", "First", True)


async def test_the_index_leads_to_each_record() -> None:
    made = await written(ONE, replace(ONE, url="https://example.com/second", body=b"other"))
    archive, _ = packed(made, [])
    lines = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
    assert lines == sorted(lines)
    warc = archive.read("archive/data.warc.gz")
    for line in lines:
        key, stamp, fields = line.split(" ", 2)
        place = json.loads(fields)
        begin, size = int(place["offset"]), int(place["length"])
        record = gzip.decompress(warc[begin : begin + size]).decode()
        assert record.startswith("WARC/1.1\r\n")
        assert f"WARC-Target-URI: {place['url']}\r\n" in record
        assert (key, stamp) == (surt(place["url"]), "20231114221320")
    meta, *parts = archive.read("indexes/index.idx").decode().splitlines()
    assert json.loads(meta.removeprefix("!meta 0 "))["format"] == "cdxj-gzip-1.0"
    assert [part.split(" ")[0] for part in parts] == [lines[0].split(" ")[0]]


async def test_a_large_index_has_parts_that_can_be_read_alone() -> None:
    made = await written(*(replace(ONE, url=f"https://a.example/{n:04}") for n in range(1_100)))
    archive, _ = packed(made, [])
    index = archive.read("indexes/index.cdx.gz")
    found = []
    for line in archive.read("indexes/index.idx").decode().splitlines()[1:]:
        place = json.loads(line.split(" ", 2)[2])
        part = index[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == f"sha256:{hashlib.sha256(part).hexdigest()}"
        found.append(len(gzip.decompress(part).splitlines()))
    assert found == [1_024, 76]


@pytest.mark.parametrize("cut", [1, 200])
async def test_a_cut_last_member_is_left_out(cut: int) -> None:
    made = await written(ONE, replace(ONE, url="https://example.com/second", body=b"other"))
    whole = bytes(made.data)
    *_, last = members(made.file)
    made.data = made.data[:-cut]
    assert whole_size(made.file) == last.offset
    archive, told = packed(made, [])
    assert told.records == 2
    assert archive.read("archive/data.warc.gz") == whole[: last.offset]


async def test_logins_credentials_and_hop_headers_are_not_written(tmp_path: Path) -> None:
    made = await written(ONE)
    (tmp_path / "x").write_bytes(made.data)
    _, response, request = records(tmp_path / "x")
    assert response.url == "https://www.Example.com/Path/?b=2&a=1"
    assert response.http == {
        "content-type": "text/html; charset=utf-8",
        "x-orig-content-length": "1",
        "x-orig-transfer-encoding": "chunked",
        "content-length": "11",
    }
    assert request.http == {"host": "www.Example.com", "accept": "*/*"}
    assert request.line == "/Path/?b=2&a=1 HTTP/1.1"


@pytest.mark.parametrize(
    ("charset", "secret"),
    [("utf-8", "Grün-Wört"), ("latin-1", "Grün-Wört"), ("utf-16", "plainly"), ("koi8-r", "слово9")],
)
def test_a_given_secret_is_masked_in_every_character_set(charset: str, secret: str) -> None:
    scrub = Scrub([Hidden(secret, "[redacted]")])
    body = f"<p>it is {secret}.</p>".encode(charset)
    headers = [("Content-Type", f"text/html; charset={charset}")]
    assert cleaned(body, headers, scrub).decode(charset) == "<p>it is [redacted].</p>"
    picture = [("Content-Type", "image/png")]
    assert cleaned(body, picture, scrub) == body


async def test_a_body_above_the_limit_is_cut_and_says_so(tmp_path: Path) -> None:
    made = await written(replace(ONE, body=b"x" * (MAX_BODY_BYTES + 9)))
    (tmp_path / "x").write_bytes(made.data)
    response = records(tmp_path / "x")[1]
    assert response.warc["WARC-Truncated"] == "length"
    assert len(response.body) == MAX_BODY_BYTES


async def test_a_record_whose_caller_goes_away_while_it_waits_is_counted() -> None:
    made = Written()
    held = asyncio.Event()
    append = made._append

    async def slow(name: str, data: bytes) -> None:
        await held.wait()
        await append(name, data)

    made.archive = TaskArchive(slow, Scrub([]))
    first = asyncio.create_task(made.archive.record(ONE))
    second = asyncio.create_task(made.archive.record(ONE))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    held.set()
    await first
    assert made.archive.summary()["left_out"] == 1
    assert made.archive.summary()["bytes"] == len(made.data)


async def test_an_answer_that_fills_the_archive_is_counted_once_if_its_caller_goes_away() -> None:
    made, told = Written(), asyncio.Event()

    async def tell() -> None:
        told.set()
        await asyncio.Event().wait()

    made.archive = TaskArchive(made._append, Scrub([]), most_bytes=1, on_full=tell)
    recording = asyncio.create_task(made.archive.record(ONE))
    await told.wait()
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    summary = made.archive.summary()
    assert (summary["left_out"], summary["over_limit"]) == (1, 1)


async def test_a_post_is_found_by_its_body() -> None:
    json_type, form = "application/json", "application/x-www-form-urlencoded"
    asked = [
        (json_type, b'{"q": "wren", "more": [1, {"q": true}]}', "q=wren&more=1&q.2_=true"),
        (form, b"q=a+b&c=", "q=a+b&c="),
        ("application/octet-stream", b"\x00\xff", "__wb_post_data=AP8="),
    ]
    for content_type, body, query in asked:
        given = [("Content-Type", content_type)]
        made = await written(
            replace(
                ONE, method="POST", request_headers=given, request_body=body, url="http://a.b/c"
            )
        )
        (found,) = captures(made.file, "data.warc.gz", _quiet)
        assert found.fields["requestBody"] == query
        assert found.key == surt(f"http://a.b/c?__wb_method=POST&{query}")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://example.com/", "com,example)/"),
        ("https://www2.Example.com/Path/?b=2&a=1", "com,example)/path/?a=1&b=2"),
        ("http://a.example:8080/x?", "example,a:8080)/x"),
        ("http://127.0.0.1:80/", "1,0,0,127:80)/"),
        ("urn:x", "urn:x"),
    ],
)
def test_keys_are_written_as_replay_programs_search_them(url: str, key: str) -> None:
    assert surt(url) == key


async def test_a_reason_and_headers_that_no_record_can_hold_end_no_crawl() -> None:
    made = await written(
        replace(ONE, status=404, reason="N\u00e3o \udce9"),
        replace(ONE, url="https://example.com/\udce9", headers=[("X-\udce9", "\udce9")]),
    )
    summary = made.archive.summary()
    assert summary["records"] + 2 * summary["left_out"] >= 5
    made.archive.check()


@pytest.mark.parametrize("charset", ["punycode", "idna", "rot13", "nonsense", "hex"])
def test_a_site_chooses_no_codec_beside_those_of_the_web(charset: str) -> None:
    secret = Scrub([Hidden("s3cr3t-t0ken", "***")])
    headers = [("Content-Type", f"text/html; charset={charset}")]
    assert cleaned(b"a s3cr3t-t0ken b", headers, secret) == b"a *** b"


async def test_a_page_that_was_tried_again_is_shown_as_it_was_the_last_time() -> None:
    first = replace(ONE, url="https://example.com/a", status=503, at_ms=1_700_000_000_000)
    made = await written(first, replace(first, status=200, at_ms=1_700_000_100_000, body=b"later"))
    archive, _ = packed(made, [Page(("https://example.com/a",), "A", True)])
    page = json.loads(archive.read("pages/pages.jsonl").splitlines()[1])
    assert page["ts"].startswith("2023-11-14T22:15")
