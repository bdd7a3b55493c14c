"""A secret planted wherever one can be given reaches no file, no export, no answer, no log.

`metadata` alone is kept as it came: the seed promises it back untouched.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from engine.contracts.completing import force_of
from engine.export.exporter import FORMATS, Order
from engine.model.errors import EngineError
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.verbs.json_answers import described
from fixtures.site.site import Site
from tests.support.engines import opened
from tests.support.octask import FAST, Octask
from tests.support.written_files import contents

SECRET = "Xk7vQ9z2LmWp4Rt8"
FAST_ARGS = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 3}
SPELLINGS = (SECRET, quote(SECRET), "WGs3dlE5ejJMbVdwNFJ0OA", SECRET.encode().hex())

# Every way in which somebody gives a secret away without meaning to, inside any text.
GIVEN: dict[str, Callable[[str], str]] = {
    "user and password of an address": lambda s: f"see http://ann:{s}@site.test/page for it",
    "a token in an address": lambda s: f"http://site.test/page?access_token={s}&x=1",
    "a signature in a fragment": lambda s: f"http://site.test/page#id_token={s}",
    "a header": lambda s: f"Authorization: Bearer {s}",
    "a cookie": lambda s: f"Cookie: session={s}; theme=dark",
    "an assignment": lambda s: f"password={s}",
    "quoted JSON": lambda s: json.dumps({"api_key": s}),
    "a sentence": lambda s: f"the secret: {s}",
}


def leaks_in(data: bytes) -> list[str]:
    folded = data.lower()
    return [spelling for spelling in SPELLINGS if spelling.lower().encode() in folded]


def leaking(folder: Path) -> dict[str, list[str]]:
    files = contents(folder).items()
    found = {str(path.relative_to(folder)): leaks_in(data) for path, data in files}
    return {name: leaks for name, leaks in found.items() if leaks}


async def told(answers: list[object]) -> bytes:
    """What a face would be told: every answer, every error with its fields, as JSON."""
    plain = [
        described(one) | one.fields if isinstance(one, EngineError) else one for one in answers
    ]
    return msgspec.json.encode(plain, enc_hook=str)


async def tried(answers: list[object], call: Any) -> Any:
    """The answer of a call, or its refusal, kept for `told`."""
    try:
        answer = await call if hasattr(call, "__await__") else call()
    except EngineError as error:
        answer = error
    answers.append(answer)
    return answer


@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.case("R82")
async def test_what_is_said_about_tasks_and_goals_keeps_no_secret(
    home: Path, site: Site, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = GIVEN[way](SECRET)
    answers: list[object] = []
    async with opened(home) as engine:
        terms = Terms(objective=said, contract={"expected_total": 2, "stop_condition": said})
        crawl = await engine.requests.start(
            "crawl", {"url": site.url + "/hang", **FAST_ARGS}, name=said, terms=terms
        )
        answers += [crawl, await engine.commands.cancel(crawl.task_id, said)]
        answers.append(await engine.tasks.wait(crawl.task_id))
        wild = {"url": site.url, **FAST_ARGS, "include_patterns": [said]}
        await tried(answers, engine.requests.start("crawl", wild))
        await tried(answers, engine.requests.start("crawl", {"url": said}))
        await tried(answers, engine.requests.start(said, {"url": site.url}))
        await tried(answers, engine.tasks.get(said))
        await tried(answers, engine.tasks.list(query=f'"{said}" stat:x'))
        envelope = await engine.requests.start("browser_task", {}, terms=Terms(objective=said))
        answers.append(await engine.contracts.update(envelope.task_id, phase="act", note=said))
        await tried(answers, engine.contracts.update(envelope.task_id, phase=said))
        answers.append(await engine.contracts.finish(envelope.task_id, "failed", note=said))
        answers += goals_told(engine, said)
        for own in engine.own.task_ids:
            await engine.tasks.join(own)
        for view in await engine.tasks.list(limit=None):
            answers += [
                view,
                await engine.tasks.meta(view.task_id),
                await engine.tasks.events(view.task_id),
            ]
    assert not leaking(home)
    assert not leaks_in(await told(answers))
    assert not leaks_in(caplog.text.encode())


def goals_told(engine: Engine, said: str) -> list[object]:
    """Everything that a goal can be given a text in."""
    goals = engine.goals
    failed = [{"item": said, "reason": said}]
    run = goals.runs.start({"goal": said, "success_criteria": [said]}, {"items": [said, "b", "c"]})
    answers: list[object] = [run]
    steps: list[Callable[[], object]] = [
        lambda: goals.runs.update(run.run_id, {"completed_items": [said], "cursor": said}),
        lambda: goals.runs.update(run.run_id, {"current_cursor": said}),
        lambda: goals.runs.update(run.run_id, {"failed_items": failed}),
        lambda: goals.runs.update(run.run_id, {"status": said}),
        lambda: goals.runs.checkpoint(run.run_id, {"summary": said, "current_cursor": said}),
        lambda: goals.runs.needs_help(run.run_id, {"reason": said, "resume_hint": said}),
        lambda: goals.runs.update(run.run_id, {"status": "RUNNING", "resume_reason": said}),
        lambda: goals.contracts.start({"stop_condition": said, "item_key": said, "items": [said]}),
        lambda: goals.contracts.start({said: said}),
        lambda: goals.completing.run(run.run_id, {"status": "COMPLETED"}),
        lambda: goals.completing.run(run.run_id, {"status": "COMPLETED"}, force_of(said, "ann")),
        lambda: goals.runs.get(run.run_id, include_items=True, events=True),
    ]
    for step in steps:
        try:
            answers.append(step())
        except EngineError as error:
            answers.append(error)
    return [*answers, *goals.contracts.list()]


@pytest.fixture
def echo(site: Site) -> str:
    """A page's address with user and password, and with a token in its query."""
    front = site.url.replace("http://", f"http://ann:{SECRET}@")
    return f"{front}/static/1?access_token={SECRET}"


