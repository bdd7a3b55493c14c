"""The kind `oc_session_snapshot`: the memo, the tabs, and optional cookies."""

import json
import os
import stat
from contextlib import asynccontextmanager

import pytest

from engine.kinds.snapshot_kind import parse_snapshot
from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.model.records import Status
from engine.sample.site import Answer
from engine.service.engine import Engine
from engine.service.rerun import Asked

pytestmark = pytest.mark.usefixtures("kept_browser")
SECRET = "kept-nowhere-else"


@asynccontextmanager
async def opened(home, site):
    settings = Settings(home=home, root=home / "tasks", allow_private=(site.url[7:],))
    engine = Engine(settings, accepts=True)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def snapped(engine, **args):
    """The task's record, its result and its folder."""
    task_id = (await engine.requests.start("oc_session_snapshot", args)).task_id
    record = await engine.tasks.wait(task_id, 150_000)
    await engine.tasks.join(task_id)
    folder = engine.settings.root / task_id
    return record, json.loads((folder / "result.json").read_bytes()), folder


async def with_two_agents(engine, site):
    """Two agents, each with a tab, a cookie and something stored."""
    tall = "document.body.style.height = '5000px'; scrollTo(0, 300);"
    store = f"localStorage.setItem('draft', '{SECRET}'); document.cookie = 'sid={SECRET}'"
    for agent, path in (("ada", "/static/1"), ("ben", "/static/2")):
        await engine.agents.call("navigate", {"url": site.url + path}, agent_id=agent)
        await engine.agents.call("javascript_tool", {"code": tall + store}, agent_id=agent)


async def test_the_living_tabs_of_agents_are_written_down_without_touching_them(home, site):
    async with opened(home, site) as engine:
        await with_two_agents(engine, site)
        asked = len(site.log)
        _, result, folder = await snapped(
            engine,
            objective="compare two notes",
            currentStep="read the first",
            nextActions=["read the second", "write"],
            completed_steps=["open both"],
            notes="token=abcdef",
        )
        assert len(site.log) == asked
        files = sorted(os.listdir(folder / "artifacts"))
    assert result["snapshot_id"] == f"snap-{folder.name}"
    assert result["memo"] == {
        "objective": "compare two notes",
        "current_step": "read the first",
        "next_actions": ["read the second", "write"],
        "completed_steps": ["open both"],
        "notes": "token=[redacted]",
    }
    first, second = result["tabs"]
    assert first == {
        "tab": "tab_1",
        "agent": "ada",
        "title": "Field notes 1",
        "scroll": {"x": 0, "y": 300},
        "url": f"{site.url}/static/1",
        "screenshot": "artifacts/tab-001.png",
    }
    assert (second["agent"], second["url"]) == ("ben", f"{site.url}/static/2")
    assert files == ["tab-001.png", "tab-002.png"]
    assert "states" not in result


async def test_cookies_and_storage_stand_in_their_own_file_and_nowhere_else(home, site):
    async with opened(home, site) as engine:
        await with_two_agents(engine, site)
        _, result, folder = await snapped(
            engine, objective="x", include_cookies=True, include_storage=True, screenshot=False
        )
    assert [state["agent"] for state in result["states"]] == ["ada", "ben"]
    for state in result["states"]:
        path = folder / state["file"]
        told = json.loads(path.read_bytes())
        assert [(one["name"], one["value"]) for one in told["cookies"]] == [("sid", SECRET)]
        assert told["origins"] == [
            {"origin": site.url, "localStorage": [{"name": "draft", "value": SECRET}]}
        ]
        if os.name != "nt":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in ("meta.json", "events.jsonl", "pages.jsonl", "result.json"):
        assert SECRET not in (folder / name).read_text()


async def test_only_what_was_asked_for_is_in_the_state(home, site):
    async with opened(home, site) as engine:
        await with_two_agents(engine, site)
        found = {}
        for asked in ("include_storage", "include_cookies"):
            args = {"objective": "x", asked: True, "screenshot": False}
            _, result, folder = await snapped(engine, **args)
            found[asked] = json.loads((folder / result["states"][0]["file"]).read_bytes())
    assert found["include_storage"]["cookies"] == []
    assert len(found["include_storage"]["origins"]) == 1
    assert found["include_cookies"]["origins"] == []
    assert len(found["include_cookies"]["cookies"]) == 1


async def test_given_addresses_are_written_down_as_they_are_and_not_opened(home, site):
    async with opened(home, site) as engine:
        _, result, _ = await snapped(
            engine,
            objective="x",
            tabs=[
                f"http://ada:pw@{site.url[7:]}/static/1?token=abcdef",
                {"url": f"{site.url}/static/2", "title": "Two\u202e"},
            ],
        )
        assert engine.health().browser == "idle"
    assert site.log == []
    assert result["tabs"] == [
        {"url": f"{site.url}/static/1?token=[redacted]", "visited": False},
        {"url": f"{site.url}/static/2", "visited": False, "title": result["tabs"][1]["title"]},
    ]
    assert "\u202e" not in result["tabs"][1]["title"]


