"""The tables of states against the seeds' own diagrams, and every walk through them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.errors import TransitionError
from engine.model.lifecycle import COMMAND, COMMAND_TASK, LEDGER, RUN, TASK_RUN, Machine

# As the seeds draw them, one step a line, typed from them and not from the code.
DIAGRAMS: dict[str, tuple[Machine, str]] = {
    "ledger (seed 000)": (
        LEDGER,
        """
        PENDING > RUNNING > COMPLETED
        RUNNING > FAILED
        RUNNING > CANCELLED
        PENDING > CANCELLED
        PENDING > FAILED
        """,
    ),
    "command task (seed 002)": (
        COMMAND_TASK,
        """
        queued > running > completed
        running > failed
        running > cancelled
        queued > cancelled
        queued > failed
        """,
    ),
    "command (seed 002)": (
        COMMAND,
        """
        pending > running > success
        running > error
        pending > skipped
        running > skipped
        """,
    ),
    "run (seed 003)": (
        RUN,
        """
        pending > running > completed
        pending > aborted
        pending > failed
        running > aborted
        running > failed
        """,
    ),
    "task run (seed 001)": (
        TASK_RUN,
        """
        PENDING > RUNNING > COMPLETED
        PENDING > NEEDS_HELP > COMPLETED
        PENDING > COMPLETED
        PENDING > FAILED
        PENDING > CANCELLED
        RUNNING > RUNNING
        RUNNING > NEEDS_HELP
        RUNNING > FAILED
        RUNNING > CANCELLED
        NEEDS_HELP > RUNNING
        NEEDS_HELP > NEEDS_HELP
        NEEDS_HELP > FAILED
        NEEDS_HELP > CANCELLED
        """,
    ),
}


def steps(diagram: str) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for line in diagram.split("\n"):
        states = [state.strip() for state in line.split(">") if state.strip()]
        found |= set(itertools.pairwise(states))
    return found


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_table_of_states_is_the_seeds_diagram(name: str) -> None:
    machine, diagram = DIAGRAMS[name]
    drawn = steps(diagram)
    assert {(str(a), str(b)) for a, after in machine.steps.items() for b in after} == drawn
    sources = {source for source, _ in drawn}
    ends = {target for _, target in drawn} - sources
    assert {str(state) for state in machine.steps if machine.is_terminal(state)} == ends


@given(st.sampled_from(sorted(DIAGRAMS)), st.data())
def test_no_walk_leaves_its_diagram_and_an_end_stays_an_end(name: str, data: st.DataObject) -> None:
    machine, diagram = DIAGRAMS[name]
    states = sorted(machine.steps)
    wishes = data.draw(st.lists(st.sampled_from([*states, "", "running ", "Completed"])))
    state, ended = str(states[0]), False
    for wish in wishes:
        allowed = (state, str(wish)) in steps(diagram)
        try:
            machine.check("it", state, wish)
        except TransitionError:
            assert not allowed
            continue
        assert allowed
        assert not ended
        state = str(wish)
        ended = machine.is_terminal(state)
