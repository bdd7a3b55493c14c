"""The only file writer of the ledger, and its only strict reader.

Folders are opened once and files are named relative to them, so that nothing below a folder can be
swapped for a link between a check and its use. A file is written under a temp name and renamed:
after any failure the old file is intact and no temp file remains. Where the platform has no such
calls (Windows) the same steps use paths.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import Final

from engine.model.errors import (
    EngineError,
    LedgerFileTooLarge,
    LedgerOutOfFiles,
    LedgerReadOnly,
    LedgerUnusable,
    LedgerWriteFailed,
    WriteOutOfFiles,
)
from engine.model.process_limits import is_shortage


def read_fully(fd: int, size: int) -> bytes:
    """Read `size` bytes from the current offset, or fewer at the end of the file."""
    data = os.read(fd, size + 1)
    if len(data) >= size:
        return data[:size]
    parts = [data]
    left = size - len(data)
    while left and (more := os.read(fd, left)):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def write_fully(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def last_byte(fd: int, size: int) -> bytes:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1)


MIB = 1024 * 1024
LINK_REASON = "refusing to follow a link"
SHAPE_REASON = "not a regular file"

HAS_DIR_FD: Final = {
    os.open,
    os.mkdir,
    os.rename,
    os.unlink,
    os.stat,
    os.rmdir,
} <= os.supports_dir_fd
_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe in a file's place must not block us
    | getattr(os, "O_NOCTTY", 0)
)
READ_FLAGS: Final = os.O_RDONLY | _SAFE
NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
APPEND_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | _SAFE
LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | _SAFE
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_LINK_ERRNOS = {errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP)}
_SHAPE_ERRNOS = {errno.ENXIO, errno.EISDIR, errno.ENODEV}
_READ_ONLY_ERRNOS = {errno.EROFS, errno.EACCES, errno.EPERM}
_NAME_SURROGATE = 0x2000_0000  # of reparse tags: the name stands for another file or folder
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}  # some network and FUSE file systems


class Unusable(Exception):
    """A file in the ledger has an invalid type or content; `str()` gives the reason."""


class Unflushed(OSError):
    """The new file is in place, but its folder could not be flushed: a loss of power may restore
    the old one, so the write must not be acknowledged."""


def write_error(error: OSError, path: str) -> EngineError:
    """Convert `error` to an engine error; a full disk is named in its reason."""
    if error.errno in _READ_ONLY_ERRNOS:
        return LedgerReadOnly(path=path)
    reason = LINK_REASON if error.errno in _LINK_ERRNOS else error.strerror or str(error)
    if error.errno == errno.EFBIG:
        return LedgerFileTooLarge(reason=reason, path=path)
    if is_shortage(error):
        return WriteOutOfFiles(reason=reason, path=path)
    return LedgerWriteFailed(reason=reason, path=path)


def unusable(error: OSError, path: str, reason: str = "") -> LedgerUnusable:
    """Convert a failed read of a folder to an engine error; a lack of descriptors is named."""
    kind = LedgerOutOfFiles if is_shortage(error) else LedgerUnusable
    return kind(path=path, reason=reason or error.strerror or str(error))


def refusal(error: OSError) -> Exception:
    """Convert an error of `open`: Unusable for a link or another file type, else `error` itself."""
    if error.errno in _LINK_ERRNOS:
        return Unusable(LINK_REASON)
    if error.errno in _SHAPE_ERRNOS:
        return Unusable(SHAPE_REASON)
    return error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Convert a failed write to `LedgerReadOnly` or `LedgerWriteFailed`, with its reason."""
    try:
        yield
    except Unusable as error:
        raise LedgerWriteFailed(reason=str(error), path=path) from error
    except OSError as error:
        raise write_error(error, path) from error