async def test_visited_addresses_fail_independently(home, site):
    async with opened(home, site) as engine:
        record, result, folder = await snapped(
            engine,
            objective="x",
            tabs=[f"{site.url}/static/1", f"{site.url}/loop", f"{site.url}/static/2"],
            visit=True,
        )
    first, failed, last = result["tabs"]
    assert record.status == Status.COMPLETED
    assert (first["title"], first["status"], last["title"]) == (
        "Field notes 1",
        200,
        "Field notes 2",
    )
    assert failed["error"] == "too many redirects"
    assert (folder / last["screenshot"]).read_bytes().startswith(b"\x89PNG")
    assert record.engine is not None
    assert record.engine.units is not None
    assert record.engine.units.failed == 1


@pytest.mark.parametrize("switch", [True, False])
async def test_the_operator_says_whether_keys_in_titles_are_kept(home, site, switch):
    key = "AKIA" + "ABCDEFGH" * 2
    site.answers["/keys"] = Answer(f"<title>{key} for ann planted</title>".encode())
    tabs = [f"{site.url}/keys?token=planted"]
    async with opened(home, site) as engine:
        _, result, folder = await snapped(
            engine, objective="x", tabs=tabs, visit=True, screenshot=False, redact_content=switch
        )
    shown = "[redacted]" if switch else key
    assert result["tabs"][0]["title"] == f"{shown} for ann [redacted]"
    assert result == json.loads((folder / "result.json").read_bytes())


async def test_a_session_without_tabs_is_its_memo(home, site):
    async with opened(home, site) as engine:
        record, result, _ = await snapped(engine, objective="only a note", label="noon")
    assert record.status == Status.COMPLETED
    assert (result["tabs"], result["label"]) == ([], "noon")
    assert result["memo"]["next_actions"] == []


@pytest.mark.parametrize(
    ("given", "path", "code"),
    [
        ({}, "objective", "missing"),
        ({"objective": " "}, "objective", "invalid_value"),
        ({"objective": "x" * 5_000}, "objective", "invalid_value"),
        ({"objective": "x", "next_actions": "go"}, "next_actions", "invalid_value"),
        ({"objective": "x", "next_actions": [1]}, "next_actions", "invalid_value"),
        ({"objective": "x", "tabs": ["javascript:alert(1)"]}, "tabs", "invalid_value"),
        ({"objective": "x", "tabs": [{"title": "no address"}]}, "tabs", "invalid_value"),
        (
            {"objective": "x", "tabs": [{"url": "http://a/", "cookie": "c"}]},
            "tabs",
            "invalid_value",
        ),
        ({"objective": "x", "visit": True}, "visit", "not_together"),
        (
            {"objective": "x", "tabs": ["http://a/"], "include_cookies": True},
            "include_cookies",
            "not_together",
        ),
        ({"objective": "x", "include_cookies": "yes"}, "include_cookies", "invalid_value"),
        (
            {"objective": "x", "currentStep": "a", "current_step": "b"},
            "current_step",
            "given_twice",
        ),
    ],
)
def test_every_mistake_in_a_snapshots_arguments_is_named(given, path, code):
    with pytest.raises(InvalidArguments) as refused:
        parse_snapshot(given)
    assert (path, code) in {(each.path, each.code) for each in refused.value.problems}


def test_nothing_of_a_session_is_read_unless_asked_for():
    args = parse_snapshot({"objective": "x"})
    assert (args.include_cookies, args.include_storage, args.visit) == (False, False, False)


async def test_a_snapshot_without_addresses_captures_nothing_until_an_agent_has_a_tab(home, site):
    bare = Asked("oc_session_snapshot", {"objective": "compare"})
    given = Asked("oc_session_snapshot", {"objective": "compare", "tabs": [site.url]})
    async with opened(home, site) as engine:
        assert engine.requests.captures_nothing(bare)
        assert not engine.requests.captures_nothing(given)
        assert not engine.requests.captures_nothing(Asked("crawl", {"url": site.url}))
        later = {"url": site.url, "username": "ann", "password": {"secret": "env:NOT_HERE"}}
        assert not engine.requests.captures_nothing(Asked("crawl", later))
        assert not engine.requests.captures_nothing(Asked("oc_session_snapshot", {})), "invalid"
        await engine.agents.call("navigate", {"url": site.url}, agent_id="ada")
        assert not engine.requests.captures_nothing(bare)
