"""`octask` for tests, on a home that goes away again."""

from pathlib import Path

import pytest

from tests.cli.program import Octask


@pytest.fixture
def octask(home: Path) -> Octask:
    return Octask(home)
