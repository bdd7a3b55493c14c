"""Budgets of a task (seed 004): their policy, and the counting of calls. No file, no clock.

Our policies are validated, foreign ones read leniently. `fold` counts one call into a record and
returns the changes; `at` evaluates the same record at any moment, because time also passes without
calls. Budgets are rows of a table; exceeding one changes the status and never stops anything by
itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from engine.model.errors import Problem
from engine.model.records import ENVELOPE, ErrorInfo, Status


def lasted_ms(meta: Mapping[str, Any], now_ms: float) -> float:
    """Duration of a task until its end or `now_ms`.

    The last measurement by the monotonic clock counts, and from then on the stored times. A task
    that waits for its start has lasted 0 ms.
    """
    if not has_begun(meta):
        return 0
    ended_ms = number(meta.get("ended_at"))
    until_ms = now_ms if ended_ms is None else ended_ms
    stored = max(0, until_ms - began_ms(meta))
    ours = meta.get("engine")
    given = ours if isinstance(ours, Mapping) else {}
    measured, at = number(given.get("lasted_ms")), number(given.get("lasted_at"))
    if measured is None or at is None:
        return stored
    return min(measured + max(0, until_ms - at), max(measured, stored))


def runs_out_at(meta: Mapping[str, Any]) -> float | None:
    """Time (ms since 1970) at which a live task exceeds its time limit; None without one."""
    limit = defaulted(meta.get("policy"), envelope=is_envelope(meta)).get("maxWallMs")
    if limit is None or not has_begun(meta):
        return None
    limit = float(limit) + 1  # at the limit it is not exceeded yet
    by_clock = began_ms(meta) + limit
    ours = meta.get("engine")
    given = ours if isinstance(ours, Mapping) else {}
    measured, at = number(given.get("lasted_ms")), number(given.get("lasted_at"))
    if measured is None or at is None:
        return by_clock
    if measured >= limit:
        return at
    return max(at + limit - measured, by_clock)  # as `lasted_ms` uses the lesser of the two


def has_begun(meta: Mapping[str, Any]) -> bool:
    """Return whether the time of a task runs: a task with a body may wait for its start."""
    return is_envelope(meta) or meta.get("status") != Status.PENDING


def began_ms(meta: Mapping[str, Any]) -> float:
    """Start of a task: an envelope's creation; a task with a body may have waited for a slot
    first."""
    claimed = None if is_envelope(meta) else number(meta.get("started_at"))
    return claimed or number(meta.get("created_at")) or 0


def is_envelope(meta: Mapping[str, Any]) -> bool:
    return bool(meta.get("kind", ENVELOPE) == ENVELOPE)


def number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return given if math.isfinite(given) and 0 <= given < 2**53 else None


Policy = dict[str, Any]

DOMAINS: Final = "allowedDomains"
# Budget -> its default for an envelope (None: none). Source: seed 004.
BUDGETS: Final[Mapping[str, int | None]] = {
    "maxToolCalls": None,
    "maxWallMs": None,
    "maxConsecutiveSameTool": 5,
    "maxObservationStreak": 6,
    "maxFailureStreak": 4,
    "maxSameUrlNavigations": 3,
    "checkpointEveryCalls": None,
}
MOST: Final = 2**53 - 1  # a larger number loses digits in the programs that share the file
MOST_DOMAINS: Final = 100
_DOMAIN = re.compile(r"\.?[^\s./:@*?#\\]+(\.[^\s./:@*?#\\]+)*\.?")


def problems(policy: object, path: str = "policy") -> list[Problem]:
    """Collect every mistake in a requested policy, each with its path."""
    if policy is None:
        return []
    if not isinstance(policy, Mapping):
        return [Problem(path, "wrong_type", "must be an object of budgets")]
    found: list[Problem] = []
    for key, value in policy.items():
        where = f"{path}.{key}"
        if key == DOMAINS:
            found.extend(_domain_problems(value, where))
        elif key not in BUDGETS:
            known = ", ".join((*BUDGETS, DOMAINS))
            found.append(Problem(where, "unknown_argument", f"is no budget (known: {known})"))
        elif _limit(value) is None or value != _limit(value):
            found.append(Problem(where, "wrong_value", "must be a whole number from 1 on"))
    return found


def defaulted(policy: object, *, envelope: bool) -> Policy:
    """Effective budgets: those given, and for an envelope the defaults of the rest.

    The writer is not trusted: a limit is rounded down, and an invalid one is ignored.
    """
    given = policy if isinstance(policy, Mapping) else {}
    found: Policy = {}
    for key, default in BUDGETS.items():
        limit = _limit(given.get(key)) or (default if envelope else None)
        if limit is not None:
            found[key] = limit
    domains = given.get(DOMAINS)
    if isinstance(domains, list) and domains:
        found[DOMAINS] = [domain for domain in domains if isinstance(domain, str)]
    return found


def allows(policy: object, url: str) -> bool:
    """Return whether a task with this policy may visit `url`; always, without `allowedDomains`.

    An entry includes its host and all subdomains; an address without a host is not allowed.
    """
    domains = defaulted(policy, envelope=False).get(DOMAINS)
    if not domains:
        return True
    from engine.model import addresses  # few budgets limit the domains

    found = addresses.parse(url)
    host = "" if found is None else found.host.strip(".")
    return bool(host) and any(
        host == domain or host.endswith(f".{domain}")
        for domain in map(_normalised_domain, domains)
        if domain
    )


def leaves_domains(policy: object, args: Mapping[str, Any]) -> bool:
    """Return whether a call with these arguments goes to an address outside the policy."""
    given = args.get("url", args.get("href"))
    return given is not None and not (isinstance(given, str) and allows(policy, given))


def _domain_problems(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, list | tuple) or not value:
        yield Problem(path, "wrong_type", "must be a list of domains, at least one")
        return
    if len(value) > MOST_DOMAINS:
        yield Problem(path, "too_many", f"must be at most {MOST_DOMAINS} domains")
    for number, domain in enumerate(value[:MOST_DOMAINS]):
        if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain):
            advice = "must be a domain like example.com (what is below it is included)"
            yield Problem(f"{path}[{number}]", "wrong_value", advice)


def _limit(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 1 <= value <= MOST else None


def _normalised_domain(host: str) -> str:
    """Normalise a domain for comparison: as a browser spells it, without outer dots."""
    from engine.model import addresses  # as in `allows`

    host = host.strip().strip(".")
    return addresses.host_of(host) or host.lower()  # an invalid host equals none


Level = Literal["ok", "warning", "exceeded"]

CHANGE_STRATEGY: Final = "change_strategy_or_verify"
CHECKPOINT: Final = "checkpoint_or_verify"
NEXT: Final[Mapping[Level, str | None]] = {
    "ok": None,
    "warning": CHECKPOINT,
    "exceeded": CHANGE_STRATEGY,
}
OBSERVING: Final = frozenset(
    {"read_page", "find", "tabs_context", "tabs_list", "tabs_get", "inspect"}
    | {"page_screenshot", "vision_find", "oc_assert"}
)
RECENT: Final = 10
MOST_URLS: Final = 500  # of addresses that are counted; meta.json may hold 1 MiB
URL_CHARACTERS: Final = 2_048
EVERY: Final = "checkpointEveryCalls"
COUNTERS: Final = (
    *("toolCalls", "actionCalls", "observationCalls", "failureCalls"),
    *("consecutiveSameTool", "observationStreak", "failureStreak"),
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Call of a tool. The caller redacts `args` and `summary`.

    `summary` describes the result or the failure in a few words; `session` names the host's
    session, where there is one. `error` is the reason why it was refused or failed, without
    typed texts.
    """

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    ok: bool = True
    duration_ms: float = 0
    session: str | None = None
    summary: str = ""
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Gauge:
    """State of one budget: `value` of `limit` (None: it has no numeric limit)."""

    key: str
    value: int
    limit: int | None
    level: Level


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """All budgets of a task at one moment; the worst of them is its `status`."""

    gauges: tuple[Gauge, ...]

    @property
    def status(self) -> Level:
        return "exceeded" if self.exceeded else "warning" if self.warning else "ok"

    @property
    def exceeded(self) -> tuple[str, ...]:
        return self._at("exceeded")

    @property
    def warning(self) -> tuple[str, ...]:
        return self._at("warning")

    @property
    def recommended_next(self) -> str | None:
        return NEXT[self.status]

    def level(self, key: str) -> Level:
        return next((gauge.level for gauge in self.gauges if gauge.key == key), "ok")

    def _at(self, level: Level) -> tuple[str, ...]:
        return tuple(gauge.key for gauge in self.gauges if gauge.level == level)


