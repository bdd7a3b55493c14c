"""The values of a task's own headers are in none of its files, for every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from engine.model.errors import InvalidArguments
from engine.model.records import TaskRecord
from engine.sample.site import Answer, Request
from engine.service.forms import abilities
from engine.service.rerun import RequestHidden
from tests.support.engines import opened
from tests.support.heard_requests import Listener, two_sites
from tests.support.octask import run_as_text
from tests.support.serving import running
from tests.support.written_files import contents
from tests.trust.planted import unpacked

TOKEN: Final = "Zq7Winter%20+/=&<'\"9"
NAME: Final = "TOKEN_OF_SITE"
HEADERS: Final = [f"Authorization: Bearer env:{NAME}", "X-Team: Zq7Winter-blue"]
BY_NAME: Final = [f"Authorization: Bearer env:{NAME}", f"X-Key: env:{NAME}"]
FAST: Final = {"delay_ms": 0, "max_pages": 3, "retries": 0}
PICTURED: Final = {**FAST, "screenshot": "all"}
PARTS: Final = ["dom", "screenshot", "network", "console"]


class Echo(Listener):
    """Every answer repeats the headers in markup, scripts, addresses and headers."""

    def _answer(self, request: Request) -> Answer:
        super()._answer(request)
        sent = {name.lower(): value for name, value in request.headers.items()}
        if request.path == "/robots.txt":
            return Answer(b"", 404)
        told = " ".join(sent.get(name, "") for name in ("authorization", "x-team", "x-key"))
        if request.path.endswith(".xml"):
            page = f"{self.url}/one?p={quote(told)}"
            return Answer(f"<urlset><url><loc>{page}</loc></url></urlset>".encode())
        code = json.dumps(told).replace("<", "\\u003c")
        body = f"""<!doctype html><title>{escape(told)}</title><h1>{escape(told)}</h1>
          <a href="/two?q={quote(told)}">more</a><script>console.log({code});
          fetch("/echo?" + encodeURIComponent({code})).catch(() => 0)</script>"""
        headers = (("X-Echo", told), ("X-Other", quote(told)))
        return Answer(body.encode(), 500 if "two" in request.path else 200, headers=headers)


@pytest.fixture
def echo() -> Iterator[Echo]:
    with running(Echo()) as made:
        yield made


def requests(front: str) -> dict[str, tuple[str, dict[str, Any]]]:
    page = f"{front}/one"
    snapshot = {"objective": "go on", "visit": True, "tabs": [page]}
    return {
        "static": ("crawl", {"url": page, "engine": "static", **FAST}),
        "browser": ("crawl", {"url": page, "output_format": "structured", **PICTURED}),
        "auto": ("crawl", {"url": page, "engine": "auto", **FAST}),
        "sitemap": ("crawl_sitemap", {"sitemap_url": f"{front}/s.xml", "engine": "static", **FAST}),
        "evidence": ("oc_evidence_bundle", {"url": page, "include": PARTS}),
        "snapshot": ("oc_session_snapshot", snapshot),
        "recording": ("recording", {"url": page, "headless": True, "duration_ms": 400}),
    }


def leaks(home: Path) -> list[str]:
    found = []
    for path, packed in sorted(contents(home).items()):
        datas = unpacked(packed)
        found += [f"{path.name}: {data[:400]!r}" for data in datas if b"Zq7Winter" in data]
    return found


@pytest.mark.usefixtures("kept_browser")
@pytest.mark.parametrize("which", requests("http://x.test"))
async def test_headers_are_sent_not_stored(home: Path, echo: Echo, which: str) -> None:
    kind, args = requests(echo.url)[which]
    async with opened(home, environ={NAME: f"{TOKEN}\n"}) as engine:
        started = await engine.requests.start(kind, {**args, "headers": HEADERS})
        await engine.tasks.join(started.task_id)
        record = (await engine.tasks.get(started.task_id)).entry
        assert isinstance(record, TaskRecord)
        assert record.args_summary["headers"] == [HEADERS[0], "X-Team: [redacted]"]
        with pytest.raises(RequestHidden):
            await engine.requests.asked(started.task_id)
    assert echo.header("/one", "authorization") == f"Bearer {TOKEN}"
    assert echo.header("/one", "x-team") == "Zq7Winter-blue"
    assert leaks(home) == []


async def test_a_task_with_references_alone_can_be_repeated(home: Path, echo: Echo) -> None:
    kind, args = requests(echo.url)["static"]
    async with opened(home, environ={NAME: TOKEN}) as engine:
        started = await engine.requests.start(kind, {**args, "headers": BY_NAME})
        await engine.tasks.join(started.task_id)
        asked = await engine.requests.asked(started.task_id)
        assert asked.args["headers"] == BY_NAME
        assert abilities(asked).secrets == (NAME,)
        echo.heard.clear()
        again = await engine.requests.rerun(started.task_id)
        await engine.tasks.join(again.task_id)
    assert echo.header("/one", "x-key") == TOKEN
    assert leaks(home) == []


async def test_a_variable_that_is_missing_or_not_allowed_starts_nothing(
    home: Path, echo: Echo
) -> None:
    kind, args = requests(echo.url)["static"]
    given = {**args, "headers": [f"X-Key: env:{NAME}"]}
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start(kind, given)
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("headers[0]", "missing_secret")
    async with opened(home, environ={NAME: TOKEN}, route="mcp") as engine:
        with pytest.raises(InvalidArguments, match="not allowed to programs"):
            await engine.requests.start(kind, given)
    assert echo.heard == []


async def test_a_retry_sends_them_to_the_first_site_alone(home: Path) -> None:
    with two_sites() as (own, other):
        own["/"] = f"<a href=/broken>1</a><a href={other.url}/broken>2</a>"
        own["/broken"] = other["/broken"] = Answer(b"no", 500)
        options = {"engine": "static", **FAST, "scope": "**"}
        async with opened(home, environ={NAME: TOKEN}) as engine:
            given = {"url": own.url, **options, "headers": [f"X-Key: env:{NAME}"]}
            started = await engine.requests.start("crawl", given)
            await engine.tasks.join(started.task_id)
            remainder = await engine.requests.remainder(started.task_id)
            (taken,) = [remainder.whole]
            # A policy of this machine alone would refuse the other site, which is private.
            pages = [f"{other.url}/broken", f"{own.url}/broken"]
            args = {**taken.args, "url": pages[0], "urls": [pages[1]], "max_pages": 2}
            own.heard.clear()
            retried = await engine.requests.start("crawl", args)
            await engine.tasks.join(retried.task_id)
            assert args["header_origins"] == [own.url]
        assert other.header("/broken", "x-key") is None
        assert other.with_header("x-key") == set()


def test_a_secret_is_not_taken_from_the_command_line(home: Path) -> None:
    given = ("start", "crawl", "http://127.0.0.1:9/", "--home", str(home), "--headers")
    refused = run_as_text(*given, f"Authorization: Bearer {TOKEN}")
    assert refused.returncode == 2
    assert "as env:NAME" in refused.stderr
    assert "Zq7Winter" not in refused.stdout + refused.stderr
    for mistyped in ("X-Api-Key Zq7Winter", "Authorization Bearer Zq7Winter:x"):
        refused = run_as_text(*given, mistyped)
        assert refused.returncode == 2
        assert 'must have the form "Name: value"' in refused.stderr
        assert "Zq7Winter" not in refused.stdout + refused.stderr
    unknown = run_as_text(*given, f"X-Key: env:{NAME}")
    assert unknown.returncode == 2
    assert NAME in unknown.stderr
    assert leaks(home) == []
