"""The short form of every hard rig keeps the promises of the long form."""

from __future__ import annotations

import pytest

from tests.hard.__main__ import measure, rigs


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", rigs())
def test_the_short_form_of_a_rig_keeps_what_is_promised(name: str) -> None:
    figures = measure(name, short=True)
    assert figures.facts
    assert not figures.misses
