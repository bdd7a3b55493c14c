"""Results of tasks, not their speed: see `tests.support.far_limits`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.far_limits import be_patient
from tests.support.login_site import LoginSite


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def login_site() -> Iterator[LoginSite]:
    with LoginSite().running() as site:
        yield site
