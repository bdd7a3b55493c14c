"""`octask serve` as a process: what it prints, how it ends, and what it says when incomplete."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.octask import LIMIT_S, Octask

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX' own")


@pytest.fixture
def octask(home: Path) -> Iterator[Octask]:
    program = Octask(home)
    yield program
    program.end()


def _began(octask: Octask, *words: str) -> tuple[subprocess.Popen[str], dict[str, Any], str]:
    running = octask.start("serve", "--json", *words)
    assert running.stdout is not None
    said = json.loads(running.stdout.readline())
    token = json.loads(Path(said["token_file"]).read_text())["token"]
    return running, said, token


def _ask(said: dict[str, Any], token: str, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", said["port"], timeout=LIMIT_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return found


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_it_in_good_order(octask: Octask, site: Any, number: int) -> None:
    place = f"127.0.0.1:{site.port}"
    running, said, token = _began(octask, "--allow-private", place)
    assert said["url"] == f"http://127.0.0.1:{said['port']}"
    args = {"url": site.url + "/", "engine": "static", "delay_ms": 60, "max_pages": 10_000}
    args |= {"respect_robots": False, "max_depth": 100}
    task_id = _ask(said, token, "POST", "/tasks", {"kind": "crawl", "args": args})["task_id"]
    while not (pages := octask.pages(task_id)):
        assert running.poll() is None
    running.send_signal(number)
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, err
    assert token not in out + err
    assert "Traceback" not in err
    meta = json.loads((octask.home / "tasks" / task_id / "meta.json").read_text())
    assert meta["status"] == "CANCELLED"
    assert octask.pages(task_id) >= pages
    left = json.loads(Path(said["token_file"]).read_text())
    assert left == {"url": None, "port": None, "pid": None, "token": token}


@posix
def test_it_prints_the_place_of_the_token_and_not_the_token(octask: Octask) -> None:
    running = octask.start("serve")
    assert running.stdout is not None
    lines = [running.stdout.readline(), running.stdout.readline()]
    file = octask.home / "server" / "access.json"
    assert str(file) in lines[1]
    token = json.loads(file.read_text())["token"]
    assert token not in "".join(lines)
    assert token not in " ".join(running.args)  # type: ignore[arg-type]
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=LIMIT_S)
    assert token not in out + err


@pytest.mark.thorough
@posix
def test_the_token_stays_and_the_port_may_be_chosen(octask: Octask) -> None:
    tokens = []
    for words in ((), (), ("--new-token",)):
        running, _, token = _began(octask, *words)
        tokens.append(token)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
    assert tokens[0] == tokens[1] != tokens[2]
    running, said, _ = _began(octask)
    refused = json.loads(octask("serve", "--json", "--port", str(said["port"]), code=1))
    assert refused["error"]["code"] == "port_taken"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=LIMIT_S)


def test_wrong_options_start_nothing(octask: Octask) -> None:
    assert "host and a port" in octask("serve", "--allow-private", "x y", code=2)
    octask("serve", "--port", "70000", code=2)
    assert not (octask.home / "server").exists()


def test_without_its_libraries_it_says_how_to_install_them(home: Path) -> None:
    blocked = (
        "import sys; sys.modules['uvicorn'] = None; from engine.cli.__main__ import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", blocked, "serve", "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert ended.returncode == 1
    assert "pip install 'openchrome-monitor[server]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_command_line_starts_without_the_servers_libraries() -> None:
    code = (
        "import sys, engine.cli.mcp_command, engine.cli.serve_command, engine.cli.start\n"
        "slow = ('starlette', 'uvicorn', 'mcp', 'websockets')\n"
        "print([one for one in slow if one in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert ended.stdout.strip() == "[]"
