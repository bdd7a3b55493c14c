"""`python -m tests.trust.crossing HOME SEED COUNT HOST PAIRS`: passwords × ways to give × kinds.

Every task is given a batch of random passwords and opens pages of HOST that say all of them
again. It prints what every call answered, and in its last line which pictures of the first
PAIRS batches showed more than they should.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from engine.cli.calls import described
from engine.export.exporter import Order
from engine.export.recordings import FORMATS, export_recording
from engine.ledger.reader import LedgerReader
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.service.engine import Engine
from tests.commands.conftest import do, task
from tests.trust.given_values import BATCH, turned, values

FAST: Final = {"delay_ms": 0, "retries": 0, "respect_robots": False, "settle_ms": 50}
PARTS: Final = ["dom", "screenshot", "phash", "network", "console"]
TYPED: Final = 10  # of the variables are typed; each is a secret
VARIABLE: Final = "CROSSING_"  # of this process' own environment, never of its words
KINDS: Final = ("crawl", "static", "sitemap", "evidence", "snapshot", "recording", "commands")
Request = tuple[str, dict[str, Any]]


def batched(seed: int, count: int) -> list[list[str]]:
    """The passwords in batches, each followed by its turned one, for pictures."""
    found = values(seed, count)
    batches = [found[at : at + BATCH] for at in range(0, count, BATCH)]
    return [one for batch in batches for one in (batch, list(map(turned, batch)))]


def address(host: str, path: str, batch: Sequence[str]) -> str:
    """One address with the whole batch: as its password, as tokens of its query and fragment."""
    first, last, *others = batch
    query = "&".join(f"token{at}={quote(one, safe='')}" for at, one in enumerate(others))
    front = f"http://ann:{quote(first, safe='')}@{host}"
    return f"{front}{path}?{query}#access_token={quote(last, safe='')}"


def requests(host: str, number: int, batch: Sequence[str], given: Any) -> dict[str, Request]:
    """Every kind; `given(text)` is how a text is given: as it is, or where to find it."""
    page = given(address(host, f"/echo/{number}", batch))
    listed = given(address(host, f"/map/{number}.xml", batch))
    further = [given(f"http://ann:{quote(one, safe='')}@{host}/echo/{number}") for one in batch]
    snapshot = {"tabs": [page], "visit": True, "notes": batch[0], "include_storage": True}
    crawl = {"url": page, "urls": further, **FAST, "max_pages": 4}
    seen = {"url": page, "include": PARTS, "network_window_ms": 200, "label": batch[1]}
    return {
        "crawl": ("crawl", {**crawl, "screenshot": "all", "output_format": "structured"}),
        "static": ("crawl", {**crawl, "engine": "static"}),
        "sitemap": ("crawl_sitemap", {"sitemap_url": listed, "engine": "auto", **FAST}),
        "evidence": ("oc_evidence_bundle", seen),
        "snapshot": ("oc_session_snapshot", {"objective": batch[2], **snapshot}),
        "recording": ("recording", {"url": page, "headless": True, "duration_ms": 1_500}),
        "commands": ("commands", commands(page, batch, given)),
    }


def commands(page: Any, batch: Sequence[str], given: Any) -> dict[str, Any]:
    """Typed, as variables and by reference: every way that a command takes a secret."""
    first, second, *others = batch
    variables = {f"v{at}": given(one) for at, one in enumerate(others)}
    names = list(variables)[:TYPED]
    typing = [do("type", selector="#typed", text=f"{{{{{name}}}}}") for name in names]
    return task(
        do("goto", url=page),
        do("type", selector="#typed", text=first),
        do("type", selector="#typed", text=given(second)),
        *typing,
        do("screenshot"),
        do("get_text", selector="#echo"),
        do("get_text", selector="#made"),
        do("get_html"),
        do("evaluate", script="return [document.title, values, location.href, {...localStorage}]"),
        do("expect", selector="#echo", text="nothing", timeout=200),
        variables=variables,
    )


class Crossing:
    """One engine, and what it was asked."""

    def __init__(self, engine: Engine, host: str, batches: Sequence[Sequence[str]]) -> None:
        self.engine, self.host, self.batches = engine, host, batches
        self.answers: list[object] = []
        self.pictures: list[str] = []
        self.compared = self.tasks = 0
        self._numbers = itertools.count()

    def by_name(self, text: str) -> dict[str, str]:
        """A reference; what it names is set beforehand, as a person exports it."""
        name = f"{VARIABLE}{next(self._numbers)}"
        os.environ[name] = text
        return {"secret": f"env:{name}"}

    async def run(self, kind: str, args: Mapping[str, Any]) -> Path | None:
        try:
            started = await self.engine.start(kind, args)
        except EngineError as error:
            self.answers.append({**described(error), **error.fields})
            return None
        self.tasks += 1
        await self.engine.join(started.task_id)
        view = await self.engine.get(started.task_id)
        self.answers += [started, view, await self.engine.events(started.task_id)]
        return self.engine.settings.root / started.task_id

    async def pair(self, kind: str, number: int, *, twice: bool) -> None:
        """A batch and, where asked, its turned one: their pictures must be the same."""
        taken = []
        for at in (number, number + 1)[: 1 + twice]:
            given = str if number % 4 == 0 else self.by_name
            asked = requests(self.host, at, self.batches[at], given)[kind]
            folder = await self.run(*asked)
            shots = sorted(folder.rglob("*.png")) if folder else []
            taken.append([shot.read_bytes() for shot in shots])
        if twice and kind not in ("static", "sitemap"):
            self.compared += len(taken[0])
            if not taken[0] or sorted(taken[0]) != sorted(taken[1]):
                self.pictures.append(f"{kind}, batch {number // 2}")

    async def tell(self, out: Path) -> None:
        look = LedgerReader(self.engine.settings.root)
        for view in await self.engine.list(limit=None):
            for form in ("csv", "json", "jsonl", "xlsx", "html"):
                await self._export(Order(view.task_id, form), out / f"{view.task_id}.{form}")
            for form in FORMATS if getattr(view.entry, "kind", "") == "recording" else ():
                place = out / f"{view.task_id}-recording.{form}"
                self.answers.append(
                    await asyncio.to_thread(export_recording, look, view.task_id, form, place)
                )

    async def _export(self, order: Order, place: Path) -> None:
        try:
            self.answers.append(await self.engine.exports.to_file(order, place))
        except EngineError as error:
            self.answers.append({**described(error), **error.fields})


async def cross(home: Path, seed: int, count: int, host: str, pairs: int) -> None:
    settings = replace(Settings.at(home=home), environ=os.environ, allow_private=(host,))
    engine = Engine(settings, accepts=True)
    await engine.open()
    crossing = Crossing(engine, host, batched(seed, count))
    room = asyncio.Semaphore(2)

    async def one(kind: str, number: int) -> None:
        async with room:
            await crossing.pair(kind, number, twice=number // 2 < pairs)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(0, len(crossing.batches), 2):
                for kind in KINDS:
                    group.create_task(one(kind, number))
        out = home.parent / "exports"
        out.mkdir(exist_ok=True)
        await crossing.tell(out)
    finally:
        await engine.close()
    sys.stdout.buffer.write(msgspec.json.encode(crossing.answers, enc_hook=str) + b"\n")
    sys.stdout.flush()
    told = {"shown": crossing.pictures, "compared": crossing.compared, "tasks": crossing.tasks}
    print(json.dumps(told), flush=True)


def main() -> None:
    log_to_file()
    home, seed, count, host, pairs = sys.argv[1:]
    asyncio.run(cross(Path(home), int(seed), int(count), host, int(pairs)))


if __name__ == "__main__":
    main()
