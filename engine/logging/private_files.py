"""Private files of the program outside of every ledger (log, settings, locks).

They are created 0700 and 0600 whatever the umask. No ledger or export uses this module.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def private_folder(folder: Path) -> Path:
    """Create `folder` and its missing parents, each for its owner alone.

    Raises:
        OSError: it cannot be created; also where no home folder is known.
    """
    if not folder.is_absolute():
        raise OSError(errno.ENOENT, "no home folder is known", str(folder))
    for place in (*reversed(folder.parents), folder):
        try:
            os.mkdir(place, 0o700)  # mkdir(parents=True) would leave the parents to the umask
        except OSError:
            if not place.is_dir():
                raise
    return folder


def private_file(file: Path) -> None:
    """Create `file`, empty, unless it exists, and close it to others. Raises OSError."""
    private_folder(file.parent)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
    finally:
        os.close(fd)


def keep_owner_access() -> None:
    """Remove the owner's bits from this process' umask, which would make new files useless."""
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask & 0o077)
