"""The file with the address and the token: who may read it, and how long a token lives."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from engine.model.errors import LedgerReadOnly
from engine.server.access_file import AccessFile, AccessFileUnsafe, ServerRunning
from engine.server.local_server import LocalServer
from tests.server.http.conftest import Serving
from tests.support.engines import opened

posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX' own")


@posix
@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_the_file_is_its_users_alone_whatever_the_umask(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        file = AccessFile(home)
        file.announce(1, file.open(new_token=False))
        file.withdraw()
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(file.path.parent)) == [".lock", ".running", "access.json"]


def test_a_token_has_32_random_bytes_and_outlives_a_restart(home: Path) -> None:
    def token_of(*, new: bool) -> str:
        file = AccessFile(home)
        try:
            return file.open(new_token=new)
        finally:
            file.withdraw()

    token = token_of(new=False)
    assert len(token) == 43
    assert token_of(new=False) == token
    newer = token_of(new=True)
    assert newer != token
    assert token_of(new=False) == newer


async def test_the_file_names_the_server_while_it_runs(home: Path) -> None:
    async with opened(home) as engine:
        server = LocalServer(engine)
        await server.start()
        running = _data(server.token_file)
        assert running["url"] == server.url == f"http://127.0.0.1:{server.port}"
        assert (running["port"], running["pid"]) == (server.port, os.getpid())
        await server.stop()
        ended = _data(server.token_file)
        assert ended == {**dict.fromkeys(("url", "port", "pid")), "token": running["token"]}


async def test_a_second_server_of_the_home_is_refused_while_the_first_runs(home: Path) -> None:
    async with opened(home) as engine:
        first, second = LocalServer(engine), LocalServer(engine, new_token=True)
        await first.start()
        before = _data(first.token_file)
        with pytest.raises(ServerRunning, match=str(first.port)):
            await second.start()
        assert _data(first.token_file) == before, "address and token are the first one's"
        await first.stop()
        await second.start()
        assert _data(second.token_file)["port"] == second.port
        await second.stop()


async def test_an_old_token_ends_with_a_new_one(serving: Serving) -> None:
    async with serving() as client:
        old = client.token
    file = AccessFile(client.server.token_file.parents[1])
    file.open(new_token=True)
    file.withdraw()
    async with serving() as client:
        assert client.token != old
        client.token = old
        assert (await client.code("GET", "/tasks"))[0] == 401


@posix
def test_a_file_that_others_can_read_is_refused(home: Path) -> None:
    file = AccessFile(home)
    file.open(new_token=False)
    file.path.chmod(0o644)
    with pytest.raises(AccessFileUnsafe, match="other users"):
        file.open(new_token=False)
    token = file.open(new_token=True)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.open(new_token=False) == token


@posix
def test_a_folder_that_others_can_change_is_refused(home: Path) -> None:
    file = AccessFile(home)
    file.open(new_token=False)
    file.path.parent.chmod(0o777)
    with pytest.raises(AccessFileUnsafe, match="other users"):
        file.open(new_token=True)


@posix
def test_a_link_in_its_place_is_refused_and_its_target_stays(home: Path, tmp_path: Path) -> None:
    file = AccessFile(home)
    file.open(new_token=False)
    target = tmp_path / "elsewhere.json"
    target.write_text(file.path.read_text())
    target.chmod(0o600)
    before = target.read_bytes()
    file.path.unlink()
    file.path.symlink_to(target)
    with pytest.raises(AccessFileUnsafe, match="link"):
        file.open(new_token=False)
    file.open(new_token=True)
    assert not file.path.is_symlink()
    assert target.read_bytes() == before


@posix
def test_a_link_in_place_of_its_folder_is_refused(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (home / "server").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AccessFileUnsafe, match="not a folder"):
        AccessFile(home).open(new_token=True)
    assert not os.listdir(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"token": 3}', '{"token": "short"}', "[" * 4_000]
)
def test_a_damaged_file_is_refused_until_a_new_token_is_made(home: Path, text: str) -> None:
    file = AccessFile(home)
    file.open(new_token=False)
    file.path.write_text(text)
    with pytest.raises(AccessFileUnsafe):
        file.open(new_token=False)
    file.open(new_token=True)


async def test_a_start_that_fails_leaves_nothing_behind(home: Path) -> None:
    async with opened(home) as engine:
        file = AccessFile(home)
        file.open(new_token=False)
        file.path.write_text("no json")
        server = LocalServer(engine)
        with pytest.raises(AccessFileUnsafe):
            await server.start()
        assert not server.is_running


def test_a_home_that_cannot_be_written_is_a_typed_error(home: Path, read_only: Any) -> None:
    home.mkdir()
    read_only(home)
    with pytest.raises(LedgerReadOnly):
        AccessFile(home).open(new_token=False)


def _data(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found
