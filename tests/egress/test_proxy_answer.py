"""Of an answer only the interim heads before it are counted, however they arrive."""

from __future__ import annotations

import pytest

from engine.egress.proxy_request import (
    MAX_INTERIM_BYTES,
    MAX_INTERIM_HEADS,
    AnswerStart,
    TooManyInterim,
)

HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload; as=style\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"


def fed(data: bytes, size: int) -> bool:
    start = AnswerStart()
    return any(start.is_final(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "answer",
    [
        FINAL,
        HINT + FINAL,
        HINT * MAX_INTERIM_HEADS + FINAL,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + HINT * 50,
        b"<title>an answer of HTTP/0.9</title>",
        b"HTTP/1.1 1030 OK\r\n\r\n" * 50,
        b"HTTP/1.1" + b" " * 10_000,
    ],
)
def test_an_answer_begins_after_its_interim_heads(answer: bytes, size: int) -> None:
    assert fed(answer, size)


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "answer",
    [
        HINT * (MAX_INTERIM_HEADS + 1),
        b"HTTP/1.1 100\n\n" * (MAX_INTERIM_HEADS + 1),
        b"\r\nhttp/1.1    0102 \r\nA: b\n\r\n" * (MAX_INTERIM_HEADS + 1),
        b"HTTP/1.1 103 Hints\r\n" + b"Link: x\r\n" * (MAX_INTERIM_BYTES // 9),
        b"HTTP/1.1 199 " + b"x" * MAX_INTERIM_BYTES,
    ],
)
def test_interim_heads_without_end_are_refused(answer: bytes, size: int) -> None:
    with pytest.raises(TooManyInterim):
        fed(answer, size)
