"""What a kind of task is, and what its body may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.instances import Instances
from engine.kinds.arguments import Table
from engine.kinds.context import Context
from engine.ledger.result_assembly import assemble
from engine.model.config import Settings
from engine.model.kind_traits import OTHER_RESULT_KEY, KindTraits, traits_of
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden, Scrub
from engine.secrets.spellings import SHORT

if TYPE_CHECKING:
    from engine.browser.interact.agent_tab import AgentTab

Head = dict[str, Any]
"""result.json but for the units: those are on disk and are streamed into it."""


class HeldTab(Protocol):
    """A tab that an agent of this process has open, and the way to use it in turn."""

    @property
    def tab(self) -> AgentTab: ...

    def locked(self, limit_s: float) -> AbstractAsyncContextManager[AgentTab]: ...


def _nobody() -> list[tuple[str, Sequence[HeldTab]]]:
    return []


@dataclass(frozen=True, slots=True)
class Tools:
    """What a body may use of the outside world; `living` are the tabs of each agent."""

    settings: Settings
    browser: BrowserSession
    living: Callable[[], Sequence[tuple[str, Sequence[HeldTab]]]] = _nobody
    instances: Instances = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "instances", Instances(self.browser))


class Placing(NamedTuple):
    """How an accepted task is written down: of its arguments what may be kept, its other id,
    and the files that lie beside its meta.json from the first moment on. `withheld` says that
    what is kept cannot start the task again."""

    args: Mapping[str, Any]
    name: str | None = None
    command_task_id: str | None = None
    metadata: Any = None
    documents: Mapping[str, bytes] = {}
    withheld: bool = False


class Column(NamedTuple):
    """A field of a unit in exports; `width` in characters, a `bulky` one is left out of reports."""

    name: str
    width: int = 14
    bulky: bool = False


class KindForm(NamedTuple):
    """How a kind is offered to a person, in English.

    `action` says what a task of it does, `listed` names a list of addresses for it, with their
    number and the first host. `summary` stands in `octask start --help`, whose section
    `options_title` has the options of the kind.
    """

    title: str
    action: str
    icon: str
    summary: str
    options_title: str = ""
    listed: str = ""


@dataclass(frozen=True, slots=True)
class KindSpec:
    """One kind of task.

    `parse` names every mistake (InvalidArguments). `body` keeps its units through the context
    and returns the head of the result; it raises `TaskFailed` to fail with one. `partial`
    makes a head from the units on disk where the body could not: (args, units, stopped by,
    duration in ms). `queue` names the queue that a job has to wait in, if any. `parse_here`
    is `parse` for a request that begins at once: it may look at what is there (instances,
    the environment). `place` says how an accepted task is written down, `secrets` which exact
    values must stand in nothing that is.
    `traits` are what lower packages know of it. `arguments`, their `defaults` and `form` make the
    start dialog and the options of `octask start`; `columns` are those of its exports. The verbs
    of `octask` that only this kind has form a group with `verbs_help`.
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Any]
    body: Callable[[Any, Context, Tools], Awaitable[Head]]
    partial: Callable[[Any, Iterable[Mapping[str, Any]], StoppedBy, int], Head]
    queue: Callable[[Any], str | None] = lambda _: None
    parse_here: Callable[[Mapping[str, Any], Tools], Any] | None = None
    place: Callable[[Any, Mapping[str, Any]], Placing] = lambda _, args: Placing(args)
    secrets: Callable[[Any], Iterable[Hidden]] = lambda args: getattr(args, "secrets", ())
    traits: KindTraits | None = None
    form: KindForm | None = None
    arguments: Table = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    verbs_help: str = ""

    def scrub(self, args: Any) -> Scrub:
        """Takes what the task was given as secrets out of everything that is written of it."""
        return Scrub(one for one in self.secrets(args) if len(one.value) >= SHORT)

    @property
    def units_key(self) -> str:
        """Where the units stand in result.json."""
        return traits_of(self.name).result_key or OTHER_RESULT_KEY

    def result(self, head: Head, units: Iterable[bytes]) -> bytes:
        """result.json of a direct call: the bytes that the task would have left."""
        return b"".join(assemble(head, self.units_key, units))


def defaults_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The default of each field that has one."""
    fields = msgspec.structs.fields(struct)
    return {one.name: one.default for one in fields if one.default is not msgspec.NODEFAULT}
