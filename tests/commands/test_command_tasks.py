"""The life of a command task in the ledger: states, ends, queues, ids, stored data."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.export.exporter import Order
from engine.kinds.commands.command_check import check
from engine.kinds.commands.commands_kind import COMMANDS
from engine.kinds.context import Clock
from engine.kinds.spec import Tools
from engine.model.errors import EngineError, InvalidArguments, NotATaskId, TaskFailed, TaskNotFound
from engine.sample.site import Answer
from engine.service.engine import Engine
from engine.service.rerun import RequestCut, TypedTextMissing, asked
from engine.verbs.verb_table import VERBS
from fixtures.site.site import Site
from tests.commands.command_states import FOREVER, instance_options, running, states
from tests.commands.conftest import Opening, do, mistakes, task
from tests.support.far_limits import keep_own_limits
from tests.support.memory_context import MemoryContext, direct_result
from tests.support.written_files import contents


async def test_a_whole_task_answers_in_the_shape_of_the_seed(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        found = await booth.run(
            do("goto", url=f"{site.url}/static/1"), do("get_text", selector="h1")
        )
    assert found["status"] == "completed"
    assert found["currentCommandIndex"] == 1
    assert found["createdAt"] <= found["startedAt"] <= found["completedAt"]
    assert found["instanceId"].startswith("inst_")
    assert found["commands"][1] == {
        "id": f"{found['id']}_cmd_1",
        "tool_name": "browser_content",
        "intention": "to get_text",
        "args": {"action": "get_text", "selector": "h1"},
        "status": "success",
        "startedAt": found["commands"][1]["startedAt"],
        "completedAt": found["commands"][1]["completedAt"],
        "result": {"text": "Field notes 1"},
    }
    assert set(found) == {
        "id", "instanceId", "name", "intention", "commands", "status", "currentCommandIndex",
        "createdAt", "startedAt", "completedAt",
    }  # fmt: skip


async def test_instances_run_in_parallel_their_tasks_in_order(opened: Opening, site: Site) -> None:
    async with opened(slots=8) as booth:
        one = await booth.engine.instances.launch(instance_options(site))
        two = await booth.engine.instances.launch(instance_options(site))
        go = do("goto", url=f"{site.url}/static/1")
        set_it = do("evaluate", script="sessionStorage.n = +(sessionStorage.n || 0) + 1")
        held = await booth.start(go, FOREVER, instanceId=two.id)
        await running(booth, held.task_id, 1)
        records = [await booth.start(go, set_it, instanceId=one.id) for _ in range(4)]
        waiting = await booth.start(go, set_it, instanceId=two.id)
        ended = [await booth.engine.tasks.wait(record.task_id) for record in records]
        found = [await booth.look(record.task_id) for record in records]
        assert (await booth.look(waiting.task_id))["status"] == "queued"
        await booth.engine.commands.cancel(held.task_id)
        await booth.engine.tasks.wait(waiting.task_id)
        assert one.alive  # an instance that was there stays
    assert [record.status for record in ended] == ["COMPLETED"] * 4
    assert [each["commands"][1]["result"]["value"] for each in found] == [1, 2, 3, 4]
    for before, after in pairwise(found):
        assert before["completedAt"] <= after["startedAt"]


@pytest.mark.case("R74")
async def test_a_looping_page_does_not_block_the_next_task(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        instance = await booth.engine.instances.launch(instance_options(site))
        go = do("goto", url=f"{site.url}/static/1")
        stuck = do("evaluate", script="while (true) {}", timeout=300)
        first = await booth.run(go, stuck, instanceId=instance.id)
        second = await booth.run(go, do("get_text", selector="h1"), instanceId=instance.id)
    assert first["error"]["code"] == "COMMAND_TIMEOUT"
    assert second["status"] == "completed"


async def test_an_unknown_instance_is_refused_without_a_trace(opened: Opening) -> None:
    async with opened() as booth:
        with pytest.raises(InvalidArguments) as caught:
            await booth.start(do("reload"), instanceId="inst_00000000")
        assert not list((booth.home / "tasks").glob("[0-9a-f]*"))
    assert mistakes(caught.value) == {"instanceId": "unknown_instance"}


METADATA = {
    "requestId": "req-abc-123",
    "token": "not a secret of ours",
    "url": "http://u:p@example.com/?token=x",
    "nested": [{"": None}, [[]], 1.5, -0.0, 2**60, 1e300, "\u2028 😀 é"],
    "zeta": 0,
    "alpha": False,
}


async def test_metadata_comes_back_untouched_from_everywhere(opened: Opening, site: Site) -> None:
    before = json.dumps(METADATA)
    async with opened() as booth:
        record = await booth.start(do("goto", url=f"{site.url}/static/1"), metadata=METADATA)
        early = await booth.look(record.task_id)
        await booth.engine.tasks.wait(record.task_id)
        late = await booth.look(record.task_id)
        result = json.loads((booth.folder(record.task_id) / "result.json").read_bytes())
        small = await booth.start(do("list"), metadata={"a": {"token": "x"}})
        meta = await booth.engine.tasks.meta(small.task_id)
    for found in (early, late, result):
        assert json.dumps(found["metadata"]) == before
    assert meta["engine"]["metadata"] == {"a": {"token": "x"}}


async def test_a_rerun_keeps_metadata_unless_values_are_missing(opened: Opening) -> None:
    async with opened() as booth:
        whole = await booth.start(do("list"), metadata={"a": 1.5})
        typing = await booth.start(do("type", selector="#a", text="swordfish", timeout=1))
        rounded = await booth.start(do("list"), metadata={"a": 2**60})
        asked_for = asked(whole)
        again = await booth.engine.requests.start(
            asked_for.kind, asked_for.args, parent=whole.task_id
        )
        assert (await booth.look(again.task_id))["metadata"] == {"a": 1.5}
        with pytest.raises(TypedTextMissing):
            asked(typing)
        with pytest.raises(RequestCut, match="integers above"):
            asked(rounded)


async def test_both_ids_are_taken_everywhere(opened: Opening, home: Path) -> None:
    async with opened() as booth:
        record = await booth.start(do("list"))
        name = record.engine.command_task_id if record.engine else ""
        assert name
        ended = await booth.engine.tasks.wait(name)
        assert ended.task_id == record.task_id
        assert (await booth.look(name))["id"] == name
    looking = Engine(booth.engine.settings, accepts=False)
    await looking.open()
    assert (await looking.tasks.get(name)).task_id == record.task_id
    assert (await looking.tasks.meta(name))["task_id"] == record.task_id
    assert (await looking.tasks.events(name)).events
    assert (await looking.commands.cancel(name)).task_id == record.task_id
    result = await looking.tasks.result(name)
    assert result is not None
    result.close()
    assert await looking.contracts.budgets(name) is None
    assert (await looking.requests.asked(name)).kind == "commands"
    order = Order(task_id=name, format="jsonl")
    assert (await looking.exports.to_file(order, home / "out.jsonl")).task_id == record.task_id
    with pytest.raises(TaskNotFound):
        await looking.tasks.get("task_1_1")
    with pytest.raises(NotATaskId):
        await looking.tasks.get("task_1")
    await looking.close()


@pytest.mark.parametrize(
    ("verb", "given", "code"),
    [
        ("stop", {}, "not_stoppable"),
        ("recording export", {"format": "task", "output": "x.json"}, "not_a_recording"),
        ("update", {"phase": "act"}, "not_an_envelope"),
        ("finish", {"outcome": "completed"}, "not_an_envelope"),
        ("complete", {}, "illegal_transition"),
    ],
)
async def test_what_is_not_for_command_tasks_is_refused_alike_for_both_ids(
    opened: Opening, verb: str, given: dict[str, Any], code: str
) -> None:
    async with opened() as booth:
        record = await booth.start(do("list"))
        name = record.engine.command_task_id if record.engine else None
        await booth.engine.tasks.wait(record.task_id)
        said = [await refused(booth.engine, verb, given, each) for each in (name, record.task_id)]
    assert said == [code, code]


async def refused(engine: Engine, verb: str, given: dict[str, Any], task_id: str | None) -> str:
    """The code of the refusal of a verb that was given this id."""
    asked = {each.name: each.default for each in VERBS[verb].params} | given
    first = VERBS[verb].params[0].name
    with pytest.raises(EngineError) as caught:
        await VERBS[verb].call(engine, asked | {first: task_id})
    return caught.value.code


SECRETS = {"typed": "swordfish 77", "variable": "Tr0ub4dor&3 ü", "env": "correct-horse-battery"}


async def test_neither_typed_text_nor_a_secret_nor_a_variable_is_in_any_file(
    opened: Opening, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.answers["/echo"] = Answer(
        b"<!doctype html><title>t</title><input id=a><input id=b><input id=c><form id=f>"
        b"<p id=out></p></form><script>oninput = () => {"
        b"const all = [a.value, b.value, c.value];"
        b"document.title = all.join(' '); out.textContent = all.join(' ');"
        b"f.action = '/done?' + all.map(encodeURIComponent).join('&');"
        b"out.dataset.all = JSON.stringify(all);"
        b"history.replaceState({}, '', '?' + new URLSearchParams({all}));};"
        b"</script>"
    )
    async with opened(environ={"PW": SECRETS["env"]}) as booth:
        found = await booth.run(
            do("goto", url=f"{site.url}/echo"),
            do("type", selector="#a", text=SECRETS["typed"]),
            do("type", selector="#b", text="{{word}}"),
            do("type", selector="#c", text={"secret": "env:PW"}),
            do("get_text", selector="#out"),
            do("get_html"),
            do("get_viewport_dom"),
            do("evaluate", script="({['k' + a.value]: [b.value, c.value, location.href]})"),
            do("wait_for", selector="body"),
            do("screenshot"),
            do("status"),
            do("evaluate", script="throw new Error(document.title)"),
            variables={"word": SECRETS["variable"]},
        )
        files = contents(booth.home)
    assert states(found)[-2:] == ["success", "error"]
    assert found["commands"][4]["result"] == {"text": "[redacted] {{word}} [redacted]"}
    assert found["commands"][1]["args"]["text_length"] == len(SECRETS["typed"])
    for value in SECRETS.values():
        forms = {value, json.dumps(value)[1:-1], value.replace(" ", "+"), value.replace(" ", "%20")}
        for form in forms:
            leaks = [path for path, data in files.items() if form.encode() in data]
            assert not leaks, (form, leaks)
            assert form not in caplog.text


async def test_typed_text_is_masked_in_screenshots(opened: Opening, site: Site) -> None:
    site.answers["/field"] = Answer(b"<input id=a style='font-size:40px'>")

    async def picture(text: str, **more: Any) -> bytes:
        record = await booth.start(
            do("goto", url=f"{site.url}/field"),
            do("type", selector="#a", text=text, **more),
            do("screenshot"),
        )
        await booth.engine.tasks.wait(record.task_id)
        return (booth.folder(record.task_id) / "artifacts" / "command-003.png").read_bytes()

    async with opened() as booth:
        assert await picture("first") == await picture("other")
        assert await picture("first", keep_text=True) != await picture("other", keep_text=True)


async def test_a_missing_secret_is_found_before_anything_is_written(opened: Opening) -> None:
    async with opened(environ={}) as booth:
        with pytest.raises(InvalidArguments) as caught:
            await booth.start(do("type", selector="#a", text={"secret": "env:NOT_THERE"}))
        assert not list((booth.home / "tasks").glob("[0-9a-f]*"))
    assert mistakes(caught.value) == {"commands[0].args.text": "missing_secret"}


@pytest.mark.thorough
async def test_a_direct_call_and_a_task_give_the_same_bytes(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_own_limits(monkeypatch)
    document = task(
        do("goto", url=f"{site.url}/static/1"),
        do("get_text", selector="h1"),
        do("click", selector="#none", timeout=3_000),  # time enough to see that it is not there
        do("reload"),
        metadata={"n": 1.0},
    )
    clock = Clock(now_ms=lambda: 1_700_000_000_000)
    async with opened() as booth:
        booth.engine.own.executor._clock = clock  # type: ignore[union-attr]  # never None here
        tools: Tools = booth.engine._parts.tools
        record = await booth.engine.requests.start("commands", document)
        await booth.engine.tasks.wait(record.task_id)
        written = (booth.folder(record.task_id) / "result.json").read_bytes()
        told = json.loads(written)
        context = MemoryContext(now_ms=clock.now_ms)
        assert COMMANDS.parse_here is not None
        plan = msgspec.structs.replace(
            COMMANDS.parse_here(document, tools), task_id=told["id"], accepted_at=told["createdAt"]
        )
        with pytest.raises(TaskFailed) as failed:
            await COMMANDS.body(plan, context, tools)
        head = failed.value.head
        assert head is not None
    direct = direct_result(COMMANDS, head, map(msgspec.json.encode, context.pages))
    own, other = json.loads(direct)["instanceId"], told["instanceId"]
    assert direct.replace(own.encode(), other.encode()) == written


@pytest.mark.parametrize("switch", [True, False])
async def test_redact_content_is_configurable(opened: Opening, site: Site, switch: bool) -> None:
    key = "AKIA" + "ABCDEFGH" * 2
    site.answers["/keys"] = Answer(f"<title>{key}</title><p>{key} planted</p>".encode())
    go, read = do("goto", url=f"{site.url}/keys"), do("get_text", selector="p")
    typed = {"variables": {"word": "planted"}, "redact_content": switch}
    async with opened() as booth:
        done = await booth.run(go, read, **typed)
    shown = "[redacted]" if switch else key
    assert done["commands"][0]["result"]["title"] == shown
    assert done["commands"][1]["result"]["text"] == f"{shown} {{{{word}}}}"
    with pytest.raises(InvalidArguments, match="redact_content: must be true or false"):
        check(task(go, redact_content="no"))
