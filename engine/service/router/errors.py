"""Errors of operations on other ledgers."""

from __future__ import annotations

from engine.model.errors import EngineError


class LedgerAlreadyShown(EngineError):
    """The folder is shown already, by this path or by another one that leads to it."""

    code = "ledger_already_shown"
    title = "That ledger is shown already"
    sentence = "{path} is the same folder as {other}, which is shown already."
    advice_text = "Choose the folder of another ledger."


class LedgerInside(EngineError):
    """One ledger would be inside the other, so that their files would be ambiguous."""

    code = "ledger_inside"
    title = "One ledger lies inside the other"
    sentence = "{inner} lies inside {outer}: they cannot be shown side by side."
    advice_text = "Choose the folder that holds the tasks' own folders, or another ledger."


class BadLabel(EngineError):
    """A label is invalid, or another ledger has it."""

    code = "bad_ledger_label"
    title = "A ledger cannot be called so"
    sentence = "No ledger can be called '{label}': {reason}."
    advice_text = "Use up to 24 small letters, digits and hyphens, and no name twice."


class NoSuchLedger(EngineError):
    """An id names a ledger that is not open in this window."""

    code = "no_such_ledger"
    title = "That ledger is not shown here"
    sentence = "There is no ledger called '{label}' in this window."
    advice_text = "Add its folder to the ledgers of this window."


class LedgerNotOpen(EngineError):
    """The other ledger is known, but not available now."""

    code = "ledger_not_open"
    title = "The ledger is not open"
    sentence = "The ledger '{label}' cannot be asked: {reason}."
    advice_text = "It is opened by itself as soon as {path} can be used."


class LedgerWatchOnly(EngineError):
    """A write to a ledger that is only watched; nothing was written."""

    code = "ledger_watch_only"
    title = "This ledger is only watched"
    sentence = "The ledger '{label}' is only watched here: nothing is changed in {path}."
    advice_text = "Allow changes to it in the settings, or open it in a window of its own."


class ContractsElsewhere(EngineError):
    """A ledger without a home, whose contracts are in a folder that only its program knows."""

    code = "contracts_elsewhere"
    title = "Its contract cannot be looked at from here"
    sentence = "Nobody knows where the contracts of the ledger '{label}' lie: {path} is in no home."
    advice_text = "Open the home that its program uses in a window of its own."


class OnlyInItsOwnWindow(EngineError):
    """An operation reserved for the program that runs the ledger; nothing was changed."""

    code = "only_in_its_own_window"
    title = "This is done where the task runs"
    sentence = "The worker of a task in the ledger '{label}' cannot be ended from here."
    advice_text = "Open {path} in a window of its own."
