"""Launch request of a program start, passed to the window that has the ledger already.

Its text comes from a command line, a link on any web page, or another process of this user, so a
request only ever shows something: it cannot start, cancel or delete. The lock file of an instance
is outside the ledger, which may be read-only or shared, and is released when its process ends. A
request is sent as one JSON line over a socket that only this user may open.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec
import platformdirs
from PySide6.QtCore import QCryptographicHash, QLockFile, QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from engine.logging.logs import private_file, private_folder
from gui.context.preferences import APP_FOLDER

if TYPE_CHECKING:
    from PySide6.QtNetwork import QLocalServer, QLocalSocket


SCHEME = "openchrome-monitor"
MOST_WORDS = 500
MOST_CHARS = 8192  # Limit of one argument, above any valid path or address
_TASK = re.compile(r"task/([0-9a-f]{16})/?")
_LISTS = ("tasks", "urls", "files", "strange", "beside")


class Wish(msgspec.Struct, frozen=True):
    """A parsed launch request; an empty one only raises the window.

    `files` are absolute paths, as are the ledgers in `beside`, which are shown until the window
    closes. `strange` lists arguments that were not understood, `token` is the desktop's activation
    token.
    """

    tasks: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    token: str = ""

    def message(self) -> dict[str, Any]:
        """Return the request in the form sent to another process."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return {"raise": True, "token": self.token, **lists}


def link_to(task_id: str) -> str:
    """Return the link that opens the monitor at this task."""
    return f"{SCHEME}://task/{task_id}"


def here() -> Path:
    """Return the working directory, or the home folder if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def wish_of(
    words: Iterable[str], folder: Path, token: str = "", beside: Iterable[Path] = ()
) -> Wish:
    """Parse command line arguments; relative paths start at `folder`."""
    sorted_in: dict[str, list[str]] = {name: [] for name in _LISTS}
    for word in list(words)[:MOST_WORDS]:
        name, value = _understand(word[:MOST_CHARS], folder)
        sorted_in[name].append(value)
    sorted_in["beside"] = [os.path.abspath(folder / one) for one in beside]
    return _wish({name: tuple(values) for name, values in sorted_in.items()}, token)


def wish_in(message: object) -> Wish:
    """Parse a request from another process and ignore malformed fields."""
    if not isinstance(message, Mapping):
        return Wish()
    token = message.get("token")
    lists = {name: _texts(message.get(name)) for name in _LISTS}
    wish = _wish(lists, token if isinstance(token, str) else "")
    tasks = tuple(one for one in wish.tasks if _TASK.fullmatch(f"task/{one}"))
    return msgspec.structs.replace(
        wish,
        tasks=tasks,
        files=tuple(filter(os.path.isabs, wish.files)),
        beside=tuple(filter(os.path.isabs, wish.beside)),
    )


def _wish(lists: Mapping[str, tuple[str, ...]], token: str) -> Wish:
    tasks, urls, files, strange, beside = (lists[name] for name in _LISTS)
    return Wish(tasks, urls, files, strange, beside, token[:MOST_CHARS])


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        one for one in value[:MOST_WORDS] if isinstance(one, str) and len(one) <= MOST_CHARS
    )


def _understand(word: str, folder: Path) -> tuple[str, str]:
    """Return the list of the request for this argument, and its value."""
    scheme = word.partition(":")[0].lower()
    if scheme == SCHEME:
        rest = unquote(word.partition(":")[2]).lstrip("/")
        found = _TASK.fullmatch(rest)
        return ("tasks", found[1]) if found else ("strange", word)
    if scheme in ("http", "https") and "://" in word:
        return "urls", word
    if scheme == "file":
        return _file_of(word)
    if not word.strip() or "\0" in word:
        return "strange", word
    return "files", os.path.abspath(os.path.join(folder, word))


def _file_of(address: str) -> tuple[str, str]:
    """Parse a file URL of the desktop; URLs of other hosts are rejected."""
    # The import loads an HTTP client, which is too slow for each start.
    from urllib.request import url2pathname

    try:
        parts = urlsplit(address)
        path = url2pathname(parts.path)
    except ValueError:
        return "strange", address
    local = parts.netloc in ("", "localhost") and os.path.isabs(path) and "\0" not in path
    return ("files", path) if local else ("strange", address)


# Activation tokens of the desktop launcher: Wayland requires one to raise a window, and on X11 the
# startup id prevents focus stealing prevention.
_TOKENS = ("XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID")


def token_in(environ: Mapping[str, str]) -> str:
    """Return the activation token of this program start, or an empty string."""
    return next((environ[name] for name in _TOKENS if environ.get(name)), "")


def come_forward(window: QWidget, token: str = "") -> None:
    """Show and focus `window`, with the desktop's activation token."""
    from PySide6.QtCore import Qt  # The import takes 45 ms, which the first paint does not need

    if token:
        # Qt's Wayland plugin reads this variable, uses it once and clears it.
        os.environ[_TOKENS[0]] = token
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
    if is_kept_back(QApplication.platformName(), token):
        QApplication.alert(window)


