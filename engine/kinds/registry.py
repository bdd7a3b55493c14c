"""The kinds this engine can run, by name."""

from __future__ import annotations

import importlib

from engine.kinds.commands.commands_kind import COMMANDS
from engine.kinds.crawl.crawl_kind import CRAWL
from engine.kinds.evidence.evidence_kind import EVIDENCE
from engine.kinds.recording.recording_kind import RECORDING
from engine.kinds.sitemap.sitemap_crawl import CRAWL_SITEMAP
from engine.kinds.snapshot.snapshot_kind import SNAPSHOT
from engine.kinds.spec import KindSpec
from engine.model.errors import InvalidArguments, Problem
from engine.model.kind_traits import TRAITS, KindTraits
from engine.model.records import ENVELOPE

ALL = (CRAWL, CRAWL_SITEMAP, RECORDING, EVIDENCE, SNAPSHOT, COMMANDS)  # in the order of forms
KINDS: dict[str, KindSpec] = {kind.name: kind for kind in ALL}

# What the first crawl would import on the loop: 0.6 s together, too long for a window.
_LIBRARIES = ("aiohttp", "selectolax.lexbor", "html_to_markdown")


def register(kind: KindSpec) -> None:
    """Add a kind at run time; every face offers it from then on."""
    if kind.name in KINDS:
        raise ValueError(kind.name)  # a mistake of the program: the name is taken
    KINDS[kind.name] = kind
    TRAITS[kind.name] = kind.traits or KindTraits(kind.name)


def unregister(name: str) -> None:
    """Remove a kind that `register` added."""
    del KINDS[name], TRAITS[name]


def import_libraries() -> None:
    """Import what the bodies import when they begin; for a worker thread, ahead of time."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def kind_of(name: str) -> KindSpec:
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
