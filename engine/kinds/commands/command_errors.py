"""Why a command went wrong: the codes of seed 002, each with a sentence of one line."""

from __future__ import annotations

from typing import Final

from engine.model.errors import EngineError

CANCELLED: Final = "CANCELLED"  # of a task, not of a command: that one is skipped


class CommandFailed(EngineError):
    """A tool could not do what it was asked for."""

    code = "EXECUTION_ERROR"
    title = "The command failed"
    sentence = "{message}"

    def __init__(self, message: str) -> None:
        super().__init__(message=message)


class CommandTimeout(CommandFailed):
    """A command was not done within its `timeout`."""

    code = "COMMAND_TIMEOUT"
    title = "The command took too long"


class InstanceDisconnected(CommandFailed):
    """The browser instance is gone: it crashed, was closed, or never was."""

    code = "INSTANCE_DISCONNECTED"
    title = "The browser is gone"


class BadCommand(CommandFailed):
    """Arguments that only the browser could find wrong, such as a selector it cannot read."""

    code = "INVALID_ARGUMENTS"
    title = "The command's arguments are wrong"
