"""Register the traits of every kind that can run here."""

from __future__ import annotations

from typing import Final

from engine.kinds.commands.commands_traits import COMMANDS_TRAITS
from engine.kinds.crawl.crawl_traits import CRAWL_TRAITS
from engine.kinds.evidence.evidence_traits import EVIDENCE_TRAITS
from engine.kinds.recording.recording_traits import RECORDING_TRAITS
from engine.kinds.sitemap.sitemap_traits import SITEMAP_TRAITS
from engine.kinds.snapshot.snapshot_traits import SNAPSHOT_TRAITS
from engine.model.kind_traits import TRAITS

# In the display order of the forms.
ALL_TRAITS: Final = (
    CRAWL_TRAITS,
    SITEMAP_TRAITS,
    RECORDING_TRAITS,
    EVIDENCE_TRAITS,
    SNAPSHOT_TRAITS,
    COMMANDS_TRAITS,
)
TRAITS.update((one.name, one) for one in ALL_TRAITS)
