"""A call that names an envelope is counted in it, and held to its domains; others leave nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.agents.reply import NoTabOpen, ToolReply
from engine.agents.tool_calls import TOOLS, storable, storable_error
from engine.budgets.envelopes import Envelopes
from engine.egress.egress_policy import DomainBlocked
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import ErrorInfo
from engine.sample.site import Answer
from engine.service.engine import Engine
from engine.verbs.verb_table import VERBS
from tests.agents.conftest import Running
from tests.browser.conftest import Pages
from tests.support.line_files import whole_lines
from tests.support.written_files import contents

HTML = """<label>Name <input id=n></label><label>Password <input type=password></label>
<button>Save</button><a href='/two'>Two</a>"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("navigate", {"url": "/"}),
    ("read_page", {}),
    ("find", {"query": "save"}),
    ("interact", {"ref": "ref_1_1", "action": "type", "value": "Ada-Lovelace"}),
    ("act", {"instruction": "type 'open sesame' into Password"}),
    ("javascript_tool", {"code": "document.title + ' some-script'"}),
    ("page_screenshot", {}),
    ("tabs_context", {}),
]
METADATA = "http://169.254.169.254/latest"
LOOKS = {"read_page", "find", "page_screenshot", "tabs_context"}


async def started(engine: Engine, **policy: Any) -> tuple[str, Envelopes]:
    record = await engine.requests.start(
        "browser_task", {"objective": "look around", "policy": policy or None}
    )
    assert engine.contracts.envelopes is not None
    return record.task_id, engine.contracts.envelopes


def at(pages: Pages, args: dict[str, Any]) -> dict[str, Any]:
    url = args.get("url", "")
    return {**args, "url": pages.url + url} if url.startswith("/") else args


async def all_eight(engine: Engine, pages: Pages, task_id: str | None) -> list[ToolReply]:
    pages["/"] = HTML
    return [
        await engine.agents.call(tool, at(pages, args), task_id=task_id) for tool, args in CALLS
    ]


def everything(folder: Path) -> dict[str, bytes]:
    files = contents(folder).items()
    return {
        str(one.relative_to(folder)): data for one, data in files if ".runners" not in one.parts
    }


def test_every_tool_is_called_here() -> None:
    assert [tool for tool, _ in CALLS] == list(TOOLS)


async def test_every_tool_counts_in_one_category(engine: Running, pages: Pages, home: Path) -> None:
    async with engine() as running:
        task_id, _ = await started(running)
        replies = await all_eight(running, pages, task_id)
        meta = json.loads((home / "tasks" / task_id / "meta.json").read_bytes())
        assert meta["counters"]["toolCalls"] == 8
        assert meta["counters"]["observationCalls"] == len(LOOKS)
        assert meta["counters"]["actionCalls"] == 8 - len(LOOKS)
        assert meta["counters"]["failureCalls"] == 0
        assert [event["tool"] for event in meta["recent_events"]] == [tool for tool, _ in CALLS]
        events = whole_lines(home / "tasks" / task_id / "events.jsonl")
        told = [event["data"] for event in events if event["kind"] == "tool_call"]
        assert [one["tool"] for one in told] == [tool for tool, _ in CALLS]
        assert [reply.task["counters"]["toolCalls"] for reply in replies if reply.task] == [
            *range(1, 9)
        ]
        assert not [reply for reply in replies if reply.warning]


async def test_without_a_task_nothing_changes(engine: Running, pages: Pages, home: Path) -> None:
    async with engine() as running:
        task_id, _ = await started(running)
        counted = await all_eight(running, pages, task_id)
    async with engine() as running:
        before = everything(home)
        plain = await all_eight(running, pages, None)
        assert everything(home) == before
    for one, other in zip(counted, plain, strict=True):
        bare = msgspec.structs.replace(one, task=None)
        assert msgspec.json.encode(bare) == msgspec.json.encode(other)
        assert other.task is None


