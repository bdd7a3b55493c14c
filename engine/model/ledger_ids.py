"""Task ids across several ledgers: an id is qualified by its ledger's label.

The id of a task in the program's own ledger is its folder name. An id of another ledger has that
ledger's label after an `@`, so that two copies of one folder never collide. No id on disk contains
`@`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from engine.model.records import TaskId

SIGN: Final = "@"
HERE: Final = "here"  # the own ledger in filters; reserved, so no ledger has it as label
LONGEST: Final = 24
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}", re.ASCII)
_USELESS: Final = frozenset({"", "tasks", "openchrome", HERE})  # not distinctive as labels
_ANY: Final = "ledger"


def qualified(plain: str, label: str) -> TaskId:
    """Return the id of a task in the ledger `label`; without a label the plain id."""
    return TaskId(f"{plain}{SIGN}{label}" if label else plain)


def plain_id(task_id: str) -> str:
    """Return the id without label, as on disk: for display, copying and the task's own ledger."""
    return task_id.partition(SIGN)[0]


def ledger_label(task_id: str) -> str:
    """Return the label of the task's ledger; "" for the program's own."""
    return task_id.partition(SIGN)[2]


def is_label(text: str) -> bool:
    """Return whether `text` is a valid label: lower-case letters, digits and `-`; 24 at most."""
    return _LABEL.fullmatch(text) is not None and text != HERE


def free_label(names: Collection[str], taken: Collection[str]) -> str:
    """Return an unused label made of the first distinctive name."""
    found = next((made for made in map(_label_of, names) if made not in _USELESS), _ANY)
    free, number = found, 1
    while free in taken or free == HERE:
        number += 1
        free = f"{found[: LONGEST - len(str(number)) - 1].rstrip('-')}-{number}"
    return free


def _label_of(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:LONGEST].rstrip("-")
