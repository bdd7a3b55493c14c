"""The short form of every hard rig keeps the promises of the long form."""

from __future__ import annotations

import pytest

from tests.hard.__main__ import measure, rigs
from tests.hard.figures import RigUnavailable

QUICK = ("kill_ledger", "fail_syscalls", "cancel", "wait")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.thorough) for one in rigs()],
)
def test_the_short_form_of_a_rig_keeps_what_is_promised(name: str) -> None:
    try:
        figures = measure(name, short=True)
    except RigUnavailable as error:
        pytest.skip(str(error))
    assert figures.facts
    assert not figures.misses