Counters = dict[str, Any]
Measure = Callable[[Counters, float], int]


def _counter(name: str) -> Measure:
    return lambda counters, lasted_ms: int(counters[name])


def _most_visits(counters: Counters, lasted_ms: float) -> int:
    """Count of the address opened most often; it never decreases."""
    return max(counters["sameUrlNavigations"].values(), default=0)


MEASURES: Final[Mapping[str, Measure]] = {
    "maxToolCalls": _counter("toolCalls"),
    "maxWallMs": lambda counters, lasted_ms: int(lasted_ms),
    "maxConsecutiveSameTool": _counter("consecutiveSameTool"),
    "maxObservationStreak": _counter("observationStreak"),
    "maxFailureStreak": _counter("failureStreak"),
    "maxSameUrlNavigations": _most_visits,
}
# A body calls no tools of different names: of the streaks only that of failures applies.
FOR_BODIES: Final = frozenset({"maxToolCalls", "maxWallMs", "maxFailureStreak", DOMAINS})


def fold(meta: Mapping[str, Any], call: ToolCall, now_ms: float) -> dict[str, Any]:
    """Compute the changes that one call makes to a record; None deletes a field.

    `meta` is a whole meta.json, of ours or of another program; nothing in it is trusted.
    """
    counters = counted(meta, call)
    after = {**meta, "counters": counters}
    budget_status = _evaluate(after, now_ms, outside=leaves_domains(_policy(meta), call.args))
    event = {
        "ts": round(now_ms),
        "tool": call.tool,
        "ok": call.ok,
        "summary": _event_summary(call, budget_status),
    }
    recent = meta.get("recent_events")
    return {
        "counters": counters,
        **verdict(budget_status),
        "recent_events": [*(recent if isinstance(recent, list) else []), event][-RECENT:],
        "last_tool_name": call.tool,
        "last_activity_at": round(now_ms),
    }


