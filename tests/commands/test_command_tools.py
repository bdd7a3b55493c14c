"""Each tool and each action on real Chromium, and the errors of those that fail."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_failures import as_failure
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Booth, Opening, do, failure, results
from tests.support.at_once import ended
from tests.support.far_limits import keep_own_limits
from tests.support.written_files import contents


def page(body: str, title: str = "t") -> Answer:
    return Answer(f"<!doctype html><title>{title}</title><body>{body}</body>".encode())


async def test_going_somewhere_and_through_the_history(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        first, second, back, forward, again, found = await results(
            booth,
            do("goto", url=f"{site.url}/static/1"),
            do("goto", url=f"{site.url}/static/2"),
            do("back"),
            do("forward"),
            do("reload"),
            do("wait_for", selector="h1"),
        )
    assert first == {"url": f"{site.url}/static/1", "title": "Field notes 1", "status": 200}
    assert [each["title"][-1] for each in (second, back, forward, again)] == ["2", "1", "2", "2"]
    assert found == {"found": True, "url": f"{site.url}/static/2"}
    assert site.hits["/static/2"] >= 2


async def test_a_page_that_says_404_is_taken_with_its_status(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        (found,) = await results(booth, do("goto", url=f"{site.url}/status/404"))
    assert found["status"] == 404


async def test_acting_on_a_page(opened: Opening, site: Site) -> None:
    site.answers["/form"] = page(
        "<input id=name value=old><textarea id=note></textarea><input id=day type=date>"
        "<select id=size><option value=s>Small<option value=l>Large</select>"
        "<button onclick=\"out.textContent='clicked'\">go</button>"
        "<p id=over onmouseenter=\"out.textContent='hovered'\">over</p><p id=out></p>"
        "<p id=keys></p><script>"
        "onkeydown = (e) => { if (e.target.id !== 'note') keys.textContent += e.key + ' ' }"
        "</script>"
    )
    value = "return [name_.value, note.value, day.value, size.value].join('|')".replace(
        "name_", "document.getElementById('name')"
    )
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/form"),
            do("click", selector="button"),
            do("get_text", selector="#out"),
            do("hover", selector="#over"),
            do("get_text", selector="#out"),
            do("type", selector="#name", text="new", keep_text=True),
            do("type", selector="#note", text="line one\nline two", keep_text=True),
            do("type", selector="#day", text="2026-02-03", keep_text=True),
            do("select", selector="#size", value="l"),
            do("evaluate", script=value),
            do("click", selector="#over"),
            do("keyboard", key="Control+ArrowLeft"),
            do("get_text", selector="#keys"),
        )
    assert done[2] == {"text": "clicked"}
    assert done[4] == {"text": "hovered"}
    assert done[5] == {"typed": 3}
    assert done[8] == {"selected": ["l"]}
    assert done[9] == {"value": "new|line one\nline two|2026-02-03|l"}
    assert done[12]["text"].endswith("Control ArrowLeft")
    assert "n e w" in done[12]["text"]  # typed key by key: pages listen to that


async def test_scroll_defaults_to_one_viewport(opened: Opening, site: Site) -> None:
    site.answers["/tall"] = page("<div style='width:5000px;height:9000px'>x</div>")
    site.answers["/box"] = page(
        "<style>html,body{margin:0;height:100%;overflow:hidden}</style>"
        "<div id=box style='height:100%;overflow:auto'><div style='height:4000px'>x</div></div>"
    )
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/tall"),
            do("scroll", direction="down", amount=500),
            do("scroll", direction="down"),
            do("scroll", direction="up", amount=100),
            do("scroll", direction="right", amount=70),
            do("scroll", direction="left"),
            do("goto", url=f"{site.url}/box"),
            do("scroll", direction="down", amount=300),
        )
    assert [(place["x"], place["y"]) for place in done[1:6]] == [
        (0, 500),
        (0, 1300),
        (0, 1200),
        (70, 1200),
        (0, 1200),
    ]
    assert done[7] == {"x": 0, "y": 300}


async def test_what_a_page_holds(opened: Opening, site: Site) -> None:
    site.answers["/content"] = page(
        "<h1>Head</h1><input id=secret value='preset'><p hidden>unseen</p>"
        "<button disabled>Press <b>me</b></button><div style='height:3000px'></div><p>below</p>",
        title="Content",
    )
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/content"),
            do("get_text", selector="h1"),
            do("get_html", selector="button"),
            do("get_html"),
            do("get_viewport_dom"),
            do("screenshot"),
            do("screenshot", selector="h1"),
        )
        text, part, whole, dom, shot, element = (c["result"] for c in done["commands"][1:])
        (folder,) = (booth.home / "tasks").glob("[0-9a-f]*")
        assert text == {"text": "Head"}
        assert part == {"html": '<button disabled="">Press <b>me</b></button>'}
        assert "<title>Content</title>" in whole["html"]
        assert (dom["title"], dom["truncated"]) == ("Content", False)
        assert dom["viewport"]["height"] == 800
        assert dom["viewport"]["page_height"] > 3000
        tags = {node["tag"]: node for node in dom["nodes"]}
        assert tags["button"]["disabled"] is True
        assert tags["button"]["text"] == "Press"
        assert tags["h1"]["depth"] == tags["body"]["depth"] + 1
        assert len(tags["h1"]["rect"]) == 4
        assert "preset" not in str(dom)
        assert not {"unseen", "below"} & {node.get("text") for node in dom["nodes"]}
        for told in (shot, element):
            data = (folder / told["path"]).read_bytes()
            assert data.startswith(b"\x89PNG")
            assert struct.unpack(">II", data[16:24]) == (told["width"], told["height"])
            assert told["bytes"] == len(data)
        assert (shot["width"], shot["height"]) == (1280, 800)
        assert element["height"] < 200


async def test_the_visible_elements_are_listed_as_displayed(opened: Opening, site: Site) -> None:
    site.answers["/displayed"] = page(
        "<script>class Node {} class HTMLSlotElement {}</script>"
        "<form><input name=adults><select name=children><option>1</select>"
        "<button>Go</button></form>"
        "<div id=host><b>slotted</b><i slot=other>not slotted</i></div>"
        "<div id=bare></div><details>closed<summary>Sum</summary><u>inside</u></details>"
        "<details open>open<summary>Up</summary><s>content</s></details>"
        "<script>host.attachShadow({mode: 'open'}).innerHTML = '<p>shadow <slot></slot></p>';"
        "bare.attachShadow({mode: 'open'}).innerHTML = '<slot><em>fallback</em></slot>'</script>"
    )
    async with opened() as booth:
        _, dom = await results(
            booth, do("goto", url=f"{site.url}/displayed"), do("get_viewport_dom")
        )
    nodes = [(node["tag"], node.get("text")) for node in dom["nodes"]]
    depths = {node["tag"]: node["depth"] for node in dom["nodes"]}
    assert nodes == [
        ("body", None),
        ("form", None),
        ("input", None),
        ("select", None),
        ("button", "Go"),
        ("div", None),
        ("p", "shadow"),
        ("b", "slotted"),
        ("div", None),
        ("em", "fallback"),
        ("details", None),
        ("summary", "Sum"),
        ("details", "open"),
        ("summary", "Up"),
        ("s", "content"),
    ]
    assert depths["b"] == depths["p"] + 1


async def test_scrolling_passes_a_form_with_a_field_named_parent_element(
    opened: Opening, site: Site
) -> None:
    site.answers["/form"] = page(
        "<style>html,body{margin:0;height:100%;overflow:hidden}</style>"
        "<script>class Node {}</script><div style='height:100%;overflow:auto'>"
        "<form style='height:4000px'><input name=parentElement></form></div>"
    )
    async with opened() as booth:
        _, place = await results(
            booth,
            do("goto", url=f"{site.url}/form"),
            do("scroll", direction="down", amount=300),
        )
    assert place == {"x": 0, "y": 300}


SCRIPTS: list[tuple[str, Any]] = [
    ("return document.title", "Scripts"),
    ("document.title", "Scripts"),
    ("() => 1 + 1", 2),
    ("async () => { return 'later' }", "later"),
    (
        "await new Promise(done => setTimeout(done, 5)); return [1, null, {a: 'b'}]",
        [1, None, {"a": "b"}],
    ),
    ("const a = 4; a + 1", None),
    ("({a: 1})  // a note", {"a": 1}),
    ("if (true) { return 'if' } return 'else'", "if"),
    ("[NaN, 2n ** 60n, undefined, -Infinity]", ["NaN", str(2**60), None, "-Infinity"]),
    ("new Date(0)", "1970-01-01T00:00:00+00:00"),
    ("document.cookie", ""),
]


async def test_scripts_may_return_be_an_expression_or_wait(opened: Opening, site: Site) -> None:
    site.answers["/scripts"] = Answer(
        b"<title>Scripts</title>", headers=(("Content-Security-Policy", "script-src 'none'"),)
    )
    commands = [do("evaluate", script=script) for script, _ in SCRIPTS]
    async with opened() as booth:
        done = await results(booth, do("goto", url=f"{site.url}/scripts"), *commands)
    assert [each["value"] for each in done[1:]] == [value for _, value in SCRIPTS]


async def test_stored_values_are_bounded(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        long, wide, round_, deep, node, text = await results(
            booth,
            do("evaluate", script="'x'.repeat(2_000_000)"),
            do("evaluate", script="Array.from({length: 100_000}, (_, i) => i)"),
            do("evaluate", script="const a = {}; a.self = a; return a"),
            do("evaluate", script="let a = 1; for (let i = 0; i < 90; i++) a = [a]; return a"),
            do("evaluate", script="document.body"),
            do("evaluate", script="'\\ud800 \\u0000 ok'"),
        )
    assert len(long["value"]) == 256 * 1024 + 1
    assert len(wide["value"]) == 20_000 - 1
    assert "…" in str(round_)
    assert "…" in str(deep)
    assert isinstance(node["value"], str)
    assert text["value"].endswith("ok")
    assert all(each["truncated"] for each in (long, wide, round_, deep))
    assert "truncated" not in node | text


HIDDEN = "<button id=b style='display:none'>x</button>"
COVERED = "<button id=b>x</button><div style='position:fixed;inset:0;background:red'>cover</div>"


AT_ONCE = 4  # tasks, each with a browser context of its own
REFUSED = [
    ("", do("click", selector="#b"), "COMMAND_TIMEOUT", "there is no such element"),
    (HIDDEN, do("click", selector="#b"), "COMMAND_TIMEOUT", "it is hidden"),
    (COVERED, do("click", selector="#b"), "COMMAND_TIMEOUT", "something else lies over it"),
    ("<button id=b disabled>x", do("click", selector="#b"), "COMMAND_TIMEOUT", "disabled"),
    ("<input id=b readonly>", do("type", selector="#b", text="x"), "COMMAND_TIMEOUT", "read-only"),
    (HIDDEN, do("wait_for", selector="#b"), "COMMAND_TIMEOUT", "hidden"),
    ("", do("evaluate", script="new Promise(() => {})"), "COMMAND_TIMEOUT", "not done within"),
    ("", do("evaluate", script="while (true) {}"), "COMMAND_TIMEOUT", "not done within"),
    ("<p id=b>text", do("type", selector="#b", text="x"), "EXECUTION_ERROR", "typed into"),
    ("<p id=b>text", do("select", selector="#b", value="x"), "EXECUTION_ERROR", "not a dropdown"),
    ("<select id=b>", do("select", selector="#b", value="x"), "COMMAND_TIMEOUT", "no such option"),
    ("", do("evaluate", script="throw new Error('boom')"), "EXECUTION_ERROR", "boom"),
    ("", do("evaluate", script="nothing.there"), "EXECUTION_ERROR", "nothing is not defined"),
    ("", do("evaluate", script="return ]"), "EXECUTION_ERROR", "cannot be read: SyntaxError"),
    ("", do("click", selector="a[[["), "INVALID_ARGUMENTS", "selector"),
    ("", do("click", selector="nonsense=x"), "INVALID_ARGUMENTS", "selector"),
    ("", do("get_text", selector="#b"), "COMMAND_TIMEOUT", "there is no such element"),
    ("", do("forward"), "EXECUTION_ERROR", "no page to go forward to"),
    ("", do("close", instanceId="inst_nothing"), "EXECUTION_ERROR", "no living instance"),
]


@pytest.mark.timeout(900)  # many cases in one browser
async def test_what_cannot_be_done_has_a_code_and_a_reason_of_one_line(
    opened: Opening, site: Site, subtests: pytest.Subtests
) -> None:
    for number, (body, *_) in enumerate(REFUSED):
        site.answers[f"/it/{number}"] = page(body)
    async with opened() as booth:
        cases = {
            number: refusal(booth, f"{site.url}/it/{number}", command, code, reason)
            for number, (_, command, code, reason) in enumerate(REFUSED)
        }
        said = await ended(cases, most=AT_ONCE)
    for number, (body, command, _, reason) in enumerate(REFUSED):
        with subtests.test(body=body, args=command["args"]):
            assert reason in said[number].result()


async def refusal(booth: Booth, url: str, command: dict[str, Any], code: str, reason: str) -> str:
    """What the command says on the page at `url`, with the first limit that was long enough.

    Only what has to run into its limit gets a short one; it gets more while that was too short
    for a busy machine to look at the element at all.
    """
    said = ("", "")
    for limit_ms in (500, 5_000, 20_000) if code == "COMMAND_TIMEOUT" else (30_000,):
        limited = {**command, "args": {**command["args"], "timeout": limit_ms}}
        said = await failure(booth, do("goto", url=url), limited)
        assert said[0] == code
        if reason in said[1]:
            break
    return said[1]


def test_an_element_that_was_found_is_not_said_to_be_missing() -> None:
    log = 'Timeout 500ms exceeded.\nCall log:\n  - waiting for locator("#b")\n'
    missing = as_failure(PlaywrightTimeout(log), 500, "#b")
    assert str(missing) == "not done within 0.5 s: #b (there is no such element)"
    log += "    - locator resolved to <b id=b>\n"
    found = as_failure(PlaywrightTimeout(log), 500, "#b")
    assert str(found) == "not done within 0.5 s: #b"
    log += "    - <p>x</p> intercepts pointer events\n    - waiting for element to be visible\n"
    covered = as_failure(PlaywrightTimeout(log), 500, "#b")
    assert str(covered).endswith("(something else lies over it: <p>x</p>)")


NOT_OPENED = [
    ("/hang", "COMMAND_TIMEOUT", "0.8 s"),
    ("/files/archive.zip", "EXECUTION_ERROR", "download"),
    ("/loop", "EXECUTION_ERROR", "too many redirects"),
    ("/redirect/to?url=http://169.254.169.254/", "EXECUTION_ERROR", "blocked"),
    ("/redirect/to?url=http://10.1.2.3/", "EXECUTION_ERROR", "blocked"),
]


async def test_an_address_that_cannot_be_opened_says_why(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    keep_own_limits(monkeypatch)
    async with opened() as booth:
        cases = {}
        for path, code, _ in NOT_OPENED:
            limit_ms = 800 if code == "COMMAND_TIMEOUT" else 30_000  # a busy machine is slow
            opening = do("goto", url=f"{site.url}{path}", timeout=limit_ms)
            cases[path] = failure(booth, opening)
        said = await ended(cases, most=AT_ONCE)
    for path, code, reason in NOT_OPENED:
        with subtests.test(path=path):
            found = said[path].result()
            assert found[0] == code
            assert reason in found[1]


async def test_a_private_address_off_the_list_is_refused(opened: Opening, site: Site) -> None:
    with Site() as other:
        script = f"location.href = 'http://127.0.0.1:' + {other.port}; 1"
        async with opened() as booth:
            await booth.run(
                do("goto", url=f"{site.url}/static/1"),
                do("evaluate", script=script),
                do("wait_for", selector="#never", timeout=700),
            )
        assert not other.log


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/", "http://[fd00:ec2::254]/"])
async def test_cloud_metadata_addresses_are_always_refused(opened: Opening, url: str) -> None:
    async with opened() as booth:
        code, reason = await failure(booth, do("goto", url=url, timeout=30_000))
    assert (code, reason) == ("EXECUTION_ERROR", "blocked: metadata address")


async def test_network_requests_cannot_list_private_addresses(opened: Opening, site: Site) -> None:
    async with opened(route="http") as booth:
        code, reason = await failure(booth, do("goto", url=f"{site.url}/static/1"))
    way_out = (
        "the operator allows it with --allow-private HOST:PORT, or in the settings of the window"
    )
    assert (code, reason) == ("EXECUTION_ERROR", f"blocked: private address; {way_out}")
    assert not site.log


async def test_address_credentials_are_sent_but_not_stored(opened: Opening, site: Site) -> None:
    with_password = site.url.replace("//", "//ada:s3cret@")
    async with opened() as booth:
        (found,) = await results(booth, do("goto", url=f"{with_password}/auth"))
        kept = b"".join(contents(booth.home).values())
    assert (found["status"], found["url"]) == (200, f"{site.url}/auth")
    assert b"s3cret" not in kept


async def test_instances_are_launched_listed_and_closed(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        made, listed, status, own = await results(
            booth,
            do("launch", width=640, height=480),
            do("list"),
            do("status"),
            do("goto", url=f"{site.url}/static/1"),
        )
        instance_id = made["instanceId"]
        assert [each["instanceId"] for each in listed["instances"]] == [instance_id]
        assert status["connected"] is False  # the task had needed no instance of its own yet
        assert own["status"] == 200
        assert [each.id for each in booth.engine.instances.living()] == [instance_id]
        size, told, closed, after = await results(
            booth,
            do("evaluate", script="[innerWidth, innerHeight].join('x')"),
            do("status"),
            do("close", instanceId=instance_id),
            do("status", instanceId=instance_id),
            instanceId=instance_id,
        )
        assert size == {"value": "640x480"}
        assert told["connected"] is True
        assert closed == {"instanceId": instance_id, "closed": True}
        assert after["connected"] is False
        assert not booth.engine.instances.living()
