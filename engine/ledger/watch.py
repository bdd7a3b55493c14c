"""Which tasks changed on disk, soon and in bundles; and when to look at all of them.

Hints (`store.hints`) become sets of task ids: at once when idle, else every 50 ms. They
may be lost, so `rescan` asks for a look at every folder each 5 s, and each 1.5 s (and at
once) while listening is not whole. Source: ledger rule "watching is a hint, the scan is
the truth".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path

from engine.ledger.change_queue import Changes, Post
from engine.ledger.directory_watcher import Ears, open_ears
from engine.ledger.filesystem_checks import deaf_disk
from engine.ledger.folder_presence import ANSWER_S, SILENT_WORDS
from engine.ledger.watched_folders import Listening
from engine.model.records import TaskId

GONE_S = 1.0  # rows must be back within 2 s of the folder's return


class Watch:
    """Listens to the root and to the followed tasks' folders, and says how whole that is.

    `state` is live, polling, gone or silent (it does not answer), `reason` a sentence when it is
    not live; `deaf` is set while that will last. `doubt` says of which folders no notice can be
    trusted. Changes are taken by one reader, on the loop that called `start`; `nudge` may be
    called from any thread.
    """

    def __init__(
        self,
        root: Path,
        *,
        scan_s: float = 5.0,
        poll_s: float = 1.5,
        ears: Callable[[], Ears] = open_ears,
        doubt: Callable[[Path], str] = deaf_disk,
    ) -> None:
        self.root = root
        self.state = "live"
        self.reason = ""
        self.deaf = ""
        self._period = {"live": scan_s, "polling": poll_s, "gone": GONE_S, "silent": GONE_S}
        self._post = Post()
        self._listening = Listening(root, self._post, ears, doubt)
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen; the first `changes` asks for a rescan. A second call does nothing."""
        if self._keeper is not None:
            return
        self._post.open(asyncio.get_running_loop())
        await self._mend()
        self._post.put(rescan=True)
        self._keeper = asyncio.create_task(self._keep(), name="watch-keeper")

    async def stop(self) -> None:
        """End the keeper and watchdog's threads. A second call does nothing."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        self._post.close()
        await asyncio.to_thread(self._listening.close)

    def follow(self, ids: Collection[TaskId]) -> None:
        """Listen to exactly these tasks' folders (the live ones), besides the root."""
        wanted = frozenset(ids)
        if wanted != self._listening.wanted:
            self._listening.wanted = wanted
            self._post.attention.set()

    def nudge(self, task_id: TaskId) -> None:
        """Tell of a change made by this very process, without waiting for the file system."""
        self._post.put(task_id)

    def rescan(self) -> None:
        """Ask for a look at everything, now."""
        self._post.put(rescan=True)

    def wake(self) -> None:
        """Have `changes` answer soon, with whatever there is. From any thread."""
        self._post.put()

    async def changes(self, within_s: float | None = None) -> Changes:
        """Wait for the next bundle; an empty one when `within_s` is over or `state` changed."""
        return await self._post.take(within_s)

    async def _keep(self) -> None:
        due = time.monotonic() + self._period[self.state]
        while True:
            lost = await self._woken(due - time.monotonic())
            before = self.state
            await self._mend(lost)
            now = time.monotonic()
            if lost or now >= due or self.state != before:
                self._post.put(rescan=True)
                due = now + self._period[self.state]

    async def _woken(self, within_s: float) -> bool:
        """Sleep until something is to be mended or looked at; True when hints were lost."""
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                await self._post.attention.wait()
        except TimeoutError:
            return False
        self._post.attention.clear()
        return self._post.take_lost()

    async def _mend(self, lost: bool = False) -> None:
        """Make the listening whole again as far as possible, and say how far that is.

        `lost`: hints were dropped since the last time, however long that took to be noticed.
        """
        if lost or self._post.lost_within(self._period["polling"]):
            overflow = "the system dropped change notices"
        else:
            overflow = ""
        look = asyncio.ensure_future(asyncio.to_thread(self._listening.mend))
        if not (await asyncio.wait({look}, timeout=ANSWER_S))[0]:
            self._tell("silent", f"{self.root}: {SILENT_WORDS}")
        gone, self.deaf = await look
        trouble = self.deaf or overflow
        if gone:
            state, reason = "gone", gone
        elif trouble:
            every = f"{self._period['polling']:g} s"
            state, reason = "polling", f"Looking every {every}: {trouble}."
        else:
            state, reason = "live", ""
        self._tell(state, reason)

    def _tell(self, state: str, reason: str) -> None:
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason = state, reason
            self._post.put()
