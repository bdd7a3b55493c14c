"""Every wait for the browser has a limit, or a named owner of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[2] / "engine" / "browser"
LIMITS = ("timeout(", "timeout_at(", "within(")
# What of Playwright waits for an answer, with or without a limit of its own.
ASKS = frozenset(
    {"goto", "reload", "go_back", "go_forward", "evaluate", "title", "content", "screenshot"}
    | {"send", "detach", "close", "dismiss", "accept", "cookies", "press", "bounding_box"}
    | {"new_page", "new_context", "new_cdp_session", "new_browser_cdp_session", "dispose"}
    | {"add_init_script", "wait_for", "wait_for_url", "wait_for_load_state", "frame_element"}
    | {"fill", "click", "hover", "press_sequentially", "select_option", "get_attribute"}
    | {"inner_text", "inner_html", "text_content", "count", "set_default_timeout"}
)
# Who sets the limit of what is asked in a function, where that is not the function itself.
BOUNDED_BY = {
    "agent_tab.prepare": "`open_tab`",
    "agent_tab.open_tab": "`Instance.new_page` bounds itself",
    "tab_pool._new_tab": "`CrawlContext._tab`",
    "cookie_jar.hear_cookies": "`CrawlContext._tab` and `Instance._adopt`",
    "tab_pool._bury": "`Tab.close` bounds itself",
    "tab_pool._end_unused": "`Tab.close` bounds itself",
    "tab_pool._end_capture": "the end of its tab: no body can be read after it",
    "click_links": "`Tab.click_links`",
    "command_pages": "`run_command`: the command's own limit",
    "command_reading": "`run_command`: the command's own limit",
    "command_target": "`run_command`: the command's own limit",
    "command_tools._close": "`Instances.close` bounds itself",
    "browser_instance._open": "`TabPool._open` and `open_instance`",
    "command_tools.awaiting_navigation": "`run_command`: the command's own limit",
    "screenshot_masking": "whoever takes the picture: `AgentTab.within`, `run_command`, `Recorder`",
    "evidence._lumas": "`TabCamera._phash`",
    "navigation_filter.open": "`launch`",
    "navigation_filter._enable": "`launch`, `_update`, and who opens a context",
    "extraction_options.is_importing": "`Tab.take`, and `AgentTab.within`",
    "browser_instance.page": "`new_page` bounds itself",
    "browser_instance._adopt": "`new_page`; of a stray window, the end of its instance",
    "element_actions": "`AgentTab.within`, around each call of an agent",
    "launch.know": "`launch`",
    "launch.close_all": "`_on_proxy`",
    "isolated_world.evaluate": "`AgentTab.within`",
    "consent._connect": "`TabConsent.attach`, and `TabConsent._on_navigated`",
    "consent._attach_frame": "`TabConsent._on_navigated`",
    "crawl_tab._open_blank": "`leave_page`",
    "crawl_tab._call": "`Tab.take`: the page's own limit",
    "crawl_tab._next_answer": "`Tab.take`: the page's own limit",
    "devtools_connection": "who waits for a command, as with Playwright's sessions",
    "direct_browser": "`launch`, `TabPool._open`, `CrawlContext`, and `close_context`",
    "direct_page": "`Tab.take`, `Tab.close`, and `goto` by itself",
    "pushed": "`CrawlContext._tab` and `Tab.take`: the page's own limit",
    "crawl_tab._take": "`Tab.take`, and `Tab.screenshot` bounds itself",
    "screenshot": "`AgentTab.within`",
    "recorder._listen": "`PageRecorder.attach`",
    "recorder.shown": "`PageRecorder.attach`",
    "recorder.shoot": "`PageRecorder.screenshot`",
    "screencast": "`watch`: a pane that is shown; called off when it is not",
    "browser_session": "pools, instances, drivers and the proxy bound their own ends",
    "isolated_world.open": "`open_tab`",
    "user_agent.present": "`CrawlContext._tab`, and `Instance.new_page`",
    "user_agent._send": "`_prepare`",
    "isolated_world._ask": "`AgentTab.within`",
}


def waits(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """(function, call) of everything asked of Playwright outside of any limit."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
            continue
        together = ast.unparse(node.value.func) == "asyncio.gather"
        for call in node.value.args if together else [node.value]:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            own = any(word.arg == "timeout" for word in call.keywords)
            if call.func.attr in ASKS and not own:
                function, bounded = _around(node, parents)
                if not bounded:
                    yield function, call


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> tuple[str, bool]:
    """The function that `node` stands in, and whether a limit stands around it there."""
    while (node := parents[node]) not in parents or not isinstance(
        node, (ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        if isinstance(node, ast.AsyncWith):
            kinds = " ".join(ast.unparse(item.context_expr) for item in node.items)
            if any(limit in kinds for limit in LIMITS):
                return "", True
        if node not in parents:
            return "", False
    return node.name, False


@pytest.mark.case("R74")
@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_every_wait_for_the_browser_is_bounded(path: Path) -> None:
    text = path.read_text("utf-8")
    if "playwright" not in text:
        return
    found = [
        f"line {call.lineno}: {ast.unparse(call)[:80]}"
        for function, call in waits(ast.parse(text))
        if not {path.stem, f"{path.stem}.{function}"} & BOUNDED_BY.keys()
    ]
    assert not found, "waits for ever: put a limit around it, or name who bounds it"


def test_a_wait_without_a_limit_is_found() -> None:
    free = ast.parse("async def look(page):\n    return await page.title()")
    assert [function for function, _ in waits(free)] == ["look"]
    bound = "async def look(page):\n    async with asyncio.timeout(2):\n        await page.title()"
    assert not list(waits(ast.parse(bound)))
    assert not list(waits(ast.parse("async def f(p):\n    await p.goto('x', timeout=5)")))
    together = "async def f(p):\n    await asyncio.gather(p.send('a'), p.send('b'))"
    assert len(list(waits(ast.parse(together)))) == 2


def test_nobody_is_named_for_a_wait_that_is_no_more() -> None:
    names = set()
    for path in ROOM.rglob("*.py"):
        found = {function for function, _ in waits(ast.parse(path.read_text("utf-8")))}
        names |= {f"{path.stem}.{function}" for function in found} | (
            {path.stem} if found else set()
        )
    assert not BOUNDED_BY.keys() - names
