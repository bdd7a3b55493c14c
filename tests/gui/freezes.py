"""When a test's window counts as frozen, on a quick machine as on a slow or a crowded one."""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QTimer

from tests.loop_monitor import BEAT_MS, Heartbeat, Pulse

FREEZE_MS = 3000.0  # so much work in one go is a freeze; the benches hold the tight figures
WAIT_MS = 5000.0  # and so long a wait: a disk may take seconds for what is mostly there at once
ROUND_S = 0.05
PIECE_MS = 16.0  # what the piece of work below takes on the machine that FREEZE_MS is meant for
READY = Path("/proc/thread-self/schedstat")  # Linux: how long this thread stood ready to run
STAT = Path("/proc/stat")  # Linux: where the time of all processors went, in ticks
TICK_MS = 10.0


class FreezeWatch:
    """Watches this thread's Qt loop for one turn that takes too long, by work or by waiting.

    Work counts by this thread's own clock, less what other virtual machines took of the
    processors meanwhile, which that clock includes; and against what a fixed piece of work takes
    here: what others do on the machine makes both longer. Waiting (a blocking call) is the time in
    which the loop did not come round without working or standing ready to work, while another
    thread of this process did come round.
    """

    def __init__(self) -> None:
        self._beat = Heartbeat()
        self._ready_ms = ready_ms()
        self._stolen_ms = stolen_ms()
        self.companion = Companion()
        self._turn = QTimer(interval=BEAT_MS)
        self._turn.timeout.connect(self.companion.note_turn)

    def start(self) -> None:
        """Begin to watch this thread's loop."""
        self._beat.start()
        self._turn.start()
        self.companion.start()

    def stop(self) -> list[str]:
        """Stop watching; a sentence for each way in which the loop stood still for too long."""
        pulse = self._beat.take()
        self._beat.stop()
        self._turn.stop()
        self.companion.end()
        pulse = replace(pulse, stall_ms=min(pulse.stall_ms, self.companion.longest_ms))
        now_ms = ready_ms()
        crowded_ms = None if now_ms is None or self._ready_ms is None else now_ms - self._ready_ms
        return freezes(pulse, crowded_ms, stolen_ms() - self._stolen_ms)


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


def freezes(pulse: Pulse, crowded_ms: float | None, taken_ms: float = 0.0) -> list[str]:
    """What of `pulse` is a freeze.

    Other threads had the processor for `crowded_ms` (None: not known), other machines for
    `taken_ms`.
    """
    took = {"busy": (pulse.busy_ms - taken_ms, FREEZE_MS)}
    if crowded_ms is not None:  # elsewhere a blocking call cannot be told from a crowd
        took["waiting"] = (pulse.stall_ms - pulse.busy_ms - crowded_ms, WAIT_MS)
    if all(ms < most_ms for ms, most_ms in took.values()):
        return []  # nothing to weigh: the common case costs nothing
    slow = max(1.0, _usual_piece_ms() / PIECE_MS, piece_ms() / PIECE_MS)
    return [
        f"the loop was {how} for {ms:.0f} ms in one go (of {most_ms * slow:.0f})"
        for how, (ms, most_ms) in took.items()
        if ms >= most_ms * slow
    ]


def ready_ms() -> float | None:
    """How long this thread has stood in line for a processor; None where no system tells."""
    try:
        return int(READY.read_text("ascii").split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def stolen_ms() -> float:
    """How long other virtual machines had this one's processors; 0 where no system tells."""
    try:
        return int(STAT.read_text("ascii").split(None, 9)[8]) * TICK_MS
    except (OSError, ValueError, IndexError):
        return 0.0


@functools.cache
def _usual_piece_ms() -> float:
    return piece_ms()  # once for each worker: a slow machine is slow all the time


def piece_ms() -> float:
    """This thread's own time for a fixed piece of work, now: the least of three."""
    return min(_piece_ms() for _ in range(3))


def _piece_ms() -> float:
    began, kept = time.thread_time(), {}
    for number in range(60_000):
        kept[number & 1023] = f"{number}"
    return (time.thread_time() - began) * 1000
