"""The rules by which consent banners are dismissed: where they are, and how they are installed.

They are those of DuckDuckGo's autoconsent (MPL-2.0), which this program does not contain: a script
and a list of rules, downloaded with pinned checksums, or read from the npm package that the user
gives. Both are kept in one file, so that a replacement is atomic.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import os
import re
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPHandler, Request

import msgspec

from engine.browser.chromium.locate import downloads
from engine.egress.program_requests import opener, reason_of
from engine.ledger.files import Folder, Unusable
from engine.logging.logs import private_folder
from engine.model.addresses import parse
from engine.model.build_info import build_info
from engine.model.errors import ConsentDownloadFailed, ConsentRulesMissing, ConsentRulesUnusable

PACKAGE: Final = "@duckduckgo/autoconsent"
VERSION: Final = "16.23.0"  # what is downloaded; a file of the user may have another one
SCRIPT: Final = "dist/autoconsent.playwright.js"
RULES: Final = "rules/compact-rules.json"
DIGESTS: Final[Mapping[str, str]] = {  # SHA-256 of these files in VERSION
    SCRIPT: "d5d1d372976129e25596e0959f85cb954eec4d783684da1055e3ac0dc4d9b58e",
    RULES: "57b70b76c0a8b8cf288defd7e6ca510225165eff77de28ccc89b5e2d46fd0caa",
}
BASE_URL: Final = "https://cdn.jsdelivr.net/npm"  # of packages, each as NAME@VERSION/FILE
SERVER_VARIABLE: Final = "OC_CONSENT_RULES_URL"
SIZE: Final = 393_950  # bytes of both
MAX_FILE: Final = 4 * 1024 * 1024  # bytes of each of them; they have 0.3 MB
MAX_PACKAGE: Final = 64 * 1024 * 1024  # bytes of a package
MAX_UNPACKED: Final = 256 * 1024 * 1024
LIMIT_S: Final = 30.0  # without any byte
FILE: Final = "consent-rules.json"
_PART: Final = 64 * 1024
_VERSION: Final = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")
Report = Callable[[int], object]
"""Gets the number of bytes that have arrived."""


class ConsentRules(msgspec.Struct, frozen=True):
    """The installed package: its script, and its rules as JSON."""

    version: str
    script: str
    rules: str


class _Manifest(msgspec.Struct):
    name: str
    version: str


class CompactRules(msgspec.Struct):
    """The part of the list that is checked: its format, its texts and its rules."""

    v: int
    s: list[str]
    r: list[list[Any]]


def place() -> Path:
    """Return the file of the installed rules, whether it exists or not."""
    return downloads().parent / FILE


def is_installed() -> bool:
    return place().is_file()


def installed_version() -> str:
    """Return the version of the installed rules; empty without any.

    Raises:
        ConsentRulesUnusable: the file is damaged.
    """
    try:
        return load().version
    except ConsentRulesMissing:
        return ""


def load() -> ConsentRules:
    """Read the installed rules; for a thread.

    Raises:
        ConsentRulesMissing: there are none.
        ConsentRulesUnusable: the file is damaged.
    """
    path = place()
    try:
        with Folder.at(str(path.parent)) as folder:
            data = folder.read(path.name, 3 * MAX_FILE)
        found = msgspec.json.decode(data, type=ConsentRules)
    except FileNotFoundError:
        raise ConsentRulesMissing from None
    except (OSError, Unusable, msgspec.DecodeError, UnicodeError) as error:
        raise ConsentRulesUnusable(reason="the file is damaged", path=str(path)) from error
    _check_rules(found.rules.encode(), str(path))
    return found


def install_file(package: Path) -> ConsentRules:
    """Install from the npm package that the user gives; for a thread.

    Raises:
        ConsentRulesUnusable: it is another package, damaged, or the rules cannot be stored.
    """
    files = _members(package)
    try:
        manifest = msgspec.json.decode(files["package.json"], type=_Manifest)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _unusable("its package.json cannot be read", package) from error
    if manifest.name != PACKAGE:
        raise _unusable(f"it is not the package {PACKAGE}", package)
    if not _VERSION.fullmatch(manifest.version):
        raise _unusable("its version cannot be read", package)
    if manifest.version == VERSION:
        for name, digest in DIGESTS.items():
            if sha256(files[name]).hexdigest() != digest:
                raise _unusable("the file is damaged", package)
    return _store(manifest.version, files, str(package))


async def download(report: Report, base_url: str = BASE_URL) -> ConsentRules:
    """Download and install the pinned version; a cancellation leaves nothing behind.

    Raises:
        ConsentDownloadFailed: nothing was changed.
        ConsentRulesUnusable: the rules cannot be stored.
    """
    server = server_of(base_url)
    _check_server(base_url)
    loop, stopping = asyncio.get_running_loop(), threading.Event()
    arrived = dict.fromkeys(DIGESTS, 0)

    def count(name: str, size: int) -> None:
        arrived[name] = size
        loop.call_soon_threadsafe(report, sum(arrived.values()))

    def fetch() -> dict[str, bytes]:
        return {name: _download(base_url, name, partial(count, name), stopping) for name in DIGESTS}

    try:
        files = await asyncio.to_thread(fetch)
    finally:
        stopping.set()  # the thread ends with its next part, at the latest after LIMIT_S
    return await asyncio.to_thread(_store, VERSION, files, server)


def download_server(environ: Mapping[str, str]) -> str:
    """Return the address for downloads: OC_CONSENT_RULES_URL, or the public one."""
    return environ.get(SERVER_VARIABLE) or BASE_URL


def server_of(base_url: str) -> str:
    """Return what may be shown of a server's address, which may have a user and a password."""
    address = parse(base_url)
    return address.origin if address is not None and address.is_web else "--base-url"


