"""A server that remembers the headers of every request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.sample.site import Answer, Request, Server


class Listener:
    """Answers what a test wrote down (path -> markup or `Answer`) and remembers each request."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.answers: dict[str, str | Answer] = {}
        self.heard: list[tuple[str, dict[str, str]]] = []
        self.host = host
        self.server = Server(self._answer, "127.0.0.1", 0)

    @property
    def place(self) -> str:
        return f"{self.host}:{self.server.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def __setitem__(self, path: str, answer: str | Answer) -> None:
        self.answers[path] = answer

    def header(self, path: str, name: str) -> str | None:
        """The header of the last request for this path; None if it had none."""
        sent = [headers for heard, headers in self.heard if heard == path]
        assert sent, f"{path} was not asked for, but {[heard for heard, _ in self.heard]}"
        return sent[-1].get(name)

    def with_header(self, name: str) -> set[str]:
        """The paths of all requests that had this header."""
        return {path for path, headers in self.heard if name in headers}

    @property
    def paths(self) -> set[str]:
        return {path for path, _ in self.heard}

    def _answer(self, request: Request) -> Answer:
        names = {name.lower(): value for name, value in request.headers.items()}
        self.heard.append((request.path, names))
        answer = self.answers.get(request.path, Answer(b"", 404))
        if isinstance(answer, Answer):
            return answer
        return Answer(f"<!doctype html><title>t</title><body>{answer}".encode())


@contextmanager
def two_sites() -> Iterator[tuple[Listener, Listener]]:
    """A site, and another one with another name, for the length of a block."""
    own, other = Listener(), Listener("localhost")
    own.server.start()
    other.server.start()
    try:
        yield own, other
    finally:
        own.server.stop()
        other.server.stop()
