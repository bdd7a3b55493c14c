"""Setup of every test: a temporary home, clean settings, a runner for `async def`.

A test under `tests/gui` runs on the Qt loop (see the conftest there); every other
`async def` test gets a fresh asyncio loop here. Both fail for work left behind.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Coroutine, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import hypothesis
import pytest

TESTS = Path(__file__).resolve().parent
LIMIT_S = 200.0  # catches what hangs; a crowded machine may take its time
LONGEST = (
    "agents/test_acting_on_elements.py",
    "browser/test_consent.py",
    "browser/test_displayed_content.py",
    "browser/test_idle_pages.py",
    "browser/test_loads.py",
    "browser/test_settling.py",
    "commands/test_command_journeys.py",
    "hard/test_rigs.py",
    "hostile/test_traps.py",
    "hostile/test_whole_site.py",
    "supervision/test_neighbours.py",
    "work/test_click_links.py",
    "work/test_concurrency.py",
)
HANDLER = "EventEmitter._call_handler"  # in the repr of a task that handles a Playwright event
HANDLERS_S = 10.0  # the driver may refuse a handler's last command after the page was closed
SETTLE_TURNS = 10  # turns of the loop in which a task that was just cancelled may end


def _leave_the_users_machine_alone() -> Path:
    """Point every place where a program keeps things into a folder that goes away again."""
    away = Path(tempfile.mkdtemp(prefix="oc-tests-"))
    for name in [name for name in os.environ if name.startswith(("OPENCHROME_", "OC_"))]:
        if name != "OC_BROWSER":  # which browser to test with is the caller's choice
            del os.environ[name]
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        os.environ[name] = str(away)
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        os.environ[f"XDG_{name}_HOME"] = str(away / name.lower())
    # Qt warns of a language that a machine names and has not, and of letters that are no UTF-8.
    for name in [name for name in os.environ if name == "LANGUAGE" or name.startswith("LC_")]:
        del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"
    return away


AWAY = _leave_the_users_machine_alone()
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["QT_API"] = "pyside6"

hypothesis.settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("deep", max_examples=2_000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_unconfigure() -> None:
    shutil.rmtree(AWAY, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="also the tests marked `thorough`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a thorough run needs, and mix the files.

    So tests that wait run beside tests that compute. Files that take minutes are in the first
    half: at the end, other workers would wait for them.
    """
    items.sort(key=_place)
    if config.getoption("thorough"):
        return
    left_out = [item for item in items if _is_thorough(item)]
    if left_out:
        items[:] = [item for item in items if not _is_thorough(item)]
        config.hook.pytest_deselected(items=left_out)


def _is_thorough(item: pytest.Item) -> bool:
    """Whether it is marked; `thorough("*-slow")` is for cases with such an id only."""
    case = (
        item.callspec.id if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ""
    )
    marks = item.iter_markers("thorough")
    return any(not one.args or any(fnmatchcase(case, id_) for id_ in one.args) for one in marks)


