"""Evidence bundles between engine and workers: unchanged both ways, and checked as untrusted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.page.bundle_parts import PARTS, Opened, Piece
from engine.cluster.bundle_records import (
    MOST_PART_BYTES,
    BundleReply,
    BundleRequest,
    PartFailure,
    TakenPart,
    check_bundle,
)
from engine.cluster.page_records import Failed, Terms, WrongField, packed, unpacked
from engine.cluster.wire import Misbehaviour

MIB = 2**20
URL = "http://a.test/"
REQUEST = BundleRequest(Terms(URL), URL, PARTS, 30_000, "main", 5_000, True, True)
OPENED = Opened(URL, "A", 200, True)
PNG = b"\x89PNG\r\n\x1a\n"
PIECES = {
    "dom": Piece(b"<p>", told={"redacted": 1}),
    "screenshot": Piece(PNG, truncated=True, told={"width": 2, "height": 3}),
    "phash": Piece(b"{}", told={"algorithm": "phash-dct-64", "hash": "0123456789abcdef"}),
    "network": Piece(b"{}", told={"entries": 4}),
    "console": Piece(b"", told={"lines": 0, "redacted": 2}),
}
TAKEN = [TakenPart(part, PIECES[part]) for part in PARTS]
ANY = st.text(st.characters(codec=None), max_size=20)


def reply(**fields: Any) -> BundleReply:
    return BundleReply(**{"opened": OPENED, "parts": TAKEN, **fields})


def changed(part: str, **fields: Any) -> BundleReply:
    """A reply with one piece that is different."""
    piece = msgspec.structs.replace(PIECES[part], **fields)
    return reply(parts=[TakenPart(one, piece if one == part else PIECES[one]) for one in PARTS])


@given(ANY, ANY, st.binary(max_size=20))
def test_a_bundle_comes_back_as_it_was(title: str, reason: str, data: bytes) -> None:
    sent = changed("dom", data=data)
    sent.opened = msgspec.structs.replace(OPENED, title=title)
    sent.refusals = [("a:1", reason)]
    found = unpacked(packed(sent), BundleReply, MIB)
    assert found == sent
    check_bundle(found, REQUEST)


def test_a_request_comes_back_as_it_was() -> None:
    assert unpacked(packed(REQUEST), BundleRequest, MIB) == REQUEST


@pytest.mark.parametrize(
    "honest",
    [
        reply(),
        reply(opened=None, unopened=PartFailure("page_error", "no", "dns")),
        BundleReply(failed=Failed("busy")),
        reply(parts=[TakenPart(one, failure=PartFailure("tool_timeout", "no")) for one in PARTS]),
    ],
)
def test_what_a_worker_of_this_program_sends_is_taken(honest: BundleReply) -> None:
    check_bundle(honest, REQUEST)


LIES = {
    "no result": BundleReply(),
    "two results": reply(failed=Failed("busy")),
    "opened and not": reply(unopened=PartFailure("page_error", "no")),
    "parts of a failure": BundleReply(failed=Failed("busy"), parts=TAKEN),
    "a kind without sense": BundleReply(failed=Failed("page", "K I")),
    "a part is missing": reply(parts=TAKEN[1:]),
    "another order": reply(parts=TAKEN[::-1]),
    "neither piece nor failure": reply(parts=[TakenPart("dom"), *TAKEN[1:]]),
    "both": reply(parts=[TakenPart("dom", PIECES["dom"], PartFailure("a", "b")), *TAKEN[1:]]),
    "a long address": reply(opened=Opened("a" * 5_000, "", 200, True)),
    "a long title": reply(opened=Opened(URL, "a" * 5_000, 200, True)),
    "a status": reply(opened=Opened(URL, "", 2**40, True)),
    "a consent": reply(opened=Opened(URL, "", 200, True, {"a": "b"})),
    "a code": reply(opened=None, unopened=PartFailure("../a", "no")),
    "a kind": reply(opened=None, unopened=PartFailure("page_error", "no", "d n s")),
    "a long sentence": reply(opened=None, unopened=PartFailure("page_error", "n" * 2_000)),
    "a large part": changed("dom", data=b"a" * (MOST_PART_BYTES + 1)),
    "no picture": changed("screenshot", data=b"<svg>"),
    "an unknown field": changed("dom", told={"file": "/etc/passwd"}),
    "a field of another part": changed("dom", told={"entries": 1}),
    "a field of another type": changed("network", told={"entries": "1"}),
    "a field that is a list": changed("network", told={"entries": [1]}),
    "a truth": changed("network", told={"entries": True}),
    "a negative number": changed("network", told={"entries": -1}),
    "a hash with a break": changed("phash", told={"hash": "a\nb"}),
    "a long reason": reply(refusals=[("a:1", "r" * 5_000)]),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_about_a_bundle_is_refused(lie: BundleReply) -> None:
    with pytest.raises(WrongField):
        check_bundle(lie, REQUEST)


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": [{"part": "dom"}] * 6},
        {"parts": [{"part": "passwords"}]},
        {"refusals": [["a", "b"]] * 100_000},
        {"opened": {"url": 1, "title": "", "status": 1, "settled": True}},
    ],
)
def test_a_record_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misbehaviour):
        unpacked(b"\x00" + msgspec.msgpack.encode(wrong), BundleReply, MIB)
