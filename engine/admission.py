"""From an untrusted request to a job: every mistake is named, and nothing is started before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.errors import InvalidArguments, Problem
from engine.run.kind import Kind, Tools
from engine.run.kinds import kind_of

MAX_REQUEST_BYTES = 1024 * 1024  # the cap of everything that is parsed (a task file, too)
MAX_NAME = 200  # characters of a task's own name


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is started under, beside its arguments.

    `policy` are budgets (seed 004) and `contract` a bulk progress contract (seed 001), both
    as they were given; `metadata` comes back untouched.
    """

    objective: str | None = None
    phase: str | None = None
    policy: Mapping[str, Any] | None = None
    enforce: bool = False
    contract: Mapping[str, Any] | None = None
    task_run_id: str | None = None
    task_thread_id: str | None = None
    workflow_id: str | None = None
    agent_id: str | None = None
    metadata: Any = None


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Request:
    """A request that passed: `args` as given (for the ledger to redact), `parsed` for the body."""

    kind: Kind
    args: dict[str, Any]
    parsed: Any
    name: str | None
    terms: Terms = NO_TERMS


def admit(
    kind: str,
    args: object,
    name: str | None = None,
    terms: Terms = NO_TERMS,
    tools: Tools | None = None,
) -> Request:
    """Check a request whole; with `tools` also whether what it asks for is there right now.

    Raises:
        InvalidArguments: with every mistake, each with the name of its argument.
    """
    spec = kind_of(kind)
    problems: list[Problem] = []
    parsed: Any = None
    if not isinstance(args, Mapping):
        problems.append(Problem("args", "wrong_type", "must be an object of named arguments"))
    else:
        problems.extend(_size_problem(args))
        try:
            here = spec.parse_here if tools is not None else None
            parsed = here(args, tools) if here and tools is not None else spec.parse(args)
        except InvalidArguments as error:
            problems.extend(error.problems)
    if name is not None and len(name) > MAX_NAME:
        problems.append(Problem("name", "too_long", f"must be at most {MAX_NAME} characters"))
    if problems or not isinstance(args, Mapping):
        raise InvalidArguments(tuple(problems))
    return Request(spec, dict(args), parsed, name, terms)


def _size_problem(args: Mapping[str, Any]) -> list[Problem]:
    try:
        size = len(msgspec.json.encode(args))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return [Problem("args", "not_json", "must be plain JSON values")]
    if size > MAX_REQUEST_BYTES:
        return [Problem("args", "too_large", f"must be under 1 MiB, this is {size:,} bytes")]
    return []
