"""`octask get` prints the facts of each kind and the state of every task."""

import json
from typing import Any

import pytest

from engine.sample.site import Answer
from tests.gui.result_ledgers import put_task
from tests.support.octask import FAST, Octask
from tests.support.serving import served

CONTRACT = '{"expected_total": 9, "item_key": "url", "stop_condition": "all of them"}'


def test_an_envelope_shows_its_contract_counts_and_missing_items(octask: Octask) -> None:
    words = ("start", "browser_task", "--objective", "count", "--contract", CONTRACT)
    task_id = octask(*words).strip()
    said = octask("get", task_id)
    assert "run:       " in said
    assert "0/9 url: 0 completed" in said
    assert "Bulk progress incomplete: 0/9 url items observed." in said
    assert said.index("Bulk progress") < said.index("arguments:")
    found = json.loads(octask("get", task_id, "--json"))
    assert found["completion_guard"]["missing_count"] == 9
    assert found["envelope"]["objective"] == "count"


def test_a_recording_tells_how_it_ended(octask: Octask, site: Any) -> None:
    words = ("--headless", "--duration-ms", "100", "--json")
    ended = json.loads(octask("start", "recording", f"{site.url}/shop/", *words))
    assert "ended by:  its limit of time" in octask("get", ended["task_id"])


@pytest.mark.thorough("200-False")
@pytest.mark.case("R62")
@pytest.mark.parametrize(("most", "told"), [(2, True), (200, False)])
def test_a_crawl_reports_its_page_limit(octask: Octask, site: Any, most: int, told: bool) -> None:
    words = ("--engine", "static", "--max-depth", "1", "--max-pages", str(most), "--json")
    ended = json.loads(octask("start", "crawl", site.url, *words))
    assert ("ended by:  its page limit" in octask("get", ended["task_id"])) is told


def test_a_crawl_tells_of_pages_that_show_nothing(octask: Octask) -> None:
    with served(lambda _: Answer(b"<html><body></body></html>")) as url:
        words = ("--engine", "static", "--max-pages", "1", "--json")
        ended = json.loads(octask("start", "crawl", url, *words))
    said = octask("get", ended["task_id"])
    assert "noticed:   1 page shows neither text nor link nor picture" in said


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        (3, "left out:  3 addresses with #/ or #!; `--fragments routes` follows them"),
        (1, "left out:  1 address with #/ or #!; `--fragments routes` follows it"),
        (0, ""),
    ],
)
def test_a_crawl_reports_skipped_routes(octask: Octask, site: Any, routes: int, told: str) -> None:
    links = "".join(f'<a href="#/{number}">x</a>' for number in range(routes))
    site.answers["/app"] = Answer(f"<title>t</title><a href='#top'>top</a>{links}".encode())
    ended = json.loads(octask("start", "crawl", f"{site.url}/app", *FAST, "--json"))
    said = octask("get", ended["task_id"])
    assert told in said
    assert ("left out" in said) is bool(told)


def test_client_and_route_are_printed_and_found(octask: Octask) -> None:
    task_id = octask("start", "browser_task", "--objective", "look").strip()
    assert "requested by: the command line" in octask("get", task_id)
    record = json.loads(octask("get", task_id, "--json"))
    assert (record["engine"]["route"], record["engine"].get("client")) == ("cli", None)
    file = octask.home / "tasks" / task_id / "meta.json"
    engine = {**record["engine"], "client": "a\u202eb\x1b[31m\nc", "route": "mcp"}
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "engine": engine}))
    assert "requested by: a\ufffdb\ufffd[31m c over MCP\n" in octask("get", task_id)
    assert task_id in octask("list", "--query", "route:mcp client:a*c")
    assert task_id not in octask("list", "--query", "route:cli")
    assert "is no value of route:" in octask("list", "--query", "route:ftp", code=2)


def test_a_damaged_result_is_printed_as_it_stands_and_is_an_error(octask: Octask) -> None:
    folder = put_task(octask.home, 1)
    (folder / "result.json").write_text('{"pages": [{"url": "http://a.test/')
    said = octask("get", folder.name, "--result", code=1)
    assert '{"pages": [{"url": "http://a.test/' in said
    assert "result.json is not valid JSON; it is printed as it stands" in said
    said = octask("get", folder.name, "--result", "--json", code=1)
    answer, end = json.JSONDecoder().raw_decode(said)
    assert answer["result"] is None
    assert "result.json is not valid JSON" in said[end:]
    assert "result.json" not in octask("get", folder.name)
