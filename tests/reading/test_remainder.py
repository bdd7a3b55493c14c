from __future__ import annotations

from typing import Any

from engine.again import Asked
from engine.remainder import failed_urls, remaining_commands, single_pages
from engine.service import Engine
from engine.units import unit_of

PAGES: list[dict[str, Any]] = [
    {"url": "http://site.test/1", "status": 200},
    {"url": "http://site.test/2", "status": 500, "error": "HTTP 500"},
    {"url": "http://site.test/2", "status": 500, "error": "HTTP 500"},
    {"url": "http://site.test/3", "error": "Blocked by robots.txt"},
    {"url": "file:///etc/passwd", "error": "no"},
]


def test_only_failed_pages_of_the_web_are_tried_again_each_once() -> None:
    units = [unit_of(page, number) for number, page in enumerate(PAGES)]
    assert failed_urls(units) == ["http://site.test/2"]


def test_a_single_page_is_taken_as_the_crawl_took_its_pages() -> None:
    args = {"url": "http://site.test/", "max_pages": 50, "screenshot": "all", "scope": "x/**"}
    (one,) = single_pages(Asked("crawl", args), ["http://site.test/2"])
    assert one.args == {
        "screenshot": "all",
        "url": "http://site.test/2",
        "max_depth": 0,
        "max_pages": 1,
    }
    assert Engine.problems(one.kind, one.args) == ()


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
