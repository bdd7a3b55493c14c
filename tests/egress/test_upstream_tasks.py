"""Tasks of every kind go through their proxy alone, and keep no secret of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from engine.cli.trust_options import with_proxy
from engine.model.errors import InvalidArguments
from engine.model.proxies import DefaultProxy
from engine.model.records import TaskRecord
from engine.sample.site import Answer, Request
from engine.service.engine import Engine
from tests.commands.conftest import do, task
from tests.support.engines import opened, until
from tests.support.octask import Octask
from tests.support.ports import free_port
from tests.support.serving import served
from tests.support.upstream_proxy import RecordingProxy, upstream
from tests.trust.test_given_credentials import PART, leaks

HOST: Final = "shop.invalid"  # resolves nowhere: whatever is loaded came through the proxy
FRONT: Final = f"http://{HOST}"
FRAME: Final = "frame.invalid"  # the host of a frame in each page
USER: Final = ("ann", f"{PART}-7")
SECRET: Final = {"secret": "env:OF_THE_PROXY"}
ENVIRON: Final = {"OF_THE_PROXY": USER[1]}
STATIC: Final = ("--engine", "static", "--max-pages", "1", "--retries", "0")
FAST: Final = {"delay_ms": 0, "max_pages": 4, "retries": 0}
PAGE: Final = (
    b"<!doctype html><title>A shop</title><h1>A shop</h1><p>Words of the page.</p>"
    b"<img src=/pixel.png><script>fetch('/data');new WebSocket('ws://shop.invalid/socket')"
    b"</script><a href=/two>two</a><iframe src=http://frame.invalid/></iframe>"
)
REPEATED: Final = f"<p>The proxy's password is {USER[1]}.</p>".encode()
KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "static": ("crawl", {"url": FRONT, "engine": "static", **FAST}),
    "browser": ("crawl", {"url": FRONT, "block_resources": False, **FAST}),
    "auto": ("crawl", {"url": FRONT, "engine": "auto", **FAST}),
    "sitemap": ("crawl_sitemap", {"url": FRONT, "engine": "static", **FAST}),
    "evidence": (
        "oc_evidence_bundle",
        {"url": FRONT, "include": ["dom", "network"], "network_window_ms": 500},
    ),
    "recording": ("recording", {"url": FRONT, "headless": True, "duration_ms": 400}),
    "snapshot": ("oc_session_snapshot", {"objective": "x", "tabs": [FRONT], "visit": True}),
    "commands": ("commands", task(do("goto", url=FRONT), do("wait_for", selector="h1"))),
}


def shop(request: Request) -> Answer:
    """A page with all that browsers load, and what crawlers read."""
    if request.headers.get("host") == FRAME:
        return Answer(b"<p>Words of the frame.</p>")
    if request.path == "/robots.txt":
        return Answer(b"User-agent: *\nAllow: /\n", content_type="text/plain")
    if request.path == "/sitemap.xml":
        urls = f"<url><loc>{FRONT}/</loc></url><url><loc>{FRONT}/two</loc></url>"
        return Answer(f"<urlset>{urls}</urlset>".encode(), content_type="application/xml")
    return Answer(PAGE + REPEATED if request.headers.get("host") == HOST else PAGE)


@pytest.fixture
def shop_port() -> Iterator[int]:
    with served(shop) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def proxy(shop_port: int) -> Iterator[RecordingProxy]:
    with upstream(user=USER, routes={HOST: shop_port, FRAME: shop_port}) as running:
        yield running


@pytest.fixture
def nobodys_port() -> Iterator[int]:
    with free_port() as port:
        yield port


async def run(
    engine: Engine, kind: str, args: dict[str, Any], enough: Callable[[], bool] | None = None
) -> TaskRecord:
    """The record of this task after its end; it is stopped where there is `enough`."""
    started = await engine.requests.start(kind, args)
    if enough is not None:
        await until(enough)
        await engine.commands.stop(started.task_id)
    await engine.tasks.join(started.task_id)
    record = (await engine.tasks.get(started.task_id)).entry
    assert isinstance(record, TaskRecord)
    return record


def code_of(record: TaskRecord) -> str:
    return record.error.code if record.error is not None and record.error.code else record.status


def browser() -> str | None:
    return os.environ.get("OC_BROWSER")


@pytest.mark.thorough("auto")
@pytest.mark.parametrize("which", KINDS)
async def test_a_task_goes_through_its_proxy_alone_and_keeps_no_password(
    home: Path, kept_browser: object, proxy: RecordingProxy, which: str
) -> None:
    kind, args = KINDS[which]
    given = {"proxy": proxy.url, "proxy_username": "ann", "proxy_password": SECRET}
    enough = None
    if kind == "recording":  # its end waits for no frame
        args, enough = {**args, "duration_ms": None}, lambda: FRAME in proxy.hosts
    async with opened(home, environ=ENVIRON, browser_path=browser()) as engine:
        record = await run(engine, kind, {**args, **given}, enough)
        assert record.status == "COMPLETED", record
        asked = await engine.requests.asked(record.task_id)
        events = await engine.tasks.events(record.task_id, 0)
    assert {name: asked.args[name] for name in given} == given
    assert {HOST} <= proxy.hosts <= {HOST, FRAME}
    assert FRAME in proxy.hosts or which in ("static", "sitemap")
    told = [
        data["note"] for one in events.events if (data := one.data or {}).get("phase") == "proxy"
    ]
    assert told == [f"Connections go through the proxy {proxy.url}, which resolves names"]
    assert leaks(home) == []


@pytest.mark.thorough("auto")
@pytest.mark.parametrize("which", KINDS)
async def test_the_proxy_of_the_settings_is_for_tasks_that_ask_for_none(
    home: Path, kept_browser: object, proxy: RecordingProxy, which: str
) -> None:
    kind, args = KINDS[which]
    default = DefaultProxy(proxy.url, "ann", "env:OF_THE_PROXY", environ=ENVIRON)
    async with opened(home, proxy=default, browser_path=browser()) as engine:
        record = await run(engine, kind, args)
        assert record.status == "COMPLETED", record
    assert {HOST} <= proxy.hosts <= {HOST, FRAME}
    assert leaks(home) == []


async def test_none_and_an_exception_connect_directly(
    home: Path, shop_port: int, proxy: RecordingProxy
) -> None:
    default = DefaultProxy(proxy.url, "ann", "env:OF_THE_PROXY", environ=ENVIRON)
    url = f"http://127.0.0.1:{shop_port}/"
    passed = {"proxy": proxy.url, "proxy_bypass": ["127.0.0.1"]}
    async with opened(home, proxy=default, environ=ENVIRON) as engine:
        for more in ({"proxy": "none"}, passed):
            args = {"url": url, "engine": "static", **FAST, **more}
            record = await run(engine, "crawl", args)
            assert record.status == "COMPLETED", record
    assert not proxy.wanted


async def test_agents_use_the_proxy_of_the_settings(
    home: Path, kept_browser: object, proxy: RecordingProxy
) -> None:
    default = DefaultProxy(proxy.url, "ann", "env:OF_THE_PROXY", environ=ENVIRON)
    async with opened(home, proxy=default, browser_path=browser()) as engine:
        reply = await engine.agents.answer("navigate", {"url": FRONT})
    assert reply.ok, reply
    assert HOST in proxy.hosts
    assert PART not in f"{reply}"


@pytest.mark.parametrize("which", ["static", "browser", "evidence", "commands"])
async def test_a_wrong_proxy_ends_the_task_with_the_way_out(
    home: Path, kept_browser: object, proxy: RecordingProxy, nobodys_port: int, which: str
) -> None:
    kind, args = KINDS[which]
    wrong: dict[str, dict[str, Any]] = {
        "proxy_unreachable": {"proxy": f"http://127.0.0.1:{nobodys_port}"},
        "proxy_refused_user": {"proxy": proxy.url, "proxy_username": "bob"},
        "proxy_unusable": {"proxy": "env"},
    }
    if which == "commands":  # no start address, with which an HTTP proxy would check the user
        del wrong["proxy_refused_user"]
    async with opened(home, environ={}, browser_path=browser()) as engine:
        for code, given in wrong.items():
            record = await run(engine, kind, {**args, **given})
            assert (record.status, code_of(record)) == ("FAILED", code), record
            assert "--proxy" in str(record.error)
            units = record.engine.units if record.engine is not None else None
            assert units is None or not units.done
    assert not proxy.wanted


async def test_a_request_from_outside_may_not_choose_another_proxy(
    home: Path, proxy: RecordingProxy
) -> None:
    args = {"url": "https://a.test/", "engine": "static", **FAST}
    default = DefaultProxy(proxy.url)
    reached = {"proxy": proxy.url, "proxy_username": USER[0]}
    for settings, given, code in (
        (default, {"proxy": "none"}, "proxy_not_allowed"),
        (DefaultProxy(), {"proxy": "env"}, "proxy_not_allowed"),
        (DefaultProxy(), reached, "proxy_unreachable"),  # a private address
    ):
        async with opened(home, proxy=settings, route="mcp", environ={}) as engine:
            record = await run(engine, "crawl", {**args, **given})
        assert code_of(record) == code, record
    assert not proxy.connections


async def test_the_password_of_the_settings_is_not_one_of_a_request_from_outside(
    home: Path, proxy: RecordingProxy
) -> None:
    default = DefaultProxy(proxy.url, "ann", "env:OF_THE_PROXY", environ=ENVIRON)
    args = {"url": FRONT, "engine": "static", **FAST}
    async with opened(home, proxy=default, route="mcp", environ=ENVIRON) as engine:
        record = await run(engine, "crawl", args)
        assert record.status == "COMPLETED", record
        with pytest.raises(InvalidArguments, match="not allowed to programs"):
            await engine.requests.start(
                "crawl",
                {**args, "proxy": "http://h:1", "proxy_username": "x", "proxy_password": SECRET},
            )


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"proxy": f"http://ann:{PART}@h:1"}, "proxy", "proxy_username and proxy_password"),
        ({"proxy": "socks4://h:1"}, "proxy", "socks5://host:1080"),
        ({"proxy": "http://h:99999"}, "proxy", "http://host:8080"),
        ({"proxy": 7}, "proxy", "http://host:8080"),
        ({"proxy_username": "ann"}, "proxy_username", "needs proxy"),
        ({"proxy": "h:1", "proxy_password": "x"}, "proxy_password", "needs proxy_username"),
        ({"proxy": "none", "proxy_bypass": ["a"]}, "proxy_bypass", "proxy none"),
        ({"proxy": "h:1", "proxy_bypass": ["a b"]}, "proxy_bypass", "10.0.0.0/8"),
    ],
)
@pytest.mark.parametrize("kind", ["crawl", "oc_evidence_bundle", "recording", "commands"])
async def test_a_mistake_in_the_proxy_is_named(
    home: Path, kind: str, given: dict[str, Any], path: str, words: str
) -> None:
    args = {"url": "http://h.test/"} if kind != "commands" else KINDS["commands"][1]
    if kind == "commands" and "proxy_password" in given:
        words = "env:NAME"  # its documents hold references only
    async with opened(home, environ={}) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start(kind, {**args, **given})
    found = {problem.path: problem.message for problem in refused.value.problems}
    assert words in found[path]
    assert PART not in str(refused.value)


class Once(dict[str, int]):
    """A refusal that is given one time."""

    def get(self, key: str, default: Any = None) -> Any:
        return self.pop(key, default)


@pytest.mark.parametrize("engine_name", ["static", "browser"])
async def test_a_page_is_tried_again_after_a_failure_of_the_proxy(
    home: Path, kept_browser: object, shop_port: int, engine_name: str
) -> None:
    args = {**FAST, "url": FRONT, "engine": engine_name, "respect_robots": False, "max_pages": 1}
    with upstream("socks5h", routes={HOST: shop_port, FRAME: shop_port}) as proxy:
        proxy.refusals = Once({HOST: 5})
        async with opened(home, environ={}, browser_path=browser()) as engine:
            record = await run(engine, "crawl", {**args, "retries": 1, "proxy": proxy.url})
            lines = (home / "tasks" / record.task_id / "pages.jsonl").read_text("utf-8")
    assert record.status == "COMPLETED", record
    (page,) = map(json.loads, lines.splitlines())
    if engine_name == "browser":  # aiohttp itself sends a request again
        assert "connection refused" in page["earlier_errors"][0], page


async def test_a_retry_keeps_the_proxy(home: Path, shop_port: int) -> None:
    with upstream(routes={HOST: shop_port}, refusals={"gone.invalid": 502}) as proxy:
        async with opened(home, environ={}) as engine:
            urls = {"url": FRONT, "urls": ["https://gone.invalid/"], "max_depth": 0}
            args = {**urls, "engine": "static", **FAST, "proxy": proxy.url}
            record = await run(engine, "crawl", args)
            assert record.status == "COMPLETED", record
            remainder = await engine.requests.remainder(record.task_id)
    assert remainder.whole.args["proxy"] == proxy.url
    assert remainder.whole.args["url"] == "https://gone.invalid/"


def test_a_proxy_of_the_environment_is_used_only_when_asked(
    octask: Octask, proxy: RecordingProxy, shop_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["start", "crawl", f"http://127.0.0.1:{shop_port}/", *STATIC]
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", f"//{USER[0]}:{USER[1]}@"))
    octask(*words)
    assert not proxy.wanted
    octask(*words, "--proxy", "env")
    assert proxy.hosts == {"127.0.0.1"}
    before = len(proxy.wanted)
    monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
    octask(*words, "--proxy", "env")
    assert len(proxy.wanted) == before
    assert leaks(octask.home) == []


def test_octask_takes_the_proxy_from_options_and_its_variables(
    octask: Octask, proxy: RecordingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_PROXY", USER[1])
    words = ["start", "crawl", FRONT, *STATIC]
    given = ["--proxy", proxy.url, "--proxy-username", "ann"]
    octask(*words, *given, "--proxy-password", "env:OF_THE_PROXY")
    monkeypatch.setenv("OC_PROXY", proxy.url)
    monkeypatch.setenv("OC_PROXY_USERNAME", "ann")
    monkeypatch.setenv("OC_PROXY_PASSWORD", USER[1])
    before = len(proxy.wanted)
    task_id = octask(*words, "--detach").strip()
    octask("wait", task_id)
    assert len(proxy.wanted) > before
    assert {HOST} <= proxy.hosts <= {HOST, FRAME}
    told = octask("doctor")
    assert f"tasks go through {proxy.url}, which answers and resolves names" in told
    assert PART not in told
    assert leaks(octask.home) == []


def test_a_proxy_of_the_command_line_gets_no_user_of_another_one() -> None:
    user = {"proxy_username": "ann", "proxy_password": {"secret": "env:WORD"}}
    document = {"task_name": "x", "proxy": "http://a.example:1", **user, "proxy_bypass": ["b"]}
    other = {"proxy": "http://b.example:2"}
    assert with_proxy(document, other) == {"task_name": "x", **other}
    assert with_proxy(document, {"proxy_bypass": ["c"]}) == {**document, "proxy_bypass": ["c"]}
    assert with_proxy(document, {}) == document
