"""File sizes in words."""

from __future__ import annotations

from engine.text.catalogue import decimal

_STEP, _UNITS = 1_000, ("B", "kB", "MB", "GB", "TB")


def size_words(size_bytes: float) -> str:
    """Format `512 B`, `3.4 MB`: in steps of 1,000, as `--max-size` counts."""
    step = 0
    while size_bytes >= _STEP and step < len(_UNITS) - 1:
        size_bytes /= _STEP
        step += 1
    digits = 1 if step and size_bytes < 10 else 0
    return f"{decimal(size_bytes, digits)} {_UNITS[step]}"
