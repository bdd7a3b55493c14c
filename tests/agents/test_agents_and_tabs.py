"""Whose tab is it, whose turn is it, and how long may an agent keep a browser."""

from __future__ import annotations

import asyncio
import time

import psutil
import pytest

from engine.agents.reply import TooManyAgents, WindowTooShort
from engine.agents.sessions import MOST_TABS
from engine.browser.chromium.driver import alive
from engine.model.errors import OwnershipError, ShuttingDown
from engine.sample.site import Answer
from tests.agents.conftest import Opening, Running
from tests.browser.conftest import Pages
from tests.support.engines import until

ARGS = {
    "navigate": {"url": "http://a.example/"},
    "read_page": {},
    "find": {"query": "x"},
    "interact": {"ref": "ref_1_1", "action": "click"},
    "act": {"instruction": "go back"},
    "javascript_tool": {"code": "1"},
    "page_screenshot": {},
}


async def test_no_tool_reaches_a_tab_of_another_agent(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button>Mine</button>", agent="ann")
        await made.show("<button>Other</button>", agent="ben")
        for tool, args in ARGS.items():
            with pytest.raises(OwnershipError) as refused:
                await made.call(tool, "ben", **args, tab_id="tab_1")
            action = args.get("action", "goto" if tool == "navigate" else tool)
            assert refused.value.fields == {
                "agentId": "ben",
                "tabId": "tab_1",
                "ownerAgentId": "ann",
                "action": action,
            }
        with pytest.raises(OwnershipError):
            await made.call("navigate", "ben", action="close", tab_id="tab_1")
        answer = await made.call("read_page", "ann")
        assert 'button "Mine"' in answer.text


async def test_a_reference_does_not_reach_another_agents_tab_either(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button>Mine</button>", agent="ann")
        await made.call("read_page", "ann")
        await made.show("<button>Other</button>", agent="ben")
        with pytest.raises(OwnershipError):
            await made.call("interact", "ben", ref="ref_1_1", action="click")


async def test_each_agent_sees_its_own_tabs_and_its_own_cookies(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x", agent="ann")
        await made.call("javascript_tool", "ann", code="document.cookie = 'who=ann'")
        await made.show("x", agent="ben")
        answer = await made.call("javascript_tool", "ben", code="document.cookie")
        assert answer.data["value"] == ""
        tabs = [(await made.call("tabs_context", one)).data["tabs"] for one in ("ann", "ben")]
        assert [[tab["tab_id"] for tab in own] for own in tabs] == [["tab_1"], ["tab_2"]]


async def test_two_calls_on_one_tab_run_in_the_order_in_which_they_came(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<script>window.log = []</script>")
        slow = "log.push('a'); await new Promise(r => setTimeout(r, 300)); log.push('b'); return 0"
        first = asyncio.ensure_future(made.call("javascript_tool", code=slow))
        await asyncio.sleep(0)  # the first call has to have begun
        rest = [made.call("javascript_tool", code=f"log.push({n})") for n in range(3)]
        await asyncio.gather(first, *rest)
        assert await made.script("log") == ["a", "b", 0, 1, 2]


async def test_different_agents_do_not_wait_for_each_other(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x", agent="ann")
        await made.show("x", agent="ben")
        wait = "new Promise(() => {})"
        slow = asyncio.ensure_future(
            made.call("javascript_tool", "ann", code=wait, timeout_ms=120_000)
        )
        await made.call("javascript_tool", "ben", code="1")
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def test_a_turn_that_does_not_come_ends_with_the_calls_own_limit(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        wait = made.call("javascript_tool", code="new Promise(() => {})", timeout_ms=120_000)
        slow = asyncio.ensure_future(wait)
        await asyncio.sleep(0)
        with pytest.raises(WindowTooShort):
            await made.call("read_page", timeout_ms=200)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        assert (await made.call("read_page")).ok, "a call that was given up frees its turn"


async def test_an_agent_that_does_nothing_gives_its_browser_back(desk: Opening) -> None:
    async with desk(idle_s=0.4) as made:
        await made.show("x", agent="ann")
        await until(lambda: made.agents.sessions.agents == ())
        made.agents.sessions._idle_s = 60.0  # what is opened now is looked at before it goes
        await made.show("again", agent="ann")
        tabs = (await made.call("tabs_context", "ann")).data["tabs"]
        assert [tab["tab_id"] for tab in tabs] == ["tab_2"], "no tab's name is given twice"


async def test_an_agent_at_work_is_not_idle(desk: Opening) -> None:
    async with desk(idle_s=0.5) as made:
        await made.show("x", agent="ann")
        slow = "await new Promise(r => setTimeout(r, 1500)); return 5"
        answer = await made.call("javascript_tool", "ann", code=slow)
        assert answer.data["value"] == 5


async def test_the_number_of_agents_and_of_tabs_is_bounded(desk: Opening) -> None:
    async with desk(most_agents=1) as made:
        await made.show("x", agent="ann")
        with pytest.raises(TooManyAgents):
            await made.show("x", agent="ben")
        for _ in range(MOST_TABS - 1):
            await made.call("navigate", "ann", url=made.pages.url, new_tab=True)
        answer = await made.agents.answer(
            "navigate", {"url": made.pages.url, "new_tab": True}, agent_id="ann"
        )
        assert answer.data["error"]["code"] == "too_many_tabs"


def browsers() -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    return [one for one in below if "chrom" in one.name().lower()]


@pytest.mark.own_browser
async def test_closing_the_engine_ends_all_agent_browsers(engine: Running, pages: Pages) -> None:
    pages["/"] = "x"
    async with engine() as running:
        for agent in ("ann", "ben"):
            await running.agents.call("navigate", {"url": pages.url}, agent_id=agent)
        processes = browsers()
        assert processes
    assert not [one for one in processes if alive(one)]
    with pytest.raises(ShuttingDown):
        await running.agents.call("navigate", {"url": pages.url})


async def test_closing_does_not_wait_for_a_call_that_hangs(engine: Running, pages: Pages) -> None:
    pages["/h"] = Answer(stops="before")
    async with engine() as running:
        hanging = asyncio.ensure_future(
            running.agents.call("navigate", {"url": f"{pages.url}/h", "timeout_ms": 120_000})
        )
        await until(lambda: pages.hits["/h"])
        began = time.monotonic()
    assert time.monotonic() - began < 90, "it waited for the call's own limit"
    assert isinstance((await asyncio.gather(hanging, return_exceptions=True))[0], Exception)


async def test_a_dead_browser_is_replaced_at_the_next_open(engine: Running, pages: Pages) -> None:
    pages["/"] = "x"
    async with engine() as running:
        await running.agents.call("navigate", {"url": pages.url})
        main = [one for one in browsers() if "--type=" not in " ".join(one.cmdline())]
        for one in main:
            one.kill()
        psutil.wait_procs(main, timeout=30)
        answer = await running.agents.answer("read_page", {})
        assert not answer.ok
        async with asyncio.timeout(60):
            while not (answer := await running.agents.answer("navigate", {"url": pages.url})).ok:
                pass
        assert answer.data["status"] == 200
        assert answer.data["tab_id"] != "tab_1"