@pytest.mark.case("R82")
async def test_an_address_with_secrets_is_opened_and_stands_in_no_file_nor_export(
    home: Path, echo: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    out = tmp_path / "exports"
    out.mkdir()
    async with opened(home) as engine:
        terms = Terms(policy={"maxToolCalls": 2, "allowedDomains": ["127.0.0.1"]})
        done = await engine.requests.start("crawl", {"url": echo, **FAST_ARGS}, terms=terms)
        assert (await engine.tasks.wait(done.task_id)).status == "COMPLETED"
        gone = await engine.requests.start(
            "crawl", {"url": echo.replace("/static/1", "/status/500"), **FAST_ARGS}
        )
        await engine.tasks.wait(gone.task_id)
        for task_id in (done.task_id, gone.task_id):
            for form in FORMATS:
                await engine.exports.to_file(Order(task_id, form), out / f"{task_id}.{form}")
        answers: list[object] = [
            await engine.tasks.get(done.task_id),
            await engine.tasks.events(done.task_id),
        ]
    assert len(list(out.iterdir())) == 2 * len(FORMATS)
    assert not leaking(home)
    assert not leaking(out)
    assert not leaks_in(await told(answers))
    assert not leaks_in(caplog.text.encode())


@pytest.mark.case("R82")
def test_the_command_line_repeats_no_secret(octask: Octask, site: Site, echo: str) -> None:
    said = [octask("start", "crawl", echo, *FAST, "--max-pages", "1", "--name", f"token={SECRET}")]
    task_id = octask.tasks()[0]["task_id"]
    said += [
        octask("start", "crawl", f"ftp://ann:{SECRET}@x.test/", code=2),
        octask("start", "crawl", site.url, "--args", f'{{"password": "{SECRET}"}}', code=2),
        octask("get", task_id, "--json", "--result", "--events"),
        octask("get", task_id, "--result", "--events"),
        octask("list"),
        octask("watch", "--once"),
        octask("rerun", task_id, code=1),
        octask("export", task_id, "--format", "csv"),
        octask("runs", "list"),
    ]
    assert not leaks_in("".join(said).encode())
    assert not leaking(octask.home)


def test_the_search_for_leaks_can_find_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"x{SECRET.lower()}y")
    assert leaking(tmp_path) == {"a": [SECRET, quote(SECRET)]}
    assert all(re.search(SECRET, make(SECRET)) for make in GIVEN.values())
