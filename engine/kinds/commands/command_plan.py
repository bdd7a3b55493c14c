"""A validated command task: the executable steps, and their storable form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from engine.egress.egress_policy import place_of
from engine.kinds.commands.command_table import TAB_ACTIONS
from engine.kinds.commands.command_task import Task, TaskCommand, command_id
from engine.model import redact
from engine.model.addresses import Credentials, credentials_of
from engine.model.errors import AddressBlocked
from engine.secrets.given_secrets import Hidden, Scrub, of_address

_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>\\`]+", re.IGNORECASE)


class Step(msgspec.Struct, frozen=True):
    """One command: `args` for the execution, `stored` for the files."""

    tool: str
    action: str
    intention: str
    args: Mapping[str, Any]
    stored: Mapping[str, Any]
    timeout_ms: int

    def __repr__(self) -> str:
        return f"Step({self.tool} {self.action})"  # the arguments may contain a password


class CommandPlan(msgspec.Struct, frozen=True):
    """A validated task; `metadata` is the JSON value unchanged, `hidden` the values to mask."""

    name: str
    intention: str
    steps: tuple[Step, ...]
    stored: Mapping[str, Any]
    hidden: tuple[tuple[str, str], ...] = ()
    instance_id: str | None = None
    metadata: bytes | None = None
    task_id: str = ""  # the seed's own id, assigned on acceptance
    accepted_at: int = 0  # ms since 1970
    stays: bool = False  # stay on pages that ask before they unload
    redact_content: bool = True  # redact strict key shapes in page content

    def __repr__(self) -> str:
        return f"CommandPlan({self.task_id or 'new'}, {len(self.steps)} commands)"

    @property
    def secrets(self) -> list[tuple[str, str]]:
        """All values that this task received as secrets, also those inside addresses."""
        return [*self.hidden, *self.of_addresses]

    @property
    def of_addresses(self) -> list[Hidden]:
        """The secrets in the addresses that this task opens."""
        urls = [str(step.args["url"]) for step in self.steps if "url" in step.args]
        return [one for url in urls for one in of_address(url)]

    @property
    def scrub(self) -> Scrub:
        """The masking of this task's secrets in page content."""
        return Scrub(self.secrets, key_shapes=self.redact_content)

    @property
    def credentials(self) -> Credentials | None:
        """User and password of the first address that has them."""
        urls = (step.args["url"] for step in self.steps if "url" in step.args)
        return next(filter(None, map(credentials_of, urls)), None)

    @property
    def uses_tabs(self) -> bool:
        """Whether the windows that pages open become tabs."""
        return any(step.action in TAB_ACTIONS for step in self.steps)

    @property
    def places(self) -> tuple[str, ...]:
        """Every literal `host:port` in the submitted task."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[str]:
        for step in self.steps:
            for given in step.args.values():
                for value in given if isinstance(given, tuple) else (given,):
                    found = _ADDRESS.findall(value) if isinstance(value, str) else ()
                    yield from filter(None, map(_place, found))

    def task(self, created_at: int) -> Task:
        """Return the task in its state before the first command."""
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
