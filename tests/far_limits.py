"""Limits that only a machine which stands still for a while runs into, moved out of the way.

Whoever tests what a page or a task comes to must not end in the branch of such a limit because
a process got no time for some seconds. Who tests one of these limits sets it back.
"""

from __future__ import annotations

from typing import Final

import pytest

FAR_S: Final = 150.0
LIMITS: Final = (
    "engine.browser.covering.LOOK_S",
    "engine.browser.driver.ANSWER_S",
    "engine.browser.driver.ASKED_S",
    "engine.browser.gate.FRAMES_S",
    "engine.browser.gate.SAY_S",
    "engine.browser.launch.ANSWER_S",
    "engine.browser.launch.LAUNCH_S",
    "engine.browser.locate.VERSION_LIMIT_S",
    "engine.browser.page.FEEL_S",
    "engine.browser.page.SCREENSHOT_S",
    "engine.browser.page.STILL_S",
    "engine.browser.recorder.ANSWER_S",
    "engine.browser.upkeep.SLOW_S",
    "engine.browser.recorder.SCREENSHOT_S",
    "engine.run.command_tasks.SLACK_S",
    "engine.run.runner.HARD_STOP_S",
    "engine.work.recording.PICTURE_S",
)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move all of them to where no test comes; the test's own limit ends what hangs."""
    for limit in LIMITS:
        monkeypatch.setattr(limit, FAR_S)


def wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's request counts as under way however long its answer takes, not for ten seconds."""
    monkeypatch.setattr("engine.browser.question.REQUEST_MS", 1_000_000)
