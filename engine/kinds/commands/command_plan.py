"""A command task that was checked: what its body runs, and what of it may be stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from engine.browser.egress.egress_policy import place_of
from engine.kinds.commands.command_table import TAB_ACTIONS
from engine.kinds.commands.command_task import Task, TaskCommand, command_id
from engine.model import redact
from engine.model.addresses import credentials_of
from engine.model.credentials import Credentials
from engine.model.errors import AddressBlocked
from engine.secrets.given_secrets import Hidden, Scrub, of_address

_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>\\`]+", re.IGNORECASE)


class Step(msgspec.Struct, frozen=True):
    """One command: `args` as they are used, `stored` as they may be kept."""

    tool: str
    action: str
    intention: str
    args: Mapping[str, Any]
    stored: Mapping[str, Any]
    timeout_ms: int

    def __repr__(self) -> str:
        return f"Step({self.tool} {self.action})"  # its arguments may hold a password


class CommandPlan(msgspec.Struct, frozen=True):
    """A whole task; `metadata` is the JSON value as it came, `hidden` what nobody may read."""

    name: str
    intention: str
    steps: tuple[Step, ...]
    stored: Mapping[str, Any]
    hidden: tuple[tuple[str, str], ...] = ()
    instance_id: str | None = None
    metadata: bytes | None = None
    task_id: str = ""  # the seed's own, given when it is accepted
    accepted_at: int = 0  # ms since 1970
    stays: bool = False  # on pages that ask whether to leave them
    redact_content: bool = True  # take strict key shapes out of what pages say

    def __repr__(self) -> str:
        return f"CommandPlan({self.task_id or 'new'}, {len(self.steps)} commands)"

    @property
    def secrets(self) -> list[tuple[str, str]]:
        """Every value that this task was given as a secret, also inside of an address."""
        return [*self.hidden, *self.of_addresses]

    @property
    def of_addresses(self) -> list[Hidden]:
        """What stands in the addresses that this task opens, of secrets."""
        urls = [str(step.args["url"]) for step in self.steps if "url" in step.args]
        return [one for url in urls for one in of_address(url)]

    @property
    def scrub(self) -> Scrub:
        """Takes out of what a page says whatever this task must not repeat."""
        return Scrub(self.secrets, key_shapes=self.redact_content)

    @property
    def credentials(self) -> Credentials | None:
        """User and password of the first address that has them."""
        urls = (step.args["url"] for step in self.steps if "url" in step.args)
        return next(filter(None, map(credentials_of, urls)), None)

    @property
    def uses_tabs(self) -> bool:
        """Whether windows that pages open are to be kept as tabs."""
        return any(step.action in TAB_ACTIONS for step in self.steps)

    @property
    def places(self) -> tuple[str, ...]:
        """Every `host:port` that stands literally in what was submitted."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[str]:
        for step in self.steps:
            for given in step.args.values():
                for value in given if isinstance(given, tuple) else (given,):
                    found = _ADDRESS.findall(value) if isinstance(value, str) else ()
                    yield from filter(None, map(_place, found))

    def task(self, created_at: int) -> Task:
        """The task as it is before anything of it ran."""
        commands = [
            TaskCommand(
                id=command_id(self.task_id, at),
                tool_name=step.tool,
                intention=redact.text(step.intention),
                args=redact.value(step.stored),
                status="pending",
            )
            for at, step in enumerate(self.steps)
        ]
        return Task(
            id=self.task_id,
            instance_id=self.instance_id or "",
            name=redact.text(self.name),
            intention=redact.text(self.intention),
            commands=commands,
            status="queued",
            current_command_index=0,
            created_at=created_at,
            metadata=msgspec.UNSET if self.metadata is None else msgspec.Raw(self.metadata),
        )


def _place(url: str) -> str | None:
    try:
        return str(place_of(url))
    except AddressBlocked:
        return None
