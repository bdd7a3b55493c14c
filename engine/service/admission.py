"""Validation of untrusted requests: every mistake is reported, and nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import to_builtins

from engine import budgets
from engine.budgets.envelopes import PHASES, EnvelopeRequest, envelope_request
from engine.contracts import run_store
from engine.contracts.crawl_contract import contract_problems
from engine.kinds.arguments import REFERENCED
from engine.kinds.commands.command_table import is_reference, reference_name
from engine.kinds.consent_use import consent_problems
from engine.kinds.context import missing_secret
from engine.kinds.look_arguments import resolved_headers
from engine.kinds.profile_use import profile_problems
from engine.kinds.registry import kind_of
from engine.kinds.remote_browser_use import remote_browser_problems
from engine.kinds.spec import KindSpec, Tools
from engine.kinds.traits import COMMANDS_TRAITS
from engine.model import redact
from engine.model.display import display
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE, EngineFields

MAX_REQUEST_BYTES = 1024 * 1024  # limit of all parsed input, including task files
ADDRESSES = ("url", "urls", "sitemap_url", "tabs", "header_origins")
BY_REFERENCE = (*ADDRESSES, *REFERENCED)
UNKNOWN_ADDRESS = "https://address.invalid/"
MAX_NAME = 200  # characters of a task's own name
MAX_CLIENT = 80  # characters of a client's name; the rest is cut


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of a task besides its arguments.

    `policy` holds budgets (seed 004) and `contract` a bulk progress contract (seed 001), both
    unchanged; `metadata` is returned unchanged.

    `client` is the name of the program that requests the task and `route` how the request came
    (one of `ROUTES`; by default `Settings.route`). The face fills them in, never an
    argument of the request: over MCP and HTTP private addresses need the operator's list.
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
    client: str | None = None
    route: str | None = None


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Request:
    """Valid request: `args` as given (redacted by the ledger), `parsed` for the body."""

    kind: KindSpec
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
    """Validate a whole request; with `tools` also check that its resources are available now.

    Raises:
        InvalidArguments: with every mistake, each with the name of its argument.
    """
    spec = kind_of(kind)
    problems: list[Problem] = []
    parsed: Any = None
    named: dict[str, Any] = {}  # references to credentials, which may be stored
    if not isinstance(args, Mapping):
        problems.append(Problem("args", "wrong_type", "must be an object of named arguments"))
    else:
        problems.extend(_size_problem(args))
        if tools is not None:
            problems.extend(profile_problems(args, tools))
            problems.extend(remote_browser_problems(args, tools.settings))
            problems.extend(consent_problems(args))
        if kind != COMMANDS_TRAITS.name:  # command tasks resolve their own references, in any text
            environ = tools.settings.environ if tools is not None else None
            named = {name: args[name] for name in REFERENCED if is_reference(args.get(name))}
            named |= {name: args[name] for name in ("headers",) if name in args}
            args = resolved(args, environ, problems)
        try:
            here = spec.parse_here if tools is not None else None
            parsed = here(args, tools) if here and tools is not None else spec.parse(args)
        except InvalidArguments as error:
            problems.extend(error.problems)
    problems.extend([*terms_problems(terms), *contract_problems(kind, terms.contract)])
    problems.extend(_name_problems(name))
    if problems or not isinstance(args, Mapping):
        raise InvalidArguments(tuple(problems))
    return Request(spec, {**args, **named}, parsed, name, terms)


def resolved(
    args: Mapping[str, Any], environ: Mapping[str, str] | None, problems: list[Problem]
) -> dict[str, Any]:
    """Resolve addresses and credentials given as `{"secret": "env:NAME"}`, and headers.

    Without `environ`, only the form of each reference is checked.
    """

    def one(name: str, given: Any) -> Any:
        if not is_reference(given):
            return given
        try:
            variable = reference_name(given)
        except ValueError as wrong:
            problems.append(Problem(name, "invalid_value", str(wrong)))
            return UNKNOWN_ADDRESS
        if environ is not None and not environ.get(variable):
            message = missing_secret(environ, variable)
            problems.append(Problem(name, "missing_secret", message))
        return (environ or {}).get(variable) or UNKNOWN_ADDRESS

    found = dict(args)
    if "headers" in args:
        found["headers"] = resolved_headers(args["headers"], environ, problems)
    for name in BY_REFERENCE:
        given = args.get(name)
        if isinstance(given, list | tuple):
            found[name] = [one(f"{name}[{at}]", each) for at, each in enumerate(given)]
        elif name in args:
            found[name] = one(name, given)
    return found


def check_envelope(
    args: object, name: str | None = None, terms: Terms = NO_TERMS
) -> EnvelopeRequest:
    """Validate the request for an envelope, which has no body and therefore no `Kind`.

    Raises:
        InvalidArguments: with every mistake.
    """
    problems = [*terms_problems(terms, policy=False), *_name_problems(name)]
    problems += contract_problems(ENVELOPE, terms.contract)
    if terms.enforce:
        why = "has no effect: nothing of ours runs that could be ended"
        problems.append(Problem("enforce", "not_allowed", why))
    try:
        request = envelope_request(args, to_builtins(terms))
    except InvalidArguments as error:
        raise InvalidArguments((*error.problems, *problems)) from None
    if problems:
        raise InvalidArguments(tuple(problems))
    return request


def engine_fields(terms: Terms, name: str | None, parent: str | None, run_id: str) -> EngineFields:
    """Return the terms as the `engine` fields of a new task's record."""
    return EngineFields(
        name=redact.text(name) if name is not None else None,
        parent_task_id=parent,
        task_run_id=terms.task_run_id,
        run_id=run_id,
        metadata=terms.metadata,
        enforce=terms.enforce,
        client=client_name(terms.client),
        route=terms.route,
    )