def _check_server(base_url: str) -> None:
    address = parse(base_url)
    if address is None or not address.is_web:
        reason = "the address is not a web address"
    elif address.user or address.password:
        reason = "the address has a user or a password, which are not sent"
    else:
        return
    raise ConsentDownloadFailed(host=server_of(base_url), reason=reason)


# The package.


class _Bounded(io.RawIOBase):
    """Read at most `MAX_UNPACKED` bytes of a file that may expand without end."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._left = MAX_UNPACKED

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        if not self._left:
            raise OSError(errno.EFBIG, "the package is too large")
        return data


def _members(package: Path) -> dict[str, bytes]:
    """Return the needed files of a package; nothing is unpacked to the disk."""
    wanted = {f"package/{name}": name for name in ("package.json", *DIGESTS)}
    found: dict[str, bytes] = {}
    try:
        if not stat.S_ISREG(os.stat(package).st_mode):  # a pipe without a writer would block
            raise _unusable("it is not a file", package)
        with open(package, "rb") as raw:
            if os.fstat(raw.fileno()).st_size > MAX_PACKAGE:
                raise _unusable("the package is too large", package)
            with gzip.GzipFile(fileobj=raw) as unpacked:
                for name, data in _wanted(unpacked, wanted):
                    found.setdefault(name, data)
    except OSError as error:
        reason = error.strerror or "it is no npm package (.tgz)"
        raise _unusable(reason, package) from error
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise _unusable("it is no npm package (.tgz)", package) from error
    lacking = [name for name in wanted.values() if name not in found]
    if lacking:
        raise _unusable(f"it lacks {', '.join(lacking)}", package)
    return found


def _wanted(unpacked: gzip.GzipFile, wanted: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    # A stream, because a search for members would seek, and unpack the file several times.
    with tarfile.open(fileobj=_Bounded(unpacked), mode="r|") as archive:
        for member in archive:
            name = wanted.get(member.name)
            if name is None or not member.isreg():
                continue
            if member.size > MAX_FILE:
                raise ValueError(name)
            if (file := archive.extractfile(member)) is not None:
                yield name, file.read()


def _store(version: str, files: Mapping[str, bytes], source: str) -> ConsentRules:
    _check_rules(files[RULES], source)
    try:
        script, rules = files[SCRIPT].decode(), files[RULES].decode()
    except UnicodeDecodeError as error:
        raise ConsentRulesUnusable(reason="the file is damaged", path=source) from error
    found = ConsentRules(version, script, rules)
    path = place()
    try:
        private_folder(path.parent)
        with Folder.at(str(path.parent)) as folder:
            temp = f".{FILE}.{os.getpid()}"
            folder.remove(temp)
            folder.replace(path.name, [msgspec.json.encode(found)], temp=temp, durable=False)
    except (OSError, Unusable) as error:
        reason = getattr(error, "strerror", "") or "the file cannot be written"
        raise ConsentRulesUnusable(reason=reason, path=str(path)) from error
    return found


def _check_rules(data: bytes, path: str) -> None:
    try:
        found = msgspec.json.decode(data, type=CompactRules)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConsentRulesUnusable(reason="its list of rules cannot be read", path=path) from error
    if found.v != 1 or any(len(rule) < 5 for rule in found.r):
        reason = "its list of rules has an unknown format"
        raise ConsentRulesUnusable(reason=reason, path=path)


def _unusable(reason: str, package: Path) -> ConsentRulesUnusable:
    return ConsentRulesUnusable(reason=reason, path=str(package))


# The download. Blocking, on a thread of its own.


def _download(base_url: str, name: str, report: Report, stopping: threading.Event) -> bytes:
    host = server_of(base_url)
    try:
        address = f"{base_url.rstrip('/')}/{PACKAGE}@{VERSION}/{name}"
        request = Request(address, headers={"Accept": "*/*"})
        with opener(build_info().version, HTTPHandler()).open(request, timeout=LIMIT_S) as answer:
            data = bytearray()
            while part := answer.read1(_PART):  # what is there: a slow server cannot hold it
                data += part
                if len(data) > MAX_FILE:
                    raise ConsentDownloadFailed(host=host, reason="the answer is too large")
                if stopping.is_set():
                    raise ConsentDownloadFailed(host=host, reason="the download was cancelled")
                report(len(data))
    except HTTPError as error:
        error.close()
        reason = f"the server answered with HTTP {error.code}"
        raise ConsentDownloadFailed(host=host, reason=reason) from error
    except (OSError, HTTPException, ValueError) as error:
        raise ConsentDownloadFailed(host=host, reason=reason_of(error)) from error
    if sha256(data).hexdigest() != DIGESTS[name]:
        reason = "the file is not the expected one (its checksum differs)"
        raise ConsentDownloadFailed(host=host, reason=reason)
    return bytes(data)
