"""File with the address and the token of a server, for programs of the same user.

`HOME/server/access.json` (0600, in a folder 0700) holds `url`, `port`, `pid` and `token` of the
local server, and `browser.json` those of the browser server. The token
stays the same over restarts, because hosts keep it in their configuration; the rest is null while
no server runs. The token is nowhere else: not in arguments, logs, events or on the screen.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.ledger.files import READ_FLAGS, Folder, Unusable, read_fully, unusable, writing
from engine.ledger.lease import make_root
from engine.ledger.lock import kernel_lock, locked_descriptor
from engine.model.errors import EngineError

FOLDER: Final = "server"
NAME: Final = "access.json"
_LOCK: Final = ".lock"
BROWSER_NAME: Final = "browser.json"
_RUNNING: Final = {NAME: ".running", BROWSER_NAME: ".browser-running"}
_CAP: Final = 4_096
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class AccessFileUnsafe(EngineError):
    """The file with the token could be read or replaced by others, or is no such file."""

    code = "access_file_unsafe"
    title = "The file with the token cannot be used"
    sentence = "{path}: {reason}"
    advice_text = (
        "Correct or remove it, or have a new token made (--new-token, or in the settings of the "
        "window)."
    )


class ServerRunning(EngineError):
    """Another server of this home runs; two would hide each other from their clients."""

    code = "server_running"
    title = "A server runs already"
    sentence = "Another server of this folder runs already, at {url}."
    advice_text = "Use that one, end it first, or choose another folder with --home."


class AccessFile:
    """The file of one home. One server holds it at a time, from `open` to `withdraw`."""

    def __init__(self, home: Path, name: str = NAME) -> None:
        """Name the file of the local server, or `BROWSER_NAME`."""
        self._home, self._name = home, name
        self.path = home / FOLDER / name
        self._held: int | None = None  # descriptor of the lock of the running server

    def open(self, *, new_token: bool) -> str:
        """Return the token; make one where there is none, or with `new_token`.

        Raises:
            ServerRunning: another server of this home runs, also in another process.
            AccessFileUnsafe: the file is a link, of another user, open to others, or damaged.
            LedgerReadOnly, LedgerWriteFailed, LedgerUnusable: it cannot be written.
        """
        make_root(self._home)
        with self._hold() as folder:
            self._begin(folder)
            token = None if new_token or not folder.has(self._name) else self._token(folder)
            if token is None:
                token = secrets.token_urlsafe(32)
                self._write(folder, {"url": None, "port": None, "pid": None, "token": token})
            return token

    def announce(self, port: int, token: str, url: str = "") -> None:
        """Write where the server listens, by default at 127.0.0.1. Raises as `open`."""
        url = url or f"http://127.0.0.1:{port}"
        with self._hold() as folder:
            self._write(folder, {"url": url, "port": port, "pid": os.getpid(), "token": token})

    def withdraw(self) -> None:
        """Remove the address and let another server begin. Idempotent.

        Another program may listen on that port later, and must not be sent the token.
        """
        held, self._held = self._held, None  # a server may be stopped twice at once
        if held is None:
            return
        try:
            with self._hold() as folder:
                found = self._read(folder)
                self._write(folder, {**found, "url": None, "port": None, "pid": None})
        finally:
            os.close(held)

    def _begin(self, folder: Folder) -> None:
        """Take the lock of the running server, which the system frees when its process dies."""
        if self._held is None:
            self._held = locked_descriptor(folder, _RUNNING[self._name])
        if self._held is None:
            raise ServerRunning(url=self._read(folder).get("url") or "another port")

    @contextmanager
    def _hold(self) -> Iterator[Folder]:
        """Hold the lock of the file in its folder, which is ours alone."""
        place = str(self.path.parent)
        with writing(place), Folder.at(str(self._home)) as home:
            if not home.has(FOLDER):
                home.make_folder(FOLDER)
            try:
                folder = home.enter(FOLDER)
            except OSError as error:
                raise AccessFileUnsafe(path=place, reason="this is not a folder") from error
            with folder:
                self._check(home.facts(FOLDER), place)
                with kernel_lock(folder, _LOCK, FOLDER):
                    yield folder

    def _token(self, folder: Folder) -> str:
        token = self._read(folder).get("token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise AccessFileUnsafe(path=str(self.path), reason="it holds no token")
        return token

    def _read(self, folder: Folder) -> dict[str, Any]:
        path = str(self.path)
        try:
            fd = folder.open(self._name, READ_FLAGS)
        except Unusable as wrong:
            raise AccessFileUnsafe(path=path, reason=str(wrong)) from wrong
        except OSError as error:
            raise unusable(error, path) from error
        try:
            facts = os.fstat(fd)
            self._check(facts, path)
            data = read_fully(fd, min(facts.st_size, _CAP))
        finally:
            os.close(fd)
        try:
            found = msgspec.json.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
            raise AccessFileUnsafe(path=path, reason="it is not valid JSON") from wrong
        return found if isinstance(found, dict) else {}

    def _check(self, facts: os.stat_result, path: str) -> None:
        """Raise if others could read or replace it; on Windows the profile's folder protects it."""
        if os.name != "posix":
            return
        if facts.st_uid != os.geteuid():
            raise AccessFileUnsafe(path=path, reason="it belongs to another user")
        if facts.st_mode & _OTHERS:
            reason = "other users can read or change it; only you may (chmod go= FILE)"
            raise AccessFileUnsafe(path=path, reason=reason)

    def _write(self, folder: Folder, data: dict[str, Any]) -> None:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"
        temp = f".{self._name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        folder.replace(self._name, [text], temp=temp, durable=True)