def client_name(given: str | None) -> str | None:
    """Return a client's name for storage: redacted, on one line, without control characters."""
    return display(redact.text(given or "").strip(), MAX_CLIENT) or None


def run_facts(terms: Terms) -> dict[str, Any]:
    """Return the terms that the run of a new task stores."""
    names = ("task_thread_id", "agent_id", "workflow_id", "route")
    return {name: getattr(terms, name) for name in names}


def opening_fields(terms: Terms) -> dict[str, Any]:
    """Return the terms that the record of a task with a body stores, redacted."""
    fields: dict[str, Any] = {}
    if terms.objective:
        fields["objective"] = redact.text(terms.objective)
    if terms.phase:
        fields["phase"] = terms.phase
    if terms.policy:
        fields["policy"] = budgets.defaulted(terms.policy, envelope=False)
        fields["counters"] = budgets.no_calls()
        fields["budget_status"] = "ok"
    return fields


def terms_problems(terms: Terms, *, policy: bool = True) -> list[Problem]:
    """Return every mistake in the terms."""
    found = budgets.problems(terms.policy) if policy else []
    if policy and terms.phase is not None and terms.phase not in PHASES:
        found.append(Problem("phase", "wrong_value", f"must be one of {', '.join(PHASES)}"))
    if terms.enforce and not terms.policy:
        found.append(Problem("enforce", "needs_policy", "needs a policy with budgets to enforce"))
    return [*found, *run_store.problems(run_facts(terms))]


def _name_problems(name: str | None) -> list[Problem]:
    if name is None or len(name) <= MAX_NAME:
        return []
    return [Problem("name", "too_long", f"must be at most {MAX_NAME} characters")]


def _size_problem(args: Mapping[str, Any]) -> list[Problem]:
    try:
        size = len(msgspec.json.encode(args))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return [Problem("args", "not_json", "must be plain JSON values")]
    if size > MAX_REQUEST_BYTES:
        return [Problem("args", "too_large", f"must be under 1 MiB, this is {size:,} bytes")]
    return []
