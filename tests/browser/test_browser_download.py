"""Downloads of Chromium through the real driver, from a stand-in of its server."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from engine.browser.chromium import browser_download, locate
from engine.browser.chromium.browser_download import (
    InstalledBrowser,
    Progress,
    install_browser,
    linux_command,
)
from engine.browser.chromium.browser_session import BrowserSession
from engine.model.errors import (
    BrowserDiskFull,
    BrowserDownloadFailed,
    BrowserDownloadInterrupted,
    BrowserDownloadRefused,
    BrowserFailed,
    BrowserFolderUnusable,
    BrowserLibrariesMissing,
    BrowserMissing,
    BrowserNotOffered,
    BrowserProxyRefused,
    BrowserServerUnreachable,
)
from tests.support.disk_without_space import full_disk_at
from tests.support.download_server import (
    DEBIAN,
    SHELL,
    DownloadServer,
    hide_browsers,
    packed_folder,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the archives are of Linux")
PASSWORD = "hunter2secret"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder of browsers on a machine that has no other one."""
    return hide_browsers(monkeypatch, tmp_path / "data")


@pytest.fixture
def server(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DownloadServer]:
    with DownloadServer().running() as server:
        monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", server.url)
        yield server


async def install(*, full: bool = False, seen: list[Progress] | None = None) -> InstalledBrowser:
    return await install_browser(full=full, report=(seen if seen is not None else []).append)


def left_in(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != browser_download.LOCK)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(90):
        while not condition():
            await asyncio.sleep(0.02)  # another process or thread changes it


async def failure(kind: type[BrowserDownloadFailed]) -> BrowserDownloadFailed:
    """Expect a failed download that leaves nothing, and a sentence with a way out."""
    with pytest.raises(kind) as failed:
        await install()
    assert failed.value.title
    assert failed.value.advice
    with pytest.raises(BrowserMissing):
        locate.locate()
    assert not children()
    return failed.value


async def test_a_downloaded_browser_was_started_and_is_found(server: Any, data: Path) -> None:
    seen: list[Progress] = []
    installed = await install(seen=seen)
    assert installed.version == "159.0.8154.6"
    assert installed.is_new
    assert locate.locate().path == installed.path
    assert seen[0].stage == "connecting"
    assert seen[-1].stage == "checking"
    assert len(left_in(data)) == 1
    assert not children()


