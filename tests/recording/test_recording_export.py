"""Export of a recording as a command task with the same final page, and as a trace."""

from __future__ import annotations

import functools
import http.server
import json
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import playwright
import pytest
from click.testing import CliRunner
from playwright.async_api import async_playwright

from engine.browser.chromium.locate import locate
from engine.cli.octask import octask
from engine.export.output import ExportExists, ExportRefused
from engine.export.recordings import export_recording
from engine.kinds.commands.command_check import check
from engine.kinds.recording.recording_export import command_task, template
from engine.kinds.recording.recording_kind import NotARecording, NothingToReplay
from engine.ledger.reader import LedgerReader
from engine.model.records import Status
from engine.service.requests import problems
from tests.recording.conftest import Operator, Running, until_scrolled
from tests.recording.trap_pages import listening

# Everything of a page that a person could see or send. A command task hides its variables in
# what a page says, however it is spelt; here they are to be compared.
STATE = """const state = [
  location.pathname + location.search, document.title, document.body.innerText,
  [...document.querySelectorAll('input,select,textarea')].map((one) =>
    [one.name, one.type, one.value, one.checked ?? null]),
  [...document.querySelectorAll('size-picker')].map((one) => one.getAttribute('size')),
  Math.round(scrollY),
];
return [...JSON.stringify(state)].map((sign) => sign.codePointAt(0))"""


async def state_of(page: Any) -> Any:
    return read_state(await page.evaluate(f"(() => {{ {STATE} }})()"))


def read_state(signs: list[int]) -> Any:
    return json.loads("".join(map(chr, signs)))


async def search_and_choose(operator: Operator) -> None:
    await operator.type("[name=q]", "whistle")
    await operator.page.keyboard.press("Enter")
    await operator.recorded("navigated")
    await operator.click("main li a")
    await operator.comes_to("Tin whistle")
    await operator.recorded("navigated", 2)
    await operator.click(".add >> nth=1")
    await operator.click("text=Large")
    await operator.click(".add >> nth=0")
    await operator.recorded("click", 5)


async def fill_the_order(operator: Operator) -> None:
    await operator.click("text=Order")
    await operator.comes_to("Your order")
    await operator.recorded("navigated")
    await operator.type("#who", "Ada Lovelace")
    await operator.page.keyboard.press("Tab")
    await operator.page.keyboard.type("ada@mail.example")
    await operator.type("[name=code]", "hunter2-zz9")
    await operator.page.locator("[name=size]").focus()
    await operator.page.keyboard.press("ArrowDown")
    await operator.click("text=By bird")
    await operator.click("text=As a gift")
    await operator.type("[name=notes]", "first line")
    await operator.page.keyboard.press("Enter")
    await operator.page.keyboard.type("last line")
    await operator.recorded("check", 2)


async def send_the_order(operator: Operator) -> None:
    await fill_the_order(operator)
    await operator.click("#send")
    await operator.comes_to("Thank you")
    await operator.recorded("navigated", 2)


async def walk_back_and_scroll(operator: Operator) -> None:
    await operator.click("text=Terms")
    await operator.comes_to("Terms")
    await operator.recorded("navigated")
    await operator.page.go_back()
    await operator.recorded("navigate", 2)
    await operator.page.go_forward()
    await operator.recorded("navigate", 3)
    await operator.page.mouse.move(300, 300)
    await operator.page.mouse.wheel(0, 700)
    await until_scrolled(operator.page, 700)
    await operator.page.keyboard.press("Escape")
    await operator.recorded("key")


async def act_in_a_frame(operator: Operator) -> None:
    inside = operator.page.frame_locator("iframe")
    await inside.locator(".add >> nth=1").click()
    await inside.locator("[data-testid=empty]").click()
    await operator.recorded("click", 2)


GIVEN = {
    "search": "whistle",
    "your_name": "Ada Lovelace",
    "e_mail": "ada@mail.example",
    "password": "hunter2-zz9",
    "notes": "first line\nlast line",
}