def verdict(budget_status: BudgetStatus) -> dict[str, Any]:
    """Format a standing as record fields; None deletes a field."""
    return {
        "budget_status": budget_status.status,
        "budget_exceeded": list(budget_status.exceeded) or None,
        "recommended_next": budget_status.recommended_next,
    }


def at(meta: Mapping[str, Any], now_ms: float) -> BudgetStatus:
    """Evaluate the budgets of a record now, also without a call since.

    For an ended task this is the status at its end.
    """
    found = meta.get("budget_exceeded")
    return _evaluate(meta, now_ms, outside=isinstance(found, list) and DOMAINS in found)


def before(meta: Mapping[str, Any]) -> BudgetStatus:
    """Evaluate the budgets when the record was last written, to detect a change since."""
    return at(meta, number(meta.get("last_activity_at")) or began_ms(meta))


def rises(old: BudgetStatus, new: BudgetStatus) -> bool:
    """Return whether a budget got worse, or the overall status changed."""
    order = ("ok", "warning", "exceeded")
    worse = any(order.index(new.level(g.key)) > order.index(old.level(g.key)) for g in new.gauges)
    return worse or old.status != new.status


def no_calls() -> Counters:
    """Counters of a task without any call."""
    return {**dict.fromkeys(COUNTERS, 0), "sameUrlNavigations": {}}


