"""Each kind that opens pages opens none outside of its task's `allowedDomains`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.model.records import Status
from engine.sample.site import Answer
from engine.service.admission import Terms
from tests.support.engines import opened

pytestmark = pytest.mark.usefixtures("kept_browser")


def args_of(kind: str, url: str) -> dict[str, Any]:
    if kind == "commands":
        return commands_of(("browser_navigate", {"action": "goto", "url": url}))
    if kind == "oc_evidence_bundle":
        return {"url": url, "include": ["dom"]}
    if kind == "recording":
        return {"url": url, "headless": True, "duration_ms": 2_000}
    return {
        "objective": "o",
        "current_step": "s",
        "next_actions": ["n"],
        "tabs": [{"url": url}],
        "visit": True,
    }


KINDS = ["commands", "oc_evidence_bundle", "recording", "oc_session_snapshot"]


@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_opens_a_page_outside_of_its_domains(
    home: Path, site: Any, kind: str
) -> None:
    site.answers["/p"] = Answer(b"<title>t</title>text")
    terms = Terms(policy={"allowedDomains": ["elsewhere.test"]})
    async with opened(home) as engine:
        args = args_of(kind, f"{site.url}/p")
        record = await engine.requests.start(kind, args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, 150_000)
    assert not site.hits
    told = [
        one.read_bytes() for one in (home / "tasks" / record.task_id).iterdir() if one.is_file()
    ]
    assert b"not one of the task's allowed domains" in b"".join(told)
    if kind == "oc_evidence_bundle":  # it has no part, so nothing was counted
        assert ended.error is not None
        assert ended.error.code == "domain_blocked"
    elif kind != "recording":
        assert ended.budget_exceeded == ["allowedDomains"]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_opens_the_pages_of_its_domains(home: Path, site: Any, kind: str) -> None:
    site.answers["/p"] = Answer(b"<title>t</title>text")
    terms = Terms(policy={"allowedDomains": ["127.0.0.1"]})
    async with opened(home) as engine:
        args = args_of(kind, f"{site.url}/p")
        record = await engine.requests.start(kind, args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, 150_000)
    assert ended.status == Status.COMPLETED
    assert site.hits
    assert not ended.budget_exceeded


def commands_of(*steps: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    commands = [{"tool_name": name, "intention": "i", "args": args} for name, args in steps]
    return {"task_name": "n", "task_intention": "i", "commands": commands, **more}


async def test_a_pattern_of_an_address_opens_none(home: Path, site: Any) -> None:
    site.answers["/p"] = Answer(b"<title>t</title>text")
    terms = Terms(policy={"allowedDomains": ["127.0.0.1"]}, enforce=True)
    args = commands_of(
        ("browser_navigate", {"action": "goto", "url": f"{site.url}/p"}),
        ("browser_navigate", {"action": "wait_for", "url": "**/p"}),
    )
    async with opened(home) as engine:
        record = await engine.requests.start("commands", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, 150_000)
    assert ended.status == Status.COMPLETED, ended.error
    assert not ended.budget_exceeded


async def test_the_domains_of_a_task_hold_for_a_kept_browser_while_the_task_runs(
    home: Path, site: Any
) -> None:
    site.answers["/p"] = Answer(b"<title>t</title>text")
    here = f"{site.url.replace('127.0.0.1', 'localhost')}/p"
    async with opened(home) as engine:

        async def ran(args: dict[str, Any], *domains: str) -> str:
            policy = {"allowedDomains": list(domains)} if domains else None
            record = await engine.requests.start("commands", args, terms=Terms(policy=policy))
            return (await engine.tasks.wait(record.task_id, 150_000)).status

        def opening(url: str) -> dict[str, Any]:
            step = ("browser_navigate", {"action": "goto", "url": url})
            return commands_of(step, instanceId=instance_id)

        launch = ("browser_instance", {"action": "launch"})
        goto = ("browser_navigate", {"action": "goto", "url": here})  # a place that it may reach
        assert await ran(commands_of(launch, goto), "localhost") == Status.COMPLETED
        (instance_id,) = [one.id for one in engine.instances.living()]
        assert await ran(opening(here), "127.0.0.1") == Status.FAILED
        assert await ran(opening(here)) == Status.COMPLETED
        assert await ran(opening(here), "localhost") == Status.COMPLETED


async def test_a_task_that_ends_at_a_left_domain_says_so(home: Path, site: Any) -> None:
    terms = Terms(policy={"allowedDomains": ["elsewhere.test"]}, enforce=True)
    args = {"url": site.url, "engine": "static", "delay_ms": 0}
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, 150_000)
    assert ended.error is not None
    assert ended.error.code == "BUDGET_EXCEEDED"
    assert "(allowedDomains)" in ended.error.message
