"""How command tasks end: by an error, a cancel, a browser that dies or is not there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.driver import alive
from engine.browser.interact import command_target, command_tools
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.browser.conftest import command
from tests.commands.command_states import FOREVER, instance_options, running, states, until
from tests.commands.conftest import Opening, do
from tests.support.far_limits import keep_own_limits


def living() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if alive(one)]


def browser_of(process: psutil.Process) -> psutil.Process:
    """Chromium's main process below `process`."""
    return next(
        each
        for each in process.children(recursive=True)
        if "--type=" not in (line := " ".join(command(each))) and "--user-data-dir=" in line
    )


async def test_the_first_error_ends_the_task_and_the_rest_is_skipped(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_own_limits(monkeypatch)
    async with opened() as booth:
        record = await booth.start(
            do("goto", url=f"{site.url}/static/1"),
            do("click", selector="#none", timeout=3_000),
            do("screenshot"),
            do("reload"),
        )
        ended = await booth.engine.tasks.wait(record.task_id)
        found = await booth.look(record.task_id)
        folder = booth.folder(record.task_id)
    assert states(found) == ["success", "error", "skipped", "skipped"]
    assert (found["status"], found["currentCommandIndex"]) == ("failed", 1)
    assert found["error"]["commandId"] == f"{found['id']}_cmd_1" == found["commands"][1]["id"]
    assert (found["error"]["code"], ended.status) == ("COMMAND_TIMEOUT", "FAILED")
    assert ended.error is not None
    assert (ended.error.code, ended.error.message) == (
        "COMMAND_TIMEOUT",
        "command 2 of 4 (to click): not done within 3 s: #none (there is no such element)",
    )
    assert ended.engine is not None
    assert ended.engine.units is not None
    assert (ended.engine.units.done, ended.engine.units.failed) == (2, 1)
    assert "startedAt" not in found["commands"][2]
    assert json.loads((folder / "result.json").read_bytes()) == found
    kept = json.loads((folder / "commands.json").read_bytes())
    assert states(kept) == states(found)
    assert "result" not in kept["commands"][0]


@pytest.mark.parametrize(
    "slow",
    [
        FOREVER,
        do("evaluate", script="while (true) {}", timeout=1_000_000),
        do("evaluate", script="return new Promise(() => {})", timeout=1_000_000),
        do("goto", url="{{site}}/hang", timeout=1_000_000),
    ],
    ids=["wait", "busy page", "promise", "hanging address"],
)
@pytest.mark.case("R77")
async def test_cancel_stops_a_command(opened: Opening, site: Site, slow: dict[str, Any]) -> None:
    async with opened() as booth:
        record = await booth.start(
            do("goto", url="{{site}}/static/1"), slow, do("reload"), variables={"site": site.url}
        )
        await running(booth, record.task_id, 1)
        await booth.engine.commands.cancel(record.task_id)
        ended = await booth.engine.tasks.wait(record.task_id)  # not as long as the command may take
        found = await booth.look(record.task_id)
        result = json.loads((booth.folder(record.task_id) / "result.json").read_bytes())
        await booth.engine.tasks.join(record.task_id)
        assert not booth.engine.instances.living()
    assert ended.status == "CANCELLED"
    assert states(found) == ["success", "skipped", "skipped"]
    assert found["status"] == "cancelled"
    assert found["error"]["code"] == "CANCELLED"
    assert states(result) == states(found)


@pytest.mark.thorough("goto")
@pytest.mark.parametrize(
    ("slow", "about"),
    [
        (do("goto", url="{site}/hang"), "{site}/hang"),
        (do("evaluate", script="return new Promise(() => {})"), "{site}/first"),
        (do("click", selector="#none"), "#none (there is no such element)"),
        (do("wait_for", text="none"), "none (it is not there or hidden)"),
    ],
    ids=["goto", "evaluate", "click", "wait"],
)
async def test_every_command_that_takes_too_long_says_what_it_was_about(
    opened: Opening, site: Site, slow: dict[str, Any], about: str
) -> None:
    args = {**slow["args"]}
    args |= {"url": f"{site.url}/hang"} if "url" in args else {}
    site.answers["/first"] = Answer(b"<!doctype html><title>t</title><h1>t</h1>")
    site.answers["/hang"] = Answer(stops="before")
    async with opened() as booth:
        first = do("goto", url=f"{site.url}/first")
        said = ""
        for limit_ms in (1_500, 5_000, 20_000):  # a busy machine gets more time to look at all
            found = await booth.run(first, {**slow, "args": {**args, "timeout": limit_ms}})
            error = found["commands"][1]["error"]
            assert error["code"] == "COMMAND_TIMEOUT"
            told = re.fullmatch(r"not done within ([0-9.]+) s: (.+)", error["message"])
            assert told is not None, error
            said = told[2]
            if said == about.format(site=site.url):
                break
        assert said == about.format(site=site.url)


async def test_a_command_on_a_page_that_hangs_says_its_limit(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_tools, "GRACE_S", 0.0)  # a busy machine adds its own
    monkeypatch.setattr(command_target, "MOMENT_MS", 1_500)
    async with opened() as booth:
        first = do("goto", url=f"{site.url}/static/1")
        found = await booth.run(first, do("evaluate", script="while (true) {}", timeout=1_000))
    error = found["commands"][1]["error"]
    assert error["message"] == f"not done within 1 s: {site.url}/static/1"


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
async def test_a_command_on_a_stopped_browser_says_how_long_it_took(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_tools, "GRACE_S", 1.5)  # as if the browser held it so long
    monkeypatch.setattr(command_target, "ANSWER_S", 0.2)
    async with opened() as booth:
        # Its limit is far enough away for the browser to be stopped before.
        slow = do("evaluate", script="return new Promise(() => {})", timeout=6_000)
        record = await booth.start(do("goto", url=f"{site.url}/static/1"), slow)
        await running(booth, record.task_id, 1)
        stopped = browser_of(psutil.Process())
        stopped.suspend()
        try:
            await booth.engine.tasks.wait(record.task_id, 150_000)
        finally:
            stopped.resume()
        command = (await booth.look(record.task_id))["commands"][1]
    message = command["error"]["message"]
    told = re.fullmatch(rf"not done within ([0-9.]+) s: {re.escape(site.url)}/static/1", message)
    assert told is not None, message
    took_s = (command["completedAt"] - command["startedAt"]) / 1_000
    assert 7 < float(told[1]) <= took_s + 0.1  # one decimal place is told


async def test_cancelling_a_thousand_commands_is_quick(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        record = await booth.start(
            do("goto", url=f"{site.url}/static/1"), FOREVER, *[do("reload")] * 998
        )
        await running(booth, record.task_id, 1)
        await booth.engine.commands.cancel(record.task_id)
        await booth.engine.tasks.wait(record.task_id)
        found = await booth.look(record.task_id)
    assert states(found) == ["success", *["skipped"] * 999]


@pytest.mark.own_browser
async def test_a_cancel_during_launch_leaves_no_process(opened: Opening) -> None:
    async with opened() as booth:
        record = await booth.start(do("get_html"))
        await running(booth, record.task_id, 0)
        await booth.engine.commands.cancel(record.task_id)
        await booth.engine.tasks.wait(record.task_id)
        found = await booth.look(record.task_id)
    assert states(found) == ["skipped"]
    await until(lambda: not living())


async def test_cancelling_a_queued_task_skips_all_commands(opened: Opening, site: Site) -> None:
    async with opened(slots=1) as booth:
        first = await booth.start(do("goto", url=f"{site.url}/static/1"), FOREVER)
        second = await booth.start(do("goto", url=f"{site.url}/static/2"), do("reload"))
        await running(booth, first.task_id, 1)
        assert (await booth.look(second.task_id))["status"] == "queued"
        assert states(await booth.look(second.task_id)) == ["pending", "pending"]
        await booth.engine.commands.cancel(second.task_id)
        found = await booth.look(second.task_id)
        await booth.engine.commands.cancel(first.task_id)
        await booth.engine.tasks.wait(first.task_id)
    assert found["status"] == "cancelled"
    assert states(found) == ["skipped", "skipped"]
    assert site.hits["/static/2"] == 0


async def test_a_browser_that_dies_ends_the_command_at_once(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        record = await booth.start(do("goto", url=f"{site.url}/static/1"), FOREVER, do("reload"))
        await running(booth, record.task_id, 1)
        await until(lambda: booth.engine.instances.living())
        browser_of(psutil.Process()).kill()
        await booth.engine.tasks.wait(record.task_id)
        found = await booth.look(record.task_id)
        again = await booth.run(do("goto", url=f"{site.url}/static/2"))
    assert states(found) == ["success", "error", "skipped"]
    assert (
        found["error"]["code"] == found["commands"][1]["error"]["code"] == "INSTANCE_DISCONNECTED"
    )
    assert again["status"] == "completed"  # the next task gets a new browser


async def test_a_queued_task_of_a_closed_instance_disconnects(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        instance = await booth.engine.instances.launch(instance_options(site))
        first = await booth.start(FOREVER, instanceId=instance.id)
        second = await booth.start(do("reload"), instanceId=instance.id)
        await running(booth, first.task_id, 0)
        await booth.engine.instances.close(instance.id)
        await booth.engine.tasks.wait(first.task_id)
        await booth.engine.tasks.wait(second.task_id)
        codes = [(await booth.look(each.task_id))["error"]["code"] for each in (first, second)]
    assert codes == ["INSTANCE_DISCONNECTED", "INSTANCE_DISCONNECTED"]


async def test_a_missing_browser_lists_the_searched_paths(opened: Opening, tmp_path: Path) -> None:
    async with opened() as booth:
        booth.engine._parts.browser._path = str(tmp_path / "nothing")
        found = await booth.run(do("goto", url="http://example.com/"), do("reload"))
    assert states(found) == ["error", "skipped"]
    assert found["error"]["code"] == "INSTANCE_DISCONNECTED"
    assert "nothing" in found["error"]["message"]
