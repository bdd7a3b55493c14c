"""A task's user and password are in none of its files, for every kind."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest

from engine.export.exporter import FORMATS, Order
from engine.sample.site import HTML, Answer, Request, Server
from engine.secrets.given_secrets import Scrub
from tests.commands.conftest import do, task
from tests.support.engines import opened
from tests.support.serving import running
from tests.support.written_files import contents
from tests.trust.planted import unpacked

PART: Final = "Zq7Winter"  # letters stay as they are in every spelling
PASSWORD: Final = f"{PART} (20)26!*'~\"\\%&<é\u00a0x"
BASIC: Final = b64encode(f"ann:{PASSWORD}".encode()).decode()
FAST: Final = {"delay_ms": 0, "max_pages": 4, "retries": 0}
PICTURED: Final = {**FAST, "screenshot": "all"}
PARTS: Final = ["dom", "screenshot", "phash", "network", "console"]
SNAPSHOT: Final = {"objective": "go on", "visit": True}
COOKIES: Final = "cookies of the session are kept as they are"


class Repeating:
    """A server whose every answer repeats the password: in headers, markup, scripts, addresses."""

    def __init__(self) -> None:
        self.server = Server(self._answer, "127.0.0.1", 0)

    @property
    def front(self) -> str:
        return f"http://ann:{quote(PASSWORD, safe='')}@127.0.0.1:{self.server.port}"

    def _answer(self, request: Request) -> Answer:
        if "authorization" not in request.headers and request.path == "/private":
            return Answer(b"no", 401, headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        if request.path == "/robots.txt":
            return Answer(b"", 404)
        path = f"http://127.0.0.1:{self.server.port}"
        sent = quote(PASSWORD)
        if request.path.endswith(".xml"):
            pages = f"<url><loc>{path}/one?p={sent}</loc></url><url><loc>{path}/moved</loc></url>"
            return Answer(f"<urlset>{pages}</urlset>".encode(), content_type="text/xml")
        if request.path == "/moved":
            return Answer(b"", 302, headers=(("Location", f"/two?q={quote(sent)}"),))
        cut = "x" * (500 - len(PART) + 2)  # where long headers are cut off
        headers = (
            ("X-Echo", unquote(sent).encode().decode("latin-1")),
            ("X-Sent", f"{cut}{sent}"),
            ("X-Basic", BASIC),
            ("Link", f"</three?{sent}>; rel=next"),
        )
        status = 500 if request.path == "/broken" else 200
        return Answer(_page(sent).encode(), status, HTML, headers)


def _page(sent: str) -> str:
    plain, code = escape(PASSWORD), json.dumps(PASSWORD).replace("<", "\\u003c")
    return f"""<!doctype html><title>Hello {plain}</title><meta name=description content="{plain}">
<h1 title="{plain}">{plain} and {BASIC}</h1><a href="/three?p={sent}#{sent}">{plain}</a>
<a href="/moved">moved</a> <a href="/broken">broken</a><input id=f value="{plain}">
<script>const me = {code};
console.log("x".repeat({2_000 - len(PART) + 2}) + me); console.log(encodeURIComponent(me));
localStorage.seen = "1"; fetch("/echo?p=" + encodeURI(me)).catch(() => 0);
f.onfocus = () => {{ throw new Error(me) }}; history.replaceState(null, "", "#" + me);
</script>"""


@pytest.fixture
def repeating() -> Iterator[Repeating]:
    with running(Repeating()) as made:
        yield made


def requests(front: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every kind, with the address that has the password in it."""
    page, broken = f"{front}/one", f"{front}/broken"
    seen = task(
        do("goto", url=page),
        do("get_text", selector="h1"),
        do("get_html"),
        do("click", selector="#f"),
        do("evaluate", script="document.documentElement.outerHTML + encodeURI(me)"),
        do("screenshot"),
        do("expect", selector="h1", text="nothing", timeout=300),
    )
    return {
        "static": ("crawl", {"url": page, "engine": "static", **FAST}),
        "browser": ("crawl", {"url": page, "output_format": "structured", **PICTURED}),
        "broken": ("crawl", {"url": broken, "engine": "static", **FAST}),
        "sitemap": (
            "crawl_sitemap",
            {"sitemap_url": f"{front}/s.xml", "engine": "auto", **PICTURED},
        ),
        "evidence": ("oc_evidence_bundle", {"url": page, "include": PARTS, "label": PASSWORD}),
        "unopened": (
            "oc_evidence_bundle",
            {"url": page + "?%", "wait_for": PASSWORD, "timeout_ms": 400, "include": PARTS},
        ),
        "snapshot": ("oc_session_snapshot", {**SNAPSHOT, "tabs": [page], "notes": PASSWORD}),
        "commands": ("commands", seen),
        "recording": ("recording", {"url": page, "headless": True, "duration_ms": 400}),
    }


