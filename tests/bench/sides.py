"""Several ways of doing the same against one site, each in a process of its own and in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

Told = dict[str, float]


@dataclass(frozen=True, slots=True)
class Race:
    """`bench` answers `--side SIDE --url URL --pages N` with one line of JSON."""

    bench: str
    sides: Sequence[str]
    limit_s: float

    def run(
        self, serve: Sequence[str], rounds: int, pages: int, path: str = ""
    ) -> dict[str, list[Told]]:
        """What each side told, round by round; who begins changes from round to round.

        `serve` are the words of a program that prints the site's address first; each side gets
        that address and `path`.
        """
        measured: dict[str, list[Told]] = {side: [] for side in self.sides}
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as site:
            assert site.stdout is not None
            url = site.stdout.readline().strip() + path
            try:
                for number in range(rounds):
                    turn = number % len(self.sides)
                    for side in (*self.sides[turn:], *self.sides[:turn]):
                        measured[side].append(self._one(side, url, pages))
            finally:
                site.terminate()
        return measured

    def _one(self, side: str, url: str, pages: int) -> Told:
        words = [sys.executable, "-m", "tests.bench", self.bench, "--side", side, "--url", url]
        done = subprocess.run(
            [*words, "--pages", str(pages)],
            capture_output=True,
            text=True,
            timeout=self.limit_s,
            check=False,
            env={"QT_QPA_PLATFORM": "offscreen"} | os.environ,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2_000:])
        told: Told = json.loads(done.stdout.splitlines()[-1])
        return told
