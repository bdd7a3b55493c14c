"""User and password as arguments of their own, as they are or by reference, for every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.model.errors import InvalidArguments
from engine.sample.site import Answer, Request
from engine.service.rerun import RequestHidden
from tests.support.engines import opened
from tests.support.octask import Octask
from tests.support.serving import running
from tests.trust.test_given_credentials import (
    BASIC,
    FAST,
    PART,
    PASSWORD,
    PICTURED,
    Repeating,
    leaks,
)

NAME = "OF_THE_SITE"
PARTS = ["dom", "screenshot", "network", "console"]


class Private(Repeating):
    """Every page asks who is there, and says again what it heard."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def _answer(self, request: Request) -> Answer:
        if request.path == "/robots.txt":
            return Answer(b"", 404)
        sent = request.headers.get("authorization")
        if sent is None:
            return Answer(b"no", 401, headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        self.heard.append(sent)
        return super()._answer(request)


@pytest.fixture
def private() -> Iterator[Private]:
    with running(Private()) as made:
        yield made


def requests(front: str) -> dict[str, tuple[str, dict[str, Any]]]:
    page = f"{front}/one"
    return {
        "static": ("crawl", {"url": page, "engine": "static", **FAST}),
        "browser": ("crawl", {"url": page, **PICTURED, "max_pages": 1}),
        "sitemap": ("crawl_sitemap", {"sitemap_url": f"{front}/s.xml", "engine": "static", **FAST}),
        "evidence": ("oc_evidence_bundle", {"url": page, "include": PARTS}),
        "recording": ("recording", {"url": page, "headless": True, "duration_ms": 400}),
    }


@pytest.mark.parametrize("which", requests("http://x.test"))
async def test_credentials_are_sent_not_stored(home: Path, private: Private, which: str) -> None:
    kind, args = requests(f"http://127.0.0.1:{private.server.port}")[which]
    given = {"username": "ann", "password": {"secret": f"env:{NAME}"}}
    async with opened(home, environ={NAME: PASSWORD}) as engine:
        started = await engine.requests.start(kind, {**args, **given})
        await engine.tasks.join(started.task_id)
        assert private.heard
        assert set(private.heard) == {f"Basic {BASIC}"}
        asked = await engine.requests.asked(started.task_id)
        assert asked.args["password"] == {"secret": f"env:{NAME}"}
    assert leaks(home) == []


async def test_a_typed_password_prevents_a_rerun(home: Path, private: Private) -> None:
    kind, args = requests(f"http://127.0.0.1:{private.server.port}")["static"]
    async with opened(home) as engine:
        given = {**args, "username": "ann", "password": PASSWORD}
        started = await engine.requests.start(kind, given)
        await engine.tasks.join(started.task_id)
        with pytest.raises(RequestHidden):
            await engine.requests.asked(started.task_id)
    assert set(private.heard) == {f"Basic {BASIC}"}
    assert leaks(home) == []


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"password": "x"}, "password"),
        ({"username": "ann", "url": "http://bob@h.test/"}, "username"),
        ({"username": "ann", "password": ""}, "password"),
        ({"username": "ann", "password": {"secret": PART}}, "password"),
        ({"username": "ann", "password": {"secret": "env:NOT_THERE"}}, "password"),
        ({"username": 7}, "username"),
    ],
)
async def test_what_cannot_be_meant_is_named(home: Path, given: dict[str, Any], path: str) -> None:
    async with opened(home, environ={}) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("crawl", {"url": "http://h.test/", **given})
    assert [problem.path for problem in refused.value.problems] == [path]
    assert PART not in str(refused.value)


def test_octask_takes_the_name_of_a_variable_and_no_password(
    home: Path, private: Private, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, PASSWORD)
    octask = Octask(home)
    page = f"http://127.0.0.1:{private.server.port}/one"
    words = ("start", "crawl", page, "--engine", "static", "--max-pages", "1", "--username", "ann")
    said = octask(*words, "--password", f"env:{NAME}", "--respect-robots", "false")
    assert set(private.heard) == {f"Basic {BASIC}"}
    refused = octask(*words, "--password", PASSWORD, code=2)
    assert '{"secret": "env:NAME"}' in refused
    said += refused + octask(*words[:3], "--proxy", f"http://ann:{PASSWORD}@127.0.0.1:9", code=2)
    assert "give them with proxy_username and proxy_password" in said
    assert PART not in said
    assert leaks(home) == []