async def test_nothing_that_was_typed_is_kept(engine: Running, pages: Pages, home: Path) -> None:
    async with engine() as running:
        task_id, _ = await started(running)
        replies = await all_eight(running, pages, task_id)
        kept = b"".join(everything(home).values()).decode("utf-8", "replace")
        for typed in ("Ada-Lovelace", "open sesame", "some-script"):
            assert typed not in kept
        assert "open sesame" not in str(replies)


async def test_a_failed_call_counts_as_a_failure(engine: Running, pages: Pages) -> None:
    async with engine() as running:
        task_id, envelopes = await started(running, maxFailureStreak=1)
        pages["/"] = HTML
        await running.agents.call("navigate", {"url": pages.url}, task_id=task_id)
        bad: list[tuple[str, dict[str, Any]]] = [
            ("interact", {"ref": "ref_1_99", "action": "click"}),
            ("act", {"instruction": "fly"}),
        ]
        for tool, args in bad:
            with pytest.raises(EngineError) as failed:
                await running.agents.call(tool, args, task_id=task_id)
        told = failed.value.fields["task"]
        assert isinstance(told, dict)
        assert told["budget_status"] == "exceeded"
        assert told["counters"]["failureCalls"] == 2
        answer = await running.agents.answer("act", {"instruction": "fly"}, task_id=task_id)
        assert answer.task is not None
        assert answer.task["counters"]["failureStreak"] == 3
        assert "task" not in answer.data["error"].get("fields", {})
        assert "instruction_refused" in str(envelopes.state(task_id))


async def test_other_domains_are_blocked(engine: Running, pages: Pages, elsewhere: Pages) -> None:
    out = elsewhere.url.replace("127.0.0.1", "localhost")
    async with engine() as running:
        task_id, _ = await started(running, allowedDomains=["127.0.0.1"])
        pages["/"] = (
            f"<a href='{out}/link'>Out</a><script>const go = () => location = '{out}/s'</script>"
        )
        pages["/r"] = Answer(status=302, headers=(("Location", f"{out}/redirected"),))
        call = running.agents.call
        await call("navigate", {"url": pages.url}, task_id=task_id)
        ways: list[tuple[str, dict[str, Any]]] = [
            ("navigate", {"url": f"{out}/"}),
            ("navigate", {"url": f"{pages.url}/r"}),
            ("act", {"instruction": "click Out"}),
            ("act", {"instruction": f"go to {out}/said"}),
        ]
        for tool, args in ways:
            with pytest.raises(DomainBlocked) as blocked:
                await call(tool, args, task_id=task_id)
            told = blocked.value.fields["task"]
            assert isinstance(told, dict)
            assert "allowedDomains" in told["budget_exceeded"]
            await call("navigate", {"url": pages.url}, task_id=task_id)
        with pytest.raises(DomainBlocked):
            await call("javascript_tool", {"code": "go(); return 1"}, task_id=task_id)
        assert not elsewhere.hits
        last = json.loads((running.settings.root / task_id / "meta.json").read_bytes())
        assert "domain_blocked" in last["recent_events"][-1]["summary"]


async def test_domains_are_per_task(engine: Running, pages: Pages, elsewhere: Pages) -> None:
    out = elsewhere.url.replace("127.0.0.1", "localhost")
    elsewhere["/"] = "<h1>Out</h1>"
    async with engine() as running:
        task_id, _ = await started(running, allowedDomains=["127.0.0.1"])
        with pytest.raises(DomainBlocked):
            await running.agents.call("navigate", {"url": out}, task_id=task_id)
        answer = await running.agents.call("navigate", {"url": out})
        assert answer.data["status"] == 200


@pytest.mark.parametrize("named", ["0123456789abcdef", "../../etc", "", "ended", "crawl"])
async def test_uncounted_calls_run(engine: Running, pages: Pages, home: Path, named: str) -> None:
    pages["/"] = "x"
    async with engine() as running:
        if named == "ended":
            named, envelopes = await started(running)
            envelopes.finish(named, "completed")
        if named == "crawl":
            assert isinstance(running._maintenance.ledger, Ledger)
            named = running._maintenance.ledger.create("crawl", {"url": pages.url}).task_id
        before = everything(home)
        answer = await running.agents.call("navigate", {"url": pages.url}, task_id=named)
        assert answer.data["status"] == 200
        assert answer.task is None
        assert answer.warning is not None
        assert answer.warning.startswith("The call was not counted in")
        assert everything(home) == before


