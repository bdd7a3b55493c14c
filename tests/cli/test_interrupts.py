"""Ctrl-C and SIGTERM reach a command whenever they come, and whichever thread they are given to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.octask import by_default

LIMIT_S = 150  # a crowded machine may take its time
POSIX = pytest.mark.skipif(os.name == "nt", reason="signal masks are POSIX's")
# The main thread has the signal blocked, so the system gives it to the other one: what then ends
# the wait of the loop is the pipe alone, as for a signal that comes right before the wait.
WAITING = """
import asyncio, os, signal, sys, threading, time
from engine.cli.calls import Interrupts

number = int(sys.argv[1])

def send():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    time.sleep(0.3)  # the loop waits by then; too early, the test could only miss the flaw
    os.kill(os.getpid(), number)

async def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    told = asyncio.Event()
    with Interrupts(told.set) as interrupts:
        threading.Thread(target=send).start()
        await told.wait()
    print(interrupts.cause)

asyncio.run(main())
"""


@POSIX
@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_a_signal_ends_the_wait_of_the_loop_though_another_thread_got_it(number, cause) -> None:
    words = [sys.executable, "-c", WAITING, str(int(number))]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{cause}\n", "")


def test_the_handlers_from_before_are_back_after_the_block() -> None:
    code = (
        "import asyncio, signal\n"
        "from engine.cli.calls import Interrupts\n"
        "kept = (signal.SIGINT, signal.SIGTERM)\n"
        "async def main():\n"
        "    before = [signal.getsignal(one) for one in kept]\n"
        "    for _ in range(2):\n"
        "        with Interrupts(lambda: None):\n"
        "            assert [signal.getsignal(one) for one in kept] != before\n"
        "        assert [signal.getsignal(one) for one in kept] == before\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, timeout=LIMIT_S
    )
    assert (done.returncode, done.stderr) == (0, b"")


@POSIX
def test_ctrl_c_ends_the_wait_for_cookies_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "cookies"
    os.mkfifo(pipe)
    words = ["profile", "import", "shop", str(pipe), "http://127.0.0.1:9/", "--home", str(tmp_path)]
    command = [sys.executable, "-m", "engine.cli", *words]
    with by_default("SIGINT"):
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with program:
        try:
            with pipe.open("wb"):  # as soon as the program has opened it as well
                program.send_signal(signal.SIGINT)
                said = program.communicate(timeout=LIMIT_S)[0]
        finally:
            program.kill()
    assert program.returncode == 130
    assert b"Traceback" not in said
