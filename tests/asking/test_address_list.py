"""Many addresses at once: which are the same, which are none."""

from __future__ import annotations

from engine.service.forms import Sorting

SITE = "https://a.test/"


def test_routes_are_told_apart_and_places_in_a_page_are_not() -> None:
    lines = [f"{SITE}#/b", f"{SITE}#/c", SITE, f"{SITE}#top", f"{SITE}#/b#top", "a.test"]
    sorting = Sorting()
    for line, text in enumerate(lines, 1):
        sorting.add(line, text)
    found = sorting.found
    assert found.urls == (f"{SITE}#/b", f"{SITE}#/c", SITE)
    assert found.doubles == 2
    assert [refused.line for refused in found.refused] == [6]
