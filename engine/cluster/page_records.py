"""Requests to workers and their replies: records, their bytes, and the checks of a reply.

A reply is untrusted. It is decoded to exactly these types, and then compared with the request and
with the limits of the engine's own page loaders. Texts survive unchanged, also those with lone
surrogates, which MessagePack does not have: such a record is sent with its texts escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from engine.browser.chromium.browser_options import BrowserLook
from engine.cluster.page_limits import (
    MOST_HEADER_CHARS,
    MOST_INNER,
    MOST_REDIRECTS,
    MOST_RETRY_S,
    MOST_RULES,
    MOST_URL_CHARS,
    LimitedPage,
    whole_page,
)
from engine.cluster.wire import Misbehaviour
from engine.egress.egress_policy import MOST as MOST_REFUSALS
from engine.model.addresses import address_of
from engine.model.display import display
from engine.pages.custom_fields import MAX_VALUE_CHARS, MAX_VALUES
from engine.pages.documents import charset_named
from engine.pages.fetch import (
    IDLE_STATES,
    MAX_CLICKED,
    MAX_HTML_CHARS,
    MAX_LINK_CHARS,
    EngineName,
    Fetched,
    IdleState,
    PageOptions,
)
from engine.pages.page_facts import MAX_SCRIPT_CHARS, MAX_SCRIPTS, MAX_TEXT, MAX_TYPES, RawFacts

PROTOCOL: Final = 1  # both sides must have the same
HELLO: Final = "openchrome_hello"  # names of the workers' handlers
FETCH: Final = "openchrome_fetch"
BUNDLE: Final = "openchrome_bundle"
LEAVES: Final = b"leaves"  # instead of a reply, or without a request: the worker ends
MOST_REPORTS: Final = 100  # about one page, before its reply
_REPORTS: Final[dict[bytes, IdleState]] = {state.encode(): state for state in IDLE_STATES}
_LONGEST_REPORT: Final = max(map(len, _REPORTS))
MOST_REPLY_BYTES: Final = 32 * 1024 * 1024  # of one page
MOST_REQUEST_BYTES: Final = 1024 * 1024

MOST_NAME_CHARS: Final = 64
MOST_MESSAGE_CHARS: Final = 1_000
_MOST_COUNT: Final = 2**53
_MOST_MS: Final = 1e8
_MOST_FACT_CHARS: Final = 8 * MAX_TEXT
_MOST_PIXELS_BYTES: Final = 24 * 1024 * 1024
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_KIND: Final = re.compile(r"[a-z][a-z_]{0,31}")
_NAME: Final = re.compile(r"[\w .:/@\[\]-]{1,64}")

_PLAIN, _ESCAPED = b"\x00", b"\x01"
_MARK: Final = "\x1b"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_RELS: Final = re.compile("[0-7]*")  # bits of `page_facts.RELS`
_TO_ESCAPE: Final = re.compile("[\x1b\ud800-\udfff]")
_TO_RESTORE: Final = re.compile("\x1b([0-9a-f]{4})")


class Terms(msgspec.Struct, frozen=True):
    """What a worker needs of a task: its egress policy, and what it shows to sites.

    `start` is the operator's start address, and `named` are their further ones. `held` is the
    engine's first check of these places (`host:port`): the private addresses that it allows, none
    for a public one. `budgets` are the allowed domains. Secrets are missing on purpose: a task that
    has some does not run on a cluster.
    """

    start: str
    named: tuple[str, ...] = ()
    held: dict[str, tuple[str, ...]] = {}
    budgets: dict[str, Any] = {}
    look: BrowserLook = BrowserLook()
    both: bool = False  # engine auto
    block_resources: bool = True
    direct: bool = False
    falls_back: bool = True
    pages: int = 1


class PageRequest(msgspec.Struct, frozen=True):
    """One page to load. `session` names the fetchers of a task, which `terms` open.

    With `reports` the worker also reports when the page is idle (`reported_state`), and counts it
    only while it is not.
    """

    session: str
    terms: Terms
    engine: EngineName
    url: str
    options: PageOptions
    reports: bool = False


class Failed(msgspec.Struct, frozen=True):
    """Why a worker did not load a page.

    `page` is a failure of the page itself, `gone` a crash of the browser, `browser` a worker
    without one, `busy` one without room or whose browser still starts, and `slow` one that did not
    end the page in its time limit and the margin.
    """

    what: Literal["page", "gone", "browser", "busy", "slow"]
    kind: str = ""
    message: str = ""
    status: int = 0
    retry_after_s: float | None = None
    unproved: bool = False
    proved: bool = False


class PageReply(msgspec.Struct):
    """The result of a request, and the egress refusals since the last one (place, reason)."""

    fetched: Fetched | None = None
    failed: Failed | None = None
    refusals: list[tuple[str, str]] = []


# A reply as it is decoded, because it is untrusted.
_LimitedReply: Final = msgspec.defstruct(
    "_LimitedReply",
    [
        ("fetched", LimitedPage | None, None),
        ("failed", Failed | None, None),
        ("refusals", Annotated[list[tuple[str, str]], Meta(max_length=MOST_REFUSALS)], []),
    ],
)


class Hello(msgspec.Struct, frozen=True):
    """What a worker tells of itself."""

    protocol: int
    version: str
    name: str
    slots: int


_T = TypeVar("_T")


def report_of(state: IdleState) -> bytes:
    """Return the message by which a worker reports the state of a page that it loads."""
    return state.encode()


def reported_state(message: object) -> IdleState | None:
    """Return the state of a page of which this message is a report; None: it is none."""
    if not isinstance(message, bytes) or len(message) > _LONGEST_REPORT:
        return None
    return _REPORTS.get(message)


def packed(record: msgspec.Struct) -> bytes:
    """Return the bytes of a record."""
    try:
        return _PLAIN + msgspec.msgpack.encode(record)
    except UnicodeEncodeError:
        return _ESCAPED + msgspec.msgpack.encode(_mapped(record, _escaped))


def unpacked(data: object, record: type[_T], most_bytes: int) -> _T:
    """Return the record of these bytes. Raises Misbehaviour."""
    if not isinstance(data, bytes) or not data:
        raise Misbehaviour("it sent no record")
    if len(data) > most_bytes:
        raise Misbehaviour(f"it sent more than {most_bytes:,} bytes")
    if data[:1] not in (_PLAIN, _ESCAPED):
        raise Misbehaviour("it sent a record of another version")
    try:
        found = _decoded(memoryview(data)[1:], record)
        return found if data[:1] == _PLAIN else cast(_T, _mapped(found, _restored))
    except (msgspec.ValidationError, msgspec.DecodeError) as failed:
        reason = display(str(failed), 200)
        raise Misbehaviour(f"it sent a wrong record ({reason})") from failed
    except (RecursionError, ValueError, TypeError) as failed:
        raise Misbehaviour("it sent a wrong record") from failed


def _decoded(body: memoryview, record: type[_T]) -> _T:
    if record is not PageReply:
        return msgspec.msgpack.decode(body, type=record)
    found: Any = msgspec.msgpack.decode(body, type=_LimitedReply)
    page = None if found.fetched is None else whole_page(found.fetched)
    return cast(_T, PageReply(page, found.failed, found.refusals))


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def _restored(text: str) -> str:
    return _TO_RESTORE.sub(lambda found: chr(int(found[1], 16)), text)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a record, or a part of one, with each text changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {name: _mapped(getattr(value, name), change) for name in value.__struct_fields__}
        return type(value)(**fields)
    if isinstance(value, list | tuple | set | frozenset):
        items = [_mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def plain_name(name: str) -> str:
    """Return the name of a worker as records and events show it."""
    return "".join(char if _NAME.fullmatch(char) else "_" for char in name[:MOST_NAME_CHARS]) or "_"


def check_hello(hello: Hello) -> None:
    """Check what a worker tells of itself. Raises Misbehaviour."""
    if hello.protocol != PROTOCOL:
        raise Misbehaviour(
            f"it runs another version of this program ({display(hello.version, 40)})"
        )
    expect(0 < hello.slots <= 1_000, "slots")


class WrongField(Misbehaviour):
    """A field of a reply is not what a worker of this program sends."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"its reply has a wrong field ({name})")


