"""The agents' tools for addresses, scripts, screenshots and tabs: answers and refusals."""

from __future__ import annotations

import asyncio
import json
import struct

import pytest

from engine.agents.reply import NoTabOpen, TabNotFound, UnknownTool
from engine.agents.tool_calls import TOOLS
from engine.browser.interact.command_errors import (
    ElementNotReady,
    NoHistory,
    PageUnreadable,
    ScriptFailed,
    ToolTimeout,
)
from engine.browser.page import extraction_options
from engine.model.errors import AddressBlocked, InvalidArguments, PageError
from engine.sample.site import Answer
from tests.agents.conftest import Desk, Opening
from tests.browser.conftest import Pages


def test_there_are_the_eight_tools_of_the_seed() -> None:
    assert list(TOOLS) == [
        *("navigate", "read_page", "find", "interact", "act"),
        *("javascript_tool", "page_screenshot", "tabs_context"),
    ]


async def test_open_waits_for_the_page_and_returns_its_address(desk: Opening) -> None:
    async with desk() as made:
        answer = await made.show(
            "<p id=p>x</p><script>setTimeout(() => p.textContent = 'late', 60)</script>"
        )
        assert answer.data == {
            "tab_id": "tab_1",
            "url": f"{made.pages.url}/",
            "title": "t",
            "status": 200,
            "settled": True,
        }
        assert answer.text == f'tab_1 is at {made.pages.url}/ "t" (HTTP 200).'
        assert await made.read() == "late"


async def test_a_selector_can_say_when_a_page_is_ready(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/"] = (
            "<script>setTimeout(() => document.body.innerHTML = '<b>up</b>', 700)</script>"
        )
        answer = await made.call("navigate", url=made.pages.url, wait_for="b")
        assert answer.data["settled"]
        assert await made.read() == "up"


async def test_scripts_that_compute_for_ever_hold_up_no_action_for_long(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "COMPUTES_MS", 600_000)  # of a page of a crawl
    step = (
        "for (const from = performance.now(); performance.now() - from < 5;); port2.postMessage(0)"
    )
    async with desk() as made:
        made.pages["/"] = (
            f"<p>words</p><script>const {{ port1, port2 }} = new MessageChannel();"
            f"port1.onmessage = () => {{ {step} }}; onload = () => port2.postMessage(0)</script>"
        )
        answer = await made.call("navigate", url=made.pages.url, timeout_ms=60_000)
    assert answer.data["settled"]


