"""Answers of the HTTP face: JSON, errors with their status, refusals, and security headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import Response

from engine.budgets.envelopes import EnvelopeEnded, EnvelopeOfAnother, NotAnEnvelope
from engine.contracts.bulk_progress import (
    BulkCompletionRefused,
    CannotComplete,
    ContractNotFound,
    InvalidRunStep,
    TaskRunNotFound,
)
from engine.contracts.run_lifecycle import LifecycleTransitionError, RunNotRunning, RunOfTask
from engine.kinds.recording.recording_kind import NotARecording, NotStoppable
from engine.ledger.record_store import NotAnId, RecordExists, RecordNotFound
from engine.model.errors import (
    BrowserFailed,
    BrowserMissing,
    EngineError,
    InvalidArguments,
    LedgerAway,
    LedgerReadOnly,
    LedgerUnusable,
    LedgerWriteFailed,
    LockTimeout,
    NotATaskId,
    OwnershipError,
    OwnershipLost,
    ProxyNotAllowed,
    QueryError,
    ResultMissing,
    ShuttingDown,
    TaskNotFound,
    TaskRemoved,
    TransitionError,
    WaitTimeout,
)
from engine.results.site_audit import NoPagesToAudit
from engine.schedules.schedule_store import ScheduleRunGoing
from engine.server.http_routes import ROUTE_NAMES
from engine.service.engine import NotWaiting
from engine.service.rerun import CannotRepeat, NotEnded, NothingToRetry
from engine.service.resuming import CannotResume
from engine.service.router.ledger_paths import (
    BadLabel,
    ContractsElsewhere,
    LedgerNotOpen,
    LedgerWatchOnly,
    NoSuchLedger,
    OnlyInItsOwnWindow,
)
from engine.service.schedules import ScheduleOfOperator, ScheduleSecret
from engine.service.stop_plan import NotConfirmed
from engine.verbs.json_answers import described_for_programs
from engine.verbs.program_verbs import NoSuchFile

JSON_TYPE: Final = "application/json"
# The first matching class counts, so a subclass with another status comes before its base.
STATUS: Final[Mapping[int, tuple[type[EngineError], ...]]] = {
    503: (
        *(LedgerAway, LockTimeout, LedgerReadOnly, LedgerUnusable, LedgerWriteFailed),
        *(LedgerNotOpen, ShuttingDown, BrowserMissing, BrowserFailed),
    ),
    400: (
        InvalidArguments,
        NotATaskId,
        NotAnId,
        QueryError,
        NotConfirmed,
        BadLabel,
        ScheduleSecret,
    ),
    403: (
        *(OwnershipError, LedgerWatchOnly, ScheduleOfOperator, EnvelopeOfAnother),
        ProxyNotAllowed,
    ),
    404: (
        *(TaskNotFound, TaskRemoved, ContractNotFound, TaskRunNotFound, RecordNotFound),
        *(ResultMissing, NoSuchLedger, NoSuchFile, NoPagesToAudit),
    ),
    409: (
        *(BulkCompletionRefused, CannotComplete, TransitionError, LifecycleTransitionError),
        *(InvalidRunStep, RunNotRunning, RunOfTask, RecordExists, OwnershipLost),
        *(NotAnEnvelope, EnvelopeEnded, NotStoppable, NotARecording, NotEnded),
        *(CannotRepeat, CannotResume, NothingToRetry, ContractsElsewhere, OnlyInItsOwnWindow),
        *(ScheduleRunGoing, NotWaiting),
    ),
    504: (WaitTimeout,),
}
_BY_CLASS: Final = tuple((kind, status) for status, kinds in STATUS.items() for kind in kinds)

SECURITY_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


def status_of(error: EngineError) -> int:
    """Return the status of an error; 500 for those that are the program's own failure."""
    return next((status for kind, status in _BY_CLASS if isinstance(error, kind)), 500)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason to refuse a request before a verb is called; `code` is stable."""

    status: int
    code: str
    title: str
    message: str
    advice: str = ""

    def data(self) -> dict[str, Any]:
        found = {"code": self.code, "title": self.title, "message": self.message}
        return {**found, "advice": self.advice} if self.advice else found


class Refused(Exception):
    """The request is refused with `refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


_TOKEN_ADVICE: Final = (
    "Send the header `Authorization: Bearer TOKEN`; the token is in the file that `octask serve` "
    "names."
)
WRONG_HOST: Final = Refusal(
    421,
    "wrong_host",
    "The request is for another host",
    "The Host header must be 127.0.0.1 or localhost with the port of this server.",
)
FOREIGN_ORIGIN: Final = Refusal(
    403,
    "foreign_origin",
    "The request comes from another site",
    "Pages of other origins may not use this server.",
)
PREFLIGHT_REFUSED: Final = Refusal(
    403,
    "preflight_refused",
    "The request comes from another site",
    "This server allows no requests across origins.",
)
TOKEN_IN_ADDRESS: Final = Refusal(
    400,
    "token_in_address",
    "The token must not be in the address",
    "Addresses are logged and kept in histories, so a token in one is refused.",
    _TOKEN_ADVICE,
)
NOT_AUTHORIZED: Final = Refusal(
    401,
    "not_authorized",
    "The token is missing or wrong",
    "Every request but that of the start page needs the token.",
    _TOKEN_ADVICE,
)
NOT_JSON_TYPE: Final = Refusal(
    415,
    "unsupported_media_type",
    "The body must be JSON",
    "A body needs the header `Content-Type: application/json`.",
)
TOO_LARGE: Final = Refusal(
    413, "body_too_large", "The body is too large", "A body or a message may have at most 1 MiB."
)
BODY_TIMEOUT: Final = Refusal(
    408, "body_timeout", "The body did not arrive", "A body must arrive within 30 s."
)
HEAD_TIMEOUT: Final = Refusal(
    408, "request_timeout", "The request did not arrive", "A request must arrive within 10 s."
)
NOT_JSON: Final = Refusal(
    400, "not_json", "The body is not JSON", "The body must be one JSON value in UTF-8."
)
TOO_DEEP: Final = Refusal(
    400, "json_too_deep", "The JSON is nested too deeply", "At most 64 levels are allowed."
)
NO_ROUTE: Final = Refusal(
    404,
    "no_such_route",
    "There is no such address",
    "This server has no such address.",
    "GET /openapi.json lists every address.",
)
WRONG_METHOD: Final = Refusal(
    405,
    "method_not_allowed",
    "The method is not allowed here",
    "This address does not have that method.",
    "GET /openapi.json lists every address with its methods.",
)
BAD_REQUEST: Final = Refusal(
    400, "bad_http_request", "The request is not valid HTTP", "The request is not valid HTTP."
)
BAD_HANDSHAKE: Final = Refusal(
    400,
    "bad_websocket_request",
    "The request is no valid WebSocket handshake",
    "The request is no valid WebSocket handshake.",
)
TOO_MANY: Final = Refusal(
    503,
    "too_many_connections",
    "Too many connections are open",
    "The server serves at most 200 connections at once.",
    "Close some and try again.",
)
FAILED: Final = Refusal(
    500,
    "internal_error",
    "Something went wrong",
    "The program failed unexpectedly.",
    "Its log has the details; `octask doctor` names the log.",
)
BEFORE_VERBS: Final = (
    *(WRONG_HOST, FOREIGN_ORIGIN, PREFLIGHT_REFUSED, TOKEN_IN_ADDRESS, NOT_AUTHORIZED),
    *(NOT_JSON_TYPE, TOO_LARGE, BODY_TIMEOUT, HEAD_TIMEOUT, NOT_JSON, TOO_DEEP, NO_ROUTE),
    *(WRONG_METHOD, BAD_REQUEST, BAD_HANDSHAKE, TOO_MANY, FAILED),
)


def json_response(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Build a JSON answer."""
    return Response(msgspec.json.encode(data), status, headers, JSON_TYPE)


def error_response(error: EngineError) -> Response:
    """Build the answer for an error of the engine."""
    return json_response({"error": described_for_programs(error, ROUTE_NAMES)}, status_of(error))


def refusal_response(refusal: Refusal) -> Response:
    """Build the answer for a refused request."""
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
    return json_response({"error": refusal.data()}, refusal.status, headers)


def refusal_bytes(refusal: Refusal) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return headers and body of a refusal where there is no application yet."""
    body = msgspec.json.encode({"error": refusal.data()})
    length = str(len(body)).encode()
    headers = [(b"content-type", JSON_TYPE.encode()), (b"content-length", length)]
    return [*headers, (b"connection", b"close"), *SECURITY_HEADERS], body