def check_reply(reply: PageReply, request: PageRequest) -> None:
    """Check a reply against its request and the engine's own limits.

    Raises:
        WrongField: no worker of this program sends such a reply.
    """
    expect((reply.fetched is None) != (reply.failed is None), "result")
    check_refusals(reply.refusals)
    if reply.failed is not None:
        check_failed(reply.failed)
    if reply.fetched is not None:
        expect(reply.fetched.url == request.url, "url")
        expect(reply.fetched.engine == request.engine, "engine")
        _check_page(reply.fetched, request.options)


def expect(holds: bool, name: str) -> None:
    """Raise WrongField with this name unless the condition holds."""
    if not holds:
        raise WrongField(name)


def check_refusals(refusals: list[tuple[str, str]]) -> None:
    """Check the egress refusals of a reply. Raises WrongField."""
    expect(len(refusals) <= MOST_REFUSALS, "refusals")
    for place, reason in refusals:
        expect(len(place) <= MOST_MESSAGE_CHARS and len(reason) <= MOST_MESSAGE_CHARS, "refusals")


def check_failed(failed: Failed) -> None:
    """Check the failure of a reply. Raises WrongField."""
    expect(failed.what != "page" or _KIND.fullmatch(failed.kind) is not None, "kind")
    expect(len(failed.message) <= MOST_MESSAGE_CHARS, "message")
    expect(0 <= failed.status < 1_000, "status")
    expect(_is_within(failed.retry_after_s, MOST_RETRY_S), "retry_after_s")


