"""Results of the kinds, not their speed: see `tests.support.far_limits`."""

from __future__ import annotations

import pytest

from tests.support.far_limits import FAR_S, be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr("engine.browser.interact.agent_tab.CLOSE_S", FAR_S)
