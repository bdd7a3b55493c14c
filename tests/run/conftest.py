"""What a task comes to, not how soon it has to: see `tests.patience`."""

from __future__ import annotations

import pytest

from tests.patience import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
