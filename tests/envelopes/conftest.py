"""A real ledger with the lease of this very process, and the envelopes in it."""

from __future__ import annotations

import pytest

from engine.budgets.envelopes import Envelopes
from engine.ledger.ledger import Ledger
from tests.support.owned_ledger import lease, ledger, root

__all__ = ["lease", "ledger", "root"]


@pytest.fixture
def envelopes(ledger: Ledger) -> Envelopes:
    return Envelopes(ledger)
