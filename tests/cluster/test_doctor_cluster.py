"""`octask doctor` looks at the default cluster; an unusable scheduler is told with the way out."""

from __future__ import annotations

import asyncio
import importlib
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import doctor
from engine.cluster import worker_pool
from engine.cluster.cluster_address import ClusterUnreachable, cluster_address
from engine.cluster.page_records import HELLO, PROTOCOL, Hello, packed
from engine.cluster.pool_worker import Listed
from engine.cluster.wire import Wire
from engine.cluster.worker_pool import workers_of
from engine.doctor import Finding
from engine.model.config import Settings
from tests.cluster.dask_peers import cluster, message
from tests.support.ports import free_port


async def found(home: Path, default: str) -> list[Finding]:
    """What doctor tells of this default cluster, after the line about the library."""
    settings = Settings(home=home, root=home / "tasks", environ={"OC_CLUSTER": default})
    library, *others = await asyncio.to_thread(doctor._cluster, settings)
    assert library.text.startswith("Dask ")
    return others


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CLUSTER_S", 60.0)


async def test_without_a_default_cluster_nothing_is_looked_for(tmp_path: Path) -> None:
    assert await found(tmp_path, "none") == []


async def test_an_embedded_cluster_is_named(tmp_path: Path) -> None:
    (one,) = await found(tmp_path, "local:3")
    assert (one.state, one.text) == (
        "ok",
        "crawls and evidence bundles that name no cluster use local:3",
    )


async def test_the_workers_of_a_scheduler_are_counted(tmp_path: Path) -> None:
    async with cluster() as workers:
        (empty,) = await found(tmp_path, workers.address)
        await workers.add("one")
        await workers.add("two")
        (two,) = await found(tmp_path, workers.address)
    assert (empty.state, empty.text) == (
        "warning",
        f"{workers.address} answers and has no worker; tasks wait for one",
    )
    assert (two.state, two.text) == ("ok", f"{workers.address} answers; workers: 2")


async def test_a_worker_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path) -> None:
    async def bare(_: dict[str, Any]) -> bytes:  # Dask's answer to what it does not know
        return message({"status": "error"})

    async def other_version(_: dict[str, Any]) -> bytes:
        return message(packed(Hello(PROTOCOL + 1, "9.9.9", "new", 4)))

    async with cluster() as workers:
        await workers.add("bare", **{HELLO: bare})
        (none,) = await found(tmp_path, workers.address)
        await workers.add("good")
        await workers.add("new", **{HELLO: other_version})
        (some,) = await found(tmp_path, workers.address)
    assert none.state == "problem"
    assert some.state == "warning"
    assert (
        "workers: 3, of which 2 cannot be used (bare: it is no worker of this program" in some.text
    )
    assert "--preload engine.cluster.dask_worker" in some.text
    assert "new: it runs another version of this program (9.9.9)" in some.text
    assert "good" not in some.text


async def test_a_worker_that_is_out_of_reach_is_named(tmp_path: Path) -> None:
    async with cluster() as workers:
        gone = await workers.add("gone")
        await gone.stop()
        (found_one,) = await found(tmp_path, workers.address)
    assert found_one.state == "problem"
    assert "1 cannot be used (gone: connection refused)" in found_one.text


async def test_what_is_no_address_and_what_does_not_answer_are_problems(tmp_path: Path) -> None:
    (wrong,) = await found(tmp_path, "head:8786")
    assert wrong.state == "problem"
    assert wrong.text.startswith("OC_CLUSTER: must be tcp://HOST:PORT")
    with free_port() as port:
        (away,) = await found(tmp_path, f"tcp://127.0.0.1:{port}")
    assert (away.state, away.text) == (
        "problem",
        f"The cluster tcp://127.0.0.1:{port} cannot be reached: connection refused.",
    )


async def test_many_workers_are_asked_with_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now, most = 0, 0

    async def ask(address: str, *_: object) -> str:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        open_now -= 1
        return "a reason" if address.endswith(":299") else ""

    async def listed(_: object) -> dict[str, Listed]:
        return {f"tcp://a:{one}": Listed(f"w{one}", None, None) for one in range(1, 301)}

    async def connected(*_: object) -> Any:
        return SimpleNamespace(abort=lambda: None)

    monkeypatch.setattr(worker_pool, "_why_unusable", ask)
    monkeypatch.setattr(worker_pool, "_listed", listed)
    monkeypatch.setattr(Wire, "open", connected)
    look = await workers_of(cluster_address("tcp://a:1"), None, 60.0)
    assert (look.workers, look.unusable) == (300, (("w299", "a reason"),))
    assert most <= 100  # macOS allows 256 files


async def test_a_server_that_ends_the_greeting_may_need_certificates() -> None:
    def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(ends, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ClusterUnreachable, match="a scheduler with certificates needs tls://"):
            await workers_of(cluster_address(f"tcp://127.0.0.1:{port}"), None, 60.0)


async def test_a_name_that_does_not_exist_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ClusterUnreachable, match="its name cannot be resolved"):
        await workers_of(cluster_address("tcp://nowhere.invalid:8786"), None, 60.0)


async def test_settings_of_dask_that_cannot_be_read_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise ValueError("A dask config file at '/home/a/dask.yaml' is malformed")

    monkeypatch.setattr(importlib, "import_module", broken)
    (one,) = await found(tmp_path, "tcp://127.0.0.1:9")
    assert one.state == "problem"
    assert "the settings of Dask" in one.text
    assert "dask.yaml" in one.text
