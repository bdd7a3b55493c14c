"""Limits that only a stalled machine reaches, moved out of the way.

Whoever tests what a page or a task comes to must not end in the branch of such a limit because
a process got no time for some seconds. Who tests one of these limits sets it back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

FAR_S: Final = 150.0
LIMITS: Final = (
    "engine.browser.page.screenshot_masking.LOOK_S",
    "engine.browser.chromium.driver.ANSWER_S",
    "engine.browser.direct.process.REAP_S",
    "engine.browser.chromium.driver.ASKED_S",
    "engine.browser.chromium.navigation_filter.FRAMES_S",
    "engine.browser.chromium.navigation_filter.SEND_S",
    "engine.browser.chromium.launch.ANSWER_S",
    "engine.browser.chromium.launch.LAUNCH_S",
    "engine.browser.chromium.locate.VERSION_LIMIT_S",
    "engine.browser.page.crawl_tab.FEEL_S",
    "engine.browser.page.crawl_tab.SCREENSHOT_S",
    "engine.browser.page.crawl_tab.STILL_S",
    "engine.browser.page.network_capture.DRAIN_S",
    "engine.browser.page.network_capture.READ_S",
    "engine.browser.recording.recorder.ANSWER_S",
    "engine.browser.chromium.browser_session.SLOW_S",
    "engine.browser.recording.recorder.SCREENSHOT_S",
    "engine.kinds.commands.commands_kind.SLACK_S",
    "engine.execution.runner.HARD_STOP_S",
    "engine.kinds.recording.recording_kind.PICTURE_S",
)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move all of them to where no test comes; the test's own limit ends what hangs."""
    for limit in LIMITS:
        monkeypatch.setattr(limit, FAR_S)


def stay_patient() -> None:
    """Move all of them for the rest of this process, which is one of a test."""
    for limit in LIMITS:
        module, _, name = limit.rpartition(".")
        setattr(import_module(module), name, FAR_S)


def wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's request counts as under way however long its answer takes, not for ten seconds."""
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", 1_000_000)


def keep_own_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command ends at its own limit and names it, also when the machine stood still for long."""
    monkeypatch.setattr("engine.browser.interact.command_tools.GRACE_S", FAR_S)
    monkeypatch.setattr("engine.browser.interact.command_target.MOMENT_MS", FAR_S * 1_000)
