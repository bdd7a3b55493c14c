"""Check for a newer version: one request, whose answer names a version and its page.

Nothing is downloaded. The request carries the program's name and version, no cookie and no id; it
and each redirect use https. It goes through the proxy of the system, on a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
from email.message import Message
from http.client import HTTPException, HTTPResponse
from itertools import zip_longest
from typing import IO, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request

import msgspec

from engine.egress.program_requests import opener, reason_of
from engine.model.addresses import parse
from engine.model.build_info import BuildInfo
from engine.model.errors import UpdateCheckFailed
from engine.service.router.isolated_executor import Lane

log = logging.getLogger(__name__)

LIMIT_S: Final = 10.0  # for the whole check
MAX_BYTES: Final = 64 * 1024
MAX_REDIRECTS: Final = 5
MAX_PAGE_CHARS: Final = 2_048

# Versions. Only what this program itself may be called is a version: 1.2, 1.2.3, 1.2.3a1, b1, rc1.

_VERSION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9}){1,3})(?:(a|b|rc)([0-9]{1,9}))?")
_FINAL: Final = ("z", 0)  # sorts after a, b and rc


class Version(NamedTuple):
    """A version whose order is that of releases; `stage` is that of a pre-release."""

    release: tuple[int, ...]
    stage: tuple[str, int]

    @property
    def is_prerelease(self) -> bool:
        """Whether it is an alpha, beta or release candidate."""
        return self.stage != _FINAL


def version_of(text: str) -> Version | None:
    """Return the version that `text` spells; None for every other text."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    numbers = list(map(int, found[1].split(".")))
    while numbers and numbers[-1] == 0:  # 1.0 and 1.0.0 are one version
        numbers.pop()
    return Version(tuple(numbers), (found[2], int(found[3])) if found[2] else _FINAL)


def is_newer(offered: str, current: str) -> bool:
    """Return whether `offered` is to be offered to a person who runs `current`.

    Pre-releases are offered only to people who run one. What is no version is never offered.
    """
    new, own = version_of(offered), version_of(current)
    if new is None or own is None or (new.is_prerelease and not own.is_prerelease):
        return False
    for one, other in zip_longest(new.release, own.release, fillvalue=0):
        if one != other:
            return one > other
    return new.stage > own.stage


# The request.


class Update(NamedTuple):
    """A newer version, and the https address of its page."""

    version: str
    page: str


class _Answer(msgspec.Struct):
    version: str
    page: str


async def find_update(build: BuildInfo) -> Update | None:
    """Ask whether there is a newer version than `build`; None if there is none.

    Raises:
        UpdateCheckFailed: there was no usable answer within `LIMIT_S`.
    """
    lane = Lane("updates")  # a hanging thread delays neither the limit nor the program's end
    try:
        async with asyncio.timeout(LIMIT_S):
            content = await lane.run(asyncio.to_thread(_request, build))
    except TimeoutError as error:
        raise UpdateCheckFailed(reason="the server did not answer in time") from error
    finally:
        lane.close()
    answer = read_answer(content)
    return answer if is_newer(answer.version, build.version) else None


def read_answer(content: bytes) -> Update:
    """Return what an answer offers.

    Raises:
        UpdateCheckFailed: it is no such answer.
    """
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UpdateCheckFailed(reason="the answer is not what was expected") from error
    page = secure_page(answer.page)
    if page is None or version_of(answer.version) is None:
        raise UpdateCheckFailed(reason="the answer is not what was expected")
    return Update(answer.version, page)


def secure_page(text: str) -> str | None:
    """Return an address that may be opened in the person's browser: https, without a user."""
    found = parse(text) if len(text) <= MAX_PAGE_CHARS else None
    if found is None or found.scheme != "https" or not found.host:
        return None
    return None if found.user or found.password else found.href


def _request(build: BuildInfo) -> bytes:
    """Return the body of the answer, at most `MAX_BYTES`."""
    address = _secure(build.updates_url)
    request = Request(address, headers={"Accept": "application/json"})
    try:
        with opener(build.version, _SecureRedirects()).open(request, timeout=LIMIT_S) as answer:
            return _read(answer)
    except HTTPError as error:
        error.close()
        raise UpdateCheckFailed(reason=_refusal(error.code)) from error
    except (OSError, HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        log.info("check for updates: %s", type(cause).__name__)
        raise UpdateCheckFailed(reason=reason_of(error)) from error


class _SecureRedirects(HTTPRedirectHandler):
    """Follow redirects to https addresses only."""

    max_redirections = MAX_REDIRECTS

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        return super().redirect_request(
            req,
            fp,
            code,
            msg,
            headers,  # type: ignore[arg-type]  # an HTTPMessage in fact
            _secure(newurl),
        )


def _secure(text: str) -> str:
    address = secure_page(text)
    if address is None:
        raise UpdateCheckFailed(reason="the address is not a secure one (https)")
    return address


def _read(answer: HTTPResponse) -> bytes:
    if answer.status != 200:
        raise UpdateCheckFailed(reason=_refusal(answer.status))
    content = answer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UpdateCheckFailed(reason="the answer is too large")
    return content


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return "the redirects of the server cannot be followed"
    return f"the server answered with HTTP {status}"
