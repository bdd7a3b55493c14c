"""Unanswered name lookups delay nothing else."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from engine.egress.egress_policy import Lookups, Policy
from engine.model.errors import PageError

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A name server that answers nobody before `set()`."""
    speaks = threading.Event()

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        speaks.wait(100)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield speaks
    speaks.set()


def looking() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "look names up"}


async def test_slow_names_leave_the_common_threads_free(silent: threading.Event) -> None:
    policy = Policy.for_start("http://start.example/")
    checks = [asyncio.ensure_future(policy.check(f"http://n{n}.example/")) for n in range(40)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await asyncio.to_thread(lambda: 7) == 7
    silent.set()
    answers = await asyncio.gather(*checks, return_exceptions=True)
    assert {str(answer) for answer in answers} == {"name not found"}
    assert all(isinstance(answer, PageError) for answer in answers)


async def test_no_more_threads_look_than_allowed_and_none_stays(silent: threading.Event) -> None:
    ask = Lookups(3)
    before = looking()  # of an earlier test, perhaps, and about to end
    answers = [ask(f"n{n}.example") for n in range(9)]
    assert len(looking() - before) == 3
    silent.set()
    assert len(await asyncio.gather(*answers, return_exceptions=True)) == 9
    async with asyncio.timeout(60):
        while looking() - before:
            await asyncio.sleep(0.01)
    assert isinstance((await asyncio.gather(ask("again"), return_exceptions=True))[0], OSError)


def test_a_name_that_is_still_looked_up_does_not_hold_the_programs_end_up() -> None:
    code = """
        import asyncio, socket, time
        from engine.egress.egress_policy import Policy

        # a system's look-up blocks its thread, and outlasts this test
        socket.getaddrinfo = lambda *_, **__: time.sleep(600)

        async def main():
            policy = Policy.for_start("http://start.example/")
            asking = asyncio.ensure_future(policy.check("http://slow.example/"))
            await asyncio.wait({asking}, timeout=0.1)

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
