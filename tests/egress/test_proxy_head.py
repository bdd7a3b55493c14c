"""Request heads are parsed in one way, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.egress.egress_policy import Place
from engine.egress.proxy_request import CHUNKED, BadHead, Body, parse


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def test_a_request_is_sent_on_as_a_server_expects_it() -> None:
    said = parse(
        head(
            "GET http://Shop.example:8080/a?b=c HTTP/1.1",
            "Host: elsewhere.example",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic c2VjcmV0",
            "Accept: */*",
        )
    )
    assert said.place == Place("shop.example", 8080)
    assert said.forward == head(
        "GET /a?b=c HTTP/1.1", "Host: Shop.example:8080", "Connection: keep-alive", "Accept: */*"
    )


@pytest.mark.parametrize(
    ("target", "path"),
    [("http://a.example", "/"), ("http://a.example?q", "/?q"), ("HTTP://A.example/x#y", "/x")],
)
def test_an_address_without_a_path_asks_for_the_root(target: str, path: str) -> None:
    said = parse(head(f"GET {target} HTTP/1.1"))
    assert said.place == Place("a.example", 80)
    assert said.forward.startswith(f"GET {path} HTTP/1.1\r\n".encode())


def test_a_tunnel_is_asked_for_by_host_and_port() -> None:
    assert parse(head("CONNECT [::FFFF:7f00:1]:443 HTTP/1.1")).place == Place(
        "[::ffff:7f00:1]", 443
    )
    said = parse(head("CONNECT 0x7f.1:443 HTTP/1.1", "Host: 0x7f.1:443"))
    assert (said.place, said.tunnel, said.forward) == (Place("127.0.0.1", 443), True, b"")


@pytest.mark.parametrize(
    "lines",
    [
        ["GET / HTTP/1.1", "Host: 127.0.0.1"],  # a page that talks to the port itself
        ["GET https://a.example/ HTTP/1.1"],
        ["GET ftp://a.example/ HTTP/1.1"],
        ["GET http://user:pw@a.example/ HTTP/1.1"],
        ["GET http:///x HTTP/1.1"],
        ["GET http://a.example:0/ HTTP/1.1"],
        ["GET http://a.example:70000/ HTTP/1.1"],
        [f"GET http://{'a' * 300}/ HTTP/1.1"],
        ["GET http://256.1.1.1/ HTTP/1.1"],
        ["CONNECT a.example HTTP/1.1"],
        ["CONNECT a.example:443/ HTTP/1.1"],
        ["GET  http://a.example/ HTTP/1.1"],
        ["GET http://a.example/ HTTP/2"],
        ["GET http://a.example/ HTTP/1.1", "no colon"],
        ["GET http://a.example/ HTTP/1.1", " folded: line"],
        ["GET http://a.example/ HTTP/1.1", "X: a\nHost: b"],
        ["POST http://a.example/ HTTP/1.1", "Content-Length: 1", "Content-Length: 2"],
        ["POST http://a.example/ HTTP/1.1", "Content-Length: 1", "Transfer-Encoding: chunked"],
        ["POST http://a.example/ HTTP/1.1", "Content-Length: +1"],
        ["POST http://a.example/ HTTP/1.1", "Transfer-Encoding: gzip, chunked"],
        ["\x16\x03\x01 hello"],
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(lines: list[str]) -> None:
    with pytest.raises(BadHead):
        parse(head(*lines))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_refused(data: bytes) -> None:
    try:
        parse(data + b"\r\n\r\n")
    except BadHead:
        return


@given(st.binary(max_size=3_000), st.binary(max_size=20), st.data())
def test_a_body_ends_at_its_length(body: bytes, after: bytes, data: st.DataObject) -> None:
    assert _followed(Body(len(body)), body + after, data) == len(body)


@given(st.lists(st.binary(min_size=1, max_size=400), max_size=6), st.binary(max_size=9), st.data())
def test_a_chunked_body_ends(chunks: list[bytes], after: bytes, data: st.DataObject) -> None:
    coded = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    coded += b"0\r\nTrailer: x\r\n" + data.draw(st.sampled_from([b"\r\n", b"\n"]))
    assert _followed(Body(CHUNKED), coded + after, data) == len(coded)


@pytest.mark.parametrize(
    "size", [b"x\r\n", b"-1\r\n", b"1" * 5_000, b"\r\n", b"FFFFFFFFFFFFFFFFF\r\n"]
)
def test_a_chunk_without_a_size_is_refused(size: bytes) -> None:
    with pytest.raises(BadHead):
        Body(CHUNKED).take(size)


def _followed(body: Body, stream: bytes, data: st.DataObject) -> int:
    """How many bytes it takes when the stream arrives in pieces of any size."""
    waiting, taken = b"", 0
    while stream and not body.done:
        size = data.draw(st.integers(1, len(stream)))
        waiting, stream = waiting + stream[:size], stream[size:]
        used = body.take(waiting)
        waiting, taken = waiting[used:], taken + used
    assert body.done or not stream
    return taken
