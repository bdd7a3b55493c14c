"""A loaded `octask` for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.loaded_octask import Loaded


@pytest.fixture(scope="module")
def octask() -> Iterator[Loaded]:
    with Loaded() as program:
        yield program
