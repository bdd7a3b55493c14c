"""`python -m tests.trust.crossing HOME SEED COUNT HOST`: passwords × ways to give × kinds.

Every task is given a batch of random passwords and opens pages of HOST that say all of them
again. The long form compares pictures as well: of small batches, each beside a batch of other
passwords that are spelt as long. It prints what every call answered, and in its last line which
pictures differ, and which tasks took none.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from engine.export import recordings
from engine.export.exporter import FORMATS, Order
from engine.kinds.registry import KINDS
from engine.ledger.reader import LedgerReader
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.service.engine import Engine
from engine.service.forms import inputs
from engine.verbs.json_answers import described
from tests.commands.conftest import do, task
from tests.support.kinds import least
from tests.trust.given_values import BATCH, PICTURED, draw_of, turned, values

FAST: Final = {"delay_ms": 0, "retries": 0, "respect_robots": False, "settle_ms": 50}
PARTS: Final = ["dom", "screenshot", "phash", "network", "console"]
TYPED: Final = 10  # of the variables are typed; each is a secret
VARIABLE: Final = "CROSSING_"  # of this process' own environment, never of its words
PICTURES: Final = ("crawl", "evidence", "snapshot", "recording", "commands")
Request = tuple[str, dict[str, Any]]


def batched(seed: int, count: int, size: int = BATCH) -> list[list[str]]:
    """The passwords in batches; their numbers are those of the pages that say them."""
    found = values(seed, count)
    return [found[at : at + size] for at in range(0, count, size)]


def paired(seed: int, count: int) -> list[list[str]]:
    """The same passwords in batches for pictures, each followed by its turned one."""
    batches = batched(seed, count, PICTURED)
    return [one for batch in batches for one in (batch, list(map(turned, batch)))]


def address(host: str, path: str, batch: Sequence[str], *, login: bool = True) -> str:
    """One address with the whole batch: as its password, as tokens of its query and fragment.

    Without `login` the first one is left out.
    """
    first, last, *others = batch
    query = "&".join(f"token{at}={quote(one, safe='')}" for at, one in enumerate(others))
    front = f"http://ann:{quote(first, safe='')}@{host}" if login else f"http://{host}"
    return f"{front}{path}?{query}#access_token={quote(last, safe='')}"


def is_separate(batch: Sequence[str]) -> bool:
    """Return whether this batch's first password is an argument of its own where a kind has one."""
    return draw_of(batch) // 2 % 2 == 1


def requests(host: str, number: int, batch: Sequence[str], given: Any) -> dict[str, Request]:
    """Return the requests of all kinds, each text as `given(text)`: itself or a reference."""
    separate = is_separate(batch)
    login = {"username": "ann", "password": given(batch[0])} if separate else {}
    page = given(address(host, f"/echo/{number}", batch))
    asked = given(address(host, f"/echo/{number}", batch, login=not separate))
    listed = given(address(host, f"/map/{number}.xml", batch, login=not separate))
    further = [given(f"http://ann:{quote(one, safe='')}@{host}/echo/{number}") for one in batch]
    snapshot = {"tabs": [page], "visit": True, "notes": batch[0], "include_storage": True}
    crawl = {"url": asked, **login, "urls": further, **FAST, "max_pages": 4}
    seen = {"url": asked, **login, "include": PARTS, "network_window_ms": 200, "label": batch[1]}
    named: dict[str, Request] = {
        "crawl": ("crawl", {**crawl, "screenshot": "all", "output_format": "structured"}),
        "static": ("crawl", {**crawl, "engine": "static"}),
        "sitemap": ("crawl_sitemap", {"sitemap_url": listed, **login, "engine": "auto", **FAST}),
        "evidence": ("oc_evidence_bundle", seen),
        "snapshot": ("oc_session_snapshot", {"objective": batch[2], **snapshot}),
        "recording": ("recording", {"url": asked, **login, "headless": True, "duration_ms": 1_500}),
        "commands": ("commands", commands(page, batch, given)),
    }
    used = {kind for kind, _ in named.values()}
    for kind in KINDS:
        if kind not in used:
            has_login = "password" in inputs(kind)
            args = {**least(kind, asked), **login} if has_login else least(kind, page)
            named[kind] = (kind, args)
    return named


def _is_recording(view: TaskView) -> bool:
    return getattr(view.entry, "kind", "") == "recording"


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


