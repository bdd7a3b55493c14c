"""`octask worker`: it is refused with the way out, connects over TLS, and outlives a scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.local_cluster import certificate

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120


def octask(*words: str, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("local:2", "must be tcp://HOST:PORT or tls://HOST:PORT"),
        ("head:8786", "must be tcp://HOST:PORT or tls://HOST:PORT"),
        ("tls://127.0.0.1:1", "DASK_DISTRIBUTED__COMM__TLS__CA_FILE"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error_at_once(address: str, said: str) -> None:
    process = octask("worker", address)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert said in errors
    assert "Traceback" not in errors


def scheduler(orders: dict[str, Any], port: int = 0) -> tuple[subprocess.Popen[str], str]:
    process = octask("_cluster", "scheduler")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"security": orders, "port": port}) + "\n")
    process.stdin.flush()
    return process, json.loads(process.stdout.readline())["address"]


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=LIMIT_S)
    return process.returncode


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
def test_a_worker_keeps_its_address_when_its_scheduler_is_started_again() -> None:
    orders, _ = certificate()
    first, address = scheduler(orders)
    names = {"tls_ca_file": "CA_FILE", "tls_worker_cert": "WORKER__CERT"}
    names["tls_worker_key"] = "WORKER__KEY"
    settings = {f"DASK_DISTRIBUTED__COMM__TLS__{to}": orders[name] for name, to in names.items()}
    worker = octask("worker", address, "--name", "w", "--slots", "3", "--json", environ=settings)
    assert worker.stdout is not None
    try:
        told = json.loads(worker.stdout.readline())
        first.kill()
        ended(first)
        second, again = scheduler(orders, int(address.rpartition(":")[2]))
        assert again == address
        assert json.loads(worker.stdout.readline()) == told
        worker.send_signal(signal.SIGTERM)
        assert ended(worker) == 0
        assert ended(second) == 0  # its input was closed
    finally:
        worker.kill()
    assert {name: told[name] for name in ("scheduler", "name", "slots")} == {
        "scheduler": address,
        "name": "w",
        "slots": 3,
    }


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
def test_a_worker_whose_name_is_taken_waits_until_it_is_free(tmp_path: Path) -> None:
    orders, _ = certificate()
    head, address = scheduler(orders)
    names = {"tls_ca_file": "CA_FILE", "tls_worker_cert": "WORKER__CERT"}
    names["tls_worker_key"] = "WORKER__KEY"
    settings = {f"DASK_DISTRIBUTED__COMM__TLS__{to}": orders[name] for name, to in names.items()}
    settings |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    words = ("worker", address, "--name", "rack-7", "--json")
    first = octask(*words, environ=settings)
    assert first.stdout is not None
    assert json.loads(first.stdout.readline())["name"] == "rack-7"
    second = octask(*words, environ=settings)
    assert second.stdout is not None
    try:
        deadline_s = time.monotonic() + LIMIT_S
        while "The name rack-7 is taken" not in logged(tmp_path):
            assert second.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        first.send_signal(signal.SIGTERM)
        assert ended(first) == 0
        assert json.loads(second.stdout.readline())["name"] == "rack-7"
        second.send_signal(signal.SIGTERM)
        _, errors = second.communicate(timeout=LIMIT_S)
        assert second.returncode == 0
        assert "Traceback" not in errors + logged(tmp_path)
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()
        head.communicate()


def logged(home: Path) -> str:
    return "".join(path.read_text() for path in home.rglob("*.log"))
