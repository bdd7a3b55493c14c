"""Display names of facet groups and facets."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from engine.model.display import display
from engine.text import words
from gui.tasks.facets import (
    AGE,
    BUDGET,
    HOST,
    KIND,
    OLDER,
    OWN,
    ROOT,
    STATUS,
    FacetCounts,
    group_of,
)

VIEWS = "views"


def group_name(group: str) -> str:
    """Return the heading of a group."""
    names = {
        VIEWS: QCoreApplication.translate("Facets", "Views"),
        STATUS: QCoreApplication.translate("Facets", "Status"),
        ROOT: words.say("column.root"),
        KIND: QCoreApplication.translate("Facets", "Kind"),
        HOST: QCoreApplication.translate("Facets", "Host"),
        BUDGET: QCoreApplication.translate("Facets", "Budget"),
        AGE: QCoreApplication.translate("Facets", "Age"),
    }
    return names[group]


def facet_name(facet: str, facets: FacetCounts) -> str:
    """Return the name of a facet; kinds and hosts keep the spelling of their tasks."""
    if group_of(facet) == STATUS:
        return words.say(f"facet.{facet}")
    names = {
        OWN: words.say("root.here"),
        "age:<1h": QCoreApplication.translate("Facets", "Last hour"),
        "age:<1d": QCoreApplication.translate("Facets", "Last day"),
        "age:<7d": QCoreApplication.translate("Facets", "Last 7 days"),
        OLDER: QCoreApplication.translate("Facets", "Older than 7 days"),
        "budget:ok": QCoreApplication.translate("Facets", "Within budget"),
        "budget:near": QCoreApplication.translate("Facets", "Near a budget"),
        "budget:exceeded": QCoreApplication.translate("Facets", "Budget exceeded"),
    }
    return names.get(facet) or display(facets.value_of(facet))
