"""Private places that an operator wrote among the start addresses of a crawl, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.context import written_places
from engine.model.records import Status
from engine.sample.site import Answer, Request
from engine.service.admission import Terms
from tests.support.engines import opened
from tests.support.serving import served

MORE = {"engine": "static", "delay_ms": 0, "respect_robots": False, "scope": "**"}


def other(asked: Request) -> Answer:
    return Answer(b"<title>other</title>text")


async def pages_of(home: Path, args: dict[str, Any], terms: Terms) -> dict[str, str]:
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, 150_000)
    assert ended.status in {Status.COMPLETED, Status.FAILED}
    result = json.loads((home / "tasks" / record.task_id / "result.json").read_bytes())
    return {one["url"]: one.get("error", one.get("title", "")) for one in result["pages"]}


async def test_further_start_addresses_on_another_private_port_are_crawled(
    home: Path, site: Any
) -> None:
    with served(other) as more, served(other) as linked:
        site.answers["/p"] = Answer(f"<title>p</title><a href={linked}/>x</a>".encode())
        args = {"url": f"{site.url}/p", "urls": [f"{more}/ok"], **MORE}
        pages = await pages_of(home, args, Terms())
    assert pages.pop(f"{more}/ok") == "other"
    assert pages.pop(f"{site.url}/p") == "p"
    (told,) = pages.values()
    assert "private address" in told, "a link names no place"


@pytest.mark.parametrize("route", ["mcp", "http"])
async def test_requests_from_outside_name_no_private_place(
    home: Path, site: Any, route: Any
) -> None:
    args = {"url": f"{site.url}/p", "urls": [f"{site.url}/q"], **MORE}
    pages = await pages_of(home, args, Terms(route=route))
    assert len(pages) == 2
    assert all("private address" in told for told in pages.values())


def test_only_addresses_and_localhost_are_places_that_stay_where_they_are() -> None:
    urls = ["http://10.0.0.1/a", "http://10.0.0.1/b", "http://localhost:81/", "http://intra.test/"]
    assert written_places(urls) == ("http://10.0.0.1:80", "http://localhost:81")
