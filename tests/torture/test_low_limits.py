"""Low limits of a process: named as what they are, never as a fault of a page."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from engine.browser.chromium.driver import Family
from engine.browser.page.failures import net_failure
from engine.egress import proxy_listener
from engine.egress.egress_policy import Place, Policy
from engine.model import process_limits
from engine.model.errors import PageOutOfFiles
from engine.pages.fetch import is_passing, is_unproved
from tests.support.octask import FAST, LIMIT_S, Octask

if sys.platform == "win32":
    pytest.skip("limits are set by setrlimit", allow_module_level=True)

import resource

Limited = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def limited(octask: Octask) -> Limited:
    """Run `octask` with this limit; its log goes to the test's home."""

    def run(which: int, soft: int, hard: int, *words: str, **environ: str) -> Any:
        environment = {**octask.environment(), "XDG_STATE_HOME": str(octask.home), **environ}
        environment.pop("PYTHONWARNINGS")
        ended = subprocess.run(
            [*octask.command(*words), "--home", str(octask.home)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
            preexec_fn=lambda: resource.setrlimit(which, (soft, hard)),
            check=False,
        )
        assert "Traceback" not in ended.stderr
        return ended

    return run


def record(octask: Octask) -> dict[str, Any]:
    (found,) = octask.tasks()
    return found


# Open files.


def test_the_soft_limit_is_raised_at_the_start(limited: Limited) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    ended = limited(resource.RLIMIT_NOFILE, 64, hard, "doctor")
    wanted = process_limits.WANTED_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    assert f"open files: {most:,} files may be open" in ended.stdout


def test_the_window_raises_it_too() -> None:
    script = """
import resource, gui.app
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    gui.app.main(["--version"])
finally:
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert int(ended.stdout.split()[-1]) > 64


def test_too_few_files_for_a_browser_are_named_by_the_task_and_the_doctor(
    octask: Octask, limited: Limited, site: Any
) -> None:
    words = ("start", "crawl", site.url, "--engine", "browser", "--delay-ms", "0")
    ended = limited(resource.RLIMIT_NOFILE, 64, 64, *words)
    assert ended.returncode == 1
    assert "only 64 files may be open here (`ulimit -n`), and a browser needs 128" in ended.stderr
    assert record(octask)["error"]["code"] == "browser_out_of_files"
    ended = limited(resource.RLIMIT_NOFILE, 64, 64, "doctor")
    assert "WARNING  open files: 64 files may be open" in ended.stdout
    assert "ulimit -n" in ended.stdout


def test_a_run_that_gets_no_file_any_more_ends_with_the_reason_and_claims_nothing(
    octask: Octask, limited: Limited, site: Any
) -> None:
    words = ("start", "crawl", site.url, *FAST, "--max-pages", "3")
    # As few as a task can be accepted with; where that takes fewer, this one may be enough.
    ended = limited(resource.RLIMIT_NOFILE, 11, 11, *words, OC_LEDGER_AWAY_S="2")
    assert ended.returncode in (0, 1)
    if ended.returncode == 1:
        assert os.strerror(errno.EMFILE) in ended.stderr + ended.stdout
        assert "ulimit -n" in ended.stderr
        octask("reap")
    statuses = [task["status"] for task in octask.tasks()]
    assert statuses in ([], ["COMPLETED" if ended.returncode == 0 else "FAILED"])


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_a_connection_without_a_descriptor_is_not_the_servers_fault(code: int) -> None:
    failed = proxy_listener._as_page(OSError(code, os.strerror(code)))
    assert isinstance(failed, PageOutOfFiles)
    assert is_unproved(failed)
    assert is_passing(failed)
    assert "open files" in str(failed)
    assert isinstance(net_failure("net::ERR_INSUFFICIENT_RESOURCES at x"), PageOutOfFiles)


async def test_a_name_that_could_not_be_looked_up_is_not_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A resolver without descriptors says that there is no such name."""
    short = {"now": True}

    def names(host: str) -> Any:
        answer = asyncio.get_running_loop().create_future()
        if short["now"]:
            answer.set_exception(OSError(-2, "Name or service not known"))
        else:
            answer.set_result((ipaddress.ip_address("93.184.216.34"),))
        return answer

    opened = os.open

    def none_left(*given: Any, **more: Any) -> int:
        if short["now"]:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(*given, **more)

    monkeypatch.setattr(os, "open", none_left)
    policy = Policy(None, lookup=names)
    with pytest.raises(PageOutOfFiles):
        await policy.check("http://site.example/")
    await asyncio.sleep(0)
    short["now"] = False  # and the false answer is not kept
    assert await policy.addresses(Place("site.example", 80), "http://site.example/")


def test_a_browser_process_that_holds_nearly_all_files_it_may_is_found() -> None:
    family = Family.of(os.getpid())
    assert family is not None
    held = psutil.Process().num_fds()
    assert family.lacks_files(held + 5)
    assert not family.lacks_files(held + 5_000)


# The size of a file.


@pytest.mark.parametrize("kilobytes", [2, 8])
def test_where_no_file_may_be_larger_the_run_ends_with_the_reason_for_every_viewer(
    octask: Octask, limited: Limited, site: Any, kilobytes: int
) -> None:
    most = kilobytes * 1024
    words = ("start", "crawl", site.url, *FAST, "--max-pages", "12")
    ended = limited(resource.RLIMIT_FSIZE, most, most, *words)
    assert ended.returncode == 1
    assert os.strerror(errno.EFBIG) in ended.stderr
    found = record(octask)
    assert (found["status"], found["error"]["code"]) == ("FAILED", "ledger_file_too_large")
    pages = octask.home / "tasks" / found["task_id"] / "pages.jsonl"
    whole = pages.read_bytes().count(b"\n") if pages.exists() else 0
    assert found["engine"]["units"].get("done", 0) == whole
    assert "ulimit -f" in octask("get", found["task_id"])
