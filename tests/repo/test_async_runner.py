"""The runner for `async def` tests fails for leftovers of a test."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright._impl.event_emitter import EventEmitter


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, object]], None]:
    """The very function that runs the tests, found where pytest has loaded it."""
    place = Path(__file__).parents[1] / "conftest.py"
    return next(
        plugin.run_async
        for plugin in request.config.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(place)
    )


async def test_a_coroutine_test_runs_inside_a_loop() -> None:
    assert asyncio.get_running_loop().is_running()


@given(st.integers())
async def test_a_property_may_be_a_coroutine(number: int) -> None:
    await asyncio.sleep(0)
    assert number == int(str(number))


def test_a_task_left_running_fails_the_test(run: Callable[..., None]) -> None:
    async def leaves_one() -> None:
        # An attribute of a function keeps the task alive.
        leaves_one.kept = asyncio.create_task(asyncio.sleep(30), name="left over")  # type: ignore[attr-defined]

    with pytest.raises(AssertionError, match="left over"):
        run(leaves_one())


@pytest.mark.parametrize(("takes_s", "ends"), [(0.2, True), (30, False)])
def test_a_handler_of_a_browser_event_may_end_after_the_test(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch, takes_s: float, ends: bool
) -> None:
    monkeypatch.setitem(run.__globals__, "HANDLERS_S", 10 if ends else 0.1)

    async def handles() -> None:
        emitter = EventEmitter()
        emitter.on("request", lambda: asyncio.sleep(takes_s, "late"))
        # The emitter holds its handlers: without it, they end as garbage.
        handles.kept = emitter  # type: ignore[attr-defined]
        emitter.emit("request")

    with nullcontext() if ends else pytest.raises(AssertionError, match="sleep"):
        run(handles())


def test_an_error_that_only_the_loop_saw_fails_the_test(run: Callable[..., None]) -> None:
    async def fails_aside() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run(fails_aside())


def test_a_task_whose_error_nobody_took_fails_the_test(run: Callable[..., None]) -> None:
    async def breaks() -> None:
        raise ValueError("nobody looked")

    async def forgets() -> None:
        asyncio.create_task(breaks())  # noqa: RUF006
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="nobody looked"):
        run(forgets())


def test_a_test_that_hangs_is_ended(run: Callable[..., None]) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(hangs(), 0.05)


def test_no_test_sees_the_users_home() -> None:
    assert Path.home().name.startswith("oc-tests-")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file")
def test_the_fake_home_is_not_the_accounts_home() -> None:
    import pwd

    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir)
