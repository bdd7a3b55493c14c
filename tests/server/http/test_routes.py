"""Every route of the HTTP face, and the status of every error."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest

from engine.budgets.envelopes import EnvelopeOfAnother
from engine.contracts.run_lifecycle import LifecycleTransitionError
from engine.model.errors import (
    LedgerAway,
    LedgerReadOnly,
    LockTimeout,
    NotATaskId,
    ProxyNotAllowed,
    ShuttingDown,
    TaskNotFound,
    TaskUnreadable,
    TransitionError,
)
from engine.results.site_audit import NoPagesToAudit
from engine.server.http_answers import status_of
from engine.server.http_routes import FACE, INCLUDED, ROUTES
from engine.service.engine import NotWaiting
from engine.service.rerun import Asked
from engine.verbs.verb_table import VERBS
from tests.commands.conftest import do, task
from tests.server.http.conftest import Serving
from tests.support.engines import until
from tests.support.times_of_day import far_time

NOBODY = "0123456789abcdef"
STATIC = {"engine": "static", "delay_ms": 0, "respect_robots": False}


def test_every_verb_of_the_face_has_a_route() -> None:
    offered = {verb.name for verb in VERBS.values() if FACE in verb.faces}
    assert {route.verb.name for route in ROUTES} | set(INCLUDED) == offered
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotATaskId(given="x"), 400),
        (TaskNotFound(task_id="x", root="/"), 404),
        (LedgerAway(task_id="x", root="/", limit_s=1), 503),
        (TransitionError(subject="x", source="a", target="b"), 409),
        (LifecycleTransitionError("x", "a", "b"), 409),
        (LockTimeout(task_id="x", waited_s=15), 503),
        (LedgerReadOnly(path="/"), 503),
        (ShuttingDown(), 503),
        (TaskUnreadable(task_id="x", reason="r", path="/"), 500),
        (NotWaiting(task_id="x", status="COMPLETED"), 409),
        (EnvelopeOfAnother(task_id="x", owner="y"), 403),
        (ProxyNotAllowed(), 403),
        (NoPagesToAudit(task_id="x"), 404),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_has_its_status(error: Any, status: int) -> None:
    assert status_of(error) == status


async def test_a_task_is_started_and_found_at_its_address(serving: Serving) -> None:
    async with serving() as client:
        body = {"objective": "look around", "name": "First", "metadata": {"ticket": 7}}
        async with client.session.post(
            client.url + "/tasks", json=body, headers=client.auth
        ) as made:
            assert made.status == 201
            place = made.headers["Location"]
            record = await made.json()
        assert place == f"/tasks/{record['task_id']}"
        assert record["engine"]["route"] == "http"
        shown = await client.get(place, params={"events": "true"})
        assert shown["status"] == "RUNNING"
        assert shown["engine"]["metadata"] == {"ticket": 7}
        assert shown["events"]


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"X-Client-Name": "nightly build", "User-Agent": "curl/8"}, "nightly build"),
        ({"User-Agent": "curl/8.5.0"}, "curl"),
        ({"X-Client-Name": "x" * 200}, "x" * 79 + "…"),
    ],
)
async def test_a_task_names_the_client_that_started_it(
    serving: Serving, headers: dict[str, str], name: str
) -> None:
    async with serving() as client:
        _, record = await client.call("POST", "/tasks", {"objective": "x"}, headers=headers)
        assert record["engine"]["client"] == name


async def test_the_list_is_filtered_by_query_parameters(serving: Serving) -> None:
    async with serving() as client:
        first, second = await client.envelope("one"), await client.envelope("two")
        await client.call("POST", f"/tasks/{first}/finish", {"outcome": "failed"})
        listed = await client.get("/tasks", params={"status": "running"})
        assert [one["task_id"] for one in listed["tasks"]] == [second]
        both = [("status", "running"), ("status", "failed"), ("kind", "browser_task")]
        assert (await client.get("/tasks", params=both))["count"] == 2
        assert (await client.get("/tasks?limit=1"))["count"] == 1
        assert (await client.get("/tasks?query=status:failed"))["count"] == 1
        for since, count in (
            ("1d", 2),
            (f"{'9' * 400}d", 2),
            ("2001-01-01", 2),
            ("4000000000000", 0),
        ):
            assert (await client.get(f"/tasks?since={since}"))["count"] == count
        for wrong in ("limit=x", "limit=-1", "limit=1&limit=2", "nothing=1", "since=soon"):
            assert await client.code("GET", f"/tasks?{wrong}") == (400, "invalid_arguments"), wrong
        assert (await client.code("GET", "/tasks?query=nosuch:1"))[0] == 400


async def test_an_unknown_argument_is_reported_with_the_one_that_was_meant(
    serving: Serving,
) -> None:
    async with serving() as client:
        _, found = await client.call("POST", "/runs", {"taskThreadId": "x"})
        assert found["error"]["message"] == (
            "taskThreadId: is no argument of POST /runs; did you mean task_thread_id?; "
            "task_thread_id: is needed"
        )
        _, found = await client.call("GET", "/tasks?limit=-1")
        assert found["error"]["message"].startswith("limit: must be from 0 to ")


async def test_a_long_list_is_answered(serving: Serving) -> None:
    async with serving() as client:
        for number in range(105):
            await client.engine.requests.start("browser_task", {"objective": str(number)})
        assert (await client.get("/tasks?limit=1000"))["count"] == 105


async def test_an_unknown_task_is_404_and_a_wrong_id_400(serving: Serving) -> None:
    async with serving() as client:
        for method, part in (
            *(("GET", ""), ("DELETE", ""), ("GET", "/events"), ("GET", "/result")),
            *(("GET", "/commands"), ("POST", "/wait"), ("POST", "/rerun"), ("POST", "/retry")),
            *(("POST", "/stop"), ("POST", "/update"), ("POST", "/complete")),
        ):
            body = {"phase": "act"} if part == "/update" else None
            missing = await client.code(method, f"/tasks/{NOBODY}{part}", body)
            assert missing[0] == 404, (method, part, missing)
            wrong = await client.code(method, f"/tasks/..%2f..%2fetc{part}", body)
            assert wrong[0] in (400, 404), (method, part, wrong)
            if "%2f" not in part:
                assert (await client.code(method, f"/tasks/ABC{part}", body))[0] == 400


async def test_what_the_router_does_not_know_is_typed(serving: Serving) -> None:
    async with serving() as client:
        assert await client.code("GET", "/nothing") == (404, "no_such_route")
        assert await client.code("GET", "/tasks/") == (404, "no_such_route")
        assert await client.code("PUT", "/tasks") == (405, "method_not_allowed")
        assert await client.code("OPTIONS", "/tasks") == (405, "method_not_allowed")
        async with client.session.put(client.url + "/tasks", headers=client.auth) as got:
            allowed = {name.strip() for name in got.headers["Allow"].split(",")}
        assert allowed == {"GET", "HEAD", "POST"}


async def test_a_delete_cancels_with_its_reason(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        status, record = await client.call("DELETE", f"/tasks/{task_id}?reason=no+longer+needed")
        assert (status, record["status"]) == (200, "CANCELLED")
        events = await client.get(f"/tasks/{task_id}/events", headers=_PLAIN)
        assert "no longer needed" in str(events["events"])
        status, record = await client.call("DELETE", f"/tasks/{task_id}", {"reason": "again"})
        assert (status, record["status"]) == (200, "CANCELLED")
        for more in ("all_matching=status:live", "dry_run=true", "yes=true"):
            refused = await client.code("DELETE", f"/tasks/{task_id}?{more}")
            assert refused == (400, "invalid_arguments")


async def test_a_body_may_have_one_text_instead_of_a_list(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        stopped = await client.post("/tasks/cancel", {"task_ids": task_id})
        assert [one["task_id"] for one in stopped["tasks"]] == [task_id]
        body = {"kind": "crawl"}
        status, found = await client.call("GET", "/tasks?kind=browser_task", body)
        assert (status, found["count"]) == (200, 1)


async def test_many_tasks_are_cancelled_after_a_look(serving: Serving) -> None:
    async with serving() as client:
        ids = [await client.envelope(), await client.envelope()]
        body: dict[str, Any] = {"all_matching": "status:live"}
        assert await client.code("POST", "/tasks/cancel", body) == (400, "not_confirmed")
        plan = await client.post("/tasks/cancel", {**body, "dry_run": True})
        assert sorted(plan["ids"]["at_once"]) == sorted(ids)
        done = await client.post("/tasks/cancel", {**body, "yes": True})
        assert {one["status"] for one in done["tasks"]} == {"CANCELLED"}


async def test_a_wait_answers_at_the_end_or_504(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        timed = await client.code("POST", f"/tasks/{task_id}/wait", {"timeout_ms": 50})
        assert timed == (504, "ETIMEDOUT")
        waiting = asyncio.ensure_future(client.post(f"/tasks/{task_id}/wait"))
        await asyncio.sleep(0.1)
        await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"})
        assert (await waiting)["status"] == "COMPLETED"


async def test_a_wait_ends_when_its_client_leaves(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        async with client.raw() as (_, writer):
            head = {"Content_Type": "application/json", "Content_Length": "24"}
            writer.write(client.head(f"POST /tasks/{task_id}/wait HTTP/1.1", **head))
            writer.write(b'{"timeout_ms": 99999999}')
            await writer.drain()
            await until(lambda: "wait poller" in _names_of_tasks())
        server = client.server._server
        assert server is not None
        await until(lambda: not server.server_state.tasks)


async def test_an_envelope_is_updated_and_finished_once(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        updated = await client.post(f"/tasks/{task_id}/update", {"phase": "act", "note": "n"})
        assert updated["phase"] == "act"
        assert (await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"}))["status"]
        again = await client.code("POST", f"/tasks/{task_id}/update", {"phase": "act"})
        assert again == (409, "envelope_ended")


async def test_a_crawl_is_followed_to_its_result_and_run_again(serving: Serving, site: Any) -> None:
    async with serving(allow_private=(f"127.0.0.1:{site.port}",)) as client:
        body = {"kind": "crawl", "args": {"url": site.url + "/", "max_pages": 3, **STATIC}}
        task_id = (await client.post("/tasks", body, 201))["task_id"]
        ended = await client.post(f"/tasks/{task_id}/wait")
        assert ended["status"] == "COMPLETED", ended
        part = await client.get(f"/tasks/{task_id}?result=true&limit=1")
        assert len(part["result"]["pages"]) == 1
        cursor = part["result_page"]["next_cursor"]
        more = await client.get(f"/tasks/{task_id}?result=1&cursor={cursor}")
        assert len(more["result"]["pages"]) == 2
        assert await client.code("GET", f"/tasks/{task_id}?result=1&cursor=x") == (
            400,
            "invalid_arguments",
        )
        whole = await client.get(f"/tasks/{task_id}/result")
        assert len(whole["pages"]) == 3
        async with client.session.post(
            client.url + f"/tasks/{task_id}/rerun", headers=client.auth
        ) as made:
            assert made.status == 201
            again = await made.json()
            assert made.headers["Location"] == f"/tasks/{again['task_id']}"
        assert again["engine"]["parent_task_id"] == task_id
        refused = await client.code("POST", f"/tasks/{task_id}/retry")
        assert refused == (409, "nothing_to_retry")
        refused = await client.code("POST", f"/tasks/{task_id}/stop")
        assert refused == (409, "not_stoppable")


async def test_a_private_address_is_refused_unless_the_operator_allowed_it(
    serving: Serving, site: Any
) -> None:
    async with serving() as client:
        body = {"kind": "crawl", "args": {"url": site.url + "/", "max_pages": 1, **STATIC}}
        status, data = await client.call("POST", "/tasks", body)
        if status == 201:  # accepted, and then refused where the page is opened
            ended = await client.post(f"/tasks/{data['task_id']}/wait")
            assert ended["status"] == "FAILED"
        assert not site.hits


async def test_a_command_task_answers_as_the_seed_says(serving: Serving) -> None:
    async with serving() as client:
        given = task(do("goto", url="https://example.invalid/"), metadata={"requestId": "r-1"})
        async with client.session.post(
            client.url + "/tasks", json=given, headers=client.auth
        ) as made:
            assert made.status == 201
            told = await made.json()
            submitted = told["task"]
            assert made.headers["Location"] == f"/tasks/{submitted['id']}"
            assert told["meta"]["engine"]["command_task_id"] == submitted["id"]
        assert submitted["id"].startswith("task_")
        assert submitted["metadata"] == {"requestId": "r-1"}
        shown = await client.get(f"/tasks/{submitted['id']}")
        assert shown["task"]["metadata"] == {"requestId": "r-1"}
        assert [one["id"] for one in shown["task"]["commands"]] == [f"{submitted['id']}_cmd_0"]
        assert shown["meta"]["kind"] == "commands"
        state = await client.get(f"/tasks/{shown['meta']['task_id']}/commands?results=false")
        assert state["task"]["id"] == submitted["id"]
        _, stopped = await client.call("DELETE", f"/tasks/{submitted['id']}")
        assert stopped["task"]["id"] == submitted["id"]
        assert stopped["meta"]["task_id"] == shown["meta"]["task_id"]
        started = await client.post("/tasks", {"kind": "commands", "args": given}, 201)
        assert started["task"]["metadata"] == {"requestId": "r-1"}
        assert started["meta"]["kind"] == "commands"
        await client.call("DELETE", f"/tasks/{started['task']['id']}")


async def test_all_mistakes_of_a_command_task_are_named_and_nothing_is_written(
    serving: Serving,
) -> None:
    async with serving() as client:
        bad = {"task_name": "", "commands": [{"tool_name": "nope", "args": {}}]}
        status, data = await client.call("POST", "/tasks", bad)
        assert (status, data["error"]["code"]) == (400, "invalid_arguments")
        assert len(data["error"]["problems"]) >= 3
        assert (await client.get("/tasks"))["count"] == 0


async def test_a_contract_refuses_an_early_completion_with_409(serving: Serving) -> None:
    async with serving() as client:
        goal = {"goal": "Read all", "contract": {"expected_total": 3, "item_key": "url"}}
        started = await client.post("/task-runs", goal, 201)
        run_id = started["task_run"]["run_id"]
        contract_id = started["bulk_progress_contract"]["contract_id"]
        await client.post(f"/contracts/{contract_id}/update", {"completed": ["a"]})
        status, data = await client.call("POST", f"/task-runs/{run_id}/complete", {})
        assert (status, data["error"]["code"]) == (409, "bulk_completion_guard_failed")
        assert data["error"]["completion_guard"]["missing_count"] == 2
        checked = await client.get(f"/contracts/{contract_id}/check")
        assert checked["completion_guard"]["allowed"] is False
        forced = {"force": True, "reason": "the rest is not needed"}
        path = f"/task-runs/{run_id}/complete"
        other = {**forced, "by": "the operator"}
        assert await client.code("POST", path, other) == (400, "invalid_arguments")
        done = await client.post(path, forced)
        assert done["task_run"]["status"] == "COMPLETED"
        assert done["task_run"]["forced"]["by"] == "Python", "the name of the client"


async def test_contracts_and_task_runs_have_their_routes(serving: Serving) -> None:
    async with serving() as client:
        async with client.session.post(
            client.url + "/contracts", json={"items": ["a"]}, headers=client.auth
        ) as made:
            assert made.status == 201
            place = made.headers["Location"]
        assert (await client.get(place))["bulk_progress_contract"]["expected_total"] == 1
        named = await client.get(place + "?include_items=true")
        assert named["bulk_progress_contract"]["items"] == ["a"]
        assert (await client.get("/contracts"))["count"] == 1
        run = (await client.post("/task-runs", {"goal": "g"}, 201))["task_run"]["run_id"]
        await client.post(f"/task-runs/{run}/update", {"progress_summary": "half"})
        await client.post(f"/task-runs/{run}/checkpoint", {"summary": "here"})
        await client.post(f"/task-runs/{run}/needs-help", {"reason": "log in"})
        shown = await client.get(f"/task-runs/{run}?events=true")
        assert shown["task_run"]["status"] == "NEEDS_HELP"
        assert (await client.get("/task-runs?status=needs_help"))["count"] == 1
        assert (await client.code("GET", f"/contracts/{NOBODY}"))[0] == 404
        assert (await client.code("GET", f"/task-runs/{NOBODY}"))[0] == 404


async def test_errors_recommend_routes(serving: Serving) -> None:
    async with serving() as client:
        run = (await client.post("/task-runs", {"goal": "g"}, 201))["task_run"]["run_id"]
        status, data = await client.call("POST", f"/task-runs/{run}/update", {"status": "FAILED"})
        assert (status, data["error"]["code"]) == (409, "invalid_task_run_transition")
        told = "Use POST /task-runs/{id}/complete to enter a terminal state"
        assert data["error"]["message"] == told
        _, data = await client.call("GET", f"/contracts/{NOBODY}")
        assert data["error"]["advice"].startswith("Look at GET /contracts, ")


async def test_runs_have_their_routes(serving: Serving) -> None:
    async with serving() as client:
        run = (await client.post("/runs", {"task_thread_id": "thread"}, 201))["runId"]
        await client.post(f"/runs/{run}/update", {"workflow_id": "w"})
        assert (await client.get(f"/runs/{run}"))["workflowId"] == "w"
        await client.post(f"/runs/{run}/complete")
        late = await client.code("POST", f"/runs/{run}/update", {"workflow_id": "v"})
        assert late[0] == 409
        assert (await client.get("/runs?status=completed"))["count"] == 1
        other = (await client.post("/runs", {"task_thread_id": "t"}, 201))["runId"]
        await client.post(f"/runs/{other}/abort", {"reason": "r"})
        third = (await client.post("/runs", {"task_thread_id": "t"}, 201))["runId"]
        await client.post(f"/runs/{third}/fail", {"reason": "r"})
        assert (await client.code("GET", "/runs/none"))[0] == 404


async def test_schedules_have_their_routes(serving: Serving, site: Any) -> None:
    args = {"url": site.url, "max_pages": 2, **STATIC}
    async with serving(allow_private=(site.url.removeprefix("http://"),)) as client:
        body = {"request": {"kind": "crawl", "args": args}, "every": "6h"}
        async with client.session.post(
            f"{client.url}/schedules", json=body, headers=client.auth
        ) as got:
            added = await got.json()
            assert (got.status, got.headers["Location"]) == (
                201,
                f"/schedules/{added['schedule_id']}",
            )
        place = f"/schedules/{added['schedule_id']}"
        assert (await client.get("/schedules"))["count"] == 1
        daily = {"daily": far_time("Europe/Berlin"), "zone": "Europe/Berlin"}
        changed = await client.post(f"{place}/change", daily)
        assert changed["rule"]["daily_at"] == daily["daily"]
        assert (await client.post(f"{place}/pause"))["next_at"] is None
        assert (await client.post(f"{place}/resume"))["next_at"] is not None
        run = await client.post(f"{place}/run", status=201)
        ended = await client.post(f"/tasks/{run['task_id']}/wait", {"timeout_ms": 60_000})
        assert (ended["status"], ended["engine"]["route"]) == ("COMPLETED", "http")
        assert (await client.get(place))["last"]["task_id"] == run["task_id"]
        operators = await client.engine.schedules.add(Asked("crawl", args), {"every_minutes": 60})
        other = f"/schedules/{operators.schedule.schedule_id}"
        for method, path in (("POST", "/change"), ("POST", "/run"), ("DELETE", "")):
            refused = await client.code(method, other + path, {} if method == "POST" else None)
            assert refused == (403, "schedule_of_operator")
        assert await client.call("DELETE", place) == (200, {"removed": added["schedule_id"]})
        assert await client.code("GET", place) == (404, "record_not_found")
        secret = {"url": "https://example.com/?token=s3cr3t-word"}
        body = {"request": {"kind": "crawl", "args": secret}, "every": "6h"}
        assert await client.code("POST", "/schedules", body) == (400, "schedule_secret")


async def test_orphans_are_reaped_on_request(serving: Serving) -> None:
    async with serving() as client:
        assert await client.post("/reap") == {"tasks": [], "refused": []}


async def test_a_failure_of_the_program_is_typed_and_its_log_has_no_body(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as client:

        async def fail(*_: Any, **__: Any) -> None:
            raise KeyError("planned")

        monkeypatch.setattr(client.engine.requests, "start", fail)
        got = await client.code("POST", "/tasks", {"objective": "a private aim"})
        assert got == (500, "internal_error")
        monkeypatch.undo()
        assert "planned" in caplog.text
        assert "a private aim" not in caplog.text
        assert client.token not in caplog.text
        await client.envelope()


async def test_arguments_of_the_program_cannot_be_given(serving: Serving) -> None:
    async with serving() as client:
        body = {"objective": "x", "caller": {"route": "cli"}}
        assert await client.code("POST", "/tasks", body) == (400, "invalid_arguments")
        assert await client.code("POST", "/tasks?kind=crawl", {}) == (400, "invalid_arguments")


async def test_mcp_is_served_beside_it(serving: Serving) -> None:
    import httpx2
    from mcp import Client as McpClient
    from mcp.client.streamable_http import streamable_http_client

    async with serving() as client:
        async with (
            httpx2.AsyncClient(headers=client.auth) as http,
            McpClient(streamable_http_client(client.url + "/mcp", http_client=http)) as host,
        ):
            made = await host.call_tool("oc_task_start", {"objective": "from a host"})
            assert not made.is_error, made
        listed = await client.get("/tasks")
        assert listed["tasks"][0]["engine"]["route"] == "mcp"


_PLAIN = {"Accept": "application/json"}


def _names_of_tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every file name is text")
async def test_a_file_whose_name_is_no_text_hides_no_other_file(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        folder = client.engine.settings.root / task_id / "artifacts"
        folder.mkdir()
        (folder / "page.png").write_bytes(b"\x89PNG")
        (folder / os.fsdecode(b"caf\xe9.png")).write_bytes(b"\x89PNG")
        named = (await client.get(f"/tasks/{task_id}?files=true"))["files"]
        assert [one["name"] for one in named] == ["artifacts/page.png"]


async def test_a_file_of_a_task_is_sent_with_its_type_and_never_shown(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        folder = client.engine.settings.root / task_id / "artifacts"
        folder.mkdir()
        (folder / "page.png").write_bytes(b"\x89PNG")
        (folder / "dom.html").write_text("<script>alert(1)</script>")
        named = (await client.get(f"/tasks/{task_id}?files=true"))["files"]
        assert sorted(one["name"] for one in named) == ["artifacts/dom.html", "artifacts/page.png"]
        for name, kind in (("page.png", "image/png"), ("dom.html", "text/plain; charset=utf-8")):
            address = f"{client.url}/tasks/{task_id}/files/artifacts/{name}"
            async with client.session.get(address, headers=client.auth) as got:
                assert (got.status, got.headers["Content-Type"]) == (200, kind)
                assert got.headers["Content-Disposition"] == "attachment"
                assert await got.read() == (folder / name).read_bytes()
        for name in ("meta.json", "artifacts/%2e%2e/meta.json", "artifacts/none.png"):
            path = f"/tasks/{task_id}/files/{name}"
            assert (await client.code("GET", path))[0] == 404
