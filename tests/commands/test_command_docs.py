"""The page about command tasks names every tool, action, argument and code that there is."""

from __future__ import annotations

from pathlib import Path

from engine.browser.interact.command_errors import (
    CANCELLED,
    BadCommand,
    CommandFailed,
    CommandTimeout,
    InstanceDisconnected,
)
from engine.kinds.commands.command_table import TOOLS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text("utf-8")


def test_every_tool_action_and_argument_is_told() -> None:
    names = {*TOOLS, "timeout"}
    for actions in TOOLS.values():
        for action, args in actions.items():
            names |= {action, *args}
    assert not [name for name in sorted(names) if f"`{name}`" not in PAGE]


def test_every_code_is_told() -> None:
    kinds = (CommandFailed, CommandTimeout, InstanceDisconnected, BadCommand)
    assert not [code for code in (CANCELLED, *(k.code for k in kinds)) if f"`{code}`" not in PAGE]