OWNERS: list[tuple[Any, bool]] = [
    ({"session_id": "ann"}, True),
    ({"session_id": "ann", "tenant_id": "shop"}, True),
    ({"session_id": "ann", "tenant_id": "shop", "mode": "jwt"}, False),
    ({"session_id": "bob", "tenant_id": "shop"}, False),
    ({}, False),
    ("ann", False),
]


@pytest.mark.parametrize(("owner", "counts"), OWNERS)
async def test_a_call_counts_only_in_an_envelope_of_its_own_session(
    engine: Running, pages: Pages, home: Path, owner: Any, counts: bool
) -> None:
    pages["/"] = "x"
    async with engine() as running:
        # The policy of an envelope that ignores the call does not restrict it.
        task_id, _ = await started(running, **({} if counts else {"allowedDomains": ["no.test"]}))
        meta = home / "tasks" / task_id / "meta.json"
        meta.write_text(json.dumps({**json.loads(meta.read_bytes()), "owner": owner}), "utf-8")
        before = everything(home / "tasks" / task_id)
        answer = await running.agents.call(
            "navigate", {"url": pages.url}, task_id=task_id, agent_id="ann"
        )
        assert answer.data["status"] == 200
        if counts:
            assert answer.warning is None
            assert answer.task is not None
            assert answer.task["counters"]["toolCalls"] == 1
        else:
            assert "belongs to session" in (answer.warning or "")
            assert everything(home / "tasks" / task_id) == before


async def test_an_instruction_is_kept_without_the_text_in_it() -> None:
    kept = [
        storable("act", {"instruction": said})["instruction"]
        for said in ("type 'hush hush' into Name", "click Save", "hush, hush")
    ]
    assert kept == ["type Name (9 characters)", "click Save", {"_length": 10}]


async def test_the_tools_are_verbs_for_hosts_only(engine: Running, pages: Pages) -> None:
    pages["/"] = "<h1>Hello</h1>"
    for tool in TOOLS:
        assert VERBS[tool].faces == ("mcp",)
        assert {"task_id", "agent_id"} <= {param.name for param in VERBS[tool].params}
    async with engine() as running:
        task_id, _ = await started(running)
        given = {"url": pages.url, "task_id": task_id, "agent_id": "ann", "action": "goto"}
        reply = await VERBS["navigate"].call(running, given)
        assert reply.task["counters"]["toolCalls"] == 1
        assert running.agents.sessions.agents == ("ann",)
        refused = await VERBS["find"].call(running, {"query": None, "agent_id": "ann"})
        assert refused.data["error"]["code"] == "invalid_arguments"


def refusals(home: Path, task_id: str) -> list[tuple[str, str, str]]:
    """The refused calls in a task's events: tool, code and sentence."""
    events = whole_lines(home / "tasks" / task_id / "events.jsonl")
    calls = [event["data"] for event in events if event["kind"] == "tool_call"]
    return [
        (call["tool"], call["error"]["code"], call["error"]["message"])
        for call in calls
        if not call["ok"]
    ]


