"""`octask browser-server` as a process: its token, its refusals, and what is left after its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.server.access_file import BROWSER_NAME, FOLDER
from tests.remote.conftest import TOKEN
from tests.support.octask import Octask, run_as_text
from tests.support.update_server import certificate

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 150


def environment(**own: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **own}


def until(condition: Callable[[], object]) -> None:
    """Wait for what other processes do."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


class Serving:
    """A running server and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.ready = self.told()

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=LIMIT_S)[1]
        found: dict[str, Any] = json.loads(line)
        return found

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@contextlib.contextmanager
def serving(home: Path, *words: str, **own: str) -> Iterator[Serving]:
    command = [sys.executable, "-m", "engine.cli", "browser-server", "--home", str(home), "--json"]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**own),
    )
    try:
        yield Serving(process)
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def task_file(tmp_path: Path, url: str) -> Path:
    args = {"action": "goto", "url": url, "timeout": 150_000}
    command = {"tool_name": "browser_navigate", "intention": "to open", "args": args}
    task = {"task_name": "t", "task_intention": "to try", "commands": [command]}
    file = tmp_path / "task.json"
    file.write_text(json.dumps(task))
    return file


def client(home: Path, file: Path, server: Serving, token: str) -> subprocess.Popen[str]:
    """`octask run` in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "engine.cli", "run", str(file), "--home", str(home)),
            *("--remote-browser", server.ready["url"]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(OC_BROWSER_TOKEN=token),
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_a_task_uses_it_with_the_token_of_its_file(tmp_path: Path, site: Any) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    with serving(there) as server:
        file = there / FOLDER / BROWSER_NAME
        assert server.ready == {"url": server.ready["url"], "token_file": str(file)}
        assert file.stat().st_mode & 0o077 == 0
        kept = json.loads(file.read_text())
        assert kept["url"] == server.ready["url"]
        running = client(here, task_file(tmp_path, f"{site.url}/shop/"), server, kept["token"])
        said, _ = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, said
        assert [server.told()["event"] for _ in range(2)] == ["began", "ended"]
        server.process.send_signal(signal.SIGINT)
        out, err = server.process.communicate(timeout=LIMIT_S)
        assert (server.process.returncode, out, err) == (0, "", "")
        assert kept["token"] not in said
    left = json.loads(file.read_text())
    assert (left["url"], left["token"]) == (None, kept["token"])  # the token stays


@pytest.mark.thorough("during*")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("moment", ["at work", "during the start"])
def test_a_killed_server_leaves_no_browser(tmp_path: Path, site: Any, moment: str) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    own = {"OC_BROWSER_TOKEN": TOKEN, "TMPDIR": str(temporary)}
    with serving(tmp_path / "there", **own) as server:
        assert server.ready["token_file"] is None
        file = task_file(tmp_path, f"{site.url}/hang")
        running = client(tmp_path / "here", file, server, TOKEN)
        try:
            if moment == "at work":
                until(lambda: site.hits["/hang"])
            else:
                until(server.family)
            family = server.family()
            assert family
            server.process.kill()
            _, alive = psutil.wait_procs(family, timeout=LIMIT_S)
            assert alive == []
            until(lambda: not [*temporary.iterdir()])
            said, _ = running.communicate(timeout=LIMIT_S)
            assert "Traceback" not in said
            assert running.returncode != 0
        finally:
            running.kill()
            running.communicate(timeout=LIMIT_S)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_a_killed_client_gives_its_browser_back(tmp_path: Path, site: Any) -> None:
    with serving(tmp_path / "there", OC_BROWSER_TOKEN=TOKEN) as server:
        file = task_file(tmp_path, f"{site.url}/hang")
        running = client(tmp_path / "here", file, server, TOKEN)
        until(lambda: site.hits["/hang"])
        family = server.family()
        running.kill()
        running.communicate(timeout=LIMIT_S)
        assert [server.told()["event"] for _ in range(2)] == ["began", "ended"]
        _, alive = psutil.wait_procs(family, timeout=LIMIT_S)
        assert alive == []


def refused(*words: str, **own: str) -> str:
    ended = run_as_text("browser-server", *words, environment=environment(**own))
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


def test_it_listens_for_other_machines_only_with_a_certificate(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    said = refused("--listen", "0.0.0.0:0", *home)
    assert "--certificate: is needed to listen at any address but 127.0.0.1" in said
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    for file in (broken, tmp_path / "missing.pem"):
        assert "--certificate: " in refused("--certificate", str(file), *home)
    assert "--key: goes with --certificate" in refused("--key", str(broken), *home)
    assert "--listen: must be HOST:PORT" in refused("--listen", "host:port", *home)
    keys = certificate(tmp_path).read_text().split("-----END PRIVATE KEY-----\n")
    alone = tmp_path / "alone.pem"
    alone.write_text(keys[1])
    assert "--key names another file" in refused("--certificate", str(alone), *home)
    assert not (tmp_path / "home").exists()


def test_it_needs_a_token_that_nobody_guesses(tmp_path: Path) -> None:
    said = refused("--home", str(tmp_path), "--listen", "127.0.0.1:0", OC_BROWSER_TOKEN="12345")
    assert "OC_BROWSER_TOKEN: must have 20 characters and more" in said
    said = refused("--home", str(tmp_path), "--new-token", OC_BROWSER_TOKEN=TOKEN)
    assert "--new-token: does not go with OC_BROWSER_TOKEN" in said


def test_its_address_is_used_once(tmp_path: Path) -> None:
    with serving(tmp_path / "there") as server:
        said = refused("--home", str(tmp_path / "there"), "--listen", "127.0.0.1:0")
        assert "A server runs already" in said or "runs already" in said
        port = server.ready["url"].rpartition(":")[2]
        said = refused("--home", str(tmp_path / "other"), "--listen", f"127.0.0.1:{port}")
        assert f"Nothing can listen at tcp://127.0.0.1:{port}: Address already in use" in said
        assert f"tcp://127.0.0.1:{port}" in refused("--home", str(tmp_path), "--listen", port)


def test_with_a_certificate_it_has_a_tls_address(tmp_path: Path) -> None:
    file = str(certificate(tmp_path))
    with serving(tmp_path / "there", "--certificate", file) as server:
        assert server.ready["url"].startswith("tls://127.0.0.1:")


def test_run_refuses_a_wrong_remote_browser_before_anything_starts(tmp_path: Path) -> None:
    octask = Octask(tmp_path / "home")
    file = str(task_file(tmp_path, "http://127.0.0.1:1/"))
    said = octask("run", file, "--remote-browser", "tcp://10.0.0.5", code=2)
    assert "--remote-browser: needs tls://" in said
    assert "--remote-browser: " in octask("run", file, "--remote-browser", "", code=2)
    said = octask("run", file, "--remote-browser", "tls://10.0.0.5", code=2)
    assert "--remote-browser: " in said
    assert "OC_BROWSER_TOKEN is not set" in said
    assert octask.tasks() == []
