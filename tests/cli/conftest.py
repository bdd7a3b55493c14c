"""`octask` for tests, on a home that goes away again."""

from pathlib import Path

import pytest

from tests.support.octask import Octask


@pytest.fixture
def octask(home: Path) -> Octask:
    return Octask(home)
