"""Evidence bundles of workers: request and reply, and the checks of a reply, which is untrusted."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from engine.browser.page.bundle_parts import (
    PART_S,
    PARTS,
    BundleOptions,
    Part,
    open_s,
)
from engine.cluster.page_records import (
    MOST_MESSAGE_CHARS,
    Failed,
    Terms,
    check_failed,
    check_refusals,
    expect,
)
from engine.egress.egress_policy import MOST as MOST_REFUSALS

MOST_PART_BYTES: Final = 8 * 1024 * 1024  # the limit of a document and of a screenshot, too
PARTS_S: Final = 3 * PART_S  # the parts of the page have one limit, the other two one each
_MOST_COUNT: Final = 2**53
_WORD: Final = re.compile(r"[\w.+ -]{1,64}", re.ASCII)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_Name = Annotated[str, Meta(max_length=64)]
# Optional fields of each part's record, besides those of its file.
_TOLD: Final[dict[Part, frozenset[str]]] = {
    "dom": frozenset({"redacted"}),
    "screenshot": frozenset({"width", "height"}),
    "phash": frozenset({"algorithm", "hash"}),
    "network": frozenset({"entries"}),
    "console": frozenset({"lines", "redacted"}),
}
# Error codes of a page or a part. Other codes have effects, such as that of a cancelled task: a
# worker must not choose them.
CODES: Final = frozenset(
    {
        *("address_blocked", "browser_gone", "page_error", "page_out_of_files", "page_unreadable"),
        *("part_missing", "part_too_large", "picture_too_large", "script_failed"),
        *("tool_timeout", "unit_timeout"),
    }
)


class BundleRequest(msgspec.Struct, frozen=True):
    """A bundle to take. It implements `BundleOptions`; `terms` are those of its page."""

    terms: Terms
    url: str
    include: tuple[Part, ...]
    timeout_ms: int
    wait_for: str | None
    network_window_ms: int
    full_page: bool
    redact_content: bool

    @property
    def limit_s(self) -> float:
        """The seconds that the page and all of its parts may take."""
        return open_s(self) + PARTS_S


def bundle_request(terms: Terms, options: BundleOptions) -> BundleRequest:
    """Return the request of a bundle with these options, which name an address."""
    names = BundleRequest.__struct_fields__[1:]
    return BundleRequest(terms, **{name: getattr(options, name) for name in names})


class PartFailure(msgspec.Struct, frozen=True):
    """Why the page or a part is missing: the code of an error, its sentence, a page's kind."""

    code: _Name
    message: str
    kind: _Name = ""


class SentPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page when it was ready (see `Opened`)."""

    url: str
    title: str
    status: int
    settled: bool


class SentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Fields of a part's record besides those of its file; a type of exactly these fields.

    A map of any names could hold millions of objects, which are built before they can be counted.
    """

    redacted: int | None = None
    width: int | None = None
    height: int | None = None
    algorithm: _Name | None = None
    hash: _Name | None = None
    entries: int | None = None
    lines: int | None = None

    def told(self) -> dict[str, int | str]:
        """Return the fields that are given."""
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in given if value is not None}


class SentPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A collected part (see `Piece`)."""

    data: bytes
    truncated: bool = False
    facts: SentFacts = SentFacts()


class TakenPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part, or why it is missing."""

    part: Part
    sent: SentPart | None = None
    failure: PartFailure | None = None


class BundleReply(msgspec.Struct, forbid_unknown_fields=True):
    """The bundle, or `failed` if the worker cannot take one.

    The page was `opened`, or `unopened` is the reason why not. The parts are those of the request.
    """

    failed: Failed | None = None
    opened: SentPage | None = None
    unopened: PartFailure | None = None
    parts: Annotated[list[TakenPart], Meta(max_length=len(PARTS))] = []
    refusals: Annotated[list[tuple[str, str]], Meta(max_length=MOST_REFUSALS)] = []


def check_bundle(reply: BundleReply, request: BundleRequest) -> None:
    """Check a reply against its request and the limits of bundles.

    Raises:
        WrongField: no worker of this program sends such a reply.
    """
    given = (reply.failed, reply.opened, reply.unopened)
    expect(sum(one is not None for one in given) == 1, "result")
    check_refusals(reply.refusals)
    if reply.failed is not None:
        check_failed(reply.failed)
        expect(not reply.parts, "parts")
        return
    expect(tuple(one.part for one in reply.parts) == request.include, "parts")
    if reply.opened is not None:
        expect(0 <= reply.opened.status < 1_000, "status")
    if reply.unopened is not None:
        _check_failure(reply.unopened)
    for one in reply.parts:
        expect((one.sent is None) != (one.failure is None), one.part)
        if one.failure is not None:
            _check_failure(one.failure)
        if one.sent is not None:
            _check_part(one.part, one.sent)


def _check_failure(failure: PartFailure) -> None:
    expect(failure.code in CODES, "code")
    expect(len(failure.message) <= MOST_MESSAGE_CHARS, "message")


def _check_part(part: Part, sent: SentPart) -> None:
    expect(len(sent.data) <= MOST_PART_BYTES, part)
    expect(part != "screenshot" or sent.data.startswith(_PNG), part)
    told = sent.facts.told()
    expect(told.keys() <= _TOLD[part], part)
    for value in told.values():
        if isinstance(value, int):
            expect(0 <= value <= _MOST_COUNT, part)
        else:
            expect(_WORD.fullmatch(value) is not None, part)
