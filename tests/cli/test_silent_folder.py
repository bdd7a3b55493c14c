"""`octask` on a folder that does not answer: it says so within seconds, and ends."""

from __future__ import annotations

import sys

import pytest

from tests.support.dead_mount import dead_mount
from tests.support.octask import LIMIT_S, Octask, said_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts by FUSE")


@pytest.mark.thorough
@pytest.mark.case("R98")
def test_a_silent_folder_is_reported_soon(octask: Octask, monkeypatch: pytest.MonkeyPatch) -> None:
    root = octask.home / "tasks"
    root.mkdir(parents=True)
    monkeypatch.setenv("OC_LEDGER_AWAY_S", "0.5")
    with dead_mount(root):
        for words in (["list"], ["get", "a" * 16], ["watch", "--once"], ["reap"], ["doctor"]):
            said = octask(*words, code=1)
            assert "does not answer" in said, words


@pytest.mark.case("R98")
def test_a_folder_that_answers_late_is_waited_for(octask: Octask) -> None:
    root = octask.home / "tasks"
    root.mkdir(parents=True)
    with dead_mount(root):
        program = octask.start("list")
        assert program.stderr is not None
        said_until(program.stderr, f"does not answer yet, waiting: {root}")
        assert program.poll() is None
    _, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0, errors
