"""Specification of a kind of task, and the services available to its body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from engine.browser.chromium.browser_session import BrowserSession, Instances
from engine.kinds.arguments import Table
from engine.kinds.context import FROM_OUTSIDE, AllowedSecrets, Context
from engine.kinds.host_delay import HostTurns
from engine.model.cluster_workers import OpenClusters
from engine.model.config import Settings
from engine.model.kind_traits import OTHER_RESULT_KEY, KindTraits, traits_of
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden, Scrub
from engine.secrets.value_search import SHORT

if TYPE_CHECKING:
    from engine.browser.interact.agent_tab import AgentTab

Head = dict[str, Any]
"""result.json but for the units: those are on disk and are streamed into it."""


class HeldTab(Protocol):
    """A tab that an agent of this process holds open, with serialized access."""

    @property
    def tab(self) -> AgentTab: ...

    def locked(self, limit_s: float) -> AbstractAsyncContextManager[AgentTab]: ...


def _nobody() -> list[tuple[str, Sequence[HeldTab]]]:
    return []


@dataclass(slots=True, eq=False)
class Tools:
    """External services of a body; `living` returns the open tabs of each agent.

    `clusters` are those that running tasks use, and `host_turns` what their crawls share.
    """

    settings: Settings
    browser: BrowserSession
    living: Callable[[], Sequence[tuple[str, Sequence[HeldTab]]]] = _nobody
    instances: Instances = field(init=False)
    clusters: OpenClusters = field(default_factory=OpenClusters)
    host_turns: HostTurns = field(default_factory=HostTurns)

    def __post_init__(self) -> None:
        self.instances = Instances(self.browser)

    def allow(self, private: Iterable[str], secrets: Iterable[str]) -> None:
        """Replace the operator's lists; tasks that run keep those of their start."""
        self.settings = replace(
            self.settings, allow_private=tuple(private), allow_secrets=tuple(secrets)
        )

    def use_browser(self, path: str | None) -> None:
        """Replace the user's browser; None searches for one."""
        self.settings = replace(self.settings, browser_path=path)
        self.browser.use(path)

    def on_route(self, route: str | None) -> Tools:
        """Return these services for a request that came by `route` (None: the engine's own)."""
        route = route or self.settings.route
        settings = replace(self.settings, route=route)
        if route in FROM_OUTSIDE:
            given = settings.environ
            allowed = {name: given.get(name, "") for name in settings.allow_secrets}
            settings = replace(settings, environ=AllowedSecrets(allowed))
        found = copy(self)  # `replace` would make other instances
        found.settings = settings
        return found


class Placing(NamedTuple):
    """Stored form of an accepted task.

    `args` are the storable arguments, `command_task_id` is the task's other id, and `documents`
    are the files that exist in its folder from the start. `withheld` marks stored arguments that
    cannot start the task again.
    """

    args: Mapping[str, Any]
    name: str | None = None
    command_task_id: str | None = None
    metadata: Any = None
    documents: Mapping[str, bytes] = {}
    withheld: bool = False


class Column(NamedTuple):
    """An export column; `width` in characters. Reports have `brief` ones, else all but `bulky`."""

    name: str
    width: int = 14
    bulky: bool = False
    brief: bool = False


class KindForm(NamedTuple):
    """Presentation of a kind in forms and help, in English.

    `action` describes the work of a task, `listed` names a list of addresses for it, with their
    number and the first host. `summary` appears in `octask start --help`, whose section
    `options_title` has the options of the kind. `nothing` tells why a task `captures_nothing`.
    """

    action: str
    summary: str
    options_title: str = ""
    listed: str = ""
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class KindSpec:
    """Specification of one kind of task.

    `parse` reports every mistake (InvalidArguments). `parse_here` is `parse` for a request that
    starts at once: it may read the environment and the open instances. `body` stores its units
    through the context and returns the head of the result; it raises `TaskFailed` to fail with a
    head. `partial` builds a head from the stored units after an interrupted body: (args, units,
    stopped by, duration in ms). `queue` returns the name of the job's queue, if any. `place`
    returns the stored form of an accepted task, `secrets` the exact values that no stored form may
    contain. `captures_nothing` reports a valid request that would store no unit if it started now.

    `traits` are the facts that lower packages use. `arguments`, their `defaults` and `form` define
    the start dialog and the options of `octask start`; `columns` define the exports.
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Any]
    body: Callable[[Any, Context, Tools], Awaitable[Head]]
    partial: Callable[[Any, Iterable[Mapping[str, Any]], StoppedBy, int], Head]
    queue: Callable[[Any], str | None] = lambda _: None
    parse_here: Callable[[Mapping[str, Any], Tools], Any] | None = None
    place: Callable[[Any, Mapping[str, Any]], Placing] = lambda _, args: Placing(args)
    secrets: Callable[[Any], Iterable[Hidden]] = lambda args: getattr(args, "secrets", ())
    captures_nothing: Callable[[Any, Tools], bool] = lambda *_: False
    traits: KindTraits | None = None
    form: KindForm | None = None
    arguments: Table = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()

    def scrub(self, args: Any) -> Scrub:
        """Return the masking of the task's secrets for all stored texts."""
        return Scrub(one for one in self.secrets(args) if len(one.value) >= SHORT)

    @property
    def units_key(self) -> str:
        """The key of the units in result.json."""
        return traits_of(self.name).result_key or OTHER_RESULT_KEY


def defaults_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the default of each field that has one."""
    fields = msgspec.structs.fields(struct)
    return {one.name: one.default for one in fields if one.default is not msgspec.NODEFAULT}
