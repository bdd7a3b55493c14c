"""The actions of an operator in a browser, recorded one by one."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import Error

from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.recording.recording_kind import NotStoppable
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import Status
from engine.service.engine import Engine
from tests.recording.conftest import Operator, until, until_scrolled
from tests.support.memory_context import MemoryContext, direct_result
from tests.support.ticking import ticking


def told(actions: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(one.get(name) for name in names) for one in actions]


async def test_actions_and_results_are_recorded_in_order(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        operator = running.operator
        await operator.type("[name=q]", "whistle")
        await operator.page.keyboard.press("Enter")
        await operator.recorded("navigated")
        await operator.click("main li a")
        await operator.comes_to("Tin whistle")
        await operator.recorded("navigated", 2)
        record = await running.stop()
        assert record.status == Status.COMPLETED
        assert told(running.result()["actions"], "n", "type", "how") == [
            (1, "navigate", "typed"),
            (2, "click", None),
            (3, "type", None),
            (4, "key", None),
            (5, "navigated", "form"),
            (6, "click", None),
            (7, "navigated", "link"),
        ]


async def test_kinds_of_navigation_are_distinguished(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        operator = running.operator
        page = operator.page
        # One after the other, as a person does: which way a step went is asked of the browser.
        for number, go in enumerate(
            (
                partial(page.goto, f"{site.url}/shop/order"),
                page.go_back,
                page.go_forward,
                page.reload,
            ),
            2,
        ):
            await go()
            await operator.recorded("navigate", number)
        await running.stop()
        hows = told(running.result()["actions"], "type", "how")
        assert hows == [
            ("navigate", how) for how in ("typed", "typed", "back", "forward", "reload")
        ]


async def test_history_back_by_script_is_no_action(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        operator = running.operator
        await operator.click("text=Order")
        await operator.comes_to("Your order")
        await operator.page.evaluate(
            "document.querySelector('#echo').addEventListener('click', () => history.back())"
        )
        await operator.click("#echo")
        await operator.comes_to("The shop")
        await operator.recorded("navigated", 2)
        await running.stop()
        assert told(running.result()["actions"], "type", "how")[-2:] == [
            ("click", None),
            ("navigated", "script"),
        ]


async def test_scripted_addresses_are_recorded(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/thing/1") as running:
        operator = running.operator
        await operator.click(".add")
        step = await operator.recorded("navigated")
        assert (step["how"], step["url"]) == ("in_page", f"{site.url}/shop/thing/1?basket=1")


async def test_choosing_checking_and_keys_that_matter_are_told(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        operator = running.operator
        await operator.page.locator("[name=size]").focus()
        await operator.page.keyboard.press("ArrowDown")
        await operator.click("text=By bird")
        await operator.click("text=As a gift")
        await operator.click("text=As a gift")
        await operator.click("[name=mail]")
        await operator.page.keyboard.press("Escape")
        await operator.recorded("key")
        await running.stop()
        actions = running.result()["actions"]
        assert told(actions, "type", "name", "on", "values", "key")[1:] == [
            ("select", "Size", None, ["m"], None),
            ("check", "By bird", True, None, None),
            ("check", "As a gift", True, None, None),
            ("check", "As a gift", False, None, None),
            ("click", "E-mail", None, None, None),
            ("key", "E-mail", None, None, "Escape"),
        ]


async def test_a_word_or_scroll_is_one_action(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/long") as running:
        operator = running.operator
        await operator.page.mouse.move(300, 300)
        for _ in range(4):
            await operator.page.mouse.wheel(0, 150)
        down = 4 * 150
        await until_scrolled(operator.page, down)
        await operator.page.keyboard.press("Escape")
        await operator.recorded("key")
        await running.stop()
        assert told(running.result()["actions"], "type", "dy", "dx")[1:] == [
            ("scroll", down, 0),
            ("key", None, None),
        ]


async def test_a_scroll_that_a_script_does_is_no_action(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/long") as running:
        await running.operator.page.evaluate("scrollTo(0, 900)")
        await until_scrolled(running.operator.page, 900)
        await running.stop()
        assert told(running.result()["actions"], "type") == [("navigate",)]


async def test_it_ends_completed_when_its_time_is_over(recording: Any, site: Any) -> None:
    for duration_ms in (6_000, 30_000, 100_000):  # the first that is enough to type in
        async with recording(f"{site.url}/shop/order", duration_ms=duration_ms) as running:
            with suppress(Error):
                await running.operator.type("#who", "half a na")
            record = await running.engine.tasks.wait(running.task_id)
            assert record.status == Status.COMPLETED
            result = running.result()
            assert result["stopped_by"] == "duration"
            if result["actions"][-1]["type"] == "type":  # it was being typed when time was over
                assert result["actions"][-1]["text"] == "{{your_name}}"
                return
    raise AssertionError(result)


async def test_a_cancelled_recording_keeps_what_was_done(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.operator.click("text=As a gift")
        await running.operator.recorded("check")
        await running.engine.commands.cancel(running.task_id)
        record = await running.engine.tasks.wait(running.task_id, timeout_ms=100_000)
        assert record.status == Status.CANCELLED
        result = running.result()
        assert (result["stopped_by"], len(result["actions"])) == ("cancelled", 2)


async def test_it_ends_completed_when_the_browser_is_closed(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.operator.click("text=As a gift")
        await running.operator.recorded("check")
        await running.operator.page.context.close()
        record = await running.engine.tasks.wait(running.task_id)
        assert record.status == Status.COMPLETED
        assert running.result()["stopped_by"] == "closed"


async def test_an_action_is_on_disk_as_soon_as_it_is_done(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.operator.click("text=As a gift")
        await running.operator.recorded("check")
        assert '"status": "RUNNING"' in (running.folder / "meta.json").read_text()


async def test_pictures_are_kept_where_they_are_asked_for(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order", screenshots="each") as running:
        await running.operator.click("text=As a gift")
        await running.operator.recorded("check")
        await running.stop()
        result = running.result()
        assert told(result["artifacts"], "path", "action") == [
            ("artifacts/0001.png", 1),
            ("artifacts/0002.png", 2),
        ]
        for one in result["artifacts"]:
            assert (running.folder / one["path"]).read_bytes().startswith(b"\x89PNG")


async def test_the_network_is_counted_without_any_query(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/?q=abc") as running:
        await running.operator.page.goto(f"{site.url}/status/404?token=s3cretvalue")
        await running.operator.recorded("navigate", 2)
        await running.stop()
        network = running.result()["network"]
        host = site.url.removeprefix("http://")
        assert network["by_host"][0]["host"] == host
        assert network["by_type"]["document"] == 2
        assert network["failures"] == [
            {"method": "GET", "url": f"{site.url}/status/404", "status": 404}
        ]
        assert "s3cretvalue" not in (running.folder / "result.json").read_text()


async def test_a_failed_start_address_is_reported(home: Path, site: Any, recording: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        engine = running.engine
        args = {"url": "http://127.0.0.1:9/", "headless": True}
        record = await engine.requests.start("recording", args)
        ended = await engine.tasks.wait(record.task_id)
        assert ended.status == Status.FAILED
        assert ended.error is not None
        assert ended.error.code == "page_error"


async def test_only_a_recording_can_be_stopped_and_only_once(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        engine = running.engine
        crawl = await engine.requests.start(
            "crawl", {"url": f"{site.url}/hang", "respect_robots": False}
        )
        with pytest.raises(NotStoppable):
            await engine.commands.stop(crawl.task_id)
        await running.stop()
        before = (running.folder / "meta.json").read_bytes()
        assert (await engine.commands.stop(running.task_id)).status == Status.COMPLETED
        assert (running.folder / "meta.json").read_bytes() == before


async def test_a_stop_cancels_a_pending_recording(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        engine = running.engine
        args = {"url": f"{site.url}/shop/", "headless": True}
        many = [
            await engine.requests.start("recording", args) for _ in range(engine.settings.slots)
        ]
        record = await engine.commands.stop(many[-1].task_id)
        assert record.status == Status.CANCELLED


async def test_another_process_can_stop_a_recording(recording: Any, site: Any, home: Path) -> None:
    async with recording(f"{site.url}/shop/") as running:
        other = Engine(running.engine.settings, accepts=False)
        await other.open()
        try:
            await other.commands.stop(running.task_id)
        finally:
            await other.close()
        record = await running.engine.tasks.wait(running.task_id, timeout_ms=100_000)
        assert record.status == Status.COMPLETED
        assert running.result()["stopped_by"] == "stopped"


async def test_a_direct_call_and_a_task_give_the_same_bytes(
    recording: Any, site: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.kinds.recording.recording_kind.STILL_S", 60.0
    )  # every page here gets ready

    async def script(operator: Operator) -> None:
        await operator.type("#who", "Ada")
        await operator.click("text=By bird")
        await operator.click("#send")
        await operator.comes_to("Thank you")
        await operator.recorded("navigated")

    url = f"{site.url}/shop/order"
    async with recording(url, clock=ticking(), label="one") as running:
        await script(running.operator)
        await running.stop()
    task = (running.folder / "result.json").read_bytes()

    kind, clock = KINDS["recording"], ticking()
    context = MemoryContext(task_id=running.task_id, now_ms=clock.now_ms, monotonic=clock.monotonic)
    browser = BrowserSession()
    tools = Tools(Settings(home=home, root=home / "tasks"), browser)
    given = {"url": url, "headless": True, "screenshots": "none", "label": "one"}
    body: asyncio.Future[Any] = asyncio.ensure_future(kind.body(kind.parse(given), context, tools))
    try:
        await until(lambda: context.pages)
        page = tools.instances.living()[-1].pages[0]
        await script(Operator(page, lambda: json.loads(json.dumps(context.pages))))
        context.stop("stopped")
        head = await body
    finally:
        body.cancel()
        await tools.instances.aclose()
        await browser.aclose()
    assert direct_result(kind, head, map(msgspec.json.encode, context.pages)) == task