async def test_what_was_refused_is_in_the_events(
    engine: Running, pages: Pages, elsewhere: Pages, home: Path
) -> None:
    out = elsewhere.url.replace("127.0.0.1", "localhost")
    pages["/"] = f"{HTML}<a href='{METADATA}'>Meta</a>"
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("navigate", {"url": out}, "domain_blocked"),
        ("navigate", {"url": METADATA}, "domain_blocked"),
        ("find", {"query": "save", "tab_id": "tab_1"}, "not_the_owner"),
        ("find", {"query": "save", "tab_id": "tab_77"}, "tab_not_found"),
        ("find", {"query": None}, "invalid_arguments"),
        ("act", {"instruction": "fly"}, "instruction_refused"),
    ]
    async with engine() as running:
        task_id, _ = await started(running, allowedDomains=["127.0.0.1"])
        await running.agents.call("navigate", {"url": pages.url}, agent_id="other")
        await running.agents.call("navigate", {"url": pages.url}, agent_id="me")
        answers = [
            await running.agents.answer(tool, args, task_id=task_id, agent_id="me")
            for tool, args, _ in calls
        ]
        told = refusals(home, task_id)
        private, _ = await started(running)
        for tool, args in (("navigate", {"url": METADATA}), ("act", {"instruction": "click Meta"})):
            await running.agents.answer(tool, args, task_id=private, agent_id="me")
        blocked = refusals(home, private)
        kept = (home / "tasks" / private / "events.jsonl").read_text("utf-8")
    assert [(tool, code) for tool, code, _ in told] == [(tool, code) for tool, _, code in calls]
    for answer, (_, code, sentence) in zip(answers, told, strict=True):
        if code == "instruction_refused":  # its sentence quotes the instruction
            assert sentence == "The instruction is not understood"
        else:
            assert sentence == answer.data["error"]["message"]
    assert blocked == [
        (tool, "address_blocked", "blocked: metadata address") for tool in ("navigate", "act")
    ]
    assert kept.count(METADATA) == 2


async def test_a_refusal_of_a_damaged_envelope_is_in_its_events(
    engine: Running, home: Path
) -> None:
    async with engine() as running:
        task_id, _ = await started(running)
        file = home / "tasks" / task_id / "meta.json"
        meta = {**json.loads(file.read_bytes()), "policy": "none", "counters": [1]}
        file.write_text(json.dumps({**meta, "recent_events": {"a": 1}}), "utf-8")
        answer = await running.agents.answer("find", {"query": "x"}, task_id=task_id)
        assert answer.task is not None
        assert answer.warning is None
    assert refusals(home, task_id) == [("find", "no_tab_open", "This agent has no tab open yet.")]


async def test_a_refusal_of_an_unreadable_envelope_is_only_in_the_answer(
    engine: Running, home: Path
) -> None:
    async with engine() as running:
        task_id, _ = await started(running)
        (home / "tasks" / task_id / "meta.json").write_text('{"task_id": 1}', "utf-8")
        before = everything(home)
        answer = await running.agents.answer("find", {"query": "x"}, task_id=task_id)
        assert everything(home) == before
    assert answer.data["error"]["code"] == "no_tab_open"
    assert answer.warning is not None
    assert "was not counted" in answer.warning


async def test_no_refusal_keeps_what_was_typed(engine: Running, pages: Pages, home: Path) -> None:
    pages["/"] = HTML
    calls: list[tuple[str, dict[str, Any]]] = [
        ("interact", {"ref": "ref_1_1", "action": "press", "value": "hunter2"}),
        ("interact", {"ref": "ref_1_1", "action": "type", "vaule": "hunter2", "value": "x"}),
        ("interact", {"ref": "ref_1_1", "action": "type", "text": ["hunter2"]}),
        ("act", {"instruction": "press hunter2"}),
        ("act", {"instruction": "click Nothing", "dialogs": "accept", "prompt": "hunter2"}),
        ("act", {"instruction": "click Save", "prompt": "hunter2"}),
        ("act", {"instruction": "hunter2 type"}),
        ("act", {"instruction": "type hunter2 into Nothing"}),
        ("javascript_tool", {"code": "throw Error('hun' + 'ter2')"}),
        ("javascript_tool", {"code": "hunter2.length"}),
    ]
    async with engine() as running:
        task_id, _ = await started(running)
        await running.agents.call("navigate", {"url": pages.url}, task_id=task_id)
        answers = [await running.agents.answer(*call, task_id=task_id) for call in calls]
        assert not any(answer.ok for answer in answers)
        assert len(refusals(home, task_id)) == len(calls)
        kept = b"".join(everything(home).values()).decode("utf-8", "replace")
    assert "hunter2" not in kept


def test_a_typed_text_in_a_sentence_becomes_its_length() -> None:
    error = NoTabOpen(message="")
    error.args = ("'open sesame' is no option.",)
    told = storable_error(error, {"value": "open sesame"})
    assert told == ErrorInfo("'(11 characters)' is no option.", "no_tab_open")
