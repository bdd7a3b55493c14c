"""No picture shows a password that a task was given, whatever its kind and however it is spelt.

A page that says it again is taken with one password and with another one of the same length:
where it is painted over, both pictures are the same, and beside it the page is as it was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from engine.sample.site import HTML, Answer, Request, Server
from tests.commands.conftest import do, task
from tests.support.engines import opened
from tests.support.serving import running

ONE, OTHER = "Winter (20)26!é", "Sommer (31)48!ü"
# Chromium takes up to three letters for a space here, and base64 of both is equally long.
STYLE: Final = "<style>*{font:15px monospace}input{width:400px}</style><title>t</title>"
FAST: Final = {"delay_ms": 0, "max_pages": 1, "retries": 0, "respect_robots": False}


class Repeating:
    """A server that says the password again which it was sent, in the ways that pages do."""

    def __init__(self) -> None:
        self.server = Server(self._answer, "127.0.0.1", 0)
        self.said: list[str] = []

    def _answer(self, request: Request) -> Answer:
        sent = request.headers.get("authorization", "")
        if not sent:
            return Answer(b"no", 401, headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        if request.path == "/favicon.ico":
            return Answer(b"", 404)
        password = b64decode(sent.removeprefix("Basic ")).decode().partition(":")[2]
        self.said.append(password)
        status = 500 if request.path == "/broken" else 200
        return Answer(_page(password).encode(), status, HTML)


def _page(password: str) -> str:
    code = "".join(f"\\u{ord(sign):04x}" for sign in password)
    ways = (
        *(password, password.upper(), quote(password), quote(quote(password)), code),
        *(b64encode(password.encode()).decode(), password.encode().hex()),
        *(json.dumps(password), escape(password).replace("(", "&#40;")),
    )
    lines = "".join(f"<p>says {escape(way)} to you</p>" for way in ways)
    return f"""<!doctype html>{STYLE}<h1>Stays</h1>{lines}<input value="{escape(password)}">
<p><b>{escape(password[:5])}</b><i>{escape(password[5:])}</i></p>
<iframe srcdoc="<pre>{escape(escape(password))}</pre>"></iframe>"""


@pytest.fixture
def repeating() -> Iterator[Repeating]:
    with running(Repeating()) as made:
        yield made


def requests(front: str) -> dict[str, tuple[str, dict[str, Any]]]:
    page, broken = f"{front}/one", f"{front}/broken"
    taken = task(do("goto", url=page), do("screenshot"), do("screenshot", selector="p"))
    seen = {"url": page, "network_window_ms": 100}
    return {
        "crawl": ("crawl", {"url": page, "screenshot": "all", **FAST}),
        "failed page": ("crawl", {"url": broken, "screenshot": "failed", **FAST}),
        "evidence": ("oc_evidence_bundle", {**seen, "include": ["screenshot"]}),
        "whole page": (
            "oc_evidence_bundle",
            {**seen, "include": ["screenshot"], "full_page": True},
        ),
        "commands": ("commands", taken),
        "recording": ("recording", {"url": page, "headless": True, "duration_ms": 1_500}),
    }


@pytest.mark.parametrize("which", requests("http://x.test"))
async def test_passwords_do_not_show(home: Path, repeating: Repeating, which: str) -> None:
    taken = []
    async with opened(home) as engine:
        for password in (ONE, OTHER):
            front = f"http://ann:{quote(password, safe='')}@127.0.0.1:{repeating.server.port}"
            kind, args = requests(front)[which]
            started = await engine.requests.start(kind, args)
            await engine.tasks.join(started.task_id)
            pictures = (home / "tasks" / started.task_id).rglob("*.png")
            taken.append([each.read_bytes() for each in sorted(pictures)])
    assert set(repeating.said) == {ONE, OTHER}
    assert taken[0]
    assert len(taken[0][0]) > 5_000  # the rest of the page is there
    assert taken[0] == taken[1]
