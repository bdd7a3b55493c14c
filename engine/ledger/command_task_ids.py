"""Alias of a command task, `task_{ms}_{base36}` (seed 002), besides its folder's id."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from engine.ledger.reader import LedgerReader
from engine.model.errors import TaskNotFound
from engine.model.records import TaskId, TaskRecord

AT_ONCE: Final = 64
SLACK_MS: Final = 10_000  # file times are rounded, by up to 2 s, and clocks are set back
_COMMAND_TASK_ID = re.compile(r"task_\d{1,16}_[0-9a-z]{1,13}", re.ASCII)


def is_command_task_id(given: str) -> bool:
    """Return whether `given` has the shape of the seed's id."""
    return _COMMAND_TASK_ID.fullmatch(given) is not None


class TaskAliases:
    """Resolve aliases to folder ids; both are immutable, so results are cached."""

    def __init__(self) -> None:
        self._known: dict[str, TaskId] = {}

    def add(self, name: str, task_id: str) -> None:
        """Record the alias of a task that this process accepted, so that no search is needed."""
        self._known[name] = TaskId(task_id)

    def ledger_id(self, reader: LedgerReader, given: str) -> TaskId:
        """Return the folder's id; other text is returned unchanged. May read the whole list.

        Raises:
            TaskNotFound: no task of this ledger has that name.
        """
        if not is_command_task_id(given):
            return TaskId(given)
        if given not in self._known:
            self._search(reader, given)
        found = self._known.get(given)
        if found is None:
            raise TaskNotFound(task_id=given, root=str(reader.root))
        return found

    def _search(self, reader: LedgerReader, given: str) -> None:
        """Read records until `given` is found, those written soonest after its time first."""
        from_ns = (int(given.split("_")[1]) - SLACK_MS) * 1_000_000
        stamps = [
            (stamp.mtime_ns, task_id) for task_id, stamp in reader.scan() if stamp is not None
        ]
        later = sorted(each for each in stamps if each[0] >= from_ns)
        ids = iter([task_id for _, task_id in later])
        while given not in self._known and (part := list(islice(ids, AT_ONCE))):
            for entry in reader.entries(part):
                if isinstance(entry, TaskRecord) and entry.engine and entry.engine.command_task_id:
                    self._known.setdefault(entry.engine.command_task_id, TaskId(entry.task_id))