async def test_the_progress_counts_bytes_while_they_arrive(server: Any, data: Path) -> None:
    server.hold()
    seen: list[Progress] = []
    size = len(server.archives[SHELL])
    installing = asyncio.create_task(install(seen=seen))
    await until(lambda: any(one.done_bytes == size // 2 for one in seen))
    part = next(one for one in seen if one.done_bytes == size // 2)
    assert (part.stage, part.total_bytes) == ("downloading", size)
    server.go_on.set()
    await installing


@pytest.mark.thorough
async def test_the_full_browser_is_an_own_download(server: Any, data: Path) -> None:
    await install()
    with pytest.raises(BrowserMissing):
        locate.locate(headless=False)
    full = await install(full=True)
    assert locate.locate(headless=False).path == full.path
    assert len(server.asked) == 2


async def test_what_is_there_is_not_downloaded_again(server: Any, data: Path) -> None:
    first = await install()
    again = await install()
    assert (again.path, again.is_new) == (first.path, False)
    assert len(server.asked) == 1


@pytest.mark.thorough
async def test_a_cancel_in_the_middle_leaves_nothing(server: Any, data: Path) -> None:
    server.hold()
    installing = asyncio.create_task(install())
    await until(server.in_the_middle.is_set)
    installing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing
    assert not children()
    assert left_in(data) == []
    server.go_on.set()
    assert (await install()).is_new


async def test_a_server_that_dies_in_the_middle_is_named(server: Any, data: Path) -> None:
    server.cut_at = 1_000_000
    failed = await failure(BrowserDownloadInterrupted)
    assert server.url.removeprefix("http://") in str(failed)
    assert left_in(data) == []


async def test_a_file_that_the_server_lacks_is_requested_once(server: Any, data: Path) -> None:
    server.status = 404
    failed = await failure(BrowserDownloadRefused)
    assert "HTTP 404" in str(failed)
    assert len(server.asked) == 1
    assert left_in(data) == []


async def test_without_a_network_the_error_names_other_ways(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", f"http://ann:{PASSWORD}@127.0.0.1:9")
    failed = await failure(BrowserServerUnreachable)
    assert "127.0.0.1:9 does not answer (ECONNREFUSED)" in str(failed)
    assert all(way in failed.advice for way in ("install", "OC_BROWSER", str(data)))
    assert PASSWORD not in f"{failed} {failed.advice} {failed.fields}"


@pytest.mark.thorough("HTTPS*")
@pytest.mark.parametrize(
    ("variable", "status"), [("HTTP_PROXY", 407), ("HTTPS_PROXY", 407), ("HTTPS_PROXY", 403)]
)
async def test_a_refusing_proxy_is_named_without_its_password(
    server: Any, monkeypatch: pytest.MonkeyPatch, variable: str, status: int
) -> None:
    asked: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(status)

        do_CONNECT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    if variable == "HTTPS_PROXY":  # refused before anything leaves this machine
        monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", "https://downloads.invalid")
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        place = f"127.0.0.1:{proxy.server_port}"
        monkeypatch.setenv(variable, f"http://ann:{PASSWORD}@{place}")
        failed = await failure(BrowserProxyRefused)
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
    assert f"{place} (HTTP {status})" in str(failed)
    assert PASSWORD not in f"{failed} {failed.advice} {failed.fields}"
    assert len(asked) == 1  # no second attempt with a wrong password
    assert not server.asked


async def test_a_folder_that_cannot_be_made_is_named(server: Any, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the place of the folder")
    failed = await failure(BrowserFolderUnusable)
    assert str(locate.downloads()) in str(failed)
    assert not server.asked


async def test_a_full_disk_is_named(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_disk_at(tmp_path / "disk") as disk:
        monkeypatch.setenv("XDG_DATA_HOME", str(disk))
        failed = await failure(BrowserDiskFull)
        assert str(locate.downloads()) in str(failed)


async def test_a_disk_that_fills_up_is_named_and_freed(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        monkeypatch.setenv("XDG_DATA_HOME", str(place))
        await failure(BrowserDiskFull)
        assert left_in(locate.downloads()) == []
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


async def test_a_system_without_a_build_is_told_to_install_one(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_HOST_PLATFORM_OVERRIDE", "debian99-mips")
    failed = await failure(BrowserNotOffered)
    assert "install" in failed.advice
    assert not server.asked


async def test_two_at_once_download_it_once(server: Any, data: Path) -> None:
    server.hold()
    first_seen: list[Progress] = []
    second_seen: list[Progress] = []
    first = asyncio.create_task(install(seen=first_seen))
    await until(server.in_the_middle.is_set)
    second = asyncio.create_task(install(seen=second_seen))
    await until(lambda: Progress("waiting") in second_seen)
    server.go_on.set()
    one, other = await asyncio.gather(first, second)
    assert one.path == other.path
    assert (one.is_new, other.is_new) == (True, False)
    assert len(server.asked) == 1


async def test_what_a_killed_program_left_is_not_found_and_goes(server: Any, data: Path) -> None:
    part = data / browser_download.STAGING / "chromium_headless_shell-1" / "x" / SHELL
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half")
    part.chmod(0o755)
    with pytest.raises(BrowserMissing):
        locate.locate()
    await install()
    assert not part.exists()


async def test_missing_libraries_are_named_and_the_download_is_kept(
    server: Any, data: Path
) -> None:
    says = "error while loading shared libraries: libnss3.so: cannot open shared object file"
    server.replace(
        b"#!/bin/sh\n"
        + f"[ -e {data}/nss ] || {{ echo '{says}' >&2; exit 127; }}\n".encode()
        + b"echo 'Chromium 159.0.8154.6'\n"
    )
    with pytest.raises(BrowserLibrariesMissing) as missing:
        await install()
    assert "libnss3.so" in str(missing.value)
    with pytest.raises(BrowserMissing):
        locate.locate()
    (data / "nss").touch()  # the library is installed
    assert (await install()).version == "159.0.8154.6"
    assert len(server.asked) == 1


async def test_a_browser_that_does_not_start_is_removed(server: Any, data: Path) -> None:
    server.replace(b"#!/bin/sh\necho 'no screen at all' >&2\nexit 3\n")
    with pytest.raises(BrowserFailed, match=r"exit code 3\) no screen at all"):
        await install()
    assert left_in(data) == []


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.skipif(not DEBIAN.exists(), reason="needs the headless shell of Debian")
async def test_a_real_browser_is_used_without_a_restart(server: Any, data: Path) -> None:
    session = BrowserSession()
    try:
        with pytest.raises(BrowserMissing):
            await session.warm()
        assert session.status()[0] == "missing"
        server.archives[SHELL] = packed_folder(SHELL, DEBIAN)
        await install()
        await session.warm()
        state, name, _ = session.status()
        assert state == "ready"
        assert name.startswith("downloaded Chromium")
    finally:
        await session.aclose()


def test_each_distribution_has_its_command() -> None:
    assert linux_command({"ID": "fedora"}) == "sudo dnf install chromium"
    assert linux_command({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}).endswith(
        "snap install chromium"
    )
    assert linux_command({"ID": "opensuse-leap", "ID_LIKE": "suse"}).startswith("sudo zypper")
    assert linux_command({}) == "sudo apt install chromium"


@pytest.mark.parametrize("entry", ["engine.cli.__main__", "gui.app"])
def test_a_packaged_program_looks_nowhere_else(data: Path, entry: str) -> None:
    code = (
        f"import os, sys; sys.frozen = True; sys.argv = ['program', '--version']; import {entry}\n"
        f"try:\n    {entry}.main()\nexcept SystemExit:\n    pass\n"
        "print(os.environ['PLAYWRIGHT_BROWSERS_PATH'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PLAYWRIGHT_BROWSERS_PATH": "/elsewhere"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == [str(data)], done.stderr


@pytest.mark.parametrize("former", ["/opt/lib", None])
def test_browsers_of_a_packaged_program_load_the_systems_libraries(
    data: Path, former: str | None
) -> None:
    environ = {"LD_LIBRARY_PATH": "/opt/program/_internal"}
    if former:
        environ["LD_LIBRARY_PATH_ORIG"] = former
    locate.leave_bundle(environ)
    assert environ.get("LD_LIBRARY_PATH") == former
    assert "LD_LIBRARY_PATH_ORIG" not in environ


def test_node_of_a_packaged_program_finds_its_own_libraries(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "bundle", lambda: tmp_path)
    (tmp_path / locate.NODE_LIBRARIES).mkdir()
    environ = {"LD_LIBRARY_PATH": str(tmp_path), "LD_LIBRARY_PATH_ORIG": "/opt/lib"}
    locate.leave_bundle(environ)
    assert environ["LD_LIBRARY_PATH"] == f"/opt/lib:{tmp_path / locate.NODE_LIBRARIES}"


@pytest.mark.skipif(sys.platform == "win32", reason="Python reads the store of Windows")
@pytest.mark.parametrize("given", [None, "/mine.pem"])
def test_a_packaged_program_trusts_what_the_system_trusts(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    nowhere = ssl.DefaultVerifyPaths("", "", "", "", "", "")  # as on another distribution
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    there = tmp_path / "ca-bundle.crt"
    there.write_text("certificates")
    monkeypatch.setattr(locate, "CERTIFICATES", (str(tmp_path / "no.crt"), str(there)))
    environ = {} if given is None else {"SSL_CERT_FILE": given}
    locate.leave_bundle(environ)
    assert environ["SSL_CERT_FILE"] == (given or str(there))


# The command.


@pytest.fixture
def command(server: DownloadServer, tmp_path: Path) -> list[str]:
    return [sys.executable, "-m", "engine.cli", "install-browser", "--home", str(tmp_path / "home")]


def test_the_command_tells_each_stage_and_the_place(
    server: DownloadServer, data: Path, command: list[str]
) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Installed Chromium 159.0.8154.6: " + str(data))
    assert "Connecting…\n" in done.stderr
    assert "Starting it once…\n" in done.stderr


def test_ctrl_c_ends_the_command_cleanly(
    server: DownloadServer, data: Path, command: list[str]
) -> None:
    server.hold()
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.in_the_middle.wait(120)
    helpers = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 3, said
    assert "cancelled; nothing was installed" in said
    assert helpers
    _, alive = psutil.wait_procs(helpers, timeout=90)  # the system needs a moment for it
    assert not alive
    assert left_in(data) == []


def test_a_killed_command_leaves_no_driver_behind(
    server: DownloadServer, data: Path, command: list[str]
) -> None:
    server.hold()
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    assert server.in_the_middle.wait(120)
    helpers = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait()
    server.go_on.set()
    _, alive = psutil.wait_procs(helpers, timeout=90)
    assert not alive
    with pytest.raises(BrowserMissing):
        locate.locate()
