"""Policy of a task's budgets and time limit: ours are validated, foreign ones read leniently."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.model import addresses
from engine.model.errors import Problem
from engine.model.records import ENVELOPE


def lasted_ms(meta: Mapping[str, Any], now_ms: float) -> float:
    """Duration of a task until its end or `now_ms`.

    The last measurement by the monotonic clock counts, and from then on the stored times.
    """
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
    if limit is None:
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
    host = host.strip().strip(".")
    return addresses.host_of(host) or host.lower()  # an invalid host equals none
