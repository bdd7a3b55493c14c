"""The second name of a command task: `task_{ms}_{base36}` (seed 002) beside its folder's id."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from engine.ledger.reader import LedgerLook
from engine.model.errors import TaskNotFound
from engine.model.records import TaskId, TaskRecord

AT_ONCE: Final = 64
SLACK_MS: Final = 10_000  # file systems count time in steps, some of 2 s, and clocks are set back
_COMMAND_TASK_ID = re.compile(r"task_\d{1,16}_[0-9a-z]{1,13}", re.ASCII)


def is_command_task_id(given: str) -> bool:
    """Does `given` have the shape of the seed's id?"""
    return _COMMAND_TASK_ID.fullmatch(given) is not None


class Names:
    """Finds the folder that a name means. What was found is remembered: neither ever changes."""

    def __init__(self) -> None:
        self._known: dict[str, TaskId] = {}

    def learn(self, name: str, task_id: str) -> None:
        """A task of this process was accepted: nobody need look for it."""
        self._known[name] = TaskId(task_id)

    def ledger_id(self, look: LedgerLook, given: str) -> TaskId:
        """The id of the folder; every other text passes as it is. May read the whole list.

        Raises:
            TaskNotFound: no task of this ledger has that name.
        """
        if not is_command_task_id(given):
            return TaskId(given)
        if given not in self._known:
            self._search(look, given)
        found = self._known.get(given)
        if found is None:
            raise TaskNotFound(task_id=given, root=str(look.root))
        return found

    def _search(self, look: LedgerLook, given: str) -> None:
        """Read on until `given` turns up, beginning with what was written soonest after it was
        accepted: mostly the task itself."""
        from_ns = (int(given.split("_")[1]) - SLACK_MS) * 1_000_000
        stamps = [(stamp.mtime_ns, task_id) for task_id, stamp in look.scan() if stamp is not None]
        later = sorted(each for each in stamps if each[0] >= from_ns)
        ids = iter([task_id for _, task_id in later])
        while given not in self._known and (some := list(islice(ids, AT_ONCE))):
            for entry in look.entries(some):
                if isinstance(entry, TaskRecord) and entry.engine and entry.engine.command_task_id:
                    self._known.setdefault(entry.engine.command_task_id, TaskId(entry.task_id))