PLAYS: Final = tuple(requests("site.test", 0, ["x"] * BATCH, str))


class Crossing:
    """One engine, and what it was asked."""

    def __init__(self, engine: Engine, host: str, batches: Sequence[Sequence[str]]) -> None:
        self.engine, self.host, self.batches = engine, host, batches
        self.answers: list[object] = []
        self.shown: list[str] = []
        self.missing: list[str] = []
        self.compared = self.tasks = 0
        self._numbers = itertools.count()

    def by_name(self, text: str) -> dict[str, str]:
        """A reference; what it names is set beforehand, as a person exports it."""
        name = f"{VARIABLE}{next(self._numbers)}"
        os.environ[name] = text
        return {"secret": f"env:{name}"}

    async def run(self, kind: str, args: Mapping[str, Any]) -> Path | None:
        try:
            started = await self.engine.requests.start(kind, args)
        except EngineError as error:
            self.answers.append({**described(error), **error.fields})
            return None
        self.tasks += 1
        await self.engine.tasks.join(started.task_id)
        view = await self.engine.tasks.get(started.task_id)
        self.answers += [started, view, await self.engine.tasks.events(started.task_id)]
        return self.engine.settings.root / started.task_id

    async def give(self, kind: str, number: int) -> list[bytes]:
        """Give a batch to a kind; the pictures that it took."""
        batch = self.batches[number]
        given = (str, self.by_name)[draw_of(batch) % 2]
        folder = await self.run(*requests(self.host, number, batch, given)[kind])
        return [shot.read_bytes() for shot in sorted(folder.rglob("*.png"))] if folder else []

    async def compare(self, kind: str, number: int) -> None:
        """A batch and its turned one: their pictures must be the same."""
        one, other = [await self.give(kind, at) for at in (number, number + 1)]
        if not one or len(one) != len(other):
            self.missing.append(f"{kind}, batch {number}: {len(one)} and {len(other)}")
            return
        self.compared += len(one)
        if sorted(one) != sorted(other):
            self.shown.append(f"{kind}, batch {number}")

    async def tell(self, out: Path) -> None:
        look = LedgerReader(self.engine.settings.root)
        for view in await self.engine.tasks.list(limit=None):
            for form in FORMATS:
                await self._export(Order(view.task_id, form), out / f"{view.task_id}.{form}")
            for form in recordings.FORMATS if _is_recording(view) else ():
                place = out / f"{view.task_id}-recording.{form}"
                self.answers.append(
                    await asyncio.to_thread(
                        recordings.export_recording, look, view.task_id, form, place
                    )
                )

    async def _export(self, order: Order, place: Path) -> None:
        try:
            self.answers.append(await self.engine.exports.to_file(order, place))
        except EngineError as error:
            self.answers.append({**described(error), **error.fields})


async def cross(home: Path, seed: int, count: int, host: str) -> None:
    settings = replace(Settings.at(home=home), environ=os.environ, allow_private=(host,))
    engine = Engine(settings, accepts=True)
    await engine.open()
    texts, pictures = batched(seed, count), paired(seed, count) if count > BATCH else []
    crossing = Crossing(engine, host, [*texts, *pictures])
    room = asyncio.Semaphore(2)

    async def one(work: Callable[[str, int], Awaitable[object]], kind: str, number: int) -> None:
        async with room:
            await work(kind, number)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(len(texts)):
                for kind in PLAYS:
                    group.create_task(one(crossing.give, kind, number))
            for number in range(len(texts), len(crossing.batches), 2):
                for kind in PICTURES:
                    group.create_task(one(crossing.compare, kind, number))
        out = home.parent / "exports"
        out.mkdir(exist_ok=True)
        await crossing.tell(out)
    finally:
        await engine.close()
    sys.stdout.buffer.write(msgspec.json.encode(crossing.answers, enc_hook=str) + b"\n")
    sys.stdout.flush()
    told = {"shown": crossing.shown, "missing": crossing.missing, "compared": crossing.compared}
    print(json.dumps({**told, "tasks": crossing.tasks}), flush=True)


def main() -> None:
    log_to_file()
    home, seed, count, host = sys.argv[1:]
    asyncio.run(cross(Path(home), int(seed), int(count), host))


if __name__ == "__main__":
    main()
