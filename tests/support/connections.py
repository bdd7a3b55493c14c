"""The two connections to the browser, for tests of what pages do over each."""

from __future__ import annotations

import pytest

# One set of scripts reads pages over both, and most tests of pages use Playwright's anyway.
BOTH_CONNECTIONS = pytest.mark.parametrize(
    "direct",
    [
        pytest.param(True, id="direct"),
        pytest.param(False, id="playwright", marks=pytest.mark.thorough),
    ],
)