def _is_within(number: float | None, most: float) -> bool:
    return number is None or (math.isfinite(number) and 0 <= number <= most)


def _check_page(page: Fetched, options: PageOptions) -> None:
    expect(_is_address(page.final_url), "final_url")
    expect(page.screenshot is None or options.screenshot != "none", "screenshot")
    shot = page.screenshot or _PNG
    expect(shot.startswith(_PNG) and len(shot) <= _MOST_PIXELS_BYTES, "screenshot")
    expect(not (page.body or page.edits or page.compared or page.worker), "body")
    expect(len(page.redirects) <= MOST_REDIRECTS, "redirects")
    expect(sum(len(hop.url) for hop in page.redirects) <= MOST_URL_CHARS, "redirects")
    for hop in page.redirects:
        expect(0 <= hop.status < 1_000 and _is_address(hop.url), "redirects")
    _check_links(page, options)
    _check_values(page, options)
    _check_document(page)
    expect(len(page.inner) <= MOST_INNER, "inner")
    rules = sum(len(sheet) for one in (page, *page.inner) for sheet in one.styles)
    expect(rules <= MOST_RULES, "styles")
    for inner in page.inner:
        expect(not (inner.inner or inner.body or inner.screenshot), "inner")
        expect(not (inner.links or inner.link_texts or inner.link_rels or inner.clicked), "inner")
        expect(not (inner.edits or inner.values or inner.redirects), "inner")
        _check_document(inner)


def _is_address(url: str) -> bool:
    return _is_text(url, MOST_URL_CHARS) and address_of(url) is not None


def _check_document(page: Fetched) -> None:
    """Check the texts and numbers that a page and its inner documents have alike."""
    expect(0 <= page.status < 1_000, "status")
    for name in ("html", "text", "title", "description"):
        expect(len(getattr(page, name)) <= MAX_HTML_CHARS, name)
    for name in ("content_type", "robots_header", "charset", "runs"):
        expect(len(getattr(page, name)) <= MOST_HEADER_CHARS, name)
    expect(not page.charset or charset_named(page.charset) is not None, "charset")
    for name in _COUNTS:
        expect(0 <= getattr(page, name) <= _MOST_COUNT, name)
    expect(_is_within(page.response_ms, _MOST_MS), "response_ms")
    expect(_is_within(page.render_ms, _MOST_MS), "render_ms")
    expect(_is_within(page.retry_after_s, MOST_RETRY_S), "retry_after_s")
    if page.facts is not None:
        _check_facts(page.facts)


def _check_facts(facts: RawFacts) -> None:
    for name in RawFacts.__struct_fields__:
        given = getattr(facts, name)
        if isinstance(given, int):
            expect(0 <= given <= _MOST_COUNT, "facts")
        else:
            most, most_chars = _FACTS.get(name, (1, _MOST_FACT_CHARS))
            texts = given if isinstance(given, list) else [given]
            expect(len(texts) <= most, "facts")
            expect(all(_is_text(one, most_chars) for one in texts), "facts")


def _is_text(text: str, most_chars: int) -> bool:
    """Return whether a text is one that the page script makes: bounded, and without surrogates."""
    return len(text) <= most_chars and _SURROGATE.search(text) is None


def _check_links(page: Fetched, options: PageOptions) -> None:
    expect(len(page.links) <= options.max_links, "links")
    expect(len(page.link_texts) <= len(page.links), "link_texts")
    expect(len(page.link_rels) <= len(page.links), "link_rels")
    expect(_RELS.fullmatch(page.link_rels) is not None, "link_rels")
    expect(sum(map(len, page.links)) <= 2 * MAX_LINK_CHARS, "links")
    expect(sum(map(len, page.link_texts)) <= 2 * MAX_LINK_CHARS, "link_texts")
    expect(len(page.clicked) <= (MAX_CLICKED if options.click_links else 0), "clicked")
    expect(sum(len(one.url) + len(one.text) for one in page.clicked) <= MAX_LINK_CHARS, "clicked")
    expect(all(len(one.url) <= MOST_URL_CHARS for one in page.clicked), "clicked")


def _check_values(page: Fetched, options: PageOptions) -> None:
    known = {rule.name for rule in options.fields}
    for name, value in page.values.items():
        values = value if isinstance(value, list) else [value]
        expect(name in known and len(values) <= MAX_VALUES, "values")
        for one in values:
            expect(isinstance(one, str) and _is_text(one, MAX_VALUE_CHARS), "values")
    expect(not page.consent, "consent")  # no banner is dismissed on a cluster


_COUNTS: Final = tuple(
    one.name for one in msgspec.structs.fields(Fetched) if one.type is int and one.name != "status"
)
_FACTS: Final = {"linked_data": (MAX_SCRIPTS, MAX_SCRIPT_CHARS), "items": (MAX_TYPES, 8 * MAX_TEXT)}
