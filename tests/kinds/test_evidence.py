"""The kind `oc_evidence_bundle` with real Chromium: each part, and failing parts."""

import asyncio
import hashlib
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from html import escape

import pytest

from engine.browser.interact.command_errors import DownloadSkipped
from engine.browser.page.bundle_parts import PARTS
from engine.kinds.evidence_kind import EVIDENCE, FILES, parse_evidence
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, TaskFailed
from engine.model.records import Status
from engine.sample.site import Answer
from engine.service.engine import Engine
from tests.kinds.hash_distance import distance
from tests.support.far_limits import wait_for_answers
from tests.support.kept_browser import KeptSession
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

pytestmark = pytest.mark.usefixtures("kept_browser")
AWS_KEY, WORD = "AKIAZQ7XW4PLM2K9RTVB", "Zq7hunter2Xk"
EVERYTHING = {"include": list(PARTS), "network_window_ms": 600}


@asynccontextmanager
async def bundling(home, **settings):
    """`bundle(**args)` in one browser; gives the head, the parts by name and the files."""
    browser = KeptSession()
    tools = Tools(replace(Settings(home=home, root=home / "tasks"), **settings), browser)

    async def bundle(ctx=None, **args):
        ctx = ctx or MemoryContext()
        head = await EVIDENCE.body(EVIDENCE.parse(args), ctx, tools)
        return head, {part["part"]: part for part in ctx.pages}, ctx.artifacts

    try:
        yield bundle
    finally:
        await browser.aclose()


def page(title, body, **more):
    whole = f"<!doctype html><html><head><title>{escape(title)}</title></head><body>{body}</body>"
    return Answer(whole.encode(), **more)


async def test_every_part_is_a_file_that_its_record_describes(home, site, monkeypatch):
    wait_for_answers(monkeypatch)
    async with bundling(home) as bundle:
        head, parts, files = await bundle(url=f"{site.url}/js/1", **EVERYTHING)
    assert list(parts) == list(PARTS)
    assert head["path"] == "artifacts/"
    assert head["bundle_id"] == "bundle-" + MemoryContext().task_id
    assert head["size_bytes"] == sum(map(len, files.values()))
    assert (head["status"], head["settled"]) == (200, True)
    for name, part in parts.items():
        data = files[FILES[name]]
        assert part["file"] == f"artifacts/{FILES[name]}"
        assert part["bytes"] == len(data)
        assert part["sha256"] == hashlib.sha256(data).hexdigest()
    assert b"observation 000001 is complete" in files["dom.html"]  # put in by a script
    assert files["dom.html"].startswith(b"<!DOCTYPE html>")
    assert files["screenshot.png"].startswith(b"\x89PNG")
    assert json.loads(files["phash.json"])["hash"] == parts["phash"]["hash"]


async def test_the_page_as_html_holds_its_shadow_roots_as_declarative_ones(home, site):
    site.answers["/shadow"] = page(
        "Shadow",
        "<div id=a><template shadowrootmode=open><p>declared</p><b id=c></b></template>light</div>"
        "<script>c = a.shadowRoot.getElementById('c');"
        " d = c.appendChild(document.createElement('p'));"
        " d.attachShadow({ mode: 'open' }).innerHTML = '<i>' + 'inner</i>'</script>",
    )
    async with bundling(home) as bundle:
        _, _, files = await bundle(url=f"{site.url}/shadow", include="dom")
    text = files["dom.html"].decode()
    assert '<template shadowrootmode="open"><p>declared</p><b id="c"><p><template' in text
    assert "<i>inner</i>" in text
    assert text.rstrip().endswith("</html>")


async def test_the_page_is_taken_at_the_end_of_the_network_that_is_told(home):
    prose = "<p>" + "Whole with its markup. " * 20 + "</p>"
    late = "setTimeout(() => fetch('/late').then(a => a.text()).then(t => document.title = t), 900)"
    answers = {"/": page("at first", f"{prose}<script>onload = () => {late}</script>")}
    answers["/late"] = Answer(b"at last", 200, "text/plain", delay_s=0.2)
    with served(lambda asked: answers.get(asked.path, Answer(b"", 404))) as url:
        async with bundling(home) as bundle:
            asked = {"include": ["dom", "network"], "network_window_ms": 3_000}
            head, _, files = await bundle(url=f"{url}/", **asked)
    assert (head["title"], head["settled"]) == ("at last", True)
    assert b"<title>at last</title>" in files["dom.html"]
    entries = json.loads(files["network.json"])["entries"]
    assert any(entry["url"].endswith("/late") and "status" in entry for entry in entries)


