"""Several ledgers on one disk, each in its own home, compared byte for byte."""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.ledger_ids import qualified
from engine.model.records import Status, TaskId, TaskView
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.router.ledger_paths import Beside

OWN = ""
SOON_S = 60.0


@dataclass
class Home:
    """A home with its tasks: ids by what they are."""

    top: Path
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.top / "tasks"

    def copied(self, top: Path) -> Home:
        """The same, with the same ids, in another place."""
        shutil.copytree(self.top, top)
        return Home(top, dict(self.ids))


async def furnished(top: Path) -> Home:
    """A home whose tasks wait, run, have ended, carry a contract; and a task run with one."""
    home = Home(top)
    engine = Engine(Settings.at(home=top), accepts=True)
    await engine.open()
    try:
        terms = Terms(contract={"items": ["a", "b"]})
        carrying = await engine.requests.start(
            "browser_task", {"objective": "Visit both"}, terms=terms
        )
        home.ids["envelope"] = carrying.task_id
        assert carrying.engine is not None
        assert carrying.engine.contract_id is not None
        home.ids["contract"] = carrying.engine.contract_id
        goals = engine.goals.runs
        home.ids["run"] = goals.start({"goal": "Visit them all"}, {"items": ["a"]}).run_id
    finally:
        await engine.close()
    lease = Lease.acquire(home.root)
    try:
        _fill(Ledger(home.root, lease=lease), home.ids)
    finally:
        lease.release()
    return home


def _fill(ledger: Ledger, ids: dict[str, str]) -> None:
    args = {"url": "http://site.test/"}
    for name in ("waiting", "running", "ended"):
        ids[name] = ledger.create("crawl", args).task_id
    for name in ("running", "ended"):
        ledger.claim(ids[name])
        ledger.append_page(ids[name], {"url": "http://site.test/", "status": 200})
    ledger.write_result(ids["ended"], [b'{"pages": []}'])
    ledger.finish(ids["ended"], Status.COMPLETED)


def everything(top: Path) -> dict[str, tuple[int, int, int]]:
    """Every file below `top`, locks too, with what one stat tells of it."""
    found: dict[str, tuple[int, int, int]] = {}
    for path in top.rglob("*"):
        with suppress(FileNotFoundError):
            facts = path.lstat()
            if stat.S_ISREG(facts.st_mode):
                found[str(path)] = facts.st_ino, facts.st_mtime_ns, facts.st_size
    return found


@asynccontextmanager
async def side_by_side(own: Path, *others: Beside, accepts: bool = False) -> AsyncIterator[Engine]:
    """The home `own`, and these beside it, each of them open."""
    engine = Engine(Settings.at(home=own), accepts=accepts, light=True)
    await engine.open()
    try:
        for beside in others:
            engine.ledgers.add(beside)
        await until(lambda: all(one.state != "opening" for one in engine.ledgers.states))
        yield engine
    finally:
        await engine.close()


async def until(condition: Callable[[], object]) -> None:
    """Wait for what no signal tells of, in turns of the loop."""
    async with asyncio.timeout(SOON_S):
        while not condition():
            await asyncio.sleep(0.01)


class Reader:
    """What a window keeps of the live list: the newest word on each task."""

    def __init__(self) -> None:
        self.views: dict[TaskId, TaskView] = {}
        self.last = Batch()
        self.batches: list[Batch] = []
        self._came = asyncio.Condition()

    async def follow(self, engine: Engine, *, runs: bool = False) -> None:
        async for batch in engine.contracts.run_changes() if runs else engine.tasks.changes():
            for one in batch.gone:
                self.views.pop(one, None)
            self.views |= {view.task_id: view for view in batch.views}
            self.last = batch
            self.batches.append(batch)
            async with self._came:
                self._came.notify_all()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SOON_S), self._came:
            await self._came.wait_for(condition)

    def status(self, plain: str, label: str = OWN) -> str:
        view = self.views.get(qualified(plain, label))
        return getattr(view.entry, "status", "?") if view is not None else ""


@asynccontextmanager
async def reading(engine: Engine, *, runs: bool = False) -> AsyncIterator[Reader]:
    """A reader of its live list, as long as the block lasts."""
    reader = Reader()
    following = asyncio.create_task(reader.follow(engine, runs=runs))
    try:
        yield reader
    finally:
        following.cancel()
        await asyncio.wait({following})
        if not following.cancelled() and (error := following.exception()):
            raise error
