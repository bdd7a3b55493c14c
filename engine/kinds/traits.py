"""Register the traits of every kind that can run here."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import TRAITS, KindTraits

COMMANDS_TRAITS: Final = KindTraits(
    "commands",
    "commands",
    "steps",
    "commands",
    steps=True,
    summary=False,
    in_browser=True,
    watch_page=True,
    query_words=("command",),
)


CRAWL_TRAITS: Final = KindTraits(
    "crawl",
    "pages",
    "globe",
    "pages",
    crawls=True,
    follows_links=True,
    address_list=True,
    contract=True,
    in_browser=True,
    watch_page=True,
)


SITEMAP_TRAITS: Final = KindTraits(
    "crawl_sitemap",
    "pages",
    "list",
    "pages",
    crawls=True,
    address_list=True,
    contract=True,
    in_browser=True,
    watch_page=True,
    query_words=("sitemap",),
)


RECORDING_TRAITS: Final = KindTraits(
    "recording",
    "actions",
    "record",
    "actions",
    summary=False,
    own_id=("recording_id", "rec"),
    agent_driven=True,
    stoppable=True,
    replayable=True,
    in_browser=True,
    opens_window=True,
    # no watch_page: it has its own window, and typed text must not be repeated
    unit_screenshots=True,
    ended_message="ended.recording",
    cancelling_message="why.cancelling.recording",
    verbs_help="What a recording can become.",
)


EVIDENCE_TRAITS: Final = KindTraits(
    "oc_evidence_bundle",
    "parts",
    "camera",
    "parts",
    summary=False,
    own_id=("bundle_id", "bundle"),
    address_list=True,
    in_browser=True,
    watch_page=True,
    query_words=("evidence", "bundle"),
)


SNAPSHOT_TRAITS: Final = KindTraits(
    "oc_session_snapshot",
    "tabs",
    "tabs",
    "tabs",
    summary=False,
    own_id=("snapshot_id", "snap"),
    in_browser=True,
    watch_page=True,
    query_words=("snapshot",),
)


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
