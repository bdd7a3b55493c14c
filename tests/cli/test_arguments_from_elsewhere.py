"""`octask start --args -` and `--args @FILE` keep arguments out of the process list."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from engine.kinds.commands.command_check import check
from engine.model.errors import InvalidArguments
from engine.service.requests import problems
from fixtures.site.site import Site
from tests.commands.conftest import do, task
from tests.support.engines import opened
from tests.support.octask import run

FAST = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 1}
PASSWORD = "Zq7Winter26"


def octask(home: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return run(*words, "--home", str(home), given=given)


@pytest.mark.parametrize("way", ["-", "@FILE"])
@pytest.mark.parametrize("kind", ["crawl", "crawl_sitemap"])
def test_args_come_from_files(home: Path, site: Site, tmp_path: Path, way: str, kind: str) -> None:
    front = site.url.replace("http://", f"http://ann:{PASSWORD}@")
    text = json.dumps({"url": front, **FAST}).encode()
    file = tmp_path / "args.json"
    file.write_bytes(text)
    words = ("start", kind, "--json", "--args", way.replace("FILE", str(file)))
    ended = octask(home, *words, given=text if way == "-" else b"")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["args_summary"]["url"].rstrip("/") == site.url
    assert PASSWORD.encode() not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("typed", "given", "says"),
    [
        ("@/nowhere/x.json", b"", b"is not there"),
        ("-", b"{no", b"--args: is not valid JSON"),
        ("-", b"\xff\xfe", b"--args: is not UTF-8"),
        ("-", b"[1]", b"must be a JSON object"),
    ],
)
def test_unreadable_args_are_refused(home: Path, typed: str, given: bytes, says: bytes) -> None:
    ended = octask(home, "start", "crawl", "--args", typed, given=given)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_variable_may_be_a_secret_by_reference() -> None:
    reference = {"secret": "env:LOGIN"}
    url = "http://ann:{{pw}}@site.test/"
    given = task(do("goto", url=url), variables={"pw": reference})
    plan = check(given, environ={"LOGIN": PASSWORD})
    assert plan.credentials is not None
    assert plan.credentials.password == PASSWORD
    assert plan.stored["variables"] == {"pw": reference}
    assert PASSWORD not in json.dumps(plan.stored)
    assert plan.scrub.hide(f"<{PASSWORD}>") != f"<{PASSWORD}>"


@pytest.mark.parametrize(
    "args",
    [
        ("crawl", {"url": {"secret": "env:START"}, **FAST}),
        ("crawl_sitemap", {"sitemap_url": {"secret": "env:START"}, **FAST}),
        ("oc_session_snapshot", {"objective": "x", "tabs": [{"secret": "env:START"}]}),
    ],
)
async def test_an_address_may_be_a_secret_by_reference(
    home: Path, site: Site, args: tuple[str, dict[str, object]]
) -> None:
    front = site.url.replace("http://", f"http://ann:{PASSWORD}@")
    async with opened(home, environ={"START": front}) as engine:
        started = await engine.requests.start(*args)
        await engine.tasks.join(started.task_id)
    texts = [one.read_text() for one in (home / "tasks" / started.task_id).glob("*.json*")]
    assert site.url in "".join(texts)
    assert PASSWORD not in "".join(texts)
    async with opened(home, environ={}) as engine:
        with pytest.raises(InvalidArguments, match="the environment holds no START"):
            await engine.requests.start(*args)
    assert problems(*args) == ()
