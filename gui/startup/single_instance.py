"""Single instance per ledger: a second start passes its request to the first.

The lock file is outside the ledger, which may be read-only or shared, and is released when its
process ends. A request is one JSON line over a socket that only this user may open.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from PySide6.QtCore import QCryptographicHash, QLockFile, QObject, Signal

from engine.logging.logs import private_file, private_folder
from gui.state.window_state import APP_FOLDER

if TYPE_CHECKING:
    from PySide6.QtNetwork import QLocalServer, QLocalSocket

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
        """Release the claim."""
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
