"""Results of crawls, not their speed: see `tests.support.far_limits`."""

from __future__ import annotations

import pytest

from tests.support.far_limits import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch, kept_browser: object) -> None:
    be_patient(monkeypatch)
