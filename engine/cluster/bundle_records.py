"""Evidence bundles of workers: request and reply, and the checks of a reply, which is untrusted."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from engine.browser.page.bundle_parts import (
    PART_S,
    PARTS,
    BundleOptions,
    Opened,
    Part,
    Piece,
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
_MOST_ADDRESS, _MOST_TITLE = 4_096, 1_000  # characters, of texts that are cut on the worker
_MOST_COUNT: Final = 2**53
_CODE: Final = re.compile(r"[A-Za-z_]{1,64}")
_WORD: Final = re.compile(r"[\w.+ -]{1,64}", re.ASCII)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
# By the part: what its record tells beyond the file. Everything is optional.
_TOLD: Final[dict[Part, dict[str, type]]] = {
    "dom": {"redacted": int},
    "screenshot": {"width": int, "height": int},
    "phash": {"algorithm": str, "hash": str},
    "network": {"entries": int},
    "console": {"lines": int, "redacted": int},
}


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


PARTS_S: Final = 3 * PART_S  # the parts of the page have one limit, the other two one each


class PartFailure(msgspec.Struct, frozen=True):
    """Why the page or a part is missing: the code of an error, its sentence, a page's kind."""

    code: str
    message: str
    kind: str = ""


class TakenPart(msgspec.Struct, frozen=True):
    """A part, or why it is missing."""

    part: Part
    piece: Piece | None = None
    failure: PartFailure | None = None


class BundleReply(msgspec.Struct):
    """The bundle, or `failed` if the worker cannot take one.

    The page was `opened`, or `unopened` tells why not. The parts are those of the request.
    """

    failed: Failed | None = None
    opened: Opened | None = None
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
        _check_opened(reply.opened)
    if reply.unopened is not None:
        _check_failure(reply.unopened)
    for one in reply.parts:
        expect((one.piece is None) != (one.failure is None), one.part)
        if one.failure is not None:
            _check_failure(one.failure)
        if one.piece is not None:
            _check_piece(one.part, one.piece)


def _check_opened(opened: Opened) -> None:
    expect(len(opened.url) <= _MOST_ADDRESS, "url")
    expect(len(opened.title) <= _MOST_TITLE, "title")
    expect(0 <= opened.status < 1_000, "status")
    expect(not opened.consent, "consent")  # no banner is dismissed on a cluster


def _check_failure(failure: PartFailure) -> None:
    expect(_CODE.fullmatch(failure.code) is not None, "code")
    expect(len(failure.message) <= MOST_MESSAGE_CHARS, "message")
    expect(not failure.kind or _CODE.fullmatch(failure.kind) is not None, "kind")


def _check_piece(part: Part, piece: Piece) -> None:
    expect(len(piece.data) <= MOST_PART_BYTES, part)
    expect(part != "screenshot" or piece.data.startswith(_PNG), part)
    known = _TOLD[part]
    for name, value in piece.told.items():
        expect(type(value) is known.get(name), part)
        expect(_is_told(value), part)


def _is_told(value: Any) -> bool:
    if isinstance(value, int):
        return 0 <= value <= _MOST_COUNT
    return _WORD.fullmatch(value) is not None