@pytest.mark.parametrize(
    ("start", "script"),
    [
        ("/shop/", search_and_choose),
        ("/shop/", fill_the_order),
        ("/shop/", send_the_order),
        ("/shop/", walk_back_and_scroll),
        ("/shop/framed", act_in_a_frame),
    ],
)
async def test_the_replay_of_a_recording_ends_in_the_same_page_state(
    recording: Any,
    site: Any,
    tmp_path: Path,
    start: str,
    script: Callable[[Operator], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "engine.kinds.recording.recording_kind.STILL_S", 60.0
    )  # every page here gets ready
    async with recording(f"{site.url}{start}") as running:
        await script(running.operator)
        wanted = await state_of(running.operator.page)
        await running.stop()
        task = exported(running, tmp_path)
        assert "notReplayed" not in task["metadata"]
        given = {name: GIVEN[name] for name in template(task)}
        assert await replayed(running, {**task, "variables": given}) == wanted


def exported(running: Running, folder: Path) -> dict[str, Any]:
    place = folder / "task.json"
    root = running.engine.settings.root
    export_recording(LedgerReader(root), running.task_id, "task", place)
    task: dict[str, Any] = json.loads(place.read_text())
    return task


async def replayed(running: Running, task: dict[str, Any]) -> Any:
    """Run `task` as a command task; the state of its page at the end."""
    look = {
        "tool_name": "browser_execute",
        "intention": "Look at the page",
        "args": {"action": "evaluate", "script": STATE},
    }
    asked = {**task, "commands": [*task["commands"], look]}
    record = await running.engine.requests.start("commands", asked)
    ended = await running.engine.tasks.wait(record.task_id, timeout_ms=150_000)
    assert ended.status == Status.COMPLETED, ended.error
    folder = running.engine.settings.root / record.task_id
    last = json.loads((folder / "result.json").read_text())["commands"][-1]
    return read_state(last["result"]["value"])


async def test_a_replay_needs_its_values(recording: Any, site: Any, tmp_path: Path) -> None:
    async with recording(f"{site.url}/shop/") as running:
        await running.operator.type("[name=q]", "whistle")
        await running.operator.heard()
        await running.stop()
        task = exported(running, tmp_path)
        found = problems("commands", task)
        assert [problem.code for problem in found] == ["unknown_variable"]
        assert task["metadata"]["variables"] == [
            {"name": "search", "secret": False, "field": "Search"}
        ]


async def test_the_template_has_all_variables(recording: Any, site: Any, tmp_path: Path) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.operator.type("#who", "Ada")
        await running.operator.type("[name=code]", "secret")
        await running.operator.heard()
        await running.stop()
        place = tmp_path / "variables.json"
        made = export_recording(
            LedgerReader(running.engine.settings.root), running.task_id, "variables", place
        )
        assert json.loads(place.read_text()) == {"your_name": "", "password": ""}
        assert made.variables == ["your_name", "password"]


async def test_exports_do_not_overwrite_files(recording: Any, site: Any, tmp_path: Path) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.stop()
        ledger = LedgerReader(running.engine.settings.root)
        place = tmp_path / "task.json"
        export_recording(ledger, running.task_id, "task", place)
        before = place.read_bytes()
        with pytest.raises(ExportExists):
            export_recording(ledger, running.task_id, "trace", place)
        assert place.read_bytes() == before
        with pytest.raises(ExportRefused):
            export_recording(ledger, running.task_id, "task", running.folder / "meta.json")
        export_recording(ledger, running.task_id, "trace", place, force=True)
        assert zipfile.is_zipfile(place)


async def test_only_recordings_become_tasks(recording: Any, site: Any, tmp_path: Path) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        record = await running.engine.requests.start(
            "crawl", {"url": f"{site.url}/static/1", "max_pages": 1, "respect_robots": False}
        )
        await running.engine.tasks.wait(record.task_id)
        ledger = LedgerReader(running.engine.settings.root)
        with pytest.raises(NotARecording):
            export_recording(ledger, record.task_id, "task", tmp_path / "x.json")
        assert list(tmp_path.glob("*.json")) == []


def written_by_others(folder: Path, lines: list[Any]) -> LedgerReader:
    """A ledger with one recording whose actions are `lines`."""
    place = folder / "home" / "tasks" / "00000000000000aa"
    place.mkdir(parents=True)
    meta = {"task_id": place.name, "kind": "recording", "status": "COMPLETED", "created_at": 1}
    (place / "meta.json").write_text(json.dumps(meta))
    (place / "pages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return LedgerReader(place.parent)


def test_actions_of_no_use_are_left_out_of_an_export(tmp_path: Path) -> None:
    action = {"n": 1, "type": "click", "ts": 1, "url": "http://a.test/", "selector": "#a"}
    odd = [{}, {"n": "x"}, {**action, "selector": 5}, {**action, "ts": "soon"}]
    upload = {**action, "n": 2, "type": "upload"}
    right = {**action, "n": 3, "button": "right"}
    ledger = written_by_others(tmp_path, [*odd, action, upload, right])
    made = export_recording(ledger, "00000000000000aa", "task", tmp_path / "task.json")
    assert made.commands == 2
    assert [one["action"] for one in made.not_replayed] == [2]
    export_recording(ledger, "00000000000000aa", "trace", tmp_path / "trace.zip")


def test_a_recording_without_a_replayable_action_says_so_and_leaves_no_file(tmp_path: Path) -> None:
    ledger = written_by_others(tmp_path, [{"n": 1, "type": "upload", "ts": 1, "url": ""}])
    with pytest.raises(NothingToReplay):
        export_recording(ledger, "00000000000000aa", "task", tmp_path / "task.json")
    assert not (tmp_path / "task.json").exists()


def test_every_command_of_an_export_passes_the_check_of_command_tasks() -> None:
    element = {"ts": 1, "url": "http://a.test/", "selector": "#a", "alternatives": ["body > div"]}
    actions: list[dict[str, Any]] = [
        {"n": 1, "type": "navigate", "how": "typed", "url": "http://a.test/?q={{q}}", "ts": 1},
        {"n": 2, "type": "click", **element, "frame": ["iframe"]},
        {"n": 3, "type": "type", **element, "text": "{{q}}", "variable": "q"},
        {"n": 4, "type": "type", **element, "text": "kept as it was"},
        {"n": 5, "type": "select", **element, "values": [""]},
        {"n": 6, "type": "key", "key": "Control+Enter"},
        {"n": 7, "type": "navigated", "how": "form", "url": "http://a.test/b"},
        {"n": 8, "type": "scroll", "dx": -5, "dy": 2_000_000},
        {"n": 9, "type": "scroll", **element, "dx": 0, "dy": 30},
        {"n": 10, "type": "navigate", "how": "back", "url": "http://a.test/"},
    ]
    task = command_task({"url": "http://a.test/", "label": "A label"}, actions)
    assert task is not None
    check({**task, "variables": {"q": "words"}})
    did = [each["args"]["action"] for each in task["commands"]]
    marked = ["evaluate", "keyboard", "wait_for"]  # the next page looks like the one before
    assert did == [
        *("goto", "click", "type", "type", "select"),
        *marked,
        *("scroll", "scroll", "evaluate", "back"),
    ]


async def test_traces_contain_no_typed_text(recording: Any, site: Any, tmp_path: Path) -> None:
    async with recording(f"{site.url}/shop/", screenshots="navigation", label="Buy") as running:
        await send_the_order(running.operator)
        await running.stop()
        place = tmp_path / "trace.zip"
        export_recording(
            LedgerReader(running.engine.settings.root), running.task_id, "trace", place
        )
    with zipfile.ZipFile(place) as archive:
        lines = [json.loads(line) for line in archive.read("trace.trace").splitlines()]
        names = archive.namelist()
        whole = b"".join(archive.read(name) for name in names if not name.endswith(".png"))
    assert lines[0]["type"] == "context-options"
    before = [line for line in lines if line["type"] == "before"]
    assert [line["method"] for line in before[:4]] == ["goto", "click", "goto", "click"]
    shown = [line["sha1"] for line in lines if line["type"] == "screencast-frame"]
    assert [f"resources/{name}" for name in shown] == [name for name in names if "png" in name]
    assert len(shown) == 3
    for typed in (b"Lovelace", b"hunter2", b"ada@mail", b"first line"):
        assert typed not in whole


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[str]:
    """Playwright's own viewer, with the file `trace.zip` of `tmp_path` beside it."""
    program = Path(playwright.__file__).parent / "driver/package/lib/vite/traceViewer"
    if not program.is_dir():
        pytest.skip("this Playwright brings no viewer")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            mine = path.partition("?")[0] == "/trace.zip"
            return str(tmp_path / "trace.zip") if mine else super().translate_path(path)

        def log_message(self, *args: Any) -> None:
            pass

    with listening(functools.partial(Handler, directory=str(program))) as url:
        yield url


async def test_playwrights_own_viewer_opens_the_trace(tmp_path: Path, viewer: str) -> None:
    action = {"ts": 5, "url": "http://a.test/", "selector": '[data-testid="buy"]'}
    ledger = written_by_others(
        tmp_path,
        [
            {"n": 1, "type": "navigate", "how": "typed", "ts": 1, "url": "http://a.test/"},
            {"n": 2, "type": "click", **action},
            {"n": 3, "type": "type", **action, "text": "{{words}}", "variable": "words"},
        ],
    )
    export_recording(ledger, "00000000000000aa", "trace", tmp_path / "trace.zip")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=locate().path, chromium_sandbox=False
        )
        page = await browser.new_page()
        await page.goto(f"{viewer}/index.html?trace={viewer}/trace.zip")
        await page.get_by_text("{{words}}").first.wait_for(timeout=60_000)
        entries = await page.locator(".action-title").all_inner_texts()
        await browser.close()
    assert [entry.split("\n")[0] for entry in entries] == ["Navigate", "Click", 'Fill "{{words}}"']


def test_the_command_line_exports_and_says_what_a_replay_needs(tmp_path: Path) -> None:
    action = {"n": 1, "ts": 1, "url": "http://a.test/", "selector": "#a"}
    typed = {**action, "type": "type", "text": "{{words}}", "variable": "words"}
    named = {**action, "n": 3, "type": "upload", "files": ["a.txt"]}
    ledger = written_by_others(tmp_path, [typed, {**action, "n": 2, "type": "upload"}, named])
    place = str(tmp_path / "task.json")
    asked = ["recording", "export", "00000000000000aa", "-o", place, "--root", str(ledger.root)]
    ran = CliRunner().invoke(octask, asked)
    assert ran.exit_code == 0, ran.output
    assert f"Wrote {place} (task)" in ran.output
    assert "give values to words" in ran.output
    assert "action 2" in ran.output
    assert "It uploads a.txt" in ran.output
    again = CliRunner().invoke(octask, [*asked, "--json"])
    assert again.exit_code == 1
    assert json.loads(again.output)["error"]["code"] == "export_exists"
    wrong = CliRunner().invoke(octask, [*asked, "--format", "pdf"])
    assert wrong.exit_code == 2


def actions_to_commands(*actions: dict[str, Any]) -> list[dict[str, Any]]:
    task = command_task({}, ({"url": "http://a.test/", **one} for one in actions))
    assert task is not None
    return [{**one["args"], "tool": one["tool_name"]} for one in task["commands"]]


def test_the_clicks_of_a_double_click_become_one_with_the_names_of_both() -> None:
    first = {"n": 1, "type": "click", "selector": "#a", "alternatives": ["div > p"]}
    second = {**first, "n": 2, "count": 2, "selector": "#a", "alternatives": [".b"]}
    alone = {"n": 3, "type": "click", "selector": "#c", "button": "right"}
    double, right = actions_to_commands(first, second, alone)
    assert (double["selector"], double["count"]) == ("#a", 2)
    assert double["alternatives"] == ["div > p", ".b"]
    assert (right["selector"], right["button"], "count" in right) == ("#c", "right", False)


def test_boxes_keys_frames_and_tabs_become_commands_of_their_own() -> None:
    box = {"type": "check", "selector": "#a", "frame": ["#f", "iframe"]}
    commands = actions_to_commands(
        {**box, "on": True},
        {**box, "on": False},
        {"type": "key", "key": "Enter", "selector": "#q"},
        {"type": "key", "key": "F2"},
        {"type": "click", "selector": "#b", "tab": 1},
        {"type": "navigate", "how": "typed", "tab": 2},
        {"type": "click", "selector": "#b"},
    )
    assert [one["action"] for one in commands] == [
        *("check", "uncheck", "press", "keyboard", "switch_tab", "click"),
        *("new_tab", "goto", "switch_tab", "click"),
    ]
    assert commands[0]["frame"] == ["#f", "iframe"]
    assert (commands[4]["tab"], commands[8]["tab"]) == (1, 0)
    check(command_task({}, [{**box, "on": True}]))


def test_a_variable_that_only_an_alternative_holds_is_asked_for() -> None:
    click = {"type": "click", "selector": "#a", "alternatives": ['text="{{todo}}"']}
    task = command_task({}, [click])
    assert task is not None
    assert list(template(task)) == ["todo"]
