"""What a recorded browser requested, as counts: by host, by type, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from engine.model import redact, urls

MAX_HOSTS: Final = 200
MAX_FAILURES: Final = 50
MAX_OPEN: Final = 10_000
OTHERS: Final = "(others)"


class Traffic:
    """Counts the DevTools events of one or more tabs. No query and no body is ever kept."""

    def __init__(self) -> None:
        self._hosts: dict[str, Counter[str]] = {}
        self._types: Counter[str] = Counter()
        self._failures: list[dict[str, Any]] = []
        self._open: dict[str, tuple[str, str, str]] = {}  # id -> host, method, address
        self._total: Counter[str] = Counter()

    def requested(self, event: Mapping[str, Any]) -> None:
        """`Network.requestWillBeSent`; a redirect tells of the same id again."""
        request = event["request"]
        url = str(request.get("url", ""))
        if not url.startswith(("http://", "https://", "ws://", "wss://")):
            return
        host = self._host(url)
        self._count(host, "requests")
        self._types[str(event.get("type", "Other")).lower()] += 1
        if len(self._open) < MAX_OPEN:
            self._open[str(event["requestId"])] = (host, str(request.get("method", "")), url)

    def responded(self, event: Mapping[str, Any]) -> None:
        """`Network.responseReceived`: an answer of 400 and more counts as failed."""
        status = int(event["response"].get("status", 0))
        known = self._open.get(str(event["requestId"]))
        if known is not None and status >= 400:
            self._fail(known, {"status": status})

    def finished(self, event: Mapping[str, Any]) -> None:
        """`Network.loadingFinished`: how much came over the wire."""
        known = self._open.pop(str(event["requestId"]), None)
        if known is not None:
            self._count(known[0], "bytes", int(event.get("encodedDataLength", 0)))

    def failed(self, event: Mapping[str, Any]) -> None:
        """`Network.loadingFailed`; one that was called off is no failure."""
        known = self._open.pop(str(event["requestId"]), None)
        if known is not None and not event.get("canceled"):
            self._fail(known, {"error": str(event.get("errorText", ""))[:100]})

    def summary(self) -> dict[str, Any]:
        """The counts as they stand in a result."""
        hosts = sorted(self._hosts.items())
        return {
            "requests": self._total["requests"],
            "failed": self._total["failed"],
            "bytes": self._total["bytes"],
            "by_type": dict(sorted(self._types.items())),
            "by_host": [{"host": host, **dict(sorted(counts.items()))} for host, counts in hosts],
            "failures": self._failures,
        }

    def _host(self, url: str) -> str:
        found = urls.parse(url)
        host = OTHERS if found is None else found.place
        return host if host in self._hosts or len(self._hosts) < MAX_HOSTS else OTHERS

    def _count(self, host: str, what: str, by: int = 1) -> None:
        self._hosts.setdefault(host, Counter())[what] += by
        self._total[what] += by

    def _fail(self, known: tuple[str, str, str], why: dict[str, Any]) -> None:
        host, method, url = known
        self._count(host, "failed")
        if len(self._failures) < MAX_FAILURES:
            address = redact.url(url.partition("#")[0].partition("?")[0])
            self._failures.append({"method": method, "url": address[:500], **why})