def is_kept_back(platform: str, token: str) -> bool:
    """Return whether the desktop ignores a raise without token, so that an alert is needed."""
    return platform.startswith("wayland") and not token


ANSWER_MS = 2000
AGAIN_S = 0.05  # Delay between attempts to reach a window that does not listen yet
ANY_PROCESS = -1  # ASFW_ANY
MAX_BYTES = 8 * 1024 * 1024  # Limit of one message, four times the longest command line


def _key(root: Path) -> str:
    place = os.path.realpath(root).encode("utf-8", "surrogatepass")
    # Importing hashlib would delay the first paint by 8 ms.
    digest = QCryptographicHash.hash(place, QCryptographicHash.Algorithm.Sha256)
    return bytes(digest.data()).hex()[:16]


class Instance(QObject):
    """Claim of this process to be the window of a ledger; `called` reports another start."""

    called = Signal(object)

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        super().__init__()
        place = folder or Path(platformdirs.user_cache_dir(APP_FOLDER, appauthor=False))
        self._place = place
        self._name = f"{APP_FOLDER}-{_user()}-{_key(root)}"
        self._lock: QLockFile | None = None
        self._server: QLocalServer | None = None

    def claim(self) -> bool:
        """Claim the ledger; False when another process has it.

        An unwritable cache folder does not prevent the start. Call `listen` soon, because other
        starts wait for it.
        """
        try:
            private_folder(self._place)
        except OSError:
            return True
        lock = QLockFile(str(self._place / f"{self._name}.lock"))
        lock.setStaleLockTime(0)  # Only a dead process loses the lock, never a slow one
        if not lock.tryLock(0):
            return lock.error() != QLockFile.LockError.LockFailedError
        with suppress(OSError):  # Qt leaves the mode to the umask
            private_file(self._place / f"{self._name}.lock")
        self._lock = lock
        return True

    def listen(self) -> None:
        """Accept calls of other starts, after the first paint."""
        if self._lock is None:
            return
        from PySide6.QtNetwork import QLocalServer

        # Left by a killed process; this process holds the lock.
        QLocalServer.removeServer(self._name)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._take_call)
        self._server.listen(self._name)

    def hand_over(self, message: dict[str, Any]) -> bool:
        """Send a request to the ledger's window; False without an answer in 2 s."""
        import json

        from PySide6.QtNetwork import QLocalSocket

        _let_others_come_forward()
        socket = QLocalSocket()
        if not self._reaches(socket):
            return False
        socket.write(json.dumps(message).encode() + b"\n")
        return socket.waitForBytesWritten(ANSWER_MS) and socket.waitForReadyRead(ANSWER_MS)

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None

    def _reaches(self, socket: QLocalSocket) -> bool:
        """Connect, retrying while a new window does not listen yet."""
        until = time.monotonic() + ANSWER_MS / 1000
        while True:
            socket.connectToServer(self._name)
            if socket.waitForConnected(ANSWER_MS):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(AGAIN_S)  # Blocking is fine here, since no window or loop exists yet

    def _take_call(self) -> None:
        if self._server is None:
            return
        socket = self._server.nextPendingConnection()
        socket.setParent(self)
        socket.readyRead.connect(lambda: self._read(socket))
        socket.disconnected.connect(socket.deleteLater)

    def _read(self, socket: QLocalSocket) -> None:
        import json

        if not socket.canReadLine():
            if socket.bytesAvailable() > MAX_BYTES:
                socket.abort()
            return
        try:
            message = json.loads(bytes(socket.readLine(MAX_BYTES).data()))
        except ValueError:
            message = None
        if isinstance(message, dict):
            self.called.emit(message)
            socket.write(b"ok\n")
            socket.flush()
        socket.disconnectFromServer()


def _let_others_come_forward() -> None:
    """Windows: allow any process to take the focus, since the target is unknown."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.AllowSetForegroundWindow(ANY_PROCESS)


def _user() -> str:
    """Return a user name for the socket, whose names all users of some systems share."""
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
