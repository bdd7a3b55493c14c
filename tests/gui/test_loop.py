"""The loop keeps asyncio's contract on Qt's loop, and always lets `finally` blocks finish."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from gui.startup.loop import Loop

ROOT = Path(__file__).resolve().parents[2]


async def test_a_timer_is_never_early() -> None:
    for delay_s in (0.0, 0.001, 0.0105, 0.05, 0.2):
        before = time.monotonic()
        await asyncio.sleep(delay_s)
        assert time.monotonic() - before >= delay_s


async def test_callbacks_run_in_the_order_in_which_they_came() -> None:
    order: list[int] = []
    loop = asyncio.get_running_loop()
    for number in range(100):
        loop.call_soon(order.append, number)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == list(range(100))


async def test_timers_run_in_the_order_of_their_times() -> None:
    order: list[int] = []
    loop = asyncio.get_running_loop()
    now = loop.time()  # of one moment: a crowded machine may rest between two calls
    for number in (3, 1, 2):
        loop.call_at(now + number / 100, order.append, number)
    await asyncio.sleep(0.05)
    assert order == [1, 2, 3]


async def test_a_timer_may_wait_for_ever_and_be_cancelled() -> None:
    handle = asyncio.get_running_loop().call_later(float("inf"), print)
    await asyncio.sleep(0.01)
    handle.cancel()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()


async def test_thousands_of_cancelled_timers_leave_nothing_behind(qt_loop: Loop) -> None:
    for _ in range(2_000):
        qt_loop.call_later(3600, print).cancel()
    assert len(qt_loop._timers) < 250


async def test_a_thread_wakes_a_sleeping_loop_at_once() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=loop.call_soon_threadsafe, args=(done.set,)).start()
    async with asyncio.timeout(60):
        await done.wait()


async def test_a_million_queued_callbacks_leave_room_for_a_timer() -> None:
    loop = asyncio.get_running_loop()
    left = 1_000_000

    def again() -> None:
        nonlocal left
        left -= 1
        if left > 0:
            loop.call_soon(again)

    for _ in range(10):
        loop.call_soon(again)
    await asyncio.sleep(0.001)
    assert left > 0, "the timer's turn came after all of them"
    left = 0


async def test_a_child_process_can_be_spoken_to() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print(input()[::-1])", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    said, _ = await child.communicate(b"loop\n")
    assert said.strip() == b"pool"
    assert child.returncode == 0


def test_a_closed_loop_refuses_a_call_from_a_thread(qapp: QApplication) -> None:
    loop = Loop(qapp)
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon_threadsafe(print)


PROGRAM = """
import asyncio, os, signal, sys
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gui.startup.loop import run
app = QApplication(sys.argv)

async def main():
    print("started", flush=True)
    try:
        {body}
    finally:
        await asyncio.sleep(0.05)
        print("cleaned up", flush=True)

print("result", run(app, main()), flush=True)
"""


def outcome(body: str, *, kill: signal.Signals | None = None) -> tuple[str, str]:
    """What a program with `body` in its main coroutine prints, and what it complains about."""
    program = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", PROGRAM.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    first = ""
    if kill is not None:  # else it may have ended by now, and a reader take more than a line
        assert program.stdout is not None
        first = program.stdout.readline()
        program.send_signal(kill)
    out, err = program.communicate(timeout=200)
    return first + out, err


def test_a_normal_end_hands_the_result_out_without_a_warning() -> None:
    out, err = outcome("return 7")
    assert out.splitlines() == ["started", "cleaned up", "result 7"]
    assert err == ""


def test_finally_blocks_finish_when_qt_quits() -> None:
    out, err = outcome("QTimer.singleShot(10, app.quit); await asyncio.sleep(60)")
    assert "cleaned up" in out
    assert "CancelledError" in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_finally_blocks_finish_on_a_signal(name: signal.Signals) -> None:
    out, _ = outcome("await asyncio.sleep(60)", kill=name)
    assert "cleaned up" in out


def test_an_error_in_main_comes_out_after_the_cleaning() -> None:
    out, err = outcome("1 / 0")
    assert "cleaned up" in out
    assert "ZeroDivisionError" in err


def test_a_task_that_main_forgot_is_ended_too() -> None:
    out, err = outcome("asyncio.create_task(asyncio.sleep(60)); return 1")
    assert out.splitlines()[-1] == "result 1"
    assert err == ""


async def test_while_it_runs_no_thread_keeps_python_from_a_paint_for_long() -> None:
    # the usual 5 ms would be waited for before every cell, while a thread reads a result
    assert sys.getswitchinterval() <= 0.001


def test_what_comes_after_it_has_pythons_usual_pace(qapp: QApplication) -> None:
    usual, loop = sys.getswitchinterval(), Loop(qapp)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert sys.getswitchinterval() == usual
