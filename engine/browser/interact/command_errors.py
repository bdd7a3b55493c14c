"""Errors of commands: the codes of seed 002, each with a message of one line."""

from __future__ import annotations

from typing import Final

from engine.model.errors import EngineError

CANCELLED: Final = "CANCELLED"  # of a task; a command of that task is skipped


class CommandFailed(EngineError):
    """A command could not do its work."""

    code = "EXECUTION_ERROR"
    title = "The command failed"
    sentence = "{message}"

    def __init__(self, message: str) -> None:
        super().__init__(message=message)


class CommandTimeout(CommandFailed):
    """A command exceeded its `timeout`."""

    code = "COMMAND_TIMEOUT"
    title = "The command took too long"


class InstanceDisconnected(CommandFailed):
    """The browser instance is unavailable: it crashed, was closed, or never existed."""

    code = "INSTANCE_DISCONNECTED"
    title = "The browser is gone"


class BadCommand(CommandFailed):
    """Arguments that only the browser can reject, such as an invalid selector."""

    code = "INVALID_ARGUMENTS"
    title = "The command's arguments are wrong"
