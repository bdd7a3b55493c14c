"""`octask mcp` as a process: what a host that starts and ends it sees."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.server.conftest import place_of

LIMIT_S = 150  # a crowded machine may take its time
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Server:
    """The process, and one call at a time."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine.cli", "mcp", "--home", str(home), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        self._number = 0

    def __enter__(self) -> "Server":
        self.ask("initialize", HELLO)
        self.tell("notifications/initialized")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}}
        self._write(request)
        assert self.process.stdout is not None
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number:
                return dict(answer["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result["isError"], result
        return dict(result["structuredContent"])

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=LIMIT_S, input=""
    )


@pytest.mark.thorough("input")
@pytest.mark.parametrize("how", ["input", "terminate"])
def test_the_server_ends_with_its_host_and_leaves_no_browser(
    how: str, home: Path, site: Any
) -> None:
    with Server(home, "--allow-private", place_of(site.url)) as server:
        server.call("navigate", url=site.url)
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert family, "a browser is open"
        if how == "input":
            server.process.stdin.close()  # type: ignore[union-attr]
            server.process.stdin = None
        else:
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(LIMIT_S) == 0
        _, alive = psutil.wait_procs(family, timeout=LIMIT_S)
        assert not alive
        out, err = server.process.communicate()
        assert "Traceback" not in err
        assert [json.loads(line) for line in out.splitlines()] == []


def test_a_host_that_is_killed_while_an_answer_is_written_is_no_fault(home: Path) -> None:
    with Server(home, "--tools", "tasks") as server:
        stdin, stdout = server.process.stdin, server.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdout.close()
        for number in range(50, 70):  # all are read before the end of the input
            server._write({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}})
        stdin.close()
        server.process.stdin = server.process.stdout = None
        assert server.process.wait(LIMIT_S) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_only_the_chosen_groups_are_offered(home: Path) -> None:
    with Server(home, "--tools", "browser") as server:
        names = {tool["name"] for tool in server.ask("tools/list")["tools"]}
        assert "navigate" in names
        assert "oc_task_start" not in names


def test_a_ledger_that_cannot_be_opened_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    command = [sys.executable, "-m", "engine.cli", "mcp", "--home", str(tmp_path / "home")]
    ran = run(command)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert str(tmp_path) in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_the_extra_the_way_to_install_it_is_told(home: Path) -> None:
    script = "import sys; sys.modules['mcp'] = None\nfrom engine.cli.__main__ import main\nmain()"
    command = [sys.executable, "-c", script, "mcp", "--home", str(home)]
    ran = run(command)
    assert ran.returncode == 1
    assert "pip install 'openchrome-monitor[server]'" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allow-private", "nonsense/"], "--allow-private"),
        (["--allow-secret", "NOT A NAME"], "--allow-secret"),
        (["--allow-files", "/no/such/folder"], "--allow-files"),
    ],
)
def test_a_mistake_in_what_is_allowed_is_told_before_anything_is_served(
    words: list[str], said: str, home: Path
) -> None:
    command = [sys.executable, "-m", "engine.cli", "mcp", "--home", str(home), *words]
    ran = run(command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
