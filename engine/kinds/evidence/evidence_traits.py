"""The traits of an evidence bundle."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

EVIDENCE_TRAITS: Final = KindTraits(
    "oc_evidence_bundle",
    "parts",
    "parts",
    summary=False,
    own_id=("bundle_id", "bundle"),
    address_list=True,
    in_browser=True,
    watch_page=True,
)
