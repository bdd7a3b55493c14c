"""Table of the HTTP routes: method, path and verb; names and checks of arguments come from verbs.

A group of verbs becomes a collection by one rule (`contract update` is
`POST /contracts/{id}/update`), so that a new verb of a group has its route at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from engine.model.errors import InvalidArguments, Problem
from engine.verbs import Param, Verb
from engine.verbs.schemas import param_schema
from engine.verbs.unknown_arguments import missing_arguments, unknown_argument
from engine.verbs.verb_table import VERBS

Method = Literal["GET", "POST", "DELETE"]
FACE: Final = "http"
ID: Final = "id"  # the part of a path that names a task, contract or run
GROUPS: Final[Mapping[str, str]] = {
    "contract": "/contracts",
    "task-run": "/task-runs",
    "runs": "/runs",
    "schedules": "/schedules",
}
_MAKES: Final = ("start", "add")
_SHOWS: Final = ("show", "get")
_READS: Final = ("check",)
# Verbs of the face that another route includes.
INCLUDED: Final[Mapping[str, str]] = {
    "get": "GET /tasks/{id}",
    "submit": "POST /tasks",
}


@dataclass(frozen=True)
class HttpRoute:
    """One route of a verb.

    `id_param` is the parameter that the path gives; `hidden` ones are not offered here. A
    `created` route answers 201, with the address of what it made. `waits` marks a call that may
    take long, so it ends when its client leaves.
    """

    method: Method
    path: str
    verb: Verb
    id_param: str = ""
    hidden: Collection[str] = ()
    created: str = ""
    waits: bool = False

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters that a request gives beside the path."""
        left = {self.id_param, *self.hidden}
        return tuple(param for param in self.verb.public if param.name not in left)

    @property
    def by_query(self) -> bool:
        return self.method != "POST"

    def given(
        self,
        path_id: str | None,
        query: Sequence[tuple[str, str]],
        body: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the arguments of the verb, which checks their values.

        Raises:
            InvalidArguments: a name is unknown here, or given twice.
        """
        params = {param.name: param for param in self.params}
        found: dict[str, Any] = {}
        problems: list[Problem] = []
        offered = {name: param_schema(param) for name, param in params.items()}
        pairs = [(name, _of_text(params.get(name), text)) for name, text in query]
        for name, value in (*pairs, *body.items()):
            if name not in params:
                owner = f"{self.method} {self.path}"
                problems.append(unknown_argument(name, owner, offered, before=len(problems)))
            elif name not in found:
                found[name] = value
            elif params[name].shape in ("many", "items") and isinstance(value, list | str):
                found[name] += [value] if isinstance(value, str) else value
            else:
                problems.append(Problem(name, "given_twice", "is given more than once"))
        if problems:
            required = [name for name, param in params.items() if param.required]
            raise InvalidArguments((*problems, *missing_arguments(required, found)))
        if self.id_param:
            found[self.id_param] = [path_id] if self.id_param == "task_ids" else path_id
        return found


def _of_text(param: Param | None, text: str) -> Any:
    """Convert the text of a query parameter; one of another form stays, and the verb refuses it."""
    shape = param.shape if param is not None else "text"
    if shape in ("many", "items"):
        return [text]
    if shape == "number" and text.isascii() and text.removeprefix("-").isdigit():
        return int(text[:32])
    if shape == "flag":
        return {"true": True, "1": True, "": True, "false": False, "0": False}.get(text, text)
    return text


def _task(method: Method, part: str, name: str, **more: Any) -> HttpRoute:
    verb = VERBS[name]
    return HttpRoute(method, f"/tasks{part}", verb, **{"id_param": "task_id", **more})


TASK: Final = _task("GET", "/{id}", "read")
START: Final = _task("POST", "", "start", id_param="", created="task_id")
LIST: Final = _task("GET", "", "list", id_param="")
CANCEL: Final = _task(
    "DELETE", "/{id}", "cancel", id_param="task_ids", hidden=("all_matching", "dry_run", "yes")
)


def _groups() -> Iterator[HttpRoute]:
    for verb in VERBS.values():
        group, _, name = verb.name.rpartition(" ")
        if FACE not in verb.faces or group not in GROUPS:
            continue
        path, item = GROUPS[group], f"{GROUPS[group]}/{{{ID}}}"
        first = next((param.name for param in verb.params if param.positional), "")
        if name == "list":
            yield HttpRoute("GET", path, verb)
        elif name in _MAKES:
            yield HttpRoute("POST", path, verb, created=f"{path[1:]}")
        elif name == "remove":
            yield HttpRoute("DELETE", item, verb, first)
        elif name == "run-now":
            yield HttpRoute("POST", f"{item}/run", verb, first, created="task_id")
        elif name in _SHOWS:
            yield HttpRoute("GET", item, verb, first)
        elif name in _READS:
            yield HttpRoute("GET", f"{item}/{name}", verb, first)
        else:
            yield HttpRoute("POST", f"{item}/{name}", verb, first)


ROUTES: Final[tuple[HttpRoute, ...]] = (
    START,
    LIST,
    _task("POST", "/cancel", "cancel", id_param=""),
    TASK,
    CANCEL,
    _task("GET", "/{id}/commands", "status"),
    _task("POST", "/{id}/wait", "wait", waits=True),
    _task("POST", "/{id}/rerun", "rerun", created="task_id"),
    _task("POST", "/{id}/retry", "retry", created="task_id"),
    _task("POST", "/{id}/resume", "resume", created="task_id"),
    _task("POST", "/{id}/stop", "stop"),
    _task("POST", "/{id}/update", "update"),
    _task("POST", "/{id}/finish", "finish"),
    _task("POST", "/{id}/complete", "complete", id_param="run_id", hidden=("by",)),
    HttpRoute("POST", "/hold", VERBS["hold"]),
    HttpRoute("POST", "/release", VERBS["release"]),
    HttpRoute("POST", "/reap", VERBS["reap"]),
    *_groups(),
    HttpRoute("POST", "/task-runs/{id}/complete", VERBS["complete"], "run_id", ("by",)),
)


# The last route of a verb is the one of its own collection.
ROUTE_NAMES: Final = {route.verb.name: f"{route.method} {route.path}" for route in ROUTES}


def location(route: HttpRoute, data: Mapping[str, Any]) -> str:
    """Return the address of what a route made, from its answer."""
    if route.created == "task_id":
        return f"/tasks/{data['task_id']}"
    made = {
        "contracts": lambda: data["bulk_progress_contract"]["contract_id"],
        "task-runs": lambda: data["task_run"]["run_id"],
        "runs": lambda: data["runId"],
        "schedules": lambda: data["schedule_id"],
    }
    return f"/{route.created}/{made[route.created]()}"
