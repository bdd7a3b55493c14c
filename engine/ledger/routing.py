"""Route a call to the ledger that an id names; `routed` is the one place where that happens.

An id without a label is one of the program's own ledger; `id@label` names another one that is
shown with it. A part of the engine marks the operations that take an id with `routed` or
`routed_parts`, and a call then runs in the same part of that ledger's engine, on its own threads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, ParamSpec, Protocol, TypeVar

from engine.model.ledger_ids import plain_id

P = ParamSpec("P")
T = TypeVar("T")

# What an operation needs of another ledger: `read` nothing, `write` that changes are allowed,
# `contracts` that the folder of its contracts is known; `own` is never done from outside.
Access = Literal["read", "write", "contracts", "own"]


class OtherLedger(Protocol):
    """A connection to a ledger other than the program's own."""

    @property
    def runs(self) -> Any:
        """The qualified ids of the task runs in its list."""

    def check(self, access: Access) -> None:
        """Raise an EngineError unless this may be done there."""

    def part(self, name: str) -> Any:
        """The part of its engine with this name. Raises LedgerNotOpen."""

    async def ask(self, work: Awaitable[T]) -> T:
        """Await `work` on the threads of this ledger; ids in the answer get its label."""

    def each(self, items: AsyncGenerator[T, Any]) -> AsyncGenerator[T, Any]:
        """Yield `items`, each made on the threads of this ledger."""

    def qualified(self, plain: str) -> str:
        """An id of this ledger with its label."""

    def folder_of(self, plain: str, *, is_run: bool) -> Path:
        """The folder of a task, or of a task run."""


class Router(Protocol):
    """The ledgers that are shown with the own one."""

    def of(self, task_id: str) -> OtherLedger | None:
        """The ledger that the id names; None for the own. Raises NoSuchLedger."""

    def all_open(self) -> Iterator[OtherLedger]:
        """The ledgers that can be asked now."""

    async def check_outside(self, place: Path) -> None:
        """Raise ExportRefused for a place inside any of the ledgers."""


class _OwnOnly:
    """The router of a program with one ledger."""

    def of(self, task_id: str) -> OtherLedger | None:
        return None

    def all_open(self) -> Iterator[OtherLedger]:
        return iter(())

    async def check_outside(self, place: Path) -> None:
        """The writer itself checks the own ledger."""


OWN_ONLY: Final[Router] = _OwnOnly()


class Routed(Protocol):
    """A part of an engine; `part_name` is the name of its attribute there."""

    part_name: str

    @property
    def router(self) -> Router:
        """The ledgers that its ids may name."""


R = TypeVar("R", bound=Routed)


def routed(
    access: Access = "read",
) -> Callable[
    [Callable[Concatenate[R, str, P], Coroutine[Any, Any, T]]],
    Callable[Concatenate[R, str, P], Coroutine[Any, Any, T]],
]:
    """Run the decorated operation in the ledger that its first argument names."""

    def decorate(
        operation: Callable[Concatenate[R, str, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[R, str, P], Coroutine[Any, Any, T]]:
        @wraps(operation)
        async def call(self: R, task_id: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
            there = self.router.of(task_id)
            if there is None:
                return await operation(self, task_id, *args, **kwargs)
            there.check(access)
            part = there.part(self.part_name)
            return await there.ask(operation(part, plain_id(task_id), *args, **kwargs))

        call.access = access  # type: ignore[attr-defined]  # an attribute on a function
        return call

    return decorate


def routed_parts(
    operation: Callable[Concatenate[R, str, P], AsyncGenerator[T, Any]],
) -> Callable[Concatenate[R, str, P], AsyncGenerator[T, Any]]:
    """As `routed`, for a reply that comes in parts; these hold no ids."""

    @wraps(operation)
    def call(self: R, task_id: str, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, Any]:
        there = self.router.of(task_id)
        if there is None:
            return operation(self, task_id, *args, **kwargs)
        part = there.part(self.part_name)
        return there.each(operation(part, plain_id(task_id), *args, **kwargs))

    call.access = "read"  # type: ignore[attr-defined]  # an attribute on a function
    return call
