"""When a test's window counts as frozen, on a quick machine as on a slow or a crowded one."""

from __future__ import annotations

import threading
from pathlib import Path

from PySide6.QtCore import QTimer

from tests.loop_monitor import BEAT_MS, Heartbeat, Pulse

WAIT_MS = 5000.0  # a disk may take seconds for what is mostly there at once
ROUND_S = 0.05
READY = Path("/proc/thread-self/schedstat")  # Linux: how long this thread stood ready to run


class FreezeWatch:
    """Watches this thread's Qt loop for one blocking call that takes too long.

    Waiting is the time in which the loop did not come round without working or standing ready to
    work; it is no longer than another thread of this process came round meanwhile. Work is not
    judged here: the clock of a thread runs on while its virtual machine is stopped, so that no
    figure of it tells a slow program from a crowded machine. The benches measure it.
    """

    def __init__(self) -> None:
        self._beat = Heartbeat()
        self._ready_ms = ready_ms()
        self.companion = Companion()
        self._turn = QTimer(interval=BEAT_MS)
        self._turn.timeout.connect(self.companion.note_turn)

    def start(self) -> None:
        """Begin to watch this thread's loop."""
        self._beat.start()
        self._turn.start()
        self.companion.start()

    def stop(self) -> str:
        """Stop watching; a sentence if the loop stood still for too long, else empty."""
        pulse = self._beat.take()
        self._beat.stop()
        self._turn.stop()
        self.companion.end()
        now_ms = ready_ms()
        crowded_ms = None if now_ms is None or self._ready_ms is None else now_ms - self._ready_ms
        return freeze(pulse, self.companion.longest_ms, crowded_ms)


class Companion(threading.Thread):
    """Goes round beside a loop: what holds the whole process up holds this thread up as well."""

    def __init__(self) -> None:
        super().__init__(name="beside the loop", daemon=True)
        self.rounds = self._turns = 0
        self.longest_ms = 0.0  # how long it went round while the loop did not
        self._ended = threading.Event()

    def note_turn(self) -> None:
        """The loop came round."""
        self._turns += 1

    def end(self) -> None:
        """Go round no more."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        seen = alone = 0
        while not self._ended.wait(ROUND_S):
            turns = self._turns
            alone, seen = alone + 1 if turns == seen else 0, turns
            self.longest_ms = max(self.longest_ms, alone * ROUND_S * 1000)
            self.rounds += 1


def freeze(pulse: Pulse, alone_ms: float, crowded_ms: float | None) -> str:
    """What of `pulse` is a freeze; empty if nothing is.

    Another thread went round for `alone_ms` while the loop did not; other threads had the
    processor for `crowded_ms` (None: not known, then a blocking call cannot be told from a crowd).
    """
    if crowded_ms is None:
        return ""
    waited_ms = min(pulse.stall_ms, alone_ms) - pulse.busy_ms - crowded_ms
    if waited_ms < WAIT_MS:
        return ""
    return f"the loop was waiting for {waited_ms:.0f} ms in one go (of {WAIT_MS:.0f})"


def ready_ms() -> float | None:
    """How long this thread has stood in line for a processor; None where no system tells."""
    try:
        return int(READY.read_text("ascii").split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
