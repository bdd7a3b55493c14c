"""Registry of the kinds that this engine can run."""

from __future__ import annotations

import difflib
import importlib

from engine.kinds.commands.commands_kind import COMMANDS
from engine.kinds.crawl.crawl_kind import CRAWL
from engine.kinds.evidence_kind import EVIDENCE
from engine.kinds.recording.recording_kind import RECORDING
from engine.kinds.sitemap.sitemap_crawl import CRAWL_SITEMAP
from engine.kinds.snapshot_kind import SNAPSHOT
from engine.kinds.spec import KindSpec
from engine.model.errors import InvalidArguments, Problem
from engine.model.kind_traits import TRAITS, KindTraits
from engine.model.records import ENVELOPE

ALL = (CRAWL, CRAWL_SITEMAP, RECORDING, EVIDENCE, SNAPSHOT, COMMANDS)  # in the order of the forms
KINDS: dict[str, KindSpec] = {kind.name: kind for kind in ALL}

# The first crawl would import these on the loop: together 0.6 s, which would block the window.
_LIBRARIES = ("aiohttp", "selectolax.lexbor", "html_to_markdown")


def register(kind: KindSpec) -> None:
    """Register a kind at run time; every interface offers it from then on."""
    if kind.name in KINDS:
        raise ValueError(kind.name)  # a programming error: the name is in use
    KINDS[kind.name] = kind
    TRAITS[kind.name] = kind.traits or KindTraits(kind.name)


def unregister(name: str) -> None:
    """Remove a kind that `register` added."""
    del KINDS[name], TRAITS[name]


def import_libraries() -> None:
    """Import the libraries of the bodies in advance; call it on a worker thread."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def kind_of(name: str) -> KindSpec:
    """Return the kind called `name`.

    Raises:
        InvalidArguments: no kind of that name is registered.
    """
    kind = KINDS.get(name)
    if kind is None:
        names = sorted({*KINDS, ENVELOPE})
        message = f"'{name}' cannot be started here (known: {', '.join(names)})"
        if near := difflib.get_close_matches(name[:64], names, n=1):
            message += f"; did you mean {near[0]}?"
        raise InvalidArguments((Problem("kind", "unknown_kind", message),))
    return kind
