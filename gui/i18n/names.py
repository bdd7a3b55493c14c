"""Names of budgets, and names and states of ledgers, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication

from engine.model.display import display
from engine.model.records import TaskView
from engine.service.router.ledger_paths import LedgerState
from engine.text.messages import ENGLISH, retold
from engine.text.words import count, say, task_name


def budget_name(key: str) -> str:
    """Return the name of a budget; an unknown one is shown as on disk."""
    message = f"budget.name.{key}"
    return say(message) if message in ENGLISH else display(key, 60)


def budget_names(keys: Iterable[str]) -> str:
    """Join budget names: `tool calls, time`; an unknown one is shown as on disk."""
    return ", ".join(map(budget_name, keys))


def advice_words(advice: str | None) -> str:
    """Return the recommended next step in words."""
    message = f"advice.{advice}"
    return say(message) if message in ENGLISH else display(advice or "", 200)


LOST: Final = ("gone", "unusable")
TONES: Final = {
    "opening": "muted",
    "live": "good",
    "polling": "warning",
    "gone": "bad",
    "unusable": "bad",
}
_WORST: Final = ("gone", "unusable", "polling", "opening", "live")  # most urgent first
_MOST_NAMED: Final = 3


def state_word(state: LedgerState) -> str:
    """Return the state in one or two words."""
    words = {
        "opening": QCoreApplication.translate("Ledgers", "Opening…"),
        "live": QCoreApplication.translate("Ledgers", "Live"),
        "polling": QCoreApplication.translate("Ledgers", "Polling"),
        "gone": QCoreApplication.translate("Ledgers", "Folder gone"),
        "unusable": QCoreApplication.translate("Ledgers", "Cannot be used"),
    }
    return words[state.state]


def number_of_tasks(number: int) -> str:
    if number == 1:
        return QCoreApplication.translate("Ledgers", "1 task")
    return QCoreApplication.translate("Ledgers", "{0} tasks").format(count(number))


def lost_words(state: LedgerState, known: int) -> tuple[str, str]:
    """Return title and tooltip of a lost ledger for the sidebar.

    The tooltip has the reason and the number of its `known` tasks.
    """
    name = QCoreApplication.translate("Ledgers", "{0}: {1}")
    name, reason = name.format(state.label, state_word(state)), retold(state.reason)
    if not known:
        return name, reason
    said = QCoreApplication.translate(
        "Ledgers", "It had {0} when it was last seen; they are not listed now."
    )
    told = (reason, said.format(number_of_tasks(known)))
    return name, "\n".join(filter(None, told))


def line_of(state: LedgerState) -> str:
    """Describe a ledger in one line: label, path, state, number of tasks."""
    path, word = display(str(state.path)), state_word(state)
    line = QCoreApplication.translate("Ledgers", "{0} at {1}: {2}, {3}")
    if state.watch_only:
        line = QCoreApplication.translate("Ledgers", "{0} at {1}: {2}, {3}, only watched")
    return line.format(state.label, path, word.rstrip("…"), number_of_tasks(state.tasks))


def name_with_ledger(view: TaskView) -> str:
    """Return a task's name, with its ledger if it is another one, as names may be equal."""
    name = task_name(view)
    words = QCoreApplication.translate("Ledgers", "{0} at {1}")
    return words.format(name, view.ledger) if view.ledger else name


def place_of(state: LedgerState) -> str:
    """Return label and path of an additional ledger, for task details."""
    words = QCoreApplication.translate("Ledgers", "{0}: {1}")
    if state.watch_only:
        words = QCoreApplication.translate("Ledgers", "{0}: {1} (only watched)")
    return words.format(state.label, display(str(state.path)))


def summed_up(states: Sequence[LedgerState]) -> tuple[str, str, str]:
    """Summarise all for the status bar: tone, short text, and a line for each."""
    number = len(states)
    lost = sum(one.state in LOST for one in states)
    worst = min((one.state for one in states), key=_WORST.index, default="live")
    if lost:
        words = QCoreApplication.translate("Ledgers", "{0} beside, {1} lost")
    else:
        words = QCoreApplication.translate("Ledgers", "{0} beside")
    hint = "\n".join(f"{line_of(one)}\n{retold(one.reason)}".strip() for one in states)
    return TONES[worst], words.format(count(number), count(lost)), hint


def title_of(root: str, states: Sequence[LedgerState]) -> str:
    """Return the window's title: its own ledger, and the others."""
    if not states:
        return root
    if len(states) > _MOST_NAMED:
        words = QCoreApplication.translate("Ledgers", "{0} and {1} more ledgers")
        return words.format(root, count(len(states)))
    labels = ", ".join(one.label for one in states)
    return QCoreApplication.translate("Ledgers", "{0} and {1}").format(root, labels)
