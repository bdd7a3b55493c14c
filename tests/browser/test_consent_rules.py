"""The consent rules are installed from a package or a download, whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from engine.browser.chromium import consent_rules
from engine.browser.chromium.consent_rules import (
    download,
    install_file,
    installed_version,
    is_installed,
    load,
)
from engine.doctor import examine
from engine.model.config import Settings
from engine.model.errors import (
    ConsentDownloadFailed,
    ConsentRulesMissing,
    ConsentRulesUnusable,
    InvalidArguments,
)
from engine.sample.site import Answer, Request
from tests.support.consent_package import (
    DIGESTS,
    FILES,
    STAND_IN,
    VERSION,
    download_answer,
    package,
)
from tests.support.engines import opened, until
from tests.support.serving import served


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "consent-rules.json"
    monkeypatch.setattr(consent_rules, "place", lambda: path)
    return path


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expect the stand-in from the download."""
    monkeypatch.setattr(consent_rules, "DIGESTS", DIGESTS)


@pytest.fixture
def server() -> Iterator[str]:
    with served(download_answer) as url:
        yield f"{url}/npm"


def test_a_package_of_the_user_is_installed_with_its_own_version(tmp_path: Path) -> None:
    assert not is_installed()
    assert installed_version() == ""
    found = install_file(package(tmp_path / "given.tgz"))
    assert (found.version, installed_version()) == (VERSION, VERSION)
    assert load().script == STAND_IN


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": "another"}, "it is not the package"),
        ({"version": "1; x"}, "its version"),
        ({"version": consent_rules.VERSION}, "damaged"),
        ({"compact_rules": b"[]"}, "list of rules"),
        ({"compact_rules": b'{"v":9,"s":[],"r":[]}'}, "unknown format"),
        ({"autoconsent": b"\xff"}, "damaged"),
        ({"autoconsent": b"x" * (consent_rules.MAX_FILE + 1)}, "npm package"),
        ({"package": b"{"}, "package.json"),
    ],
)
def test_another_or_a_damaged_package_changes_nothing(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    install_file(package(tmp_path / "good.tgz"))
    with pytest.raises(ConsentRulesUnusable, match=reason):
        install_file(package(tmp_path / "bad.tgz", **changed))  # type: ignore[arg-type]  # by name
    assert installed_version() == VERSION


def test_what_is_no_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent_rules, "MAX_UNPACKED", 1_000_000)
    bomb = package(tmp_path / "bomb.tgz", autoconsent=b" " * 3_000_000)
    with pytest.raises(ConsentRulesUnusable, match="too large"):
        install_file(bomb)
    for data in (b"", b"plain text", gzip.compress(b"no archive")):
        path = tmp_path / "file.tgz"
        path.write_bytes(data)
        with pytest.raises(ConsentRulesUnusable):
            install_file(path)
    with pytest.raises(ConsentRulesUnusable, match="No such file"):
        install_file(tmp_path / "none.tgz")
    assert not is_installed()


@pytest.mark.usefixtures("pinned")
async def test_a_download_is_checked_and_reports_its_bytes(server: str) -> None:
    seen: list[int] = []
    found = await download(seen.append, server)
    await asyncio.sleep(0)
    assert found.version == consent_rules.VERSION == installed_version()
    assert seen[-1] == sum(map(len, FILES.values()))


async def test_a_download_with_another_checksum_is_refused(server: str) -> None:
    with pytest.raises(ConsentDownloadFailed, match="checksum"):
        await download(lambda _: None, server)
    assert not is_installed()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"", 404), "HTTP 404"),
        (Answer(b"x" * (consent_rules.MAX_FILE + 1)), "too large"),
        (Answer(b"", 302, headers=(("Location", "http://127.0.0.1:9/"),)), "HTTP 302"),
    ],
)
async def test_a_failed_download_says_why_and_keeps_the_installed_rules(
    tmp_path: Path, answer: Answer, reason: str
) -> None:
    install_file(package(tmp_path / "good.tgz"))
    with served(lambda _: answer) as url, pytest.raises(ConsentDownloadFailed, match=reason):
        await download(lambda _: None, url)
    assert installed_version() == VERSION


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ConsentDownloadFailed, match=r"127\.0\.0\.1:9: .*cannot be reached"):
        await download(lambda _: None, "http://127.0.0.1:9/npm")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://user:hunter2@127.0.0.1:9/npm", r"http://127\.0\.0\.1:9: .*user or a password"),
        ("file://user:hunter2@host/etc", "not a web address"),
        ("user:hunter2@host", "not a web address"),
    ],
)
async def test_an_address_with_a_password_is_refused_and_not_shown(
    address: str, reason: str
) -> None:
    with pytest.raises(ConsentDownloadFailed, match=reason) as refused:
        await download(lambda _: None, address)
    assert "hunter2" not in str(refused.value)


async def test_a_damaged_list_of_a_server_is_reported_without_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consent_rules, "DIGESTS", {n: sha256(b"[]").hexdigest() for n in FILES})
    with served(lambda _: Answer(b"[]")) as url, pytest.raises(ConsentRulesUnusable) as refused:
        await download(lambda _: None, f"{url}/secret-path")
    assert "secret-path" not in str(refused.value)


async def test_a_cancelled_download_leaves_a_server_that_sends_byte_after_byte() -> None:
    seen: list[int] = []
    left = asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _number in range(9_000):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        left.set()
        writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(60):
        loading = asyncio.create_task(download(seen.append, f"http://127.0.0.1:{port}/npm"))
        await until(lambda: bool(seen))
        loading.cancel()
        await left.wait()
        with pytest.raises(asyncio.CancelledError):
            await loading


@pytest.mark.usefixtures("pinned")
async def test_a_cancelled_download_installs_nothing() -> None:
    def slow(_: Request) -> Answer:
        return Answer(stops="before")

    with served(slow) as url, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await download(lambda _: None, url)
    assert not is_installed()


def test_a_damaged_installation_is_reported_with_its_way_out(place: Path) -> None:
    place.parent.mkdir()
    for data in (b"", b"{}", b'{"version":"1","script":"","rules":"[]"}'):
        place.write_bytes(data)
        with pytest.raises(ConsentRulesUnusable) as failed:
            load()
        assert "npm pack" in failed.value.advice


async def test_a_task_that_needs_missing_rules_is_refused_before_it_is_created(
    home: Path, tmp_path: Path
) -> None:
    args = {"url": "http://127.0.0.1:9/", "dismiss_consent": True}
    async with opened(home) as engine:
        for kind in ("crawl", "crawl_sitemap", "oc_evidence_bundle"):
            with pytest.raises(InvalidArguments) as refused:
                await engine.requests.start(kind, args)
            assert [one.code for one in refused.value.problems] == [ConsentRulesMissing.code]
            assert "octask consent-rules install" in refused.value.problems[0].message
        install_file(package(tmp_path / "good.tgz"))
        with pytest.raises(InvalidArguments, match="browser engine"):
            await engine.requests.start("crawl", {**args, "engine": "static"})


def test_the_doctor_says_whether_they_are_installed(home: Path, tmp_path: Path) -> None:
    def told() -> str:
        found = examine(Settings(home=home, root=home / "tasks")).findings
        return next(one.text for one in found if one.subject == "consent rules")

    assert "not installed" in told()
    install_file(package(tmp_path / "given.tgz"))
    assert VERSION in told()