async def test_a_page_that_never_rests_is_there_at_the_limit_and_says_so(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/"] = "<p id=p></p><script>setInterval(() => p.textContent += 'x', 20)</script>"
        for limit_ms in (800, 4_000, 20_000, 60_000):
            answer = await made.agents.answer(
                "navigate", {"url": made.pages.url, "timeout_ms": limit_ms}
            )
            if answer.ok:  # else the machine was too slow to have it there by then
                break
        assert answer.data["settled"] is False
        assert "not come to rest" in answer.text


async def test_back_forward_and_reload(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/two"] = "two"
        await made.show("one")
        await made.call("navigate", url=f"{made.pages.url}/two")
        for action, path in (("back", "/"), ("forward", "/two"), ("reload", "/two")):
            answer = await made.call("navigate", action=action)
            assert answer.data["url"] == made.pages.url + path
        with pytest.raises(NoHistory, match="forward"):
            await made.call("navigate", action="forward")


@pytest.mark.parametrize("url", ["http://10.1.2.3/", "http://169.254.169.254/x", "http://[::1]:1/"])
async def test_private_addresses_need_an_entry_in_the_allowlist(desk: Opening, url: str) -> None:
    async with desk() as made:
        with pytest.raises(AddressBlocked):
            await made.call("navigate", url=url)


async def test_a_redirect_to_a_private_address_is_blocked(desk: Opening, elsewhere: Pages) -> None:
    async with desk() as made:
        made.pages["/r"] = Answer(status=302, headers=(("Location", f"{elsewhere.url}/in"),))
        with pytest.raises(AddressBlocked):
            await made.call("navigate", url=f"{made.pages.url}/r")
        assert not elsewhere.hits


async def test_an_http_error_is_a_page_but_a_dead_server_fails(desk: Opening, pages: Pages) -> None:
    gone = Pages()
    gone.server.start()
    gone.server.stop()
    places = (f"127.0.0.1:{pages.server.port}", f"127.0.0.1:{gone.server.port}")
    async with desk(allow_private=places) as made:
        answer = await made.call("navigate", url=f"{pages.url}/none")
        assert answer.data["status"] == 404
        with pytest.raises(PageError, match="refused"):
            await made.call("navigate", url=gone.url)
        with pytest.raises(PageUnreadable):
            await made.call("read_page")
        await made.show("here again")
        assert await made.read() == "here again"


async def test_a_download_is_refused(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/a.zip"] = Answer(b"PK", content_type="application/zip")
        with pytest.raises(PageError, match="download skipped"):
            await made.call("navigate", url=f"{made.pages.url}/a.zip")


async def test_a_page_that_does_not_answer_ends_with_the_limit(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/h"] = Answer(stops="before")
        await made.show("here")
        with pytest.raises(ToolTimeout):
            await made.call("navigate", url=f"{made.pages.url}/h", timeout_ms=500)
        await made.show("here again")
        assert await made.read() == "here again"


async def test_a_page_that_is_busy_for_ever_does_not_hold_a_call(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        with pytest.raises((ToolTimeout, ScriptFailed)):
            await reading_until_it_fails(made)


async def reading_until_it_fails(made: Desk) -> None:
    """Nothing tells when a page's own timer has begun: it may be within the call that sets it."""
    busy = "setTimeout(() => { for (;;); }, 150); return 0"
    async with asyncio.timeout(60):
        await made.call("javascript_tool", code=busy, timeout_ms=5_000)
        while True:
            await made.call("read_page", timeout_ms=500)


SCRIPTS = [
    ("1 + 1", 2),
    ("'a' + 'b';", "ab"),
    ("return [1, null, {a: true}]", [1, None, {"a": True}]),
    ("const x = 2; return x * 2", 4),
    ("await Promise.resolve(7)", 7),
    ("({a: undefined, b: NaN, c: 10n})", {"a": None, "b": "NaN", "c": "10n"}),
    ("(() => { const a = {}; a.a = a; return a })()", {"a": "[circular]"}),
    ("document.querySelector('p')", "<p#p> hello"),
    ("new Map([['a', new Set([1])]])", {"a": [1]}),
    ("undefined", None),
    (
        "[function f() {}, Symbol('s'), new Date(0)]",
        ["function f", "Symbol(s)", "1970-01-01T00:00:00.000Z"],
    ),
    (
        "({password: 'open sesame', url: 'http://u:p@h/'})",
        {"password": "[redacted]", "url": "http://h/"},
    ),
]


UNUSUAL = [
    ("new DataView(new Uint8Array([1, 2, 3]).buffer, 1)", [2, 3]),
    ("[new Uint8Array([1, 2]).buffer, new Float32Array([0.5])]", [[1, 2], [0.5]]),
    ("({a: 1, get b() { throw new Error('no') }, c: 2})", {"a": 1, "b": "[unreadable]", "c": 2}),
    ("[new Proxy({}, {ownKeys() { throw new Error('no') }})]", ["[unreadable]"]),
    ("document.forms[0]", "<form> search"),
    ("[frames[0].document.body, new (frames[0].Map)([['a', 1]])]", ["<body> framed", {"a": 1}]),
    ("[new URLSearchParams('a=1&b=2'), new URL('http://h/x')]", ["a=1&b=2", "http://h/x"]),
    ("[new Headers({b: '1', a: '2'}), /x/g]", ["a: 2\nb: 1", "/x/g"]),
    ("new FormData(document.forms[0])", "id: \ntextContent: \nnodeName: "),
    ("({list: [1], nested: {['__proto__']: 2}})", {"list": [1], "nested": {"__proto__": 2}}),
    ("[document.querySelector('p'), document.createTextNode('x')]", ["<p#p> hello", "#text x"]),
    ("[new window.Map([['a', 1]]), new window.Set([1]), document.links]", [{"a": 1}, [1], []]),
]
PATCHED = """<script>
class Map {} class Set {} class NodeList {} class Element {} class Date {} function Node() {}
Array.prototype.toJSON = Object.prototype.toJSON = () => 'page';
</script><p id=p>hello</p><iframe srcdoc="<body>framed"></iframe>
<form><input name=id><input name=textContent><input name=nodeName>search</form>"""


async def test_a_script_may_return_unusual_objects_on_a_page_that_redefines_classes(
    desk: Opening, subtests: pytest.Subtests
) -> None:
    async with desk() as made:
        await made.show(PATCHED)
        for code, wanted in UNUSUAL:
            with subtests.test(code=code):
                assert await made.script(code) == wanted
        assert (await made.script("document.all"))[1] == "<head> t"


async def test_a_script_gives_json_whatever_it_gives(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<p id=p>hello</p>")
        for code, wanted in SCRIPTS:
            assert await made.script(code) == wanted, code


FAILING_SCRIPTS = [
    ("throw new TypeError('no')", "TypeError: no"),
    ("let 1", "SyntaxError"),
    ("missing.x", "ReferenceError: missing is not defined"),
    ("Promise.reject('why')", "why"),
    ("for (;;);", "did not (end|answer) within 0.5 s"),
    ("new Promise(() => {})", "did not (end|answer) within 0.5 s"),
]


async def test_a_failed_script_reports_its_error(desk: Opening, subtests: pytest.Subtests) -> None:
    async with desk() as made:
        for code, told in FAILING_SCRIPTS:
            with subtests.test(code=code):
                await made.show("here")
                endless = "within" in told
                limit_ms = 500 if endless else 60_000
                # Of two limits that are over at once, after a standstill, the outer one may be
                # told.
                refusals = (ScriptFailed, ToolTimeout) if endless else ScriptFailed
                with pytest.raises(refusals, match=told):
                    await made.call("javascript_tool", code=code, timeout_ms=limit_ms)
                assert await made.read() == "here"


async def test_a_script_that_leads_elsewhere_is_answered_from_there(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/slow"] = Answer(b"<title>Slow</title>", delay_s=0.5)
        await made.show("here")
        code = "location.href = '/slow'; return 'gone'"
        answer = await made.call("javascript_tool", code=code)
        assert (answer.data["value"], answer.data["url"]) == ("gone", f"{made.pages.url}/slow")


async def test_what_a_script_gives_is_bounded(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        for code in ("'é'.repeat(500000)", "Array(5000).fill('x'.repeat(300))"):
            answer = await made.call("javascript_tool", code=code)
            assert len(answer.text.encode()) <= 256 * 1024
        assert answer.data["truncated"]


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


async def test_pictures_of_the_view_the_page_and_an_element(desk: Opening) -> None:
    async with desk() as made:
        await made.show(
            "<body style='margin:0'><div style='height:2500px'></div>"
            "<button style='width:120px;height:40px;display:block'>Go</button>"
        )
        view = await made.call("page_screenshot")
        page = await made.call("page_screenshot", full_page=True)
        button = await made.call("page_screenshot", ref=await made.ref("button", "Go"))
        assert view.image is not None
        assert page.image is not None
        assert button.image is not None
        assert size(view.image.data) == (1280, 800)
        assert size(page.image.data) == (1280, 2540)
        assert size(button.image.data) == (120, 40)
        assert (button.data["width"], button.data["height"]) == (120, 40)


async def test_tall_screenshots_are_cut_and_hidden_elements_have_none(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button id=b>Go</button><div style='height:40000px'></div>")
        ref = await made.ref("button", "Go")
        answer = await made.call("page_screenshot", full_page=True)
        assert (answer.data["height"], answer.data["cut"]) == (16_000, True)
        await made.script("b.style.display = 'none'; return 0")
        with pytest.raises(ElementNotReady, match="hidden"):
            await made.call("page_screenshot", ref=ref)


async def test_tabs_are_listed_used_and_closed(desk: Opening) -> None:
    async with desk() as made:
        assert (await made.call("tabs_context")).data == {"tabs": []}
        made.pages["/two"] = "two"
        await made.show("one")
        await made.call("navigate", url=f"{made.pages.url}/two", new_tab=True)
        tabs = (await made.call("tabs_context")).data["tabs"]
        assert [(tab["tab_id"], tab["url"], tab["current"]) for tab in tabs] == [
            ("tab_1", f"{made.pages.url}/", False),
            ("tab_2", f"{made.pages.url}/two", True),
        ]
        assert await made.read() == "two"
        assert await made.read(tab_id="tab_1") == "one"
        assert await made.read() == "one", "the tab that was used last is the one that is meant"
        await made.call("navigate", action="close", tab_id="tab_1")
        assert await made.read() == "two"
        with pytest.raises(TabNotFound, match="tab_1"):
            await made.call("read_page", tab_id="tab_1")


async def test_without_a_tab_only_opening_is_possible(desk: Opening) -> None:
    async with desk() as made:
        for tool, args in (("read_page", {}), ("act", {"instruction": "click x"})):
            with pytest.raises(NoTabOpen):
                await made.call(tool, **args)
        with pytest.raises(AddressBlocked):
            await made.call("navigate", url="http://10.0.0.1/")
        assert (await made.call("tabs_context")).data == {"tabs": []}, "it would show nothing"


MISTAKES = [
    ("navigate", {}, ["url"]),
    ("navigate", {"url": "ftp://x/"}, ["url"]),
    ("navigate", {"action": "back", "url": "http://a.example/"}, ["url"]),
    (
        "navigate",
        {"url": "http://a.example/", "timeout_ms": 5, "new_tab": "yes"},
        ["timeout_ms", "new_tab"],
    ),
    (
        "read_page",
        {"filter": "some", "offset": -1, "maxChars": 1},
        ["filter", "offset", "maxChars"],
    ),
    ("find", {}, ["query"]),
    ("find", {"query": " ", "limit": 51}, ["query", "limit"]),
    ("interact", {}, ["ref", "action"]),
    ("interact", {"ref": "ref_1_1", "action": "type"}, ["value"]),
    ("interact", {"ref": "ref_1_1", "action": "click", "value": "x"}, ["value"]),
    ("interact", {"ref": "ref_1_1", "action": "press", "value": "Nokey"}, ["value"]),
    ("interact", {"ref": "ref_1_1", "action": "fly"}, ["action"]),
    ("act", {"instruction": ""}, ["instruction"]),
    ("javascript_tool", {"code": 5}, ["code"]),
    ("page_screenshot", {"ref": "ref_1_1", "full_page": True}, ["full_page"]),
    ("tabs_context", {"x": 1}, ["x"]),
    ("tabs_context", [], [""]),
]


@pytest.mark.parametrize(("tool", "args", "paths"), MISTAKES)
async def test_every_mistake_is_named_before_a_browser_is_started(
    desk: Opening, tool: str, args: object, paths: list[str]
) -> None:
    async with desk() as made:
        with pytest.raises(InvalidArguments) as wrong:
            await made.agents.call(tool, args)
        assert [problem.path for problem in wrong.value.problems] == paths
        assert made.agents.sessions.agents == ()


async def test_the_names_that_mcp_hosts_use_mean_the_same(desk: Opening) -> None:
    async with desk() as made:
        await made.show("one")
        args = {"tabId": "tab_1", "maxChars": 1_000, "ref": None}
        answer = await made.agents.call("read_page", args)
        assert answer.data["tab_id"] == "tab_1"


async def test_an_unknown_tool_is_refused_with_the_known_ones(desk: Opening) -> None:
    async with desk() as made:
        with pytest.raises(UnknownTool, match="tabs_context"):
            await made.agents.call("computer", {})


async def test_a_refusal_can_be_had_as_an_answer(desk: Opening) -> None:
    async with desk() as made:
        answer = await made.agents.answer("read_page", {})
        assert not answer.ok
        assert answer.data["error"]["code"] == "no_tab_open"
        assert answer.text == (
            "No tab is open: This agent has no tab open yet. Open an address first, with navigate."
        )


async def test_a_tab_works_again_after_its_page_crashed(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        session = made.agents.sessions.find("default")
        assert session is not None
        (held,) = session.tabs.values()
        wire = held.tab.instance.wire(held.tab.page)
        code = "fetch('/under-way'); return new Promise(() => {})"
        waiting = asyncio.ensure_future(made.call("javascript_tool", code=code))
        async with asyncio.timeout(60):
            while not made.pages.hits["/under-way"]:
                await asyncio.sleep(0.02)
        crashing = asyncio.ensure_future(wire.send("Page.crash"))
        with pytest.raises(PageUnreadable, match="crashed"):
            await waiting
        crashing.cancel()
        await asyncio.gather(crashing, return_exceptions=True)
        await made.call("navigate", url=made.pages.url, new_tab=True)
        assert await made.read() == "x"


async def test_a_page_that_asks_whether_to_leave_it_is_left_and_that_is_told(desk: Opening) -> None:
    async with desk() as made:
        asks = "<script>onbeforeunload = (event) => event.preventDefault()</script>"
        await made.show(f"<button>edit</button>{asks}")
        await made.do("click", "button", "edit")
        made.pages["/next"] = "<p>next</p>"
        answer = await made.call("navigate", url=f"{made.pages.url}/next")
        assert answer.data["url"] == f"{made.pages.url}/next"
        assert answer.text.endswith("The page asked whether to leave it, and was left.")
        back = await made.call("navigate", action="back")
        assert (await made.call("navigate", action="reload")).data["url"] == back.data["url"]


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("Array.from({length: 1_001}, (_, at) => at)", 1_000),
        ("new Uint8Array(1_001)", 1_000),
        ("Object.fromEntries(Array.from({length: 1_001}, (_, at) => ['k' + at, at]))", 1_000),
        ("new Set(Array.from({length: 1_001}, (_, at) => at))", 1_000),
        ("[[[[[[[[[1]]]]]]]]]", 1),
    ],
)
async def test_a_value_that_is_cut_says_so(desk: Opening, code: str, kept: int) -> None:
    async with desk() as made:
        await made.show("x")
        answer = await made.call("javascript_tool", code=code)
        assert len(answer.data["value"]) == kept
        assert answer.data["truncated"]
        assert "\n… cut: at most 1,000 items of a list" in answer.text


async def test_a_whole_value_of_any_size_is_not_called_cut(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        for code in ("Array.from({length: 1_000}, (_, at) => at)", "undefined", "({a: [[1]]})"):
            answer = await made.call("javascript_tool", code=code)
            assert "truncated" not in answer.data
            assert "cut" not in answer.text


async def test_a_page_that_replaces_what_writes_json_gets_its_own_value(desk: Opening) -> None:
    async with desk() as made:
        for said in (5, {"a": 1}, [1, 2], [1, 2, 3], None):
            text = json.dumps(said).replace('"', "&quot;")
            await made.show(f"<body onload=\"JSON.stringify = () => '{text}'\">x")
            answer = await made.call("javascript_tool", code="[1]")
            assert answer.data["value"] == said
            assert "truncated" not in answer.data


async def test_reading_a_long_list_leaves_it_to_the_page_as_it_is(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<script>class Own extends Array { slice() { return this; } }</script>")
        await made.call("javascript_tool", code="globalThis.rows = Own.from({length: 1_500})")
        assert await made.script("rows.length") == 1_500


async def test_a_window_that_a_script_opens_is_reported_with_its_value(desk: Opening) -> None:
    async with desk() as made:
        await made.show("x")
        answer = await made.call("javascript_tool", code="window.open('/new') === null")
        url = f"{made.pages.url}/new"
        assert answer.data["refused"] == [{"what": "window", "url": url}]
        assert f"A new window was refused: {url}." in answer.text
        assert "refused" not in (await made.show("y")).data
