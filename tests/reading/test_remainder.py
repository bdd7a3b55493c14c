from __future__ import annotations

from typing import Any

from engine.model.errors import AddressBlocked
from engine.results.units import unit_of
from engine.service.requests import problems
from engine.service.rerun import Asked, failed_urls, remaining_commands, remaining_pages

PAGES: list[dict[str, Any]] = [
    {"url": "http://site.test/1", "status": 200},
    {"url": "http://site.test/2", "status": 500, "error": "HTTP 500"},
    {"url": "http://site.test/2", "status": 500, "error": "HTTP 500"},
    {"url": "http://site.test/3", "error": "Blocked by robots.txt"},
    {"url": "file:///etc/passwd", "error": "no"},
    {
        "url": "http://192.168.0.1/",
        "error": str(AddressBlocked("http://192.168.0.1/", "private address")),
        "error_code": "blocked",
    },
]


def test_only_failed_pages_of_the_web_are_tried_again_each_once() -> None:
    units = [unit_of(page, number) for number, page in enumerate(PAGES)]
    assert failed_urls(units) == ["http://site.test/2"]


def test_the_start_of_a_retry_is_of_the_host_that_the_operator_named() -> None:
    asked = Asked("crawl", {"url": "http://127.0.0.1:8201/"})
    urls = ["http://site.test/1", "http://127.0.0.1:8201/2", "http://site.test/3"]
    found = remaining_pages("0" * 16, asked, urls)
    assert found.request is not None
    assert found.request.args["url"] == urls[1]
    assert found.request.args["urls"] == [urls[0], urls[2]]


def test_what_failed_becomes_one_crawl_of_these_pages_taken_as_before() -> None:
    args = {"url": "http://site.test/", "max_pages": 50, "screenshot": "all", "scope": "x/**"}
    urls = ["http://site.test/2", "http://site.test/9"]
    found = remaining_pages("0" * 16, Asked("crawl_sitemap", args), urls)
    assert (found.failed, found.taken) == (2, 2)
    assert found.request is not None
    assert found.request.kind == "crawl"
    assert found.request.args == {
        "screenshot": "all",
        "url": "http://site.test/2",
        "urls": ["http://site.test/9"],
        "max_depth": 0,
        "max_pages": 2,
    }
    assert problems(found.request.kind, found.request.args) == ()


def test_of_too_many_pages_the_first_are_retried_within_what_a_request_may_hold() -> None:
    urls = [f"http://site.test/{number}/{'x' * 200}" for number in range(9_000)]
    found = remaining_pages("0" * 16, Asked("crawl", {"url": urls[0]}), urls)
    assert found.failed == 9_000
    assert 2_000 < found.taken < 5_000
    assert found.request is not None
    assert problems(found.request.kind, found.request.args) == ()


def command(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_name": tool, "intention": "i", "args": args}


def test_commands_begin_again_at_the_last_page_before_the_failed_one() -> None:
    commands = [
        command("browser_navigate", action="goto", url="http://site.test/"),
        command("browser_navigate", action="goto", url="http://site.test/shop"),
        command("browser_interact", action="click", selector="#a"),
        command("browser_interact", action="click", selector="#b"),
    ]
    args = {"task_name": "n", "task_intention": "i", "commands": commands}
    found = remaining_commands(Asked("commands", args), ["success", "success", "success", "error"])
    assert found is not None
    assert found.args["commands"] == commands[1:]
    assert found.args["task_name"] == "n"
    assert remaining_commands(Asked("commands", args), ["success"] * 4) is None
