"""Blocked requests are events of the task, once for each place, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.egress.egress_policy import Policy
from engine.kinds.context import telling
from engine.model.config import Settings
from engine.model.errors import LedgerUnusable
from engine.sample.site import Answer, Request
from engine.service.engine import Engine
from fixtures.hostile.site import HostileSite
from tests.support.line_files import whole_lines
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

LIMIT_MS = 150_000


def told(home: Path, task_id: str) -> list[dict[str, Any]]:
    events = whole_lines(Path(home, "tasks", task_id, "events.jsonl"))
    logs = (event["data"] for event in events if event["kind"] == "log")
    return [data for data in logs if data["phase"] == "egress"]


async def done(home: Path, kind: str, args: dict[str, Any]) -> list[dict[str, Any]]:
    """The refusals in the events of one task, run to its end."""
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        task = await engine.requests.start(kind, args)
        await engine.tasks.wait(task.task_id, LIMIT_MS)
        return told(home, task.task_id)
    finally:
        await engine.close()


@pytest.mark.case("R61", "R65")
@pytest.mark.parametrize("kind", ["crawl", "oc_evidence_bundle", "commands"])
async def test_blocked_requests_are_one_event(home: Path, trap: HostileSite, kind: str) -> None:
    url = f"{trap.url}/reach/fetch"
    # What stands literally in a command task may be reached by it, so here it does not.
    script = """fetch('http://169.254.169.254/').catch(() => fetch('/redirect/canary'))
        .catch(() => 'refused')"""
    args: dict[str, dict[str, Any]] = {
        "crawl": {"url": url, "max_pages": 1, "engine": "browser"},
        "oc_evidence_bundle": {"url": url, "include": ["dom"]},
        "commands": {
            "task_name": "A try",
            "task_intention": "To look around",
            "commands": [
                _command("browser_navigate", {"action": "goto", "url": url}),
                _command("browser_execute", {"action": "evaluate", "script": script}),
            ],
        },
    }
    events = await done(home, kind, args[kind])
    places = [event["place"] for event in events]
    assert len(places) == len(set(places))
    assert trap.canary in places
    first = events[places.index(trap.canary)]
    assert first["note"] == f"Refused {trap.canary}: private address"
    assert first["reason"] == "private address"
    if kind == "commands":
        assert "169.254.169.254:80" in places
    assert trap.canary_hits == []


def _command(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"tool_name": tool, "intention": tool, "args": args}


async def test_the_static_engine_tells_it_as_well(home: Path, trap: HostileSite) -> None:
    links = f"<a href='/1'>1</a><a href='http://{trap.canary}/a'>c</a>"

    def answer(request: Request) -> Answer:
        if request.path == "/1":
            return Answer(b"", 302, "", (("Location", f"http://user:secret@{trap.canary}/"),))
        return Answer(f"<title>t</title>{links}".encode())

    with served(answer) as url:
        args = {"url": f"{url}/", "engine": "static", "max_pages": 5}
        events = await done(home, "crawl", args)
    assert [event["note"] for event in events] == [f"Refused {trap.canary}: private address"]


async def test_a_listener_hears_all_that_was_refused_before_its_block_ends() -> None:
    context, policy = MemoryContext(), Policy(None)
    async with telling(context, policy):
        for number in range(50):
            policy.blocked_requests.note(f"10.0.0.{number}:80", "private address")
    assert len(context.notes) == 50
    policy.blocked_requests.note("10.0.0.1:80", "private address")
    assert len(context.notes) == 50


async def test_an_event_that_cannot_be_written_ends_the_block_but_hides_no_other_error() -> None:
    class Full(MemoryContext):
        async def log(self, phase: str, note: str, **data: object) -> None:
            raise LedgerUnusable(path="/x", reason="disk full")

    policy = Policy(None)
    with pytest.raises(LedgerUnusable):
        async with telling(Full(), policy):
            policy.blocked_requests.note("10.0.0.1:80", "private address")
    policy.blocked_requests.note("10.0.0.1:80", "private address")
    with pytest.raises(ZeroDivisionError):
        async with telling(Full(), policy):
            policy.blocked_requests.note(f"10.0.0.{1 // 0}:80", "private address")