KINDS: Final = tuple(requests("http://x.test"))


@pytest.mark.parametrize("which", KINDS)
async def test_a_password_of_an_address_stands_in_nothing_that_is_left(
    home: Path, repeating: Repeating, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind, args = requests(repeating.front)[which]
    said = []
    async with opened(home) as engine:
        started = await engine.requests.start(kind, args)
        await engine.tasks.join(started.task_id)
        view = await engine.tasks.get(started.task_id)
        said += [repr(view), repr(await engine.tasks.events(started.task_id))]
        for form in FORMATS:
            target = home / f"export.{form}"
            await engine.exports.to_file(Order(started.task_id, form), target)
    folder = home / "tasks" / started.task_id
    assert (folder / "result.json").exists(), said
    assert leaks(home) == []
    assert PART not in "".join(said) + caplog.text


@pytest.mark.parametrize("password", ["title", "status", "content"])
async def test_a_field_name_as_password(home: Path, repeating: Repeating, password: str) -> None:
    front = repeating.front.replace(quote(PASSWORD, safe=""), password)
    async with opened(home) as engine:
        started = await engine.requests.start(
            "crawl", {"url": front + "/one", "engine": "static", **FAST}
        )
        await engine.tasks.join(started.task_id)
    folder = home / "tasks" / started.task_id
    assert json.loads((folder / "meta.json").read_text())["status"] == "COMPLETED"
    pages = [json.loads(line) for line in (folder / "pages.jsonl").read_text().splitlines()]
    assert all({"url", "status", "title", "content"} <= page.keys() for page in pages)


async def test_a_port_as_password_keeps_addresses(home: Path, repeating: Repeating) -> None:
    port = str(repeating.server.port)
    front = repeating.front.replace(quote(PASSWORD, safe=""), port)
    async with opened(home) as engine:
        started = await engine.requests.start(
            "crawl", {"url": front + "/one", "engine": "static", **FAST}
        )
        await engine.tasks.join(started.task_id)
    folder = home / "tasks" / started.task_id
    page = json.loads((folder / "pages.jsonl").read_text().splitlines()[0])
    assert page["url"] == f"http://127.0.0.1:{port}/one"
    assert f"ann:{port}" not in (folder / "meta.json").read_text()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("http://h.test:8080/x", "http://h.test:8080/x"),
        ("127.0.0.1:8080 refused", "127.0.0.1:8080 refused"),
        ("http://localhost:8080", "http://localhost:8080"),
        ('{"at": "http://[::1]:8080/"}', '{"at": "http://[::1]:8080/"}'),
        ("http://ann:8080@h.test/", "http://ann:[redacted]@h.test/"),
        ("ann:8080", "ann:[redacted]"),
        ("pin 8080.", "pin [redacted]."),
    ],
)
def test_only_behind_a_host_a_number_is_a_port(text: str, left: str) -> None:
    assert Scrub([("8080", "[redacted]")]).hide(text) == left


def leaks(home: Path) -> list[str]:
    found = []
    for path, packed in sorted(contents(home).items()):
        for data in unpacked(packed):
            at = max(data.find(one) for one in (PART.encode(), BASIC.rstrip("=").encode()))
            if at >= 0:
                found.append(f"{path.name}: {data[max(0, at - 60) : at + 80]!r}")
    return found
