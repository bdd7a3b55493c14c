"""The kinds this engine can run, by name."""

from __future__ import annotations

import importlib

from engine.errors import InvalidArguments, Problem
from engine.records import ENVELOPE
from engine.run.command_tasks import COMMANDS
from engine.run.crawls import CRAWL
from engine.run.evidences import EVIDENCE
from engine.run.kind import Kind
from engine.run.recordings import RECORDING
from engine.run.sitemaps import CRAWL_SITEMAP
from engine.run.snapshots import SNAPSHOT

ALL = (CRAWL, CRAWL_SITEMAP, COMMANDS, RECORDING, EVIDENCE, SNAPSHOT)
KINDS: dict[str, Kind] = {kind.name: kind for kind in ALL}

# What the first crawl would import on the loop: 0.6 s together, too long for a window.
_LIBRARIES = ("aiohttp", "selectolax.lexbor", "html_to_markdown")


def import_libraries() -> None:
    """Import what the bodies import when they begin; for a worker thread, ahead of time."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def kind_of(name: str) -> Kind:
    """The kind called `name`.

    Raises:
        InvalidArguments: nothing of that name can be run here.
    """
    kind = KINDS.get(name)
    if kind is None:
        known = ", ".join(sorted({*KINDS, ENVELOPE}))
        raise InvalidArguments(
            (Problem("kind", "unknown_kind", f"'{name}' cannot be started here (known: {known})"),)
        )
    return kind