async def test_the_network_is_summed_up_without_bodies_and_without_secrets(home, site):
    script = (
        "const headers = {'X-Api-Key': 'hush', Note: 'n'}; fetch('/gone');"
        "fetch('/api/page/1?token=abcdef', {headers}).then((answer) => answer.text())"
    )
    site.answers["/calls"] = page("Calls", f"<script>{script}</script>")
    for window_ms in (1_000, 10_000, 60_000):  # the first in which all of it has come
        async with bundling(home) as bundle:
            asked = {"include": "network", "network_window_ms": window_ms}
            _, parts, files = await bundle(url=f"{site.url}/calls", **asked)
        text = files["network.json"].decode()
        if text.count('"duration_ms"') == 3:
            break
    entries = {entry["url"]: entry for entry in json.loads(text)["entries"]}
    assert parts["network"]["entries"] == len(entries) >= 3
    assert entries[f"{site.url}/calls"]["type"] == "document"
    assert entries[f"{site.url}/gone"]["status"] == 404
    call = entries[f"{site.url}/api/page/1?token=[redacted]"]
    assert (call["method"], call["status"], call["type"]) == ("GET", 200, "fetch")
    assert call["bytes"] > 0
    assert call["duration_ms"] >= 0
    assert call["request_headers"]["note"] == "n"
    assert call["request_headers"]["x-api-key"] == "[redacted]"
    for secret in ("abcdef", "hush", "observation"):
        assert secret not in text


async def test_the_console_is_kept_plain_without_keys_and_to_its_newest_lines(home, site):
    script = (
        "for (let i = 0; i < 250; i++) console.log('line ' + i);"
        f"console.warn('password=hunter2 {AWS_KEY} http://u:{WORD}@x/?sid={WORD} \\u001b[31mred');"
        "setTimeout(() => { throw new Error('late') })"
    )
    site.answers["/talks"] = page("Talks", f"<script>{script}</script>")
    async with bundling(home) as bundle:
        _, parts, files = await bundle(url=f"{site.url}/talks", include=["console"])
    lines = [json.loads(line) for line in files["console.jsonl"].splitlines()]
    assert len(lines) == 200
    assert parts["console"]["lines"] == 252
    assert parts["console"]["truncated"] is True
    assert lines[-2]["type"] == "warning"
    assert lines[-1] == {"at_ms": lines[-1]["at_ms"], "type": "uncaught", "text": "Error: late"}
    assert lines[-2]["text"].startswith("password=hunter2 [redacted] http://x/?sid=[redacted] ")
    assert (lines[-2]["redacted"], parts["console"]["redacted"]) == (1, 1)
    assert b"\x1b" not in files["console.jsonl"]


async def test_the_hash_is_the_same_for_the_same_page_and_near_for_one_that_looks_alike(home, site):
    text = "".join(f"<h2>Part {n}</h2><p>{'word ' * 60 * n}</p>" for n in range(1, 7))
    site.answers["/a"] = page("A", text)
    site.answers["/b"] = page("B", text.replace("word word", "moon word", 1))
    site.answers["/c"] = page("C", "<div style='background:#124;height:400px;width:50%'></div>")
    hashes: dict[str, str] = {}
    async with bundling(home) as bundle:
        for name in ("a", "a", "b", "c"):
            _, parts, _ = await bundle(url=f"{site.url}/{name}", include=["phash"])
            assert hashes.setdefault(name, parts["phash"]["hash"]) == parts["phash"]["hash"]
    assert distance(hashes["a"], hashes["b"]) <= 6
    assert distance(hashes["a"], hashes["c"]) >= 12


