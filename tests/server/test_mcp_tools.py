"""Tools of MCP: schemas, answers, progress, cancelling, trust, and who asked."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import pytest
from mcp import Client, MCPError

from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.server.mcp_server import McpServer
from engine.server.tool_table import TOOLS, tools_of
from engine.service.engine import Engine
from tests.gui.result_ledgers import put_task
from tests.server.conftest import MODES, Hosting, data, error, in_memory, place_of
from tests.support.endless_site import endless

FAST = {"delay_ms": 0, "respect_robots": False, "max_depth": 100}
PROMISED = (
    *("oc_task_start", "oc_task_list", "oc_task_get", "oc_task_cancel", "oc_task_wait"),
    *("oc_task_update", "oc_task_finish", "oc_task_run_start", "oc_task_run_get"),
    *("oc_task_run_list", "oc_task_run_update", "oc_task_run_checkpoint"),
    *("oc_task_run_needs_help", "oc_task_run_complete", "oc_bulk_progress_start"),
    *("oc_bulk_progress_update", "oc_bulk_progress_check", "task_submit", "task_status"),
    *("navigate", "read_page", "find", "interact", "act", "javascript_tool"),
    *("page_screenshot", "tabs_context"),
)


async def test_every_promised_tool_is_offered_with_a_schema_and_words(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert not {*PROMISED} - {*listed}
    for tool in listed.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert len(tool.description or "") > 30
    size = len(json.dumps([tool.model_dump(exclude_none=True) for tool in listed.values()]))
    assert size < 64_000, "a host gives all of this to its model"


@pytest.mark.parametrize("name", TOOLS)
def test_the_schema_of_a_tool_names_what_the_tool_accepts(name: str) -> None:
    tool = TOOLS[name]
    for argument in tool.input_schema["properties"]:
        tool.given({argument: None})
    assert "caller" not in tool.input_schema["properties"]


@pytest.mark.parametrize(
    ("tool", "given", "messages"),
    [
        (
            "task_submit",
            {"task_name": "Log in", "commands": []},
            [
                "task_name: is no argument of task_submit; did you mean task.task_name?",
                "commands: is no argument of task_submit; did you mean task.commands?",
                "task: is needed",
            ],
        ),
        (
            "oc_task_start",
            {"kind": "crawl", "url": "https://example.com/"},
            ["url: is no argument of oc_task_start; did you mean args.url?"],
        ),
        (
            "oc_task_run_update",
            {"runId": "0123456789abcdef", "completed": ["a"]},
            ["completed: is no argument of oc_task_run_update; did you mean completed_items?"],
        ),
        (
            "find",
            {"colour": "red"},
            [
                "colour: is no argument of find; there are query, limit, tab_id, timeout_ms,"
                " taskId, agentId",
                "query: is needed",
            ],
        ),
    ],
)
def test_an_unknown_argument_is_reported_with_the_one_that_was_meant(
    tool: str, given: dict[str, Any], messages: list[str]
) -> None:
    with pytest.raises(InvalidArguments) as wrong:
        TOOLS[tool].given(given)
    assert str(wrong.value) == "; ".join(messages)


async def test_one_text_is_taken_where_a_list_of_texts_is_asked_for(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        started = data(await client.call_tool("oc_task_start", {"objective": "look around"}))
        task_id = started["task_id"]
        for given, count in (
            ({"kind": "browser_task", "status": "RUNNING"}, 1),
            ({"kind": ["browser_task", "crawl"]}, 1),
            ({"status": "CANCELLED"}, 0),
            ({"since": "1d"}, 1),
            ({"since": "2001-01-01"}, 1),
            ({"since": 4_000_000_000_000}, 0),
        ):
            jsonschema.validate(given, TOOLS["oc_task_list"].input_schema)
            assert data(await client.call_tool("oc_task_list", given))["count"] == count
        stopped = data(await client.call_tool("oc_task_cancel", {"task_ids": task_id}))
        assert [one["status"] for one in stopped["tasks"]] == ["CANCELLED"]
        wrong = error(await client.call_tool("oc_task_list", {"status": 3}))
        assert wrong["problems"][0]["message"] == "must be a text or a list of texts"
        wrong = error(await client.call_tool("oc_task_list", {"since": "soon"}))
        assert wrong["problems"][0]["message"].startswith("must be a time, for example 1d")
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"status": "DONE"}, TOOLS["oc_task_list"].input_schema)


async def test_the_spelling_of_the_browser_tools_is_taken_by_the_others(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        started = data(await client.call_tool("oc_task_start", {"objective": "look around"}))
        given = {"taskId": started["task_id"]}
        assert data(await client.call_tool("oc_task_get", given))["task_id"] == given["taskId"]
        await client.call_tool("oc_task_update", {**given, "phase": "act"})
        ended = data(await client.call_tool("oc_task_finish", {**given, "outcome": "completed"}))
        assert (ended["status"], ended["phase"]) == ("COMPLETED", "done")
        both = {**given, "task_id": "0" * 16}
        assert error(await client.call_tool("oc_task_get", both))["problems"][0]["code"] == (
            "given_twice"
        )


def test_groups_limit_the_tools() -> None:
    assert {tool.group for tool in tools_of(["browser", "tasks"]).values()} == {"browser", "tasks"}
    assert len(tools_of([])) == len(TOOLS)


async def test_an_answer_is_what_the_command_line_writes_as_json(
    home: Path, places: list[str], site: Any, hosting: Hosting
) -> None:
    places.append(place_of(site.url))

    def octask(*words: str) -> Any:
        command = [sys.executable, "-P", "-m", "engine.cli", *words, "--home", str(home), "--json"]
        ran = subprocess.run(command, capture_output=True, check=True, env=dict(os.environ))
        return json.loads(ran.stdout)

    async with hosting("memory") as client:
        args = {"url": site.url, "max_pages": 2, **FAST}
        contract = {"expected_total": 2, "item_key": "url"}
        asked = {"kind": "crawl", "args": args, "contract": contract, "policy": {"maxToolCalls": 9}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        told = data(await client.call_tool("oc_task_wait", {"task_id": task_id}))
        assert told["status"] == "COMPLETED"
        both: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
            ("oc_task_get", {"task_id": task_id}, ("get", task_id)),
            ("oc_task_wait", {"task_id": task_id}, ("wait", task_id)),
            ("oc_run_list", {}, ("runs", "list")),
            ("oc_bulk_progress_list", {}, ("contract", "list")),
        ]
        for tool, arguments, words in both:
            answer = data(await client.call_tool(tool, arguments))
            assert answer == await asyncio.to_thread(octask, *words), tool


async def test_an_envelope_of_mcp_and_one_of_the_command_line_differ_in_route_and_times(
    home: Path, places: list[str], site: Any, hosting: Hosting
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        args = {"url": site.url, "max_pages": 1, **FAST}
        asked = {"kind": "crawl", "args": args, "agent_id": "tester", "task_thread_id": "thread-1"}
        await client.call_tool("oc_task_start", asked)
        task_id = data(await client.call_tool("oc_task_list", {}))["tasks"][0]["task_id"]
        await client.call_tool("oc_task_wait", {"task_id": task_id})
        words = ["start", "crawl", site.url, "--max-pages", "1", "--agent-id", "tester"]
        words += ["--thread-id", "thread-1", "--delay-ms", "0", "--home", str(home)]
        command = [sys.executable, "-P", "-m", "engine.cli", *words]
        await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        runs = data(await client.call_tool("oc_run_list", {}))["runs"]
    by_route = {run.pop("route"): run for run in runs}
    assert {*by_route} == {"mcp", "cli"}
    assert {*by_route["mcp"]} == {*by_route["cli"]}, "the same fields"
    for field in ("runId", "startedAt", "completedAt", "auditSessionId"):
        for run in by_route.values():
            run.pop(field, None)
    assert by_route["mcp"] == by_route["cli"]


async def test_a_task_carries_the_client_and_the_route(hosting: Hosting, home: Path) -> None:
    info = types.Implementation(name="claude\u202e-code\n", version="1")
    async with hosting("memory", client_info=info) as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look"}))
        found = data(await client.call_tool("oc_task_list", {"query": "route:mcp"}))
    assert [one["task_id"] for one in found["tasks"]] == [opened["task_id"]]
    assert opened["engine"]["route"] == "mcp"
    assert opened["engine"]["client"].startswith("claude")
    assert opened["engine"]["client"].isprintable()


async def test_a_list_has_what_chooses_a_task_and_the_task_itself_has_the_rest(
    hosting: Hosting, home: Path
) -> None:
    patterns = [f"*/section-{number}/**" for number in range(60)]
    args = {"url": "http://site.test:81/a", "include_patterns": patterns, "label": "x" * 500}
    ours = {"name": "weekly", "host": "vm", "boot_id": "b" * 36, "args": args, "route": "mcp"}
    lost = {"code": "net", "message": "no answer " * 90}
    for number in range(1, 4):
        put_task(home, number, status="FAILED", args_summary=args, engine=ours, error=lost)
    async with hosting("memory") as client:
        answer = await client.call_tool("oc_task_list", {})
        row = data(answer)["tasks"][0]
        whole = data(await client.call_tool("oc_task_get", {"task_id": row["task_id"]}))
        stopped = data(await client.call_tool("oc_task_cancel", {"task_ids": [row["task_id"]]}))
    assert (row["kind"], row["status"], row["engine"]) == ("crawl", "FAILED", {"name": "weekly"})
    assert row["args_summary"]["url"] == args["url"]
    assert (row["error"]["code"], len(row["error"]["message"])) == ("net", 200)
    assert row["view"]["standing"] == "failed"
    assert len(json.dumps(row)) < 1_000
    assert {*row} <= {*whole}, "the same fields in the same places"
    assert whole["args_summary"] == args
    assert stopped["tasks"] == [row]


async def test_a_task_in_a_list_has_each_field_of_the_contract(
    hosting: Hosting, home: Path
) -> None:
    path = f"/ledger/{'folder/' * 40}result.json"
    put_task(home, 1, args_summary={"url": "localhost/a"}, result_path=path)
    put_task(home, 2, args_summary={})
    truncated = {"_truncated": True, "_bytes": 3_000}
    told: dict[str, Any] = {"objective": "Buy tea", "budget_exceeded": ["toolCalls"]}
    told["budget_status"] = "exceeded"
    put_task(home, 3, kind="browser_task", args_summary=truncated, **told)
    put_task(home, 4, engine={"schedule": {"id": "5" * 16, "changes": {"before": "6" * 16}}})
    async with hosting("memory") as client:
        rows = data(await client.call_tool("oc_task_list", {}))["tasks"]
    addressed, bare, envelope, repeated = rows
    assert (addressed["result_path"], addressed["args_summary"]) == (path, {"url": "localhost/a"})
    assert bare["args_summary"] == {}
    assert told.items() <= envelope.items()
    assert repeated["engine"]["schedule"]["id"] == "5" * 16


async def test_a_list_is_answered_while_another_call_waits(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    async with hosting("memory") as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look"}))
        waiting = {"task_id": opened["task_id"], "timeout_ms": 30_000}
        wait = asyncio.create_task(client.call_tool("oc_task_wait", waiting))
        await asyncio.sleep(0)
        for _ in range(3):
            assert data(await client.call_tool("oc_task_list", {}))["count"] == 1
            assert not wait.done()
        done = {"task_id": opened["task_id"], "outcome": "completed"}
        await client.call_tool("oc_task_finish", done)
        assert data(await wait)["status"] == "COMPLETED"


@pytest.mark.parametrize("mode", MODES)
async def test_a_wait_reports_progress_and_can_be_cancelled(
    mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    heard: list[tuple[float, float | None, str | None]] = []
    twice = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 2:
            twice.set()

    async with hosting("memory", mode=mode) as client:
        asked = {"kind": "crawl", "args": {"url": endless(site), "max_pages": 10_000, **FAST}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        waiting = {"task_id": task_id, "timeout_ms": 600_000}
        wait = asyncio.create_task(
            client.call_tool("oc_task_wait", waiting, progress_callback=hear)
        )
        await twice.wait()
        assert heard[1][0] > heard[0][0]
        assert "page" in str(heard[1][2])
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)
        found = data(await client.call_tool("oc_task_get", {"task_id": task_id}))
        assert found["status"] == "RUNNING", "the wait was cancelled, not the task"
        await client.call_tool("oc_task_cancel", {"task_id": task_id})


async def test_a_wait_without_end_is_a_typed_error(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look"}))
        waiting = {"task_id": opened["task_id"], "timeout_ms": 50}
        assert error(await client.call_tool("oc_task_wait", waiting))["code"] == "ETIMEDOUT"


async def test_a_long_result_comes_in_parts(hosting: Hosting, places: list[str], site: Any) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        asked = {"kind": "crawl", "args": {"url": endless(site), "max_pages": 7, **FAST}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        await client.call_tool("oc_task_wait", {"task_id": task_id})
        urls: list[str] = []
        cursor: dict[str, str] = {}
        numbers: list[int] = []
        while True:
            part = {"task_id": task_id, "include_result": True, "limit": 3, **cursor}
            found = data(await client.call_tool("oc_task_get", part))
            urls += [page["url"] for page in found["result"]["pages"]]
            numbers.append(found["result_page"]["first"])
            if "next_cursor" not in found["result_page"]:
                break
            cursor = {"cursor": found["result_page"]["next_cursor"]}
        assert (len(urls), len({*urls}), numbers) == (7, 7, [0, 3, 6])
        assert found["result"]["summary"]["total_pages"] == 7
        small = {"task_id": task_id, "include_result": True, "max_bytes": 1_000}
        found = data(await client.call_tool("oc_task_get", small))
        assert len(json.dumps(found["result"]["pages"])) < 3_000
        wrong = {"task_id": task_id, "include_result": True, "cursor": "../x"}
        found = error(await client.call_tool("oc_task_get", wrong))
        assert found["problems"][0]["path"] == "cursor"


async def test_a_picture_is_image_content(hosting: Hosting, places: list[str], site: Any) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        await client.call_tool("navigate", {"url": site.url})
        answer = await client.call_tool("page_screenshot", {})
        (picture,) = [one for one in answer.content if one.type == "image"]
        assert picture.mime_type == "image/png"
        assert picture.data.startswith("iVBOR")


async def test_a_client_cannot_touch_the_tab_of_another(
    hosting: Hosting, places: list[str], site: Any, home: Path
) -> None:
    places.append(place_of(site.url))
    from mcp import Client

    async with in_memory(Settings.at(home=home), places) as face:
        names = (types.Implementation(name=name, version="1") for name in ("first", "second"))
        first, second = (Client(face.server, client_info=info) for info in names)
        async with first, second:
            opened = data(await second.call_tool("oc_task_start", {"objective": "look"}))
            tab = data(await first.call_tool("navigate", {"url": site.url}))["tab_id"]
            call = {"url": site.url, "tab_id": tab, "taskId": opened["task_id"]}
            await second.call_tool("navigate", {"url": site.url})
            wrong = error(await second.call_tool("navigate", call))
            assert wrong["code"] == "not_the_owner"
            assert wrong["fields"]["ownerAgentId"] == "first"
            part = {"task_id": opened["task_id"], "include_events": True}
            events = data(await second.call_tool("oc_task_get", part))["events"]
            assert "not_the_owner" in json.dumps(events), "what was refused is in the task's events"


async def test_a_program_reaches_no_private_address_that_is_not_allowed(
    hosting: Hosting, site: Any
) -> None:
    async with hosting("memory") as client:
        wrong = error(await client.call_tool("navigate", {"url": site.url}))
        assert wrong["code"] == "address_blocked"
        asked = {"kind": "crawl", "args": {"url": site.url, "max_pages": 1}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        found = data(await client.call_tool("oc_task_wait", {"task_id": task_id}))
        assert found["status"] == "FAILED"
        assert found["error"] == {
            "code": "nothing_taken",
            "message": "No page could be taken: blocked: private address; the operator allows it"
            " with --allow-private HOST:PORT, or in the settings of the window",
        }
        asked = {"kind": "oc_evidence_bundle", "args": {"url": site.url}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        found = data(await client.call_tool("oc_task_wait", {"task_id": task_id}))
        assert found["error"]["code"] == "address_blocked"
        assert "--allow-private" in found["error"]["message"]
    assert site.log == []


async def test_a_program_gets_no_secret_that_is_not_allowed(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch, home: Path, site: Any
) -> None:
    environ = {"ALLOWED": "open-sesame", "AWS_SECRET": "do-not-tell"}
    typing = {"action": "type", "selector": "input", "text": {"secret": "env:AWS_SECRET"}}
    go = {"action": "goto", "url": "https://example.com"}
    task = {
        "task_name": "Login",
        "task_intention": "log in",
        "commands": [
            {"tool_name": "browser_navigate", "intention": "go", "args": go},
            {"tool_name": "browser_interact", "intention": "type", "args": typing},
        ],
    }
    settings = replace(Settings.at(home=home), environ=environ, allow_secrets=("ALLOWED",))
    async with in_memory(settings) as face, Client(face.server) as client:
        wrong = error(await client.call_tool("task_submit", {"task": task}))
        (problem,) = wrong["problems"]
        assert problem["code"] == "missing_secret"
        assert "--allow-secret" in problem["message"]
        assert "do-not-tell" not in json.dumps(wrong)


async def test_lists_that_are_changed_hold_for_the_next_request_and_not_for_the_operator(
    home: Path, site: Any, kept_browser: object
) -> None:
    place = place_of(site.url)
    args = {"url": site.url, "max_pages": 1, **FAST}
    asked = {"kind": "crawl", "args": args}
    secret = {**args, "username": "ann", "password": {"secret": "env:GIVEN"}}
    engine = Engine(replace(Settings.at(home=home), environ={"GIVEN": "x"}), accepts=True)
    await engine.open()
    face = McpServer(engine)
    try:
        async with Client(face.server) as client:

            async def crawled() -> str:
                task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
                return str(
                    data(await client.call_tool("oc_task_wait", {"task_id": task_id}))["status"]
                )

            async def opened() -> bool:
                return not (await client.call_tool("navigate", {"url": site.url})).is_error

            assert (await crawled(), await opened()) == ("FAILED", False)
            wrong = await client.call_tool("oc_task_start", {"kind": "crawl", "args": secret})
            assert error(wrong)["problems"][0]["code"] == "missing_secret"
            await engine.allow([place], ["GIVEN"])
            assert (await crawled(), await opened()) == ("COMPLETED", True)
            data(await client.call_tool("oc_task_start", {"kind": "crawl", "args": secret}))
            await engine.allow([], [])
            assert engine.agents.sessions.agents == (), "its page was open there"
            assert (await crawled(), await opened()) == ("FAILED", False)
        operators = await engine.requests.start("crawl", secret)
        assert (await engine.tasks.wait(operators.task_id)).status == "COMPLETED"
    finally:
        await face.close()
        await engine.close()


async def test_an_unknown_tool_and_wrong_arguments_are_typed(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("rm_rf", {})
        assert unknown.value.error.code == types.INVALID_PARAMS
        for arguments in ({"task_id": 7}, {"task_id": "x", "caller": {}}, {"limit": -1}):
            found = error(await client.call_tool("oc_task_get", arguments))
            assert found["code"] in ("invalid_arguments", "not_a_task_id")


async def test_a_failure_of_ours_is_typed_and_has_no_traceback(
    hosting: Hosting, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting("memory") as client:

        async def break_down(*_: object, **__: object) -> None:
            raise RuntimeError("secret detail")

        monkeypatch.setattr("engine.service.queries.TaskQueries.list", break_down)
        answer = await client.call_tool("oc_task_list", {})
        assert error(answer)["code"] == "internal_error"
        assert "secret detail" not in answer.model_dump_json()


@pytest.mark.parametrize("value", [7, True, [], {"a": 1}, "x" * 201, "\ud800"])
@pytest.mark.parametrize("name", ["taskId", "agentId"])
async def test_a_wrong_id_in_a_browser_tool_is_a_mistake_with_its_name(
    name: str, value: Any, home: Path
) -> None:
    async with in_memory(Settings.at(home=home)) as face:
        tool = face.tools["tabs_context"]
        reply = await tool.verb.call(face._engine, tool.given({name: value}))
        (problem,) = reply.data["error"]["problems"]
        assert not reply.ok
        assert problem["path"] in ("task_id", "agent_id")


async def test_an_agents_id_belongs_to_its_client(places: list[str], site: Any, home: Path) -> None:
    from mcp import Client

    places.append(place_of(site.url))
    async with in_memory(Settings.at(home=home), places) as face:
        names = (types.Implementation(name=name, version="1") for name in ("first", "second"))
        first, second = (Client(face.server, client_info=info) for info in names)
        async with first, second:
            tab = data(await first.call_tool("navigate", {"url": site.url}))["tab_id"]
            call = {"tab_id": tab, "agentId": "first"}
            await second.call_tool("navigate", {"url": site.url, "agentId": "first"})
            assert error(await second.call_tool("read_page", call))["code"] == "not_the_owner"


async def test_a_counted_call_says_in_its_text_how_the_budget_stands(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        asked = {"objective": "look", "policy": {"maxToolCalls": 2}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        for _ in range(3):
            answer = await client.call_tool("navigate", {"url": site.url, "taskId": task_id})
        text = " ".join(one.text for one in answer.content if one.type == "text")
        assert f"Task {task_id}: 3 calls of 2, budget exceeded (maxToolCalls" in text
        assert "next: change_strategy_or_verify" in text


async def test_a_password_by_reference_is_never_sent_as_it_stands(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        args = {"url": site.url, "max_pages": 1, "username": "ann", "password": "env:MY_SECRET"}
        wrong = error(await client.call_tool("oc_task_start", {"kind": "crawl", "args": args}))
        (problem,) = wrong["problems"]
        assert (problem["path"], problem["code"]) == ("args.password", "missing_secret")
        assert "MY_SECRET is not allowed" in wrong["message"]
        alone = {"url": site.url, "password": "x"}
        wrong = error(await client.call_tool("oc_task_start", {"kind": "crawl", "args": alone}))
        assert "args.password: needs username" in wrong["message"]
    assert site.log == []


async def test_the_cancel_of_an_unknown_task_is_an_error(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        answer = await client.call_tool("oc_task_cancel", {"task_id": "0123456789abcdef"})
        assert error(answer)["code"] in ("task_not_found", "ledger_missing")


async def test_a_running_crawl_gives_a_cursor_to_what_it_finds_later(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        asked = {"kind": "crawl", "args": {"url": endless(site), "max_pages": 10_000, **FAST}}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        urls: list[str] = []
        cursor: dict[str, str] = {}
        while len(urls) < 5:
            part = {"task_id": task_id, "include_result": True, **cursor}
            found = data(await client.call_tool("oc_task_get", part))
            if found["result"] is None:
                continue
            urls += [page["url"] for page in found["result"]["pages"]]
            assert found["result_page"]["live"]
            cursor = {"cursor": found["result_page"]["next_cursor"]}
        assert len({*urls}) == len(urls)
        await client.call_tool("oc_task_cancel", {"task_id": task_id})


async def test_errors_recommend_tools(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        made = data(await client.call_tool("oc_task_run_start", {"goal": "g"}))
        run_id = made["task_run"]["run_id"]
        for status, tool in (("FAILED", "complete"), ("NEEDS_HELP", "needs_help")):
            asked = {"run_id": run_id, "status": status}
            wrong = error(await client.call_tool("oc_task_run_update", asked))
            assert wrong["message"].startswith(f"Use oc_task_run_{tool} to enter ")
            assert wrong["fields"] == {"step": f"oc_task_run_{tool}"}
        wrong = error(await client.call_tool("oc_bulk_progress_get", {"contract_id": "0" * 16}))
        assert wrong["advice"].startswith("Look at oc_bulk_progress_list, ")


async def test_errors_name_arguments_and_no_options(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        wrong = error(await client.call_tool("oc_task_cancel", {}))
        assert "--" not in wrong["message"]
        assert "all_matching" in wrong["message"]


@pytest.mark.parametrize("arguments", [{"objective": "x", "calls": "many"}, {"objective": "x"}])
async def test_a_prompt_refuses_a_value_that_makes_no_sense(
    hosting: Hosting, arguments: dict[str, str]
) -> None:
    async with hosting("memory") as client:
        with pytest.raises(MCPError) as wrong:
            await client.get_prompt("watch_a_budget", arguments)
        assert "calls" in wrong.value.error.message


def test_of_very_many_unknown_arguments_only_the_first_are_explained() -> None:
    with pytest.raises(InvalidArguments) as wrong:
        TOOLS["find"].given({f"quer{number}": 1 for number in range(1_000)})
    said = [problem.message for problem in wrong.value.problems]
    assert sum("did you mean query?" in one for one in said) == 20
    assert len(said) == 1_001