def _place(item: pytest.Item) -> tuple[float, str]:
    name = item.path.relative_to(TESTS).as_posix()
    at = zlib.crc32(name.encode()) / 2**32
    return at / 2 if name in LONGEST else at, name


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test on a fresh loop; leave `tests/gui` to the Qt loop."""
    if pyfuncitem.path.is_relative_to(TESTS / "gui"):
        return None
    limit_s = _limit_s(pyfuncitem)
    drawn = getattr(pyfuncitem.obj, "hypothesis", None)
    if drawn is not None and inspect.iscoroutinefunction(drawn.inner_test):
        drawn.inner_test = _sync(drawn.inner_test, limit_s, kept=_is_kept(pyfuncitem))
        return None
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    run_async(test, limit_s, kept=_is_kept(pyfuncitem))
    return True


def _is_kept(item: pytest.Function) -> bool:
    """Whether a test shares loop and browser with those before it."""
    return "kept_browser" in item.fixturenames and not item.get_closest_marker("own_browser")


def _limit_s(item: pytest.Function) -> float:
    """`@pytest.mark.timeout(N)` moves both limits; ours comes first because it can tell more."""
    mark = item.get_closest_marker("timeout")
    given = mark.args[0] if mark and mark.args else None
    return LIMIT_S if given is None else given * 0.9


def _sync(
    test: Callable[..., Coroutine[Any, Any, object]], limit_s: float, *, kept: bool
) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_async(test(*args, **kwargs), limit_s, kept=kept)

    return run


def run_async(
    test: Coroutine[Any, Any, object], limit_s: float = LIMIT_S, *, kept: bool = False
) -> None:
    """Run `test` to its end and fail for whatever it leaves behind.

    It gets a loop of its own, or with `kept` the one of the kept browser.
    """
    seen: list[dict[str, Any]] = []
    if kept:
        from tests.support import kept_browser

        left = kept_browser.run(_bounded(test, limit_s, kept_browser.tasks), seen)
    else:
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(lambda _, context: seen.append(context))
            left = runner.run(_bounded(test, limit_s))
    gc.collect(1)  # a task whose error nobody took speaks up when it is collected
    assert not left, f"the test left tasks running: {left}"
    told = [context for context in seen if not _is_a_pipes_end(context)]
    assert not told, f"the loop's exception handler was told: {told}"


def _is_a_pipes_end(context: dict[str, Any]) -> bool:
    from gui.startup.crash_handler import is_a_pipes_end  # Qt is loaded for this question only

    return is_a_pipes_end(context)


async def _bounded(
    test: Coroutine[Any, Any, object],
    limit_s: float,
    kept: Callable[[], set[asyncio.Task[Any]]] = set,
) -> list[str]:
    async with asyncio.timeout(limit_s):
        await test
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()} - kept()
    if handlers := {task for task in left if HANDLER in repr(task)}:
        left -= (await asyncio.wait(handlers, timeout=HANDLERS_S))[0]
    return [repr(task) for task in left]


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """The log that a program of this test begins ends with the test, and so does its level."""
    root, raises = logging.getLogger(), logging.raiseExceptions
    level, before = root.level, list(root.handlers)
    yield
    for handler in [one for one in root.handlers if one not in before]:
        if type(handler).__module__.startswith("engine."):  # others are pytest's own
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    logging.raiseExceptions = raises


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty folder in the place of `~/.openchrome`."""
    place = tmp_path / "home"
    place.mkdir()
    return place


@pytest.fixture(scope="module", autouse=True)
def no_kept_processes() -> Iterator[None]:
    """End kept programs and browsers with their module: other modules count child processes."""
    yield
    if program := sys.modules.get("tests.support.octask"):
        program.end_loaded_programs()
    if browser := sys.modules.get("tests.support.kept_browser"):
        browser.end()


@pytest.fixture
def kept_browser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of sessions whose processes stay for the next test; an engine has one, too.

    A test with `own_browser` gets sessions that start and end their own, and runs beside no other.
    """
    from engine.browser.chromium.browser_session import BrowserSession
    from tests.support import kept_browser

    if not _is_kept(request.node):
        kept_browser.end()
        return BrowserSession
    monkeypatch.setattr("engine.service.running_parts.BrowserSession", kept_browser.KeptSession)
    return kept_browser.KeptSession


@pytest.fixture
def octask(home: Path) -> Iterator[Any]:
    """The command line on the home of this test."""
    from tests.support.octask import Octask

    program = Octask(home)
    yield program
    program.end()


@pytest.fixture
def site() -> Iterator[Any]:
    """The sample site, served on a free port of 127.0.0.1 for this one test."""
    from fixtures.site.site import Site

    with Site() as running:
        yield running


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files in the system's trash, which is a folder of this test (Linux' way everywhere)."""
    plat = pytest.importorskip("send2trash.plat_other", reason="its other ways have one trash")
    place = tmp_path / "share"
    monkeypatch.setattr(plat, "XDG_DATA_HOME", os.fsencode(place))
    monkeypatch.setattr(plat, "HOMETRASH_B", os.fsencode(place / "Trash"))
    monkeypatch.setattr("send2trash.send2trash", plat.send2trash)
    return place / "Trash" / "files"


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only until the test ends; modes do not bind root, a mount does."""
    undo: list[Callable[[], object]] = []

    def make(folder: Path) -> None:
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            mounted = subprocess.run(
                ["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False
            )
            if mounted.returncode:
                pytest.skip("root without the right to mount cannot be kept from writing")
            undo.append(lambda: subprocess.run(["umount", "-l", str(folder)], check=False))
            subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
            return
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        undo.append(lambda: folder.chmod(stat.S_IRWXU))

    yield make
    for step in undo:
        step()
