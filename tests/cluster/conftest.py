"""Results of clusters, not their speed: see `tests.support.far_limits`."""

from __future__ import annotations

import pytest

from engine.cluster import cluster_connection, worker_pool
from engine.cluster.wire import Wire
from tests.support.far_limits import FAR_S, be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is lost, and no page fails, because a process stood still for some seconds."""
    be_patient(monkeypatch)
    monkeypatch.setattr("engine.browser.interact.agent_tab.CLOSE_S", FAR_S)
    for limit in ("CONNECT_S", "CALL_S", "FIRST_S"):
        monkeypatch.setattr(worker_pool, limit, FAR_S)
    monkeypatch.setattr(cluster_connection, "START_S", FAR_S)
    # The time limit of a connection is the default of a parameter.
    monkeypatch.setattr(Wire.__dict__["open"].__func__, "__defaults__", (FAR_S,))
