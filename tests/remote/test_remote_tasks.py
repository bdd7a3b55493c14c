"""Command tasks, recordings and snapshots with a browser of another machine."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.remote.remote_address import LOOPBACK_HOSTS, browser_address
from engine.model.errors import InvalidArguments
from engine.model.records import Status, TaskRecord
from engine.service.admission import admit
from engine.service.engine import Engine
from tests.remote.conftest import TOKEN, engine_at, lending, until
from tests.support.line_files import whole_lines
from tests.support.octask import Octask
from tests.support.written_files import contents

WAIT_MS = 180_000


def commands(url: str, **fields: Any) -> dict[str, Any]:
    def do(tool: str, action: str, **args: Any) -> dict[str, Any]:
        given = {"action": action, "timeout": 150_000, **args}
        return {"tool_name": tool, "intention": f"to {action}", "args": given}

    return {
        "task_name": "order",
        "task_intention": "to order a thing",
        "commands": [
            do("browser_navigate", "goto", url=f"{url}/shop/order"),
            do("browser_interact", "click", selector="text=By bird"),
            do("browser_content", "screenshot"),
            do("browser_content", "get_text", selector="main"),
            do("browser_execute", "evaluate", script="return location.pathname"),
        ],
        **fields,
    }


async def run(engine: Engine, kind: str, args: dict[str, Any]) -> TaskRecord:
    started = await engine.requests.start(kind, args)
    ended = await engine.tasks.wait(started.task_id, WAIT_MS)
    await engine.tasks.join(started.task_id)
    return ended


def result_of(home: Path, record: TaskRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (home / "tasks" / record.task_id / "result.json").read_bytes()
    )
    return found


def mistakes(error: pytest.ExceptionInfo[InvalidArguments]) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in error.value.problems]


async def test_commands_find_there_what_they_find_here(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        found = []
        for fields in ({}, {"remote_browser": lent.address}):
            record = await run(engine, "commands", commands(site.url, **fields))
            assert record.status == Status.COMPLETED
            done = result_of(home, record)["commands"]
            found.append([one["result"] for one in done if "path" not in str(one["result"])])
            pictures = [*(home / "tasks" / record.task_id).glob("artifacts/*.png")]
            assert len(pictures) == 1
        assert found[0] == found[1]
        assert lent.news == ["began"]


async def test_a_recording_there_has_the_same_actions(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        args = {"url": f"{site.url}/shop/order", "headless": True, "remote_browser": lent.address}
        started = await engine.requests.start("recording", args)
        pages = home / "tasks" / started.task_id / "pages.jsonl"
        await until(lambda: whole_lines(pages))
        (instance,) = engine.instances.living()
        await instance.pages[0].get_by_label("As a gift").click()
        await until(lambda: len(whole_lines(pages)) == 2)
        await engine.commands.stop(started.task_id)
        record = await engine.tasks.wait(started.task_id, WAIT_MS)
        await engine.tasks.join(started.task_id)
    assert record.status == Status.COMPLETED
    assert [one["type"] for one in result_of(home, record)["actions"]] == ["navigate", "check"]


@pytest.mark.thorough("*browser*")
@pytest.mark.parametrize("what", ["the connection is lost", "the browser ends"])
async def test_a_recording_says_how_it_lost_its_browser(home: Path, site: Any, what: str) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        args = {"url": f"{site.url}/shop/order", "headless": True, "remote_browser": lent.address}
        started = await engine.requests.start("recording", args)
        pages = home / "tasks" / started.task_id / "pages.jsonl"
        await until(lambda: whole_lines(pages))
        if what == "the browser ends":
            lent.session._browser._family.end()
        else:
            lent.session._writer.transport.abort()
        record = await engine.tasks.wait(started.task_id, WAIT_MS)
        await engine.tasks.join(started.task_id)
    head = result_of(home, record)
    assert [one["type"] for one in head["actions"]] == ["navigate"]
    if what == "the browser ends":  # as here, where a person closes the last window
        assert (record.status, head["stopped_by"]) == (Status.COMPLETED, "closed")
    else:
        assert record.status == Status.FAILED
        assert record.error is not None
        assert "the connection to it is lost" in record.error.message


async def test_a_snapshot_visits_its_addresses_there(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        args = {"objective": "to go on", "tabs": [f"{site.url}/shop/"], "visit": True}
        record = await run(
            engine,
            "oc_session_snapshot",
            {**args, "include_cookies": True, "remote_browser": lent.address},
        )
        (tab,) = result_of(home, record)["tabs"]
        assert lent.news == ["began"]
    assert (tab["status"], tab["visited"]) == (200, True)
    assert (home / "tasks" / record.task_id / tab["screenshot"]).is_file()


async def test_a_task_that_loses_its_browser_fails_with_that_reason(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        document = commands(site.url, remote_browser=lent.address)
        document["commands"][1]["args"] |= {"selector": "text=Never there"}
        started = await engine.requests.start("commands", document)
        pages = home / "tasks" / started.task_id / "pages.jsonl"
        await until(lambda: whole_lines(pages))  # the first command has ended
        lent.session._writer.transport.abort()
        record = await engine.tasks.wait(started.task_id, WAIT_MS)
        await engine.tasks.join(started.task_id)
        task = await engine.tasks.command_task(started.task_id)
    assert record.status == Status.FAILED
    assert task is not None
    assert task["error"]["code"] == "INSTANCE_DISCONNECTED"
    message = f"the connection to the browser server {lent.address} is lost"
    assert task["commands"][1]["error"]["message"] == message


async def test_the_token_is_in_no_file(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        await run(engine, "commands", commands(site.url, remote_browser=lent.address))
        wrong = engine_at(home, {"OC_BROWSER_TOKEN": TOKEN + "!"})
    async with lending() as lent, wrong as engine:
        record = await run(engine, "commands", commands(site.url, remote_browser=lent.address))
        assert record.error is not None
        assert "it has another token" in record.error.message
        assert lent.news == ["refused"]
    files = contents(home)
    assert len(files) > 5
    assert [path for path, data in files.items() if TOKEN.encode() in data] == []


@pytest.mark.thorough
async def test_a_task_is_started_again_with_the_browser_that_an_option_names(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = commands(site.url)
    document["commands"][1]["args"] |= {"selector": "text=Never there", "timeout": 300}
    async with lending() as lent:
        monkeypatch.setenv("OC_BROWSER_TOKEN", TOKEN)

        async def octask(*words: str) -> str:
            said = await asyncio.to_thread(partial(Octask(home), *words, "--json", code=1))
            return str(json.loads(said)["task_id"])

        async with engine_at(home, {}) as engine:
            first = await run(engine, "commands", document)
        assert (first.status, lent.news) == (Status.FAILED, [])
        second = await octask("retry", first.task_id, "--remote-browser", lent.address)
        assert lent.news.count("began") == 1
        third = await octask("rerun", second)  # keeps what the task ran with
        assert lent.news.count("began") == 2
        await octask("rerun", third, "--remote-browser", "none")
        again = home / "again.json"
        again.write_text(json.dumps({**document, "remote_browser": lent.address}))
        words = ("run", str(again), "--remote-browser", "none")
        await asyncio.to_thread(partial(Octask(home), *words, code=1))
        assert lent.news.count("began") == 2
    assert [path for path, data in contents(home).items() if TOKEN.encode() in data] == []


KINDS = {
    "commands": commands("http://127.0.0.1:1"),
    "recording": {"url": "http://127.0.0.1:1/", "headless": True},
    "oc_session_snapshot": {
        "objective": "to go on",
        "tabs": ["http://127.0.0.1:1/"],
        "visit": True,
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", ["mcp", "http"])
async def test_programs_from_outside_get_no_remote_browser(
    home: Path, kind: str, route: str
) -> None:
    async with engine_at(home, {"OC_BROWSER_TOKEN": TOKEN}, route=route) as engine:
        args = {**KINDS[kind], "remote_browser": "tls://a.example"}
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start(kind, args)
    assert mistakes(refused) == [("remote_browser", "not_allowed")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("token", ["", "short"])
async def test_without_a_token_nothing_starts(home: Path, kind: str, token: str) -> None:
    async with engine_at(home, {"OC_BROWSER_TOKEN": token}) as engine:
        args = {**KINDS[kind], "remote_browser": "tls://a.example"}
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start(kind, args)
    assert mistakes(refused) == [("remote_browser", "no_token")]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_mistake_in_the_address_is_refused(home: Path, kind: str) -> None:
    async with engine_at(home, {"OC_BROWSER_TOKEN": TOKEN}) as engine:
        for wrong in ("tcp://10.0.0.5:8790", "ws://a.example", "tls://a.example:0", 5):
            with pytest.raises(InvalidArguments) as refused:
                await engine.requests.start(kind, {**KINDS[kind], "remote_browser": wrong})
            assert {path for path, _ in mistakes(refused)} == {"remote_browser"}


async def test_a_snapshot_that_opens_nothing_needs_no_browser(home: Path) -> None:
    async with engine_at(home, {"OC_BROWSER_TOKEN": TOKEN}) as engine:
        args = {"objective": "to go on", "remote_browser": "tls://a.example"}
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("oc_session_snapshot", args)
    assert mistakes(refused) == [("remote_browser", "not_together")]


@pytest.mark.parametrize("kind", KINDS)
async def test_none_is_the_browser_of_this_machine(home: Path, kind: str) -> None:
    for route in ("mcp", "cli"):
        async with engine_at(home, {}, route=route) as engine:
            args = {**KINDS[kind], "remote_browser": "none"}
            found = admit(kind, args, tools=engine.requests._tools)
            assert found.parsed.remote_browser is None


async def test_an_open_browser_does_not_move(home: Path) -> None:
    async with engine_at(home, {"OC_BROWSER_TOKEN": TOKEN}) as engine:
        document = commands("http://127.0.0.1:1", remote_browser="tls://a.example")
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("commands", {**document, "instanceId": "inst_00000000"})
        here = {**document, "remote_browser": "none", "instanceId": "inst_00000000"}
        with pytest.raises(InvalidArguments) as refused_here:
            await engine.requests.start("commands", here)
    assert ("remote_browser", "contradiction") in mistakes(refused)
    assert "remote_browser" not in dict(mistakes(refused_here))


@given(st.text())
def test_an_address_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        found = browser_address(text)
        assert browser_address(str(found)) == found


@given(
    scheme=st.sampled_from(["tcp", "tls"]),
    host=st.sampled_from(["127.0.0.1", "[::1]", "localhost", "10.0.0.5", "a.example", "[fe80::1]"]),
    port=st.integers(1, 65_535),
)
def test_only_this_machine_is_used_without_encryption(scheme: str, host: str, port: int) -> None:
    text = f"{scheme}://{host}:{port}"
    if scheme == "tcp" and host.strip("[]") not in LOOPBACK_HOSTS:
        with pytest.raises(ValueError, match="not encrypted"):
            browser_address(text)
    else:
        assert str(browser_address(text)) == text


async def test_a_cancelled_task_leaves_its_browser_to_the_next_one(home: Path, site: Any) -> None:
    async with lending() as lent, engine_at(home, lent.environ) as engine:
        document = commands(site.url, remote_browser=lent.address)
        document["commands"][0]["args"] |= {"url": f"{site.url}/hang"}
        started = await engine.requests.start("commands", document)
        await until(lambda: site.hits["/hang"])
        await engine.commands.cancel(started.task_id)
        record = await engine.tasks.wait(started.task_id, WAIT_MS)
        assert record.status == Status.CANCELLED
        await engine.tasks.join(started.task_id)
        await until(lambda: not lent.session._listeners)
        assert lent.news == ["began"]
