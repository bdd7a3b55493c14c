"""Evidence bundles between engine and workers: unchanged both ways, and checked as untrusted."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.page.bundle_parts import PARTS
from engine.cluster.bundle_records import (
    MOST_PART_BYTES,
    BundleReply,
    BundleRequest,
    PartFailure,
    SentFacts,
    SentPage,
    SentPart,
    TakenPart,
    check_bundle,
)
from engine.cluster.page_records import Failed, Terms, WrongField, packed, unpacked
from engine.cluster.wire import Misbehaviour

MIB = 2**20
URL = "http://a.test/"
REQUEST = BundleRequest(Terms(URL), URL, PARTS, 30_000, "main", 5_000, True, True)
OPENED = SentPage(URL, "A", 200, True)
PNG = b"\x89PNG\r\n\x1a\n"
PIECES = {
    "dom": SentPart(b"<p>", facts=SentFacts(redacted=1)),
    "screenshot": SentPart(PNG, truncated=True, facts=SentFacts(width=2, height=3)),
    "phash": SentPart(b"{}", facts=SentFacts(algorithm="phash-dct-64", hash="0123456789abcdef")),
    "network": SentPart(b"{}", facts=SentFacts(entries=4)),
    "console": SentPart(b"", facts=SentFacts(lines=0, redacted=2)),
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
    "both": reply(
        parts=[TakenPart("dom", PIECES["dom"], PartFailure("page_error", "b")), *TAKEN[1:]]
    ),
    "a status": reply(opened=SentPage(URL, "", 2**40, True)),
    "a code with effects": reply(opened=None, unopened=PartFailure("cancelled", "no")),
    "a long sentence": reply(opened=None, unopened=PartFailure("page_error", "n" * 2_000)),
    "a large part": changed("dom", data=b"a" * (MOST_PART_BYTES + 1)),
    "no picture": changed("screenshot", data=b"<svg>"),
    "a field of another part": changed("dom", facts=SentFacts(entries=1)),
    "a negative number": changed("network", facts=SentFacts(entries=-1)),
    "a hash with a break": changed("phash", facts=SentFacts(hash="a\nb")),
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
        {"opened": {"url": "", "title": "", "status": 1, "settled": True, "consent": {"a": "b"}}},
        {"parts": [{"part": "dom", "sent": {"data": b"", "facts": {"file": "/etc/passwd"}}}]},
        {"parts": [{"part": "dom", "sent": {"data": b"", "facts": {"redacted": [1]}}}]},
        {"parts": [{"part": "dom", "sent": {"data": b"", "facts": {"redacted": True}}}]},
        {"parts": [{"part": "phash", "sent": {"data": b"", "facts": {"hash": "a" * 65}}}]},
        {"unopened": {"code": "a" * 65, "message": ""}},
        {"more": []},
    ],
)
def test_a_record_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misbehaviour):
        unpacked(b"\x00" + msgspec.msgpack.encode(wrong), BundleReply, MIB)


@pytest.mark.parametrize("field", ["facts", "redacted", "consent", "parts", "refusals"])
def test_millions_of_tiny_objects_are_refused_before_they_are_built(field: str) -> None:
    many: list[dict[str, int]] = [{}] * 2_000_000
    sent = {"facts": many, "redacted": {"redacted": many}}.get(field)
    wrong: dict[str, Any] = {"parts": [{"part": "dom", "sent": {"data": b"", "facts": sent}}]}
    if sent is None:
        page = {"url": "", "title": "", "status": 1, "settled": True, field: many}
        wrong = {"opened": page} if field == "consent" else {field: many}
    data = b"\x00" + msgspec.msgpack.encode(wrong)
    tracemalloc.start()
    try:
        with pytest.raises(Misbehaviour):
            unpacked(data, BundleReply, 32 * MIB)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
