"""Checks of a ledger's file system: presence, write access of other users, and the type of disk.

It only reads. Findings become sentences for Doctor, the status bar and the terminal; nothing is
refused for them, because an operator may know better.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import psutil

from engine.ledger.files import Folder
from engine.ledger.lease import RUNNERS
from engine.model.errors import (
    EngineError,
    LedgerUnusable,
    LedgerWriteFailed,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.process_limits import is_shortage
from engine.model.records import META_NAME
from engine.text.messages import ENGLISH

# Local disks, whose locks and change notices come from this machine's kernel.
LOCAL: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2", "ufs"}
    | {"reiserfs", "tmpfs", "ramfs", "rootfs", "overlay", "aufs", "ecryptfs", "erofs", "squashfs"}
    | {
        "apfs",
        "hfs",
        "ntfs",
        "ntfs3",
        "refs",
        "fuseblk",
        "vfat",
        "exfat",
        "msdos",
        "fat32",
        "iso9660",
    }
)
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "webdav", "davfs", "9p"}
    | {"fuse.sshfs", "sshfs", "macfuse", "osxfuse", "afs", "coda", "ceph", "fuse.ceph", "glusterfs"}
    | {
        "fuse.glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ocfs2",
        "gfs2",
        "virtiofs",
        "vboxsf",
        "prl_fs",
    }
    | {"fuse.vmhgfs-fuse", "fuse.rclone", "fuse.s3fs", "fuse.davfs2", "remote"}
)

# Message ids of a concern: subject, sentence and advice.
Messages = tuple[str, str, str]
_OWNER: Messages = (
    "ground.owner.subject",
    "ground.owner",
    "ground.owner.advice",
)
_EVERYBODY: Messages = (
    "ground.everybody.subject",
    "ground.everybody",
    "ground.everybody.advice",
)
_GROUP: Messages = (
    "ground.group.subject",
    "ground.group",
    "ground.group.advice",
)
_PARENT: Messages = (
    "ground.parent.subject",
    "ground.parent",
    "ground.parent.advice",
)
_NETWORK_DISK: Messages = (
    "ground.disk.network.subject",
    "ground.disk.network",
    "ground.disk.network.advice",
)
_UNKNOWN_DISK: Messages = (
    "ground.disk.unknown.subject",
    "ground.disk.unknown",
    "ground.disk.unknown.advice",
)


@dataclass(frozen=True, slots=True)
class Concern:
    """Finding that makes a ledger less safe: one sentence and its advice."""

    subject: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text} {self.advice}".strip()


@dataclass(frozen=True, slots=True)
class Mount:
    """Mounted file system: mount point and type."""

    place: str
    kind: str


Mounts = Callable[[], Iterable[Mount]]


def mounts() -> Iterator[Mount]:
    """List every mounted file system; empty where the system does not list them."""
    try:
        found = psutil.disk_partitions(all=True)
    except (OSError, psutil.Error, NotImplementedError):
        return
    for one in found:
        remote = sys.platform == "win32" and "remote" in one.opts.split(",")
        yield Mount(one.mountpoint, "remote" if remote else one.fstype.lower())


def disk_kind(folder: Path, mounted: Mounts = mounts) -> str:
    """Return the file system type under `folder`, which may be missing; empty if unknown."""
    real = os.path.realpath(folder)
    if real.startswith("\\\\"):
        return "remote"  # a network share without a drive letter
    best = Mount("", "")
    for one in mounted():
        # Of two mounts at one place the later one is on top.
        if _contains(one.place, real) and len(one.place) >= len(best.place):
            best = one
    return best.kind


def disk_concern(folder: Path, mounted: Mounts = mounts) -> Concern | None:
    """Report a disk under `folder` that other machines may write to, or of unknown type."""
    kind = disk_kind(folder, mounted)
    if kind in LOCAL:
        return None
    messages = _NETWORK_DISK if kind in NETWORK else _UNKNOWN_DISK
    return _concern(messages, path=str(folder), kind=kind or "unknown")


def unreliable_notices(folder: Path, mounted: Mounts = mounts) -> str:
    """Explain why change notices are unreliable under `folder`; empty when they are reliable."""
    kind = disk_kind(folder, mounted)
    return "" if kind in LOCAL else ENGLISH["ground.disk.deaf"].format(kind=kind or "unknown")


def concerns(root: Path, home: Path) -> tuple[Concern, ...]:
    """All concerns about the location of a ledger and its home."""
    disk = disk_concern(root)
    return (*privacy_concerns(root, home), *([disk] if disk else []))


def privacy_concerns(*folders: Path) -> tuple[Concern, ...]:
    """Report other users that can write to these folders: they could plant tasks there.

    Empty on Windows, where modes mean nothing and profile folders are private.
    """
    if os.name != "posix":
        return ()
    found = [concern for folder in folders for concern in _shared(folder)]
    return tuple(dict.fromkeys(found))


def _shared(folder: Path) -> Iterator[Concern]:
    with suppress(OSError):  # a folder that is missing is judged by its parents only
        facts = os.stat(folder)
        if facts.st_uid != os.geteuid():
            yield _concern(_OWNER, path=str(folder), uid=facts.st_uid)
        if facts.st_mode & stat.S_IWOTH:
            yield _concern(_EVERYBODY, path=str(folder))
        elif facts.st_mode & stat.S_IWGRP:
            yield _concern(_GROUP, path=str(folder))
    above = _open_parent(Path(os.path.realpath(folder)))
    if above is not None:
        yield _concern(_PARENT, path=str(folder), above=str(above))


def _open_parent(folder: Path) -> Path | None:
    """Return the nearest parent folder in which any user may replace this one."""
    for above in folder.parents:
        try:
            mode = os.stat(above).st_mode
        except OSError:
            continue
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return above
    return None


def _contains(place: str, real: str) -> bool:
    place, real = os.path.normcase(place), os.path.normcase(real)
    return real == place or real.startswith(place.rstrip(os.sep) + os.sep)


def _concern(messages: Messages, **fields: object) -> Concern:
    subject, text, advice = (ENGLISH[message].format(**fields) for message in messages)
    return Concern(subject, text, advice)


_ABSENT_NAMES: Final = (
    *("ENOENT", "ENOTDIR", "ENODEV", "ENXIO", "EIO", "ESTALE", "ENOTCONN", "EREMOTEIO"),
    *("EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT"),
)
SILENT_WORDS: Final = "the ledger folder does not answer"
ANSWER_S: Final = 5.0  # a dead network mount never answers; it is reported after this time
_ABSENT: Final = frozenset(getattr(errno, name, errno.ENOENT) for name in _ABSENT_NAMES)


class Presence(StrEnum):
    """Location state of a task's folder.

    An unplugged drive, a network failure or a sync tool that moves a folder is no removal. The
    folder is held open, so that the system can distinguish a removed folder (link count 0) from one
    that was moved or unmounted. A root without `.runners` is another folder in its place: the mount
    point of an absent disk, or an emptied ledger.
    """

    THERE = "there"
    AWAY = "away"  # the folder or its ledger is not there now, and may come back
    REMOVED = "removed"  # the folder was deleted; its ledger is there


def may_be_away(error: EngineError) -> bool:
    """Return whether an absent folder can cause this error."""
    if isinstance(error, LedgerWriteFailed):
        cause = error.__cause__
        return isinstance(cause, OSError) and cause.errno in _ABSENT
    return isinstance(error, TaskNotFound | LedgerUnusable | TaskUnreadable)


class FolderProbe:
    """Probe folders in a daemon thread, because a dead network mount never answers.

    The caller waits no longer than it wants, and the thread keeps no program alive.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._thread = threading.Thread(target=self._probe, name="ask for a folder", daemon=True)
        self._thread.start()

    def responded(self, within_s: float) -> bool:
        """Wait for the probe; True when the system answered, with any result."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _probe(self) -> None:
        for folder in self._folders:
            with suppress(OSError), os.scandir(folder) as found:
                next(found, None)


def is_missing(root: Path) -> bool:
    """Return whether a ledger's folder is missing, or empty like a mount point."""
    try:
        with os.scandir(root) as found:
            return next(found, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False  # the code that opens the folder reports the reason


class HeldFolder:
    """Folder of one task, held open until `close`. For worker threads, one at a time."""

    def __init__(self, root: Path, task_id: str) -> None:
        self._root, self._task_id = root, task_id
        self._held: Folder | None = None
        self._was_present = False
        self.replaced = False  # another folder has replaced the first one
        with suppress(OSError):
            self.check()

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def check(self) -> Presence:
        """Return where the folder is now; one that came back is held from then on."""
        try:
            top = Folder.at(str(self._root))
        except OSError as error:  # without a descriptor nothing is known of the folder
            return Presence.THERE if is_shortage(error) else Presence.AWAY
        with top:
            try:
                found = top.enter(self._task_id)
            except OSError as error:
                return Presence.THERE if is_shortage(error) else self._judge(top)
            if not found.has(META_NAME):  # half removed, or half copied back
                found.close()
                return Presence.AWAY
            self._keep_open(found)
            return Presence.THERE

    def _judge(self, top: Folder) -> Presence:
        if not top.has(RUNNERS) or top.has(self._task_id):  # the second case is a link or a file
            return Presence.AWAY
        if self._held is None or self._held.fd is None:
            return Presence.AWAY if self._was_present else Presence.REMOVED
        try:
            return Presence.AWAY if os.fstat(self._held.fd).st_nlink else Presence.REMOVED
        except OSError:
            return Presence.AWAY

    def _keep_open(self, found: Folder) -> None:
        self._was_present = True
        held = self._held
        if held is not None and _same(held, found):
            found.close()
            return
        self.replaced = self.replaced or held is not None
        self._held = found
        if held is not None:
            held.close()


def _same(held: Folder, found: Folder) -> bool:
    if held.fd is None or found.fd is None:
        return True
    try:
        return os.path.samestat(os.fstat(held.fd), os.fstat(found.fd))
    except OSError:
        return False
