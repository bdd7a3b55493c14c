"""What the program does differently when it is packaged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.cli.mcp_command import own_program
from engine.service.worker_process import HIDDEN_VERB, worker_command


@pytest.mark.parametrize("program", ["openchrome-monitor", "octask", "octask.exe"])
def test_a_worker_is_the_command_line_program_of_the_same_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / program))
    suffix = Path(program).suffix
    assert worker_command() == [str(tmp_path / f"octask{suffix}"), HIDDEN_VERB]


def test_a_packaged_program_names_itself_to_hosts(tmp_path: Path) -> None:
    program = str(tmp_path / "octask")
    assert next(iter(own_program("octask", program, frozen=True))) == program