async def test_a_page_cannot_fake_its_own_evidence(home, site):
    script = (
        "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'faked'});"
        "OffscreenCanvas = CanvasRenderingContext2D = createImageBitmap = undefined;"
    )
    site.answers["/fake"] = page("Fake", f"<script>{script}</script><p>real words</p>")
    async with bundling(home) as bundle:
        _, parts, files = await bundle(url=f"{site.url}/fake", include=["dom", "phash"])
    assert b"real words" in files["dom.html"]
    assert b">faked" not in files["dom.html"]
    assert "error" not in parts["phash"]


async def test_a_page_that_is_too_long_for_one_picture_is_cut_and_says_so(home, site):
    site.answers["/long"] = page("Long", "<div style='height:40000px'>top</div>")
    async with bundling(home) as bundle:
        _, parts, _ = await bundle(url=f"{site.url}/long", include=["screenshot"])
        assert parts["screenshot"]["truncated"] is True
        assert parts["screenshot"]["height"] == 16_000
        _, parts, _ = await bundle(url=f"{site.url}/long", include=["screenshot"], full_page=False)
        assert parts["screenshot"]["height"] == 800


async def test_one_part_that_fails_costs_the_others_nothing(home, site, monkeypatch):
    from engine.browser.interact.command_errors import PictureTooLarge
    from engine.browser.page import evidence

    async def too_large(*_, **__):
        raise PictureTooLarge(size_bytes=9, most_bytes=8)

    monkeypatch.setattr(evidence, "picture", too_large)
    ctx = MemoryContext()
    async with bundling(home) as bundle:
        head, parts, files = await bundle(ctx, url=f"{site.url}/static/1", **EVERYTHING)
    assert "too large" not in parts["dom"].get("error", "")
    assert "would have 9 bytes" in parts["screenshot"]["error"]
    assert "would have 9 bytes" in parts["phash"]["error"]
    assert sorted(files) == ["console.jsonl", "dom.html", "network.json"]
    assert ctx.progress[-1].failed == 2
    assert head["size_bytes"] > 0


async def test_a_page_that_does_not_open_still_leaves_its_network(home, site):
    ctx = MemoryContext()
    async with bundling(home) as bundle:
        with pytest.raises(TaskFailed, match="too many redirects") as failed:
            await bundle(ctx, url=f"{site.url}/loop", include=["dom", "network"])
    assert failed.value.failure == "page_error"
    assert failed.value.head is not None
    assert failed.value.head["size_bytes"] > 0
    assert [("error" in part) for part in ctx.pages] == [True, False]
    assert len(json.loads(ctx.artifacts["network.json"])["entries"]) >= 10


async def test_a_file_is_no_page_and_the_advice_fits_the_one_who_asked(home):
    with served(lambda _: Answer(b"PK", content_type="application/zip")) as url:
        async with bundling(home) as bundle:
            with pytest.raises(TaskFailed) as failed:
                await bundle(url=f"{url}/a.zip", include=["dom"])
    assert failed.value.failure == DownloadSkipped.code
    assert "gent" not in DownloadSkipped.advice_text  # a person may have asked


async def test_only_what_was_typed_may_be_reached_and_over_mcp_only_the_operators_list(home, site):
    from fixtures.site.site import Site

    with Site(pages=2) as other:
        async with bundling(home) as bundle:
            with pytest.raises(TaskFailed, match="blocked: "):
                await bundle(url=f"{site.url}/redirect/to?url={other.url}/static/1")
        async with bundling(home, route="mcp") as bundle:
            with pytest.raises(TaskFailed, match="blocked: "):
                await bundle(url=f"{other.url}/static/1")
        assert other.log == []
        allowed = (other.url.removeprefix("http://"),)
        async with bundling(home, route="mcp", allow_private=allowed) as bundle:
            head, _, _ = await bundle(url=f"{other.url}/static/1", include="dom")
        assert head["status"] == 200


