"""Tabs closed in a recording: the replay closes them and continues in the right one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.recording.recorder import PageRecorder
from engine.browser.recording.recorder_messages import Heard, TabClosed, Told
from engine.kinds.recording.recording_actions import Masks, Scribe
from engine.kinds.recording.recording_export import command_task
from tests.recording.conftest import until
from tests.recording.test_recording_export import exported, replayed, state_of
from tests.recording.trap_pages import served

START = """<h1>Start</h1><a href="/one" target="_blank" rel="opener">One</a>
<a href="/two" target="_blank" rel="opener">Two</a>"""
OTHER = """<h1>Other</h1><button onclick="this.textContent += ' done'">Do</button>"""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served({"start": START, "one": OTHER, "two": OTHER}) as url:
        yield url


async def test_after_a_tab_was_closed_a_replay_goes_on_in_the_right_one(
    recording: Any, pages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.browser.recording.recorder.BY_ITSELF_MS", -1
    )  # the hand is quick here
    monkeypatch.setattr(
        "engine.kinds.recording.recording_kind.InstanceOptions",
        lambda **given: InstanceOptions(**{**given, "windows": True}),
    )
    listened_to: list[Any] = []
    attach = PageRecorder.attach

    async def attached(self: PageRecorder, page: Any) -> None:
        await attach(self, page)
        listened_to.append(page)

    monkeypatch.setattr(PageRecorder, "attach", attached)
    async with recording(f"{pages}/start") as running:
        operator, first = running.operator, running.operator.page
        for number, link in enumerate(("One", "Two"), 1):
            async with first.context.expect_page() as opening:
                await first.locator(f"text={link}").click()
            operator.page = await opening.value
            await operator.page.locator("h1").wait_for()
            await until(partial(listened_to.__contains__, operator.page))  # people are slower
            await operator.click("text=Do")
            await operator.recorded("click", 2 * number)
            if link == "One":
                await operator.page.close()
                await until(lambda: len(first.context.pages) == 1)
        wanted = await state_of(operator.page)
        assert "Do done" in json.dumps(wanted)
        await running.stop()
        task = exported(running, tmp_path)
        assert "notReplayed" not in task["metadata"]
        did = [(one["args"]["action"], one["args"].get("tab")) for one in task["commands"]]
        tabs = [one for one in did if "tab" in one[0]]
        assert tabs == [("switch_tab", 1), ("close_tab", 1), ("switch_tab", 0), ("switch_tab", 1)]
        assert await replayed(running, task) == wanted


def test_the_end_of_the_whole_window_closes_no_tab() -> None:
    scribe = Scribe(Masks(keep_text=False))
    key = Told("key", key="F2")
    scribe.take(Heard(1, 0, "http://a.test/", key))
    assert scribe.take(TabClosed(2, 0, "http://a.test/", True)) == []
    assert scribe.close() == []
    after = scribe.take(Heard(3, 1, "http://a.test/", key))
    assert [(one.type, one.tab, one.how) for one in after] == [
        ("close_tab", 0, None),
        ("key", 1, None),
    ]


def test_a_window_in_which_nothing_was_done_was_closed_by_nobody() -> None:
    scribe = Scribe(Masks(keep_text=False))
    key = Told("key", key="F2")
    scribe.take(Heard(1, 0, "http://a.test/", key))
    scribe.take(TabClosed(2, 1, "http://a.test/", True))
    after = scribe.take(Heard(3, 0, "http://a.test/", key))
    assert [(one.type, one.tab, one.how) for one in after] == [
        ("close_tab", 1, "script"),
        ("key", 0, None),
    ]


def test_a_tab_that_its_page_closed_is_closed_by_no_command() -> None:
    click = {"type": "click", "selector": "#a", "url": ""}
    closed = {"type": "close_tab", "tab": 1, "how": "script", "url": ""}
    task = command_task({}, [click, {**click, "tab": 1}, closed, {**click, "tab": 2}])
    assert task is not None
    did = [(one["args"]["action"], one["args"].get("tab")) for one in task["commands"]]
    assert did == [
        *(("click", None), ("switch_tab", 1), ("click", None)),
        *(("switch_tab", 1), ("click", None)),
    ]
