"""`octask worker`: it is refused with the way out, connects over TLS, and outlives a scheduler."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.cluster_connection import certificate
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120


@contextlib.contextmanager
def octask(*words: str, environ: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process of the program, which ends with the block at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that a process prints. One that prints none is killed, which ends the wait."""
    assert process.stdout is not None
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    try:
        line = process.stdout.readline()
    finally:
        limit.cancel()
        limit.join()
    assert line, f"it ended: {process.communicate(timeout=LIMIT_S)[1]}"
    found: dict[str, Any] = json.loads(line)
    return found


@contextlib.contextmanager
def scheduler(orders: dict[str, Any], port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler's process, and its address."""
    with octask("_cluster", "scheduler") as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"security": orders, "port": port}) + "\n")
        process.stdin.flush()
        yield process, told(process)["address"]


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=LIMIT_S)
    return process.returncode


def security_of_worker(orders: dict[str, Any]) -> dict[str, str]:
    """The environment of a worker that uses the certificate of `orders`."""
    names = {"tls_ca_file": "CA_FILE", "tls_worker_cert": "WORKER__CERT"}
    names["tls_worker_key"] = "WORKER__KEY"
    return {f"DASK_DISTRIBUTED__COMM__TLS__{to}": orders[name] for name, to in names.items()}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("local:2", "must be tcp://HOST:PORT or tls://HOST:PORT"),
        ("head:8786", "must be tcp://HOST:PORT or tls://HOST:PORT"),
        ("tls://127.0.0.1:1", "DASK_DISTRIBUTED__COMM__TLS__CA_FILE"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error_at_once(address: str, said: str) -> None:
    with octask("worker", address) as process:
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
def test_a_worker_keeps_its_address_when_its_scheduler_is_started_again() -> None:
    orders, _ = certificate()
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(free_port())  # no other process gets it between the schedulers
        first, address = stack.enter_context(scheduler(orders, port))
        words = ("worker", address, "--name", "w", "--slots", "3", "--json")
        worker = stack.enter_context(octask(*words, environ=security_of_worker(orders)))
        known = told(worker)
        first.kill()
        ended(first)
        second, again = stack.enter_context(scheduler(orders, port))
        assert again == address
        assert told(worker) == known
        worker.send_signal(signal.SIGTERM)
        assert ended(worker) == 0
        assert ended(second) == 0  # its input was closed
    assert {name: known[name] for name in ("scheduler", "name", "slots")} == {
        "scheduler": address,
        "name": "w",
        "slots": 3,
    }


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
def test_a_worker_whose_name_is_taken_waits_until_it_is_free(tmp_path: Path) -> None:
    orders, _ = certificate()
    settings = security_of_worker(orders)
    settings |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    with contextlib.ExitStack() as stack:
        _, address = stack.enter_context(scheduler(orders))
        words = ("worker", address, "--name", "rack-7", "--json")
        first = stack.enter_context(octask(*words, environ=settings))
        assert told(first)["name"] == "rack-7"
        second = stack.enter_context(octask(*words, environ=settings))
        deadline_s = time.monotonic() + LIMIT_S
        while "The name rack-7 is taken" not in logged(tmp_path):
            assert second.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        first.send_signal(signal.SIGTERM)
        assert ended(first) == 0
        assert told(second)["name"] == "rack-7"
        second.send_signal(signal.SIGTERM)
        _, errors = second.communicate(timeout=LIMIT_S)
        assert second.returncode == 0
        assert "Traceback" not in errors + logged(tmp_path)


class SecureShell(socketserver.BaseRequestHandler):
    """Says what an SSH server says first."""

    def handle(self) -> None:
        self.request.sendall(b"SSH-2.0-OpenSSH_9.6p1 Ubuntu\r\n")
        self.request.recv(1_000)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
def test_a_worker_at_the_port_of_another_server_says_so_and_tries_on(tmp_path: Path) -> None:
    settings = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), SecureShell) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.server_address[1]}"
        with octask("worker", address, "--name", "w", environ=settings) as worker:
            deadline_s = time.monotonic() + LIMIT_S
            while "cannot be reached: no server of Dask answers there" not in logged(tmp_path):
                assert worker.poll() is None, worker.communicate(timeout=LIMIT_S)
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            worker.send_signal(signal.SIGTERM)
            _, errors = worker.communicate(timeout=LIMIT_S)
        server.shutdown()
    assert worker.returncode == 0
    assert "Traceback" not in errors
    assert f"{address} cannot be reached: no server of Dask answers there" in errors


def logged(home: Path) -> str:
    return "".join(path.read_text() for path in home.rglob("*.log"))