@pytest.mark.parametrize(
    ("given", "path", "code"),
    [
        ({}, "url", "missing"),
        ({"url": "file:///etc/passwd"}, "url", "invalid_value"),
        ({"url": "http://a/", "tab": "tab_1"}, "tab", "not_together"),
        ({"url": "http://a/", "include": []}, "include", "invalid_value"),
        ({"url": "http://a/", "include": ["dom", "cookies"]}, "include", "invalid_value"),
        ({"url": "http://a/", "include": {"dom": True}}, "include", "invalid_value"),
        ({"url": "http://a/", "network_window_ms": 60_001}, "network_window_ms", "invalid_value"),
        ({"url": "http://a/", "inclde": ["dom"]}, "inclde", "unknown_argument"),
    ],
)
def test_every_mistake_in_a_bundles_arguments_is_named(given, path, code):
    with pytest.raises(InvalidArguments) as refused:
        parse_evidence(given)
    assert (path, code) in {(each.path, each.code) for each in refused.value.problems}


def test_the_defaults_of_a_bundle_are_those_of_the_contract():
    args = parse_evidence({"url": "http://ada:pw@a.example/"})
    assert args.include == ("dom", "screenshot")
    assert args.network_window_ms == 5_000
    assert args.url == "http://a.example/"
    assert parse_evidence({"url": "http://a/", "include": "console,dom"}).include == (
        "dom",
        "console",
    )


async def test_a_cancelled_bundle_keeps_the_parts_it_has(home, site, monkeypatch):
    async def never(camera):
        await asyncio.Event().wait()

    monkeypatch.setattr("engine.browser.page.evidence.TabCamera._screenshot", never)
    engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
    await engine.open()
    try:
        args = {"url": f"{site.url}/static/1", "include": ["dom", "screenshot"]}
        task_id = (await engine.requests.start("oc_evidence_bundle", args)).task_id
        async for batch in engine.tasks.changes():
            views = {str(view.task_id): view for view in batch.views}
            if task_id in views and views[task_id].units is not None:
                break
        await engine.commands.cancel(task_id)
        record = await engine.tasks.wait(task_id, timeout_ms=150_000)
        await engine.tasks.join(task_id)
    finally:
        await engine.close()
    result = json.loads((home / "tasks" / task_id / "result.json").read_bytes())
    assert record.status == Status.CANCELLED
    assert [part["part"] for part in result["parts"]] == ["dom"]
    assert result["bundle_id"] == f"bundle-{task_id}"
    assert (home / "tasks" / task_id / "artifacts" / "dom.html").exists()


async def test_a_living_tab_of_an_agent_is_taken_as_it_is(home, site):
    settings = Settings(home=home, root=home / "tasks", allow_private=(site.url[7:],))
    engine = Engine(settings, accepts=True)
    await engine.open()
    try:
        await engine.agents.call("navigate", {"url": f"{site.url}/static/1"}, agent_id="ada")
        code = "document.body.innerHTML = '<p>changed by hand</p>'"
        await engine.agents.call("javascript_tool", {"code": code}, agent_id="ada")
        hits = site.hits["/static/1"]
        found = {}
        for tab in ("tab_1", "tab_7"):
            task_id = (
                await engine.requests.start("oc_evidence_bundle", {"tab": tab, "include": "dom"})
            ).task_id
            found[tab] = await engine.tasks.wait(task_id, 150_000)
            await engine.tasks.join(task_id)
    finally:
        await engine.close()
    assert found["tab_1"].status == Status.COMPLETED
    dom = home / "tasks" / found["tab_1"].task_id / "artifacts" / "dom.html"
    assert b"changed by hand" in dom.read_bytes()
    assert site.hits["/static/1"] == hits
    assert found["tab_7"].error is not None
    assert found["tab_7"].error.code == "tab_missing"


async def test_what_stands_in_a_field_for_a_secret_is_in_no_file_of_a_bundle(home, site):
    site.answers["/login"] = page(
        "Login",
        "<input type=password value='hunter2-zz'><p>Yours is hunter2-zz</p>"
        "<script>console.log('typed', 'hunter2-zz'); fetch('/x?q=hunter2-zz')</script>",
    )
    async with bundling(home) as bundle:
        asked = {"include": ["dom", "network", "console"]}
        _, parts, files = await bundle(url=f"{site.url}/login", **asked)
    assert not [part for part in parts.values() if "error" in part]
    assert b"Yours is" in files["dom.html"]
    assert all(b"hunter2" not in data for data in files.values())
