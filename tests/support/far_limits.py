"""Limits that only a stalled machine reaches, moved out of the way.

Whoever tests what a page or a task comes to must not end in the branch of such a limit because
a process got no time for some seconds. Who tests one of these limits sets it back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

PATIENT: Final = str(Path(__file__).with_name("patient_site"))  # its `sitecustomize` is patient

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
    "engine.browser.page.request_queue.INFORM_S",
    "engine.browser.page.network_capture.DRAIN_S",
    "engine.browser.page.network_capture.READ_S",
    "engine.browser.recording.recorder.ANSWER_S",
    "engine.browser.chromium.browser_session.SLOW_S",
    "engine.browser.chromium.browser_session.START_S",
    "engine.browser.chromium.tab_pool.OPEN_S",
    "engine.browser.chromium.tab_pool.SLACK_S",
    "engine.browser.recording.recorder.SCREENSHOT_S",
    "engine.kinds.commands.commands_kind.SLACK_S",
    "engine.execution.runner.HARD_STOP_S",
    "engine.kinds.recording.recording_kind.PICTURE_S",
)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move all of them to where no test comes; the test's own limit ends what hangs."""
    for limit in LIMITS:
        monkeypatch.setattr(limit, FAR_S)
    start_patient_programs(monkeypatch)


def start_patient_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move all of them in the Python programs that this test starts, and in those that they do."""
    places = [PATIENT, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))


def is_patient(environment: dict[str, str]) -> bool:
    """Whether programs with this environment have their limits moved."""
    return PATIENT in environment.get("PYTHONPATH", "").split(os.pathsep)


def stay_patient() -> None:
    """Move all of them for the rest of this process, which is one of a test.

    The limits of a module that is not loaded are moved when it is: most programs need few of them.
    """
    names: dict[str, list[str]] = {}
    for limit in LIMITS:
        module, _, name = limit.rpartition(".")
        names.setdefault(module, []).append(name)
    for module in names.keys() & sys.modules.keys():
        _move(sys.modules[module], names.pop(module))
    sys.meta_path.insert(0, _LimitMover(names))


def _move(module: ModuleType, names: list[str]) -> None:
    for name in names:
        setattr(module, name, FAR_S)


class _LimitMover(MetaPathFinder):
    """Finds the modules that have such limits, and moves these when a module was run."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        names = self._names.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if names else None
        if names is None or spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_move(module: ModuleType) -> None:
            run(module)
            _move(module, names)

        spec.loader.exec_module = run_and_move
        return spec


def wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's request counts as under way however long its answer takes, not for ten seconds."""
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", 1_000_000)


def keep_own_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command ends at its own limit and names it, also when the machine stood still for long."""
    monkeypatch.setattr("engine.browser.interact.command_tools.GRACE_S", FAR_S)
    monkeypatch.setattr("engine.browser.interact.command_target.MOMENT_MS", FAR_S * 1_000)