class Folder:
    """Open directory: every name is resolved in it and nowhere else."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int | None) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def at(cls, path: str) -> Folder:
        """Open the folder at `path`, following links, because the user chose it. Raises OSError."""
        if HAS_DIR_FD:
            return cls(path, os.open(path, _FOLDER_FLAGS))
        if not os.path.isdir(path):
            code = errno.ENOTDIR if os.path.exists(path) else errno.ENOENT
            raise OSError(code, os.strerror(code), path)
        return cls(path, None)

    def enter(self, name: str) -> Folder:
        """Open the folder `name` in this one. Raises OSError, also for a link or a file."""
        path = os.path.join(self.path, name)
        if HAS_DIR_FD:
            return Folder(path, os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=self._fd))
        facts = os.lstat(path)
        # A Windows junction looks like a plain folder except for its reparse tag. A folder that
        # OneDrive keeps has a tag too, but leads nowhere else.
        elsewhere = getattr(facts, "st_reparse_tag", 0) & _NAME_SURROGATE
        if not stat.S_ISDIR(facts.st_mode) or elsewhere:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return Folder(path, None)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def fd(self) -> int | None:
        """File descriptor of the directory, for hot loops; None where the platform has none."""
        return self._fd

    def _at(self, name: str) -> str:
        return name if HAS_DIR_FD else os.path.join(self.path, name)

    def names(self) -> list[str]:
        return os.listdir(self._fd if self._fd is not None else self.path)

    def scan(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """Iterate over every entry, with the facts that the directory itself stores."""
        return os.scandir(self._fd if self._fd is not None else self.path)

    def facts(self, name: str) -> os.stat_result:
        """`lstat` of one name. Raises OSError."""
        return os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)

    def has(self, name: str) -> bool:
        try:
            self.facts(name)
        except OSError:
            return False
        return True

    def open(self, name: str, flags: int) -> int:
        """Return a descriptor of the regular file `name`. Raises Unusable for other types,
        OSError."""
        if not HAS_DIR_FD and self.has(name) and not stat.S_ISREG(self.facts(name).st_mode):
            raise Unusable(SHAPE_REASON)
        try:
            fd = os.open(self._at(name), flags, 0o600, dir_fd=self._fd)
        except OSError as error:
            raise refusal(error) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Unusable(SHAPE_REASON)
        return fd

    def read(self, name: str, cap: int) -> bytes:
        """Read a regular file of at most `cap` bytes. Raises Unusable, OSError."""
        fd = self.open(name, READ_FLAGS)
        try:
            size = os.fstat(fd).st_size
            if size > cap:
                raise Unusable(f"larger than {cap // MIB} MiB")
            return read_fully(fd, size)
        finally:
            os.close(fd)

    def write_new(self, name: str, data: bytes) -> None:
        """Create and flush a file in a folder that is not published yet. Raises FileExistsError,
        OSError."""
        fd = self.open(name, NEW_FLAGS)
        try:
            write_fully(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(
        self,
        name: str,
        chunks: Iterable[bytes],
        *,
        temp: str,
        durable: bool,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Replace `name` atomically; `check` may still refuse just before the rename.

        The file is flushed before the rename, so that a loss of power leaves the old one or the new
        one, and never an empty one; `durable` also flushes the folder after it. A failed flush is a
        failed write and is not retried: the system has dropped the data. Raises Unflushed, an
        OSError, where only the last flush failed: the new file is in place.
        """
        fd = self.open(temp, NEW_FLAGS)
        try:
            try:
                for chunk in chunks:
                    write_fully(fd, chunk)
                os.fsync(fd)
            finally:
                os.close(fd)
            check()
            self._rename_over(temp, name)
        except BaseException:
            self.remove(temp)
            raise
        if durable:
            try:
                self.sync()
            except OSError as error:
                raise Unflushed(error.errno, error.strerror, name) from error

    def _rename_over(self, temp: str, name: str) -> None:
        for attempt in range(10, -1, -1):
            try:
                os.replace(self._at(temp), self._at(name), src_dir_fd=self._fd, dst_dir_fd=self._fd)
                return
            except PermissionError:
                # Windows refuses while the old file is open; readers close at once.
                if os.name != "nt" or not attempt:
                    raise
                time.sleep(0.02)

    def append(self, name: str, data: bytes, *, heal: bool, durable: bool = False) -> None:
        """Append `data` by one write; with `heal` a torn last line is ended first.

        Raises Unusable, or OSError; then a torn line may remain, so heal on the next try.
        """
        fd = self.open(name, APPEND_FLAGS)
        try:
            if heal and (size := os.fstat(fd).st_size) and last_byte(fd, size) != b"\n":
                data = b"\n" + data
            if os.write(fd, data) != len(data):
                os.write(fd, b"\n")  # raises why there was no room: disk, quota, or size of a file
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    def append_whole(self, name: str, data: bytes, size: int) -> int:
        """Write `data` behind the first `size` bytes, over the part of an interrupted write.

        Returns the new size. Raises Unusable, also for a file that is shorter; OSError.
        """
        fd = self.open(name, LOCK_FLAGS)
        try:
            found = os.fstat(fd).st_size
            if found < size:
                raise Unusable("another program has shortened it")
            if found > size:
                os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
            write_fully(fd, data)
        finally:
            os.close(fd)
        return size + len(data)

    def make_folder(self, name: str, mode: int = 0o700) -> None:
        os.mkdir(self._at(name), mode, dir_fd=self._fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(self._at(name), dir_fd=self._fd)

    def rename(self, old: str, new: str) -> None:
        os.rename(self._at(old), self._at(new), src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Unlink a file; one that is gone or cannot be removed is left."""
        with suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._fd)

    def sync(self) -> None:
        """Make renames in this folder outlast a loss of power (Windows has no such call)."""
        if self._fd is None:
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise

    def is_writable(self) -> bool:
        if self._fd is None:
            return os.access(self.path, os.W_OK)
        return os.access(".", os.W_OK, dir_fd=self._fd)