def observes(call: ToolCall) -> bool:
    """Return whether this call only observes; an unknown tool counts as an action."""
    if call.tool == "computer":
        return call.args.get("action") == "screenshot"
    return call.tool in OBSERVING


def counted(meta: Mapping[str, Any], call: ToolCall) -> Counters:
    """Add `call` to the counters; streaks that it breaks are reset to 0."""
    old, observing = counters_of(meta), observes(call)
    again = meta.get("last_tool_name") == call.tool and old["toolCalls"] > 0
    return {
        **old,
        "toolCalls": old["toolCalls"] + 1,
        "actionCalls": old["actionCalls"] + (not observing),
        "observationCalls": old["observationCalls"] + observing,
        "failureCalls": old["failureCalls"] + (not call.ok),
        "consecutiveSameTool": old["consecutiveSameTool"] + 1 if again else 1,
        "observationStreak": old["observationStreak"] + 1 if observing else 0,
        "failureStreak": 0 if call.ok else old["failureStreak"] + 1,
        "sameUrlNavigations": _visited(old["sameUrlNavigations"], call),
    }


def counters_of(meta: Mapping[str, Any]) -> Counters:
    """Read the counters of a record; invalid ones count as 0, unknown ones are kept."""
    given = meta.get("counters")
    given = given if isinstance(given, Mapping) else {}
    visits = given.get("sameUrlNavigations")
    urls = visits if isinstance(visits, Mapping) else {}
    return {
        **given,
        **{name: int(number(given.get(name)) or 0) for name in COUNTERS},
        "sameUrlNavigations": {url: int(number(n) or 0) for url, n in urls.items()},
    }


def _visited(visits: dict[str, int], call: ToolCall) -> dict[str, int]:
    url = call.args.get("url", call.args.get("href"))
    if call.tool != "navigate" or not isinstance(url, str) or not url:
        return visits
    url = url[:URL_CHARACTERS]
    visits = {**visits, url: visits.get(url, 0) + 1}
    if len(visits) > MOST_URLS:  # drop the least visited address
        del visits[min((name for name in visits if name != url), key=visits.__getitem__)]
    return visits


def _evaluate(meta: Mapping[str, Any], now_ms: float, *, outside: bool) -> BudgetStatus:
    policy, counters = _policy(meta), counters_of(meta)
    envelope = is_envelope(meta)
    lasted = lasted_ms(meta, now_ms)
    gauges = [
        _gauge(key, measure(counters, lasted), limit)
        for key, measure in MEASURES.items()
        if (limit := policy.get(key)) is not None and (envelope or key in FOR_BODIES)
    ]
    if DOMAINS in policy:
        gauges.append(Gauge(DOMAINS, int(outside), None, "exceeded" if outside else "ok"))
    every = policy.get(EVERY)
    if every is not None and envelope:
        calls = counters["toolCalls"]
        due = calls > 0 and calls % every == 0
        gauges.append(Gauge(EVERY, calls % every, every, "warning" if due else "ok"))
    return BudgetStatus(tuple(gauges))


def _gauge(key: str, value: int, limit: int) -> Gauge:
    level: Level = "ok"
    if value > limit:
        level = "exceeded"
    elif value * 4 >= limit * 3:
        level = "warning"
    return Gauge(key, value, limit, level)


def _policy(meta: Mapping[str, Any]) -> Policy:
    return defaulted(meta.get("policy"), envelope=is_envelope(meta))


def _event_summary(call: ToolCall, budget_status: BudgetStatus) -> str:
    summary = f"{call.tool} {'ok' if call.ok else 'error'} durationMs={round(call.duration_ms)}"
    if call.summary:
        summary += f" {call.summary}"
    for word, keys in (("exceeded", budget_status.exceeded), ("warning", budget_status.warning)):
        if keys:
            return f"{summary} budget_{word}={','.join(keys)}"
    return summary


def has_budget(meta: Mapping[str, Any]) -> bool:
    """Return whether it is an envelope, or a task with its own policy."""
    return meta.get("kind") == ENVELOPE or bool(meta.get("policy"))
