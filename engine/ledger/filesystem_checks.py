"""The ground that a ledger stands on: who else may write there, and what kind of disk it is.

It only looks. What is wrong becomes sentences for Doctor, the status bar and the terminal;
nothing is refused for it, because an operator may know better.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from engine.text.messages import ENGLISH

# Disks of this machine, whose locks and change notices are the kernel's own.
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

# The messages of a concern: what it is about, the sentence, and the way out.
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
    """What makes a ledger less safe than it should be: one sentence, and the way out of it."""

    subject: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text} {self.advice}".strip()


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system: where, and of which type."""

    place: str
    kind: str


Mounts = Callable[[], Iterable[Mount]]


def mounts() -> Iterator[Mount]:
    """Everything that is mounted here, as the system tells it; nothing where it does not."""
    try:
        found = psutil.disk_partitions(all=True)
    except (OSError, psutil.Error, NotImplementedError):
        return
    for one in found:
        remote = sys.platform == "win32" and "remote" in one.opts.split(",")
        yield Mount(one.mountpoint, "remote" if remote else one.fstype.lower())


def disk_kind(folder: Path, mounted: Mounts = mounts) -> str:
    """The type of the file system under `folder`, which need not be there; empty if unknown."""
    real = os.path.realpath(folder)
    if real.startswith("\\\\"):
        return "remote"  # a share without a letter of its own
    best = Mount("", "")
    for one in mounted():
        # Of two at one place the later one lies on top.
        if _holds(one.place, real) and len(one.place) >= len(best.place):
            best = one
    return best.kind


def disk_concern(folder: Path, mounted: Mounts = mounts) -> Concern | None:
    """What is to be said of the disk under `folder`: other machines may write there too."""
    kind = disk_kind(folder, mounted)
    if kind in LOCAL:
        return None
    messages = _NETWORK_DISK if kind in NETWORK else _UNKNOWN_DISK
    return _concern(messages, path=str(folder), kind=kind or "unknown")


def deaf_disk(folder: Path, mounted: Mounts = mounts) -> str:
    """Why notices of changes cannot be relied upon under `folder`; empty when they can."""
    kind = disk_kind(folder, mounted)
    return "" if kind in LOCAL else ENGLISH["ground.disk.deaf"].format(kind=kind or "unknown")


def concerns(root: Path, home: Path) -> tuple[Concern, ...]:
    """All that is to be said of where a ledger and its home lie."""
    disk = disk_concern(root)
    return (*privacy_concerns(root, home), *([disk] if disk else []))


def privacy_concerns(*folders: Path) -> tuple[Concern, ...]:
    """Who but this user could change what is in these folders. Others could plant tasks there.

    Where modes mean nothing (Windows) there is nothing to say: profile folders are private.
    """
    if os.name != "posix":
        return ()
    found = [concern for folder in folders for concern in _shared(folder)]
    return tuple(dict.fromkeys(found))


def _shared(folder: Path) -> Iterator[Concern]:
    with suppress(OSError):  # one that is not made yet has nothing but its place
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
    """The nearest folder above in which anybody may put another in this one's place."""
    for above in folder.parents:
        try:
            mode = os.stat(above).st_mode
        except OSError:
            continue
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return above
    return None


def _holds(place: str, real: str) -> bool:
    place, real = os.path.normcase(place), os.path.normcase(real)
    return real == place or real.startswith(place.rstrip(os.sep) + os.sep)


def _concern(messages: Messages, **fields: object) -> Concern:
    subject, text, advice = (ENGLISH[message].format(**fields) for message in messages)
    return Concern(subject, text, advice)
