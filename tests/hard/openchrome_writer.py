"""Program of ours for the rig `openchrome_live`: the same orders as `openchrome.mjs`.

It uses the ledger, the envelopes, the task runs and the reaper as the product does.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.budgets import ToolCall
from engine.budgets.envelopes import EnvelopeEnded, EnvelopeRequest, Envelopes
from engine.contracts.contract_service import Goals
from engine.ledger.files import Folder
from engine.ledger.lease import Lease
from engine.ledger.ledger import Change, Ledger
from engine.ledger.lock import TaskLock
from engine.ledger.reaper import Reaper
from engine.model.errors import LockTimeout, TransitionError
from engine.model.records import ENVELOPE, Status, TaskRecord
from tests.hard.reapers import say

LATE = (TransitionError, EnvelopeEnded)


class Writer:
    """Carries out the orders of the rig on one ledger."""

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.root = home / "tasks"
        self.ledger = Ledger(self.root, lease=Lease.acquire(self.root))
        self.envelopes = Envelopes(self.ledger)
        self.reaper = Reaper(self.ledger)
        self.goals = Goals(home, lambda: self.ledger)

    def create(self, order: dict[str, Any]) -> None:
        if order["kind"] == ENVELOPE:
            record = self.envelopes.start(EnvelopeRequest("to find out", "explore"))
        else:
            record = self.ledger.create(order["kind"], {"url": "http://site.test/"})
            if order["status"] == Status.RUNNING:
                record = self.ledger.claim(record.task_id)
        say({"did": "create", "task": record.task_id, "meta": self.ledger.read_raw(record.task_id)})

    def work(self, order: dict[str, Any]) -> None:
        for at, (what, task_id, pause_ms) in enumerate(order["steps"]):
            time.sleep(pause_ms / 1000)
            began = time.monotonic()
            try:
                result = self.act(what, task_id, at)
            except LATE:
                result = "late"
            except LockTimeout:
                result = "refused"
            ms = round((time.monotonic() - began) * 1000)
            say({"did": what, "task": task_id, "at": at, "result": result, "ms": ms})

    def act(self, what: str, task_id: str, at: int) -> str:
        match what:
            case "cancel":
                return self.cancel(task_id)
            case "claim":
                self.ledger.claim(task_id)
            case "finish":
                self.finish(task_id)
            case "event":
                self.ledger.append_event(task_id, "log", {"by": self.name})
            case "item":
                self.goals.runs.update(task_id, {"completed_items": [f"{self.name}:{at}"]})
            case "call":
                owner = self.ledger.read_raw(task_id).get("owner") or {}  # whose calls alone count
                call = ToolCall("read_page", session=owner.get("session_id"))
                self.envelopes.record(task_id, call)
            case "reap":
                self.reap({})
            case _:
                self.ledger.mutate(task_id, self.change(what, at))
        return "done"

    def change(self, what: str, at: int) -> Change:
        def count(raw: dict[str, Any]) -> None:
            counts = raw.setdefault("counts", {})
            counts[self.name] = counts.get(self.name, 0) + 1
            raw["total"] = raw.get("total", 0) + 1

        def lane(raw: dict[str, Any]) -> None:
            mine = f"lane_{self.name}"
            lanes: list[dict[str, Any]] = raw.setdefault("lanes", [])
            found = next((one for one in lanes if one["lane_id"] == mine), None)
            if found is None:
                found = {"lane_id": mine, "status": "open", "counters": {"toolCalls": 0}}
                lanes.append(found)
            found["counters"]["toolCalls"] += 1

        def field(raw: dict[str, Any]) -> None:
            raw[f"x_{self.name}_{at}"] = {"at": at, "words": "a half \ud83d"}

        return {"count": count, "lane": lane, "field": field}[what]

    def cancel(self, task_id: str) -> str:
        before = self.ledger.read(task_id)
        record = self.ledger.request_cancel(task_id, "seen enough")
        if record.cancel_requested_at is None or getattr(before, "is_terminal", True):
            return "late"
        if record.is_terminal:
            self.ended("end", record)
        return "done"

    def finish(self, task_id: str) -> None:
        record = self.ledger.read(task_id)
        if getattr(record, "kind", "") == ENVELOPE:
            self.ended("end", self.envelopes.finish(task_id, "completed", note="the end"))
            return
        self.ledger.write_result(task_id, [b'{"summary": {}, "pages": []}'])
        self.ended("end", self.ledger.finish(task_id, Status.COMPLETED))

    def ended(self, did: str, record: TaskRecord) -> None:
        facts = {"status": record.status, "ended_at": record.ended_at}
        say({"did": did, "task": record.task_id, **facts})

    def reap(self, order: dict[str, Any]) -> None:
        for record in self.reaper.settle() if order.get("settle") else self.reaper.reap():
            self.ended("reap", record)

    def hold(self, order: dict[str, Any]) -> None:
        with Folder.at(str(self.root / order["task"])) as folder, TaskLock(folder, order["task"]):
            say({"did": "hold", "task": order["task"]})
            time.sleep(600)


def main(home: Path, name: str) -> None:
    writer = Writer(home, name)
    orders: dict[str, Callable[[dict[str, Any]], None]] = {
        "create": writer.create,
        "work": writer.work,
        "hold": writer.hold,
        "reap": writer.reap,
    }
    for line in sys.stdin:
        order = json.loads(line)
        orders[order["do"]](order)
        say({"did": "done"})
    if writer.ledger.lease is not None:
        writer.ledger.lease.release()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
