"""Who is alive: each engine process holds one locked file for its life.

`<root>/.runners/<nonce>` is locked by the kernel, which lets go when the process dies,
however it dies. So a lease proves life and death without trusting a pid or a clock.
A file that is not there proves neither: cleaners and people remove what they do not know.
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

import filelock
import msgspec

from engine.ledger import machine
from engine.ledger.files import LOCK_FLAGS, READ_FLAGS, Folder, Unusable, writing
from engine.model.errors import LedgerBlocked, LedgerUnusable

RUNNERS: Final = ".runners"
_NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_HELD: Final[set[tuple[int, str]]] = set()  # (pid, nonce) of what this very process holds
_DEAD: Final[set[tuple[str, str]]] = set()  # (root, nonce) of what was proved dead and removed
_CAP: Final = 4_096  # bytes of a lease file


class Lease:
    """This process' sign of life in one ledger, and the names of its temp files.

    `nonce` names it in `meta.json` (`engine.runner`); `host`, `boot_id`, `pid` and
    `started_at` (ms since 1970) say which process that is.
    """

    def __init__(self, root: Path, nonce: str, fd: int) -> None:
        self.root = root
        self.nonce = nonce
        self.host = machine.host()
        self.boot_id = machine.boot_id()
        self.pid, self.started_at = machine.me()
        self._fd: int | None = fd
        self._numbers = itertools.count(1)
        self._renewing = threading.Lock()
        self._place = _place_of(root)
        _HELD.add((self.pid, nonce))

    @classmethod
    def acquire(cls, root: Path) -> Lease:
        """Take a new lease in the ledger at `root`, making the folders (0700) where missing.

        Raises:
            LedgerUnusable: `root` is no folder, or neither it nor its parent's parent is there.
            LedgerReadOnly: nothing may be written there.
            LedgerWriteFailed: a full disk, say, or a file in the place of the folder of leases.
        """
        make_root(root)
        with writing(str(root)), Folder.at(str(root)) as top:
            with suppress(FileExistsError):
                top.make_folder(RUNNERS)
            with _opened(top) as runners:
                return cls._lock_new(root, runners)

    @classmethod
    def _lock_new(cls, root: Path, runners: Folder) -> Lease:
        while True:
            nonce = secrets.token_hex(8)
            fd = runners.open(nonce, LOCK_FLAGS)
            try:
                # A looker may be asking about it just now, or a sweeper have removed it as dead.
                if filelock.lock_descriptor(fd, blocking=False) and runners.has(nonce):
                    lease = cls(root, nonce, fd)
                    os.write(fd, lease._described())
                    return lease
            except BaseException:
                runners.remove(nonce)
                os.close(fd)
                raise
            os.close(fd)

    def _described(self) -> bytes:
        facts = {
            "host": self.host,
            "boot_id": self.boot_id,
            "pid": self.pid,
            "started_at": self.started_at,
        }
        return msgspec.json.encode(facts)

    def temp_name(self, name: str) -> str:
        """A fresh name to stage `name` under; a sweep knows by it whose litter it is."""
        return f".{name}.{self.nonce}.{next(self._numbers)}.tmp"

    def renew(self, *, anew: bool = False) -> bool:
        """Put the lease back where others look for it, if it was removed or its folder replaced.

        False when it could not be done now: try again later. Never makes the root itself, and
        in another folder that came in its place (the place of a disk that is not mounted, say)
        nothing, unless tasks are to begin there (`anew`).
        """
        with self._renewing:
            if self._fd is None:
                return False
            try:
                with Folder.at(str(self.root)) as top:
                    if not top.has(RUNNERS):
                        if not (anew or self._place == _place_of(self.root)):
                            return False
                        top.make_folder(RUNNERS)
                    self._place = _place_of(self.root)
                    with top.enter(RUNNERS) as runners:
                        return self._stands(runners, self._fd) or self._lock_again(runners)
            except (OSError, Unusable):
                return False

    def _stands(self, runners: Folder, fd: int) -> bool:
        """Is the file that we hold still the one of that name?"""
        try:
            found = runners.facts(self.nonce)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(fd))

    def _lock_again(self, runners: Folder) -> bool:
        fd = runners.open(self.nonce, LOCK_FLAGS)
        try:
            if not filelock.lock_descriptor(fd, blocking=False):
                os.close(fd)  # somebody is just asking about it
                return False
            os.write(fd, self._described())
        except BaseException:
            os.close(fd)
            raise
        old, self._fd = self._fd, fd
        if old is not None:
            os.close(old)
        return True

    def written_ms(self) -> int | None:
        """When the disk says that the lease was written (ms since 1970); None once released."""
        return None if self._fd is None else os.fstat(self._fd).st_mtime_ns // 1_000_000

    def release(self) -> None:
        """Let go: whatever this process still owns counts as orphaned. Harmless when repeated."""
        with self._renewing:
            fd, self._fd = self._fd, None
        _HELD.discard((self.pid, self.nonce))
        if fd is None:
            return
        forget(self.root, [self.nonce])
        os.close(fd)
        forget(self.root, [self.nonce])  # Windows does not unlink what is open


def _opened(top: Folder) -> Folder:
    """The folder of the leases in `top`. Raises LedgerBlocked where a file or a link is there."""
    try:
        return top.enter(RUNNERS)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise LedgerBlocked(path=os.path.join(top.path, RUNNERS)) from error
        raise


def _place_of(root: Path) -> tuple[int, int] | None:
    """Which folder that is, whatever it is called."""
    try:
        found = os.stat(root)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_alive(root: Path, nonce: str) -> bool | None:
    """Is the process with this lease alive? None when nobody can tell. Writes nothing."""
    if not _NONCE.fullmatch(nonce):
        return None
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return is_locked(runners, nonce)
    except FileNotFoundError:
        return False
    except OSError:
        return None


def is_there(root: Path, nonce: str) -> bool:
    """Is there a file of this lease, held or not? One that cannot be looked at counts as there."""
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return bool(runners.facts(nonce))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_another_thing(root: Path, nonce: str) -> bool:
    """Does something that is no file stand in the place of the lease, or of their folder?

    Nobody can hold that; its owner may live all the same, but cannot put the lease back.
    """
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            return not stat.S_ISREG(runners.facts(nonce).st_mode)
    except (Unusable, NotADirectoryError):
        return True
    except OSError:
        return False


def is_held_here(nonce: str) -> bool:
    """Does this very process hold the lease?"""
    return (os.getpid(), nonce) in _HELD


def is_locked(runners: Folder, nonce: str) -> bool | None:
    """Does anybody hold the kernel lock on this file? None when nobody can tell. A look."""
    try:
        fd = runners.open(nonce, READ_FLAGS)
    except FileNotFoundError:
        return False
    except (Unusable, OSError):
        return None
    try:
        return not filelock.lock_descriptor(fd, blocking=False)
    except OSError:
        return None
    finally:
        os.close(fd)


def dead_leases(root: Path) -> list[str]:
    """The leases of processes that died without letting go."""
    try:
        with Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
            nonces = [name for name in runners.names() if _NONCE.fullmatch(name)]
            return [nonce for nonce in nonces if _is_dead(runners, nonce)]
    except OSError:
        return []


def _is_dead(runners: Folder, nonce: str) -> bool:
    """Nobody holds it, and its process is gone: a ledger may have come back as a copy, whose
    leases are locked again by their owners in a moment."""
    if is_locked(runners, nonce) is not False:
        return False
    try:
        said = msgspec.json.decode(runners.read(nonce, _CAP), type=_Said)
    except (OSError, Unusable, msgspec.MsgspecError, ValueError):
        return True
    if not (machine.same_host(said.host) and machine.same_boot(said.boot_id)):
        return True
    if said.pid == os.getpid():
        return not is_held_here(nonce)
    pid = machine.as_pid(said.pid)
    return pid is None or machine.is_process(pid, said.started_at) is not True


class _Said(msgspec.Struct, frozen=True):
    """What a lease file tells of its process."""

    host: str
    boot_id: str
    pid: int
    started_at: float


def was_dead(root: Path, nonce: str) -> bool:
    """Was this lease proved dead by this process, and then removed?"""
    return (str(root), nonce) in _DEAD


def bury(root: Path, nonces: list[str]) -> None:
    """Remove the lease files of processes that were proved dead."""
    _DEAD.update((str(root), nonce) for nonce in nonces)
    forget(root, nonces)


def forget(root: Path, nonces: list[str]) -> None:
    """Remove lease files that nobody holds any more."""
    with suppress(OSError), Folder.at(str(root)) as top, top.enter(RUNNERS) as runners:
        for nonce in nonces:
            runners.remove(nonce)


@contextmanager
def momentary(root: Path, lease: Lease | None) -> Iterator[Lease]:
    """`lease`, or one for this single operation (a cancel from the command line, say)."""
    if lease is not None:
        yield lease
        return
    own = Lease.acquire(root)
    try:
        yield own
    finally:
        own.release()


def make_root(root: Path) -> None:
    """Make the ledger's folder, and its parent, where they are missing.

    Raises:
        LedgerUnusable: something that is no folder is in the way, or no place to make it in.
        LedgerReadOnly, LedgerWriteFailed: the system refuses.
    """
    for folder in (root.parent, root):
        if folder.is_dir():
            continue
        # Asked again: another program that starts at this moment may just have made it.
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
            above.sync()  # what is acknowledged in it must not go with its name
