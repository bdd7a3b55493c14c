"""The program's own files outside of every ledger (log, settings, locks): its owner's alone.

They are made 0700 and 0600 whatever the umask says. Nothing here is a ledger's or an export.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def private_folder(folder: Path) -> Path:
    """Make `folder` and what is missing above it, each for its owner alone.

    Raises:
        OSError: it cannot be made; also where no home folder is known, and so no place.
    """
    if not folder.is_absolute():
        raise OSError(errno.ENOENT, "no home folder is known", str(folder))
    for place in (*reversed(folder.parents), folder):
        try:
            os.mkdir(place, 0o700)  # mkdir(parents=True) would leave those above to the umask
        except OSError:
            if not place.is_dir():
                raise
    return folder


def private_file(file: Path) -> None:
    """Make `file`, empty, unless it is there, and close it to others. Raises OSError."""
    private_folder(file.parent)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
    finally:
        os.close(fd)
