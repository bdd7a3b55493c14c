"""Ids of tasks where several ledgers stand side by side: which ledger an id names, and back.

An id of the program's own ledger is its folder's name, as ever. One of a ledger beside it
carries that ledger's label behind an `@`, so that two copies of one folder never collide.
No id on disk holds that sign.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from engine.model.records import TaskId

SIGN: Final = "@"
HERE: Final = "here"  # what the filter calls the own ledger; no label, so that none is it
LONGEST: Final = 24
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}", re.ASCII)
_USELESS: Final = frozenset({"", "tasks", "openchrome", HERE})  # tells no ledger from another
_ANY: Final = "ledger"


def qualified(plain: str, label: str) -> TaskId:
    """The id of a task in the ledger called `label`; without a label the plain id."""
    return TaskId(f"{plain}{SIGN}{label}" if label else plain)


def plain_id(task_id: str) -> str:
    """The id as it stands on disk: what is shown, copied, and asked of the task's own ledger."""
    return task_id.partition(SIGN)[0]


def ledger_label(task_id: str) -> str:
    """The label of the ledger that the task is in; empty for the program's own."""
    return task_id.partition(SIGN)[2]


def is_label(text: str) -> bool:
    """Can a ledger beside be called so? Lower-case letters, digits and `-`; 24 at most."""
    return _LABEL.fullmatch(text) is not None and text != HERE


def free_label(names: Collection[str], taken: Collection[str]) -> str:
    """A label made of the first of these names that tells something, and that is not `taken`."""
    found = next((made for made in map(_label_of, names) if made not in _USELESS), _ANY)
    free, number = found, 1
    while free in taken or free == HERE:
        number += 1
        free = f"{found[: LONGEST - len(str(number)) - 1].rstrip('-')}-{number}"
    return free


def _label_of(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:LONGEST].rstrip("-")
