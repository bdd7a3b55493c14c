"""Launch requests from outside can only display something."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from gui.desktop.launch_request import MOST_WORDS, Instance, Wish, link_to, wish_in, wish_of
from tests.gui.live_tasks import written_by_another
from tests.gui.windows import appearing, dialog_of, heard, opened, press

ROOT = Path(__file__).resolve().parents[2]
TASK = "0123456789abcdef"
posix = pytest.mark.skipif(os.name == "nt", reason="paths as Linux and macOS write them")


@posix
@pytest.mark.parametrize(
    ("word", "wish"),
    [
        (f"openchrome-monitor://task/{TASK}", Wish(tasks=(TASK,))),
        (f"OpenChrome-Monitor:task/{TASK}/", Wish(tasks=(TASK,))),
        (
            "openchrome-monitor://task/../../etc",
            Wish(strange=("openchrome-monitor://task/../../etc",)),
        ),
        (
            f"openchrome-monitor://cancel/{TASK}",
            Wish(strange=(f"openchrome-monitor://cancel/{TASK}",)),
        ),
        ("https://example.com/a b", Wish(urls=("https://example.com/a b",))),
        ("crawl.json", Wish(files=("/here/crawl.json",))),
        ("/tmp/a/../b.json", Wish(files=("/tmp/b.json",))),
        ("file:///tmp/a%20b.json", Wish(files=("/tmp/a b.json",))),
        ("file://elsewhere/share/a.json", Wish(strange=("file://elsewhere/share/a.json",))),
        ("javascript.txt", Wish(files=("/here/javascript.txt",))),
        ("", Wish(strange=("",))),
    ],
)
def test_a_word_of_the_command_line_is_sorted(word: str, wish: Wish) -> None:
    assert wish_of([word], Path("/here")) == wish


def test_a_link_to_a_task_leads_back_to_it() -> None:
    assert wish_of([link_to(TASK)], Path("/")).tasks == (TASK,)


@given(st.lists(st.text(), max_size=20), st.text(max_size=50))
def test_arguments_survive_the_launch_request(words: list[str], token: str) -> None:
    wish = wish_of(words, Path("/here"), token)
    assert wish_in(wish.message()) == wish


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["tasks", "urls", "files", "strange", "token"]), inner)
    ),
)


@given(json_like)
def test_a_message_of_any_shape_is_a_wish_of_sound_parts(message: Any) -> None:
    wish = wish_in(message)
    assert all(len(one) == 16 for one in wish.tasks)
    assert all(os.path.isabs(one) for one in wish.files)
    assert isinstance(wish.token, str)


def test_a_flood_of_words_is_cut_off() -> None:
    assert (
        len(wish_of([f"https://example.com/{n}" for n in range(9999)], Path("/")).urls)
        == MOST_WORDS
    )


CALLER = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from gui.desktop import launch_request as instance
from gui.desktop.launch_request import wish_of
from gui.desktop.launch_request import Instance
instance.ANSWER_MS = 60_000  # this machine may rest for longer than a person would wait
app = QCoreApplication([])
other = Instance(Path(sys.argv[1]), Path(sys.argv[2]))
print(other.claim(), other.hand_over(wish_of(sys.argv[3:], Path("/here"), "leave").message()))
"""


async def test_the_words_of_a_second_start_reach_the_first_whole(tmp_path: Path) -> None:
    words = [f"https://example.com/{'x' * 2000}/{number}" for number in range(200)]
    first = Instance(tmp_path / "tasks", tmp_path / "run")
    assert first.claim()
    first.listen()
    called = heard(first.called)
    second = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CALLER, str(tmp_path / "tasks"), str(tmp_path / "run")),
        *words,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    said, _ = await second.communicate()
    assert said.split() == [b"False", b"True"]
    assert wish_in((await called)[0]) == Wish(urls=tuple(words), token="leave")
    first.release()


def a_task_in(home: Path) -> str:
    lease = Lease.acquire(home / "tasks")
    try:
        return (
            Ledger(home / "tasks", lease=lease).create("crawl", {"url": "http://x.test/"}).task_id
        )
    finally:
        lease.release()


async def test_a_link_shows_its_task_once_the_list_is_read(home: Path, tmp_path: Path) -> None:
    task_id = a_task_in(home)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("nothing has this name")
        session.called(wish_of([link_to(task_id)], tmp_path).message())
        assert window.table.selected_ids() == [task_id]
        assert window.filter_bar.text == ""
        assert window.isActiveWindow()


async def test_a_link_to_an_unknown_task_offers_folders(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session:
        banner = session.window.banner
        session.called(wish_of([link_to(TASK)], tmp_path).message())
        assert banner.title == "No such task"
        assert "--root" not in "".join(label.text() for label in banner.findChildren(QLabel))
        with appearing(QFileDialog) as told:
            press(banner, "Open another folder…")
            (await told).close()


async def test_an_address_only_fills_the_start_dialog(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session:
        session.called(wish_of(["https://example.com/"], tmp_path).message())
        fields = dialog_of(session).findChildren(QLineEdit)
        assert "https://example.com/" in [field.text() for field in fields]
        assert session.bridge.own_tasks == ()


async def test_what_nobody_understands_is_said_literally(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session:
        session.called(wish_of(["openchrome-monitor://<b>quit</b>"], tmp_path).message())
        assert session.window.news_bar.title == "This cannot be opened"


async def test_the_report_of_an_old_link_leaves_with_the_next_task_that_is_shown(
    home: Path,
) -> None:
    known = (await asyncio.to_thread(written_by_another, home, 1))[0]
    async with opened(home) as session:
        window = session.window
        window.arrivals.take(Wish(tasks=("f" * 16,)))
        window.arrivals.take(Wish(strange=("openchrome-monitor://cancel/1",)))
        assert window.news_bar.isVisible()
        assert not window.banner.isVisible()  # of the link before
        window.arrivals.take(Wish(tasks=("e" * 16,)))
        assert window.banner.isVisible()
        assert not window.news_bar.isVisible()
        window.arrivals.take(Wish(tasks=(known,)))
        assert not window.banner.isVisible()
