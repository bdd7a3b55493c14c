"""Leases: each engine process holds one locked file as proof of life.

`<root>/.runners/<nonce>` is locked by the kernel, which releases it when the process dies for any
reason. So a lease proves life and death without trusting a pid or a clock. A missing file proves
neither: cleaners and people remove unknown files.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from engine.ledger import machine
from engine.ledger.files import LOCK_FLAGS, READ_FLAGS, Folder, Unusable, writing
from engine.ledger.lock import lock_now
from engine.model.errors import LedgerBlocked, LedgerUnusable

RUNNERS: Final = ".runners"
_NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_HELD: Final[set[tuple[int, str]]] = set()  # (pid, nonce) of leases that this process holds
_DEAD: Final[set[tuple[str, str]]] = set()  # (root, nonce) of leases proved dead and removed
_CAP: Final = 4_096  # bytes of a lease file


class Lease:
    """Lease of this process in one ledger, and the source of its temp file names.

    `nonce` names it in `meta.json` (`engine.runner`); `host`, `boot_id`, `pid` and `started_at` (ms
    since 1970) identify the process.
    """

    def __init__(self, root: Path, nonce: str, fd: int) -> None:
        self.root = root
        self.nonce = nonce
        self.host = machine.host()
        self.boot_id = machine.boot_id()
        self.pid, self.started_at = machine.own_process()
        self._fd: int | None = fd
        self._numbers = itertools.count(1)
        self._renewing = threading.Lock()
        self._identity = _identity_of(root)
        _HELD.add((self.pid, nonce))

    @classmethod
    def acquire(cls, root: Path) -> Lease:
        """Acquire a new lease in the ledger at `root`, creating the folders (0700) where missing.

        Raises:
            LedgerUnusable: `root` is no folder, or neither it nor its parent's parent exists.
            LedgerReadOnly: nothing may be written there.
            LedgerWriteFailed: a full disk, say, or a file in the place of the folder of leases.
        """
        make_root(root)
        with writing(str(root)), Folder.at(str(root)) as top:
            with suppress(FileExistsError):
                top.make_folder(RUNNERS)
            with _open_runners(top) as runners:
                return cls._lock_new(root, runners)

    @classmethod
    def _lock_new(cls, root: Path, runners: Folder) -> Lease:
        while True:
            nonce = secrets.token_hex(8)
            fd = runners.open(nonce, LOCK_FLAGS)
            try:
                # Another process may be testing the lock just now, or have removed the file of a
                # lease that it found unlocked.
                if lock_now(fd) and runners.has(nonce):
                    lease = cls(root, nonce, fd)
                    os.write(fd, lease._content())
                    return lease
            except BaseException:
                runners.remove(nonce)
                os.close(fd)
                raise
            os.close(fd)

    def _content(self) -> bytes:
        facts = {
            "host": self.host,
            "boot_id": self.boot_id,
            "pid": self.pid,
            "started_at": self.started_at,
        }
        return msgspec.json.encode(facts)

    def temp_name(self, name: str) -> str:
        """Return a fresh temp name for `name`; it contains our lease, the proof of life."""
        return f".{name}.{self.nonce}.{next(self._numbers)}.tmp"

    def renew(self, *, anew: bool = False) -> bool:
        """Restore the lease if its file was removed or its folder replaced.

        False when that failed: try again later. It never creates the root. In another folder at the
        same path (the mount point of an absent disk, say) it does nothing, unless tasks are to
        begin there (`anew`).
        """
        with self._renewing:
            if self._fd is None:
                return False
            try:
                with Folder.at(str(self.root)) as top:
                    if not top.has(RUNNERS):
                        if not (anew or self._identity == _identity_of(self.root)):
                            return False
                        top.make_folder(RUNNERS)
                    self._identity = _identity_of(self.root)
                    with top.enter(RUNNERS) as runners:
                        return self._is_current(runners, self._fd) or self._lock_again(runners)
            except (OSError, Unusable):
                return False

    def _is_current(self, runners: Folder, fd: int) -> bool:
        """Return whether the file that we hold still has that name."""
        try:
            found = runners.facts(self.nonce)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(fd))

    def _lock_again(self, runners: Folder) -> bool:
        fd = runners.open(self.nonce, LOCK_FLAGS)
        try:
            if not lock_now(fd):
                os.close(fd)  # another process is just testing the lock
                return False
            os.write(fd, self._content())
        except BaseException:
            os.close(fd)
            raise
        old, self._fd = self._fd, fd
        if old is not None:
            os.close(old)
        return True

    def written_ms(self) -> int | None:
        """Modification time of the lease file (ms since 1970); None once released."""
        return None if self._fd is None else os.fstat(self._fd).st_mtime_ns // 1_000_000

    def release(self) -> None:
        """Release the lease: live tasks of this process become orphans. Harmless when repeated."""
        with self._renewing:
            fd, self._fd = self._fd, None
        _HELD.discard((self.pid, self.nonce))
        if fd is None:
            return
        forget(self.root, [self.nonce])
        os.close(fd)
        forget(self.root, [self.nonce])  # Windows does not unlink an open file


def _open_runners(top: Folder) -> Folder:
    """Open the folder of the leases in `top`. Raises LedgerBlocked where a file or a link is
    there."""
    try:
        return top.enter(RUNNERS)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise LedgerBlocked(path=os.path.join(top.path, RUNNERS)) from error
        raise


def _identity_of(root: Path) -> tuple[int, int] | None:
    """Identity (device, inode) of the root folder, whatever its path."""
    try:
        found = os.stat(root)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_alive(root: Path, nonce: str) -> bool | None:
    """Return whether the process with this lease is alive; None when unknown. Writes nothing."""
    if not _NONCE.fullmatch(nonce):
        return None
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return is_locked(runners, nonce)
    except FileNotFoundError:
        return False
    except OSError:
        return None


def exists(root: Path, nonce: str) -> bool:
    """Return whether the file of this lease exists, held or not; True if that cannot be read."""
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return bool(runners.facts(nonce))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_blocked(root: Path, nonce: str) -> bool:
    """Return whether something other than a file is in the place of the lease or its folder.

    No process can hold that; its owner may be alive all the same, but cannot restore the lease.
    """
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return not stat.S_ISREG(runners.facts(nonce).st_mode)
    except (Unusable, NotADirectoryError):
        return True
    except OSError:
        return False


def is_held_here(nonce: str) -> bool:
    """Return whether this process holds the lease."""
    return (os.getpid(), nonce) in _HELD


def is_locked(runners: Folder, nonce: str) -> bool | None:
    """Return whether any process holds the kernel lock on this file; None when unknown. Writes
    nothing."""
    try:
        fd = runners.open(nonce, READ_FLAGS)
    except FileNotFoundError:
        return False
    except (Unusable, OSError):
        return None
    try:
        return not lock_now(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def dead_leases(root: Path) -> list[str]:
    """Leases of processes that died without releasing them."""
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            nonces = [name for name in runners.names() if _NONCE.fullmatch(name)]
            return [nonce for nonce in nonces if _is_dead(runners, nonce)]
    except OSError:
        return []


def _is_dead(runners: Folder, nonce: str) -> bool:
    """Return whether the lease is unlocked and its process gone.

    A ledger may have come back as a copy, whose leases their owners lock again in a moment.
    """
    if is_locked(runners, nonce) is not False:
        return False
    try:
        content = msgspec.json.decode(runners.read(nonce, _CAP), type=_LeaseContent)
    except (OSError, Unusable, msgspec.MsgspecError, ValueError):
        return True
    if not (machine.same_host(content.host) and machine.same_boot(content.boot_id)):
        return True
    if content.pid == os.getpid():
        return not is_held_here(nonce)
    pid = machine.as_pid(content.pid)
    return pid is None or machine.is_process(pid, content.started_at) is not True


class _LeaseContent(msgspec.Struct, frozen=True):
    """Content of a lease file, which identifies its process."""

    host: str
    boot_id: str
    pid: int
    started_at: float


def was_dead(root: Path, nonce: str) -> bool:
    """Return whether this process proved this lease dead and removed it."""
    return (str(root), nonce) in _DEAD


def remove_dead(root: Path, nonces: list[str]) -> None:
    """Remove the lease files of processes that were proved dead."""
    _DEAD.update((str(root), nonce) for nonce in nonces)
    forget(root, nonces)


def forget(root: Path, nonces: list[str]) -> None:
    """Remove lease files that no process holds any more."""
    with suppress(OSError), Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
        for nonce in nonces:
            runners.remove(nonce)


@contextmanager
def temporary_lease(root: Path, lease: Lease | None) -> Iterator[Lease]:
    """Yield `lease`, or one for this single operation (a cancel from the command line, say)."""
    if lease is not None:
        yield lease
        return
    own = Lease.acquire(root)
    try:
        yield own
    finally:
        own.release()


def make_root(root: Path) -> None:
    """Create the ledger's folder, and its parent, where they are missing.

    Raises:
        LedgerUnusable: something other than a folder is in the way, or the parent is missing.
        LedgerReadOnly, LedgerWriteFailed: the system refuses.
    """
    for folder in (root.parent, root):
        if folder.is_dir():
            continue
        # Checked again: another program that starts at this moment may have created it.
        if os.path.lexists(folder) and not folder.is_dir():
            raise LedgerUnusable(path=str(folder), reason="this is not a folder")
        if not folder.parent.is_dir():
            raise LedgerUnusable(path=str(root), reason=f"its parent {folder.parent} is not there")
        with (
            writing(str(folder)),
            Folder.at(str(folder.parent)) as above,
            suppress(FileExistsError),
        ):
            above.make_folder(folder.name)
            above.sync()  # the folder's name must survive a loss of power like the tasks in it
