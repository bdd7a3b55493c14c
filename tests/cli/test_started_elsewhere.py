"""`octask rerun`, `retry` and `resume` with `--cluster` and `--remote-browser`, as `start`.

The cluster is one of the test's own loop, with the program's page server behind it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.model.errors import InvalidArguments
from engine.sample.site import Answer
from engine.verbs.verb_table import VERBS
from tests.cluster.dask_peers import cluster
from tests.support.engines import opened
from tests.support.octask import FAST, Octask

CRAWL = (*FAST, "--retries", "0", "--max-depth", "1", "--max-pages", "4")
COMMANDS = {
    "task_name": "look",
    "task_intention": "to look",
    "commands": [
        {
            "tool_name": "browser_navigate",
            "intention": "to open it",
            "args": {"action": "goto", "url": "http://127.0.0.1:9/", "timeout": 150_000},
        }
    ],
}


@asynccontextmanager
async def workers() -> AsyncIterator[str]:
    """The address of a cluster with one worker, whose name is `one`."""
    async with cluster() as found:
        await found.add("one")
        yield found.address


async def octask(home: Path, *words: str, code: int = 0) -> str:
    """Run the command line while the loop serves the cluster."""
    return await asyncio.to_thread(partial(Octask(home), *words, code=code))


async def crawled(home: Path, *words: str, code: int = 0) -> tuple[str, set[str]]:
    """Run a command that starts a crawl; return its id, and the workers that loaded its pages."""
    record = json.loads(await octask(home, *words, "--json", code=code))
    pages = (home / "tasks" / record["task_id"] / "pages.jsonl").read_text().splitlines()
    assert pages
    return record["task_id"], {json.loads(page).get("worker", "") for page in pages}


def stored(home: Path, task_id: str) -> dict[str, Any]:
    record = json.loads((home / "tasks" / task_id / "meta.json").read_bytes())
    args: dict[str, Any] = record["args_summary"]
    return args


def tasks(home: Path) -> set[str]:
    return {path.name for path in (home / "tasks").iterdir() if path.name[0] != "."}


@pytest.mark.parametrize(
    ("verb", "more"),
    [("rerun", ()), ("retry", ()), ("resume", ("--max-pages", "6"))],
    ids=["rerun", "retry", "resume"],
)
async def test_a_crawl_goes_on_where_the_option_says(
    home: Path, site: Any, verb: str, more: tuple[str, ...]
) -> None:
    site.answers = {"/static/2": Answer(b"no", 404)}
    async with workers() as address:
        first, where = await crawled(home, "start", "crawl", f"{site.url}/static/", *CRAWL)
        assert where == {""}
        site.answers = {}
        second, where = await crawled(home, verb, first, *more, "--cluster", address)
        # A resumed crawl keeps the pages that this machine loaded.
        assert where == ({"", "one"} if verb == "resume" else {"one"})
        assert stored(home, second)["cluster"] == address
        # What the task ran with is kept, until an option says otherwise.
        third, where = await crawled(home, "rerun", second)
        assert (where, stored(home, third)["cluster"]) == ({"one"}, address)
        _, where = await crawled(home, "rerun", third, "--cluster", "none")
        assert where == {""}


async def test_a_background_task_goes_where_the_option_says(home: Path, site: Any) -> None:
    site.answers = {"/static/2": Answer(b"no", 404)}
    async with workers() as address:
        first, _ = await crawled(home, "start", "crawl", f"{site.url}/static/", *CRAWL)
        site.answers = {}
        second = (await octask(home, "retry", first, "--cluster", address, "--detach")).strip()
        await octask(home, "wait", second)
    assert stored(home, second)["cluster"] == address
    pages = (home / "tasks" / second / "pages.jsonl").read_text().splitlines()
    assert {json.loads(page)["worker"] for page in pages} == {"one"}


async def test_the_default_cluster_loads_the_pages_of_a_task_that_names_none(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers() as address:
        first, _ = await crawled(home, "start", "crawl", site.url, *CRAWL)
        monkeypatch.setenv("OC_CLUSTER", address)
        second, where = await crawled(home, "rerun", first)
        assert where == {"one"}
        assert "cluster" not in stored(home, second)
        third, where = await crawled(home, "rerun", second, "--cluster", "none")
        assert where == {""}
        _, where = await crawled(home, "rerun", third)
        assert where == {""}


@pytest.mark.thorough("detached")
@pytest.mark.parametrize("more", [(), ("--detach",)], ids=["here", "detached"])
async def test_what_start_refuses_is_refused_by_name(
    home: Path, site: Any, more: tuple[str, ...]
) -> None:
    start = ("start", "crawl", site.url, *CRAWL)
    crawl, _ = await crawled(home, *start)
    archived, _ = await crawled(home, *start, "--archive", "warc", "--engine", "browser")
    before = tasks(home)
    there = ("--cluster", "tcp://127.0.0.1:9", *more)
    said = await octask(home, "rerun", archived, *there, code=2)
    assert "archive: does not go with a cluster" in said
    for verb in (("rerun",), ("resume", "--max-pages", "9")):
        said = await octask(home, *verb, crawl, "--cluster", "head:8786", *more, code=2)
        assert "cluster: must be tcp://HOST:PORT" in said
    said = await octask(home, "rerun", crawl, "--remote-browser", "tls://a.example", *more, code=2)
    assert "remote_browser" in said
    assert tasks(home) == before


async def test_commands_have_no_cluster_and_a_remote_browser_needs_its_token(home: Path) -> None:
    async with opened(home) as engine:
        started = await engine.requests.start("commands", COMMANDS)
        await engine.commands.cancel(started.task_id)
        await engine.tasks.wait(started.task_id, 100_000)
    before = tasks(home)
    said = await octask(home, "rerun", started.task_id, "--cluster", "local:1", code=2)
    assert "cluster" in said
    there = ("rerun", started.task_id, "--remote-browser", "tls://a.example")
    assert "remote_browser" in (said := await octask(home, *there, code=2))
    assert "OC_BROWSER_TOKEN is not set" in said
    assert "needs tls://" in await octask(home, *there[:-1], "tcp://10.0.0.5:1", code=2)
    assert tasks(home) == before


@pytest.mark.parametrize("route", ["mcp", "http"])
async def test_programs_do_not_start_a_task_again_on_a_cluster(
    home: Path, site: Any, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers() as address:
        there, _ = await crawled(home, "start", "crawl", site.url, *CRAWL, "--cluster", address)
        monkeypatch.setenv("OC_CLUSTER", address)
        async with opened(home) as engine:
            with pytest.raises(InvalidArguments, match="cluster: is for the operator"):
                await engine.requests.rerun(there, route=route)
            with pytest.raises(InvalidArguments, match="cluster: is for the operator"):
                await engine.requests.resume(there, changes={"max_pages": 9}, route=route)
    verbs = [VERBS[name] for name in ("rerun", "retry", "resume")]
    offered = {param.name for verb in verbs for param in verb.params}
    assert not offered & {"cluster", "remote_browser"}
