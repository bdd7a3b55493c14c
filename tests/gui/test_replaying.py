"""From a recording to its replay in the window: stop, replay with values, export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from engine.model.records import TaskRecord
from engine.service.forms import startable
from engine.service.rerun import Asked
from fixtures.site.site import Site
from gui.commands.exporting import Job, Outcome, Wanted
from gui.details.unit_list import Items
from gui.start.command_form import CommandForm
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.questions import Question
from gui.window.main_window import MainWindow
from tests.gui.access_walk import walk_by_tab
from tests.gui.live_tasks import ended, status_of
from tests.gui.task_views import a_view
from tests.gui.windows import dialog_by_act, dialog_of, heard, opened, press, until
from tests.recording.conftest import Operator
from tests.recording.conftest import until as become
from tests.support.far_limits import be_patient
from tests.support.line_files import whole_lines
from tests.support.written_files import contents

SECRET = "hunter2-zz9"


@pytest.fixture(autouse=True)
def patient_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that answers late on a crowded machine is no broken one."""
    be_patient(monkeypatch)


def overview_buttons(window: MainWindow) -> list[str]:
    """What the Overview offers for the selected task."""
    buttons = window.details.overview.state_actions.buttons.values()
    return [button.text() for button in buttons if button.isVisible()]


def click_in_overview(window: MainWindow, act: str) -> None:
    window.details.overview.state_actions.buttons[window.acts[act]].click()


def has_stop_on_toolbar(window: MainWindow) -> bool:
    buttons = window.tools.findChildren(QToolButton)
    return any(one.isVisible() and one.text() == "Stop recording" for one in buttons)


async def recorded(session: Session, site: Site) -> str:
    """A recording that runs and holds a typed secret."""
    engine = session.bridge.engine
    args = {"url": f"{site.url}/login", "headless": True, "screenshots": "none"}
    task_id = str((await engine.requests.start("recording", args)).task_id)
    pages = engine.settings.root / task_id / "pages.jsonl"
    await become(lambda: whole_lines(pages))
    operator = Operator(engine.instances.living()[-1].pages[0], lambda: whole_lines(pages))
    await operator.type("input[type=password]", SECRET)
    await operator.heard()
    return task_id


def form_of(dialog: StartDialog) -> CommandForm:
    assert isinstance(dialog.form.body, CommandForm)
    return dialog.form.body


async def test_a_recording_is_stopped_replayed_and_exported_in_the_window(
    home: Path, site: Site, tmp_path: Path
) -> None:
    async with opened(home) as session:
        window, batch = session.window, session.bridge.batch
        task_id = await recorded(session, site)
        await until(lambda: status_of(session, task_id) == "RUNNING", batch)
        window.table.select_ids([task_id])
        assert overview_buttons(window) == ["Stop recording", "Cancel"]
        await become(lambda: has_stop_on_toolbar(window))
        click_in_overview(window, "stop")
        await until(lambda: status_of(session, task_id) == "COMPLETED", batch)
        await until(lambda: overview_buttons(window)[:1] == ["Replay…"], window.scope.changed)
        await become(lambda: not has_stop_on_toolbar(window))

        dialog = await dialog_by_act(window, "replay", StartDialog)
        (line,) = form_of(dialog).variables.lines
        assert line.secret.isChecked()
        assert not dialog.start.isEnabled()
        QTest.keyClicks(line.value, SECRET)
        replay = heard(session.bridge.started)
        dialog.start.click()
        (record,) = await replay
        assert isinstance(record, TaskRecord)
        await until(lambda: status_of(session, str(record.task_id)) == "COMPLETED", batch)

        view = window.model.view_of(task_id)
        assert view is not None
        for form in ("task", "variables", "trace"):
            job = Job(session.bridge)
            ended = heard(job.ended)
            job.begin(Wanted((view,), ""), form, tmp_path / form, many=False)
            (outcome,) = await ended
            assert isinstance(outcome, Outcome)
            assert not outcome.refused
        task = json.loads((tmp_path / "task").read_text())
        assert [one["name"] for one in task["metadata"]["variables"]] == list(
            json.loads((tmp_path / "variables").read_text())
        )
        assert (tmp_path / "trace").read_bytes()[:2] == b"PK"
    for file, data in contents(home.parent).items():
        assert SECRET.encode() not in data, file


async def test_the_items_of_a_recording_are_read_in_words(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window, batch = session.window, session.bridge.batch
        task_id = await recorded(session, site)
        await until(lambda: status_of(session, task_id) == "RUNNING", batch)
        window.table.select_ids([task_id])
        click_in_overview(window, "stop")
        await until(lambda: status_of(session, task_id) == "COMPLETED", batch)
        tabs = window.details._tabs
        tabs.setCurrentIndex(window.details._keys.index("items"))
        items = tabs.currentWidget().findChild(Items)
        assert isinstance(items, Items)
        await become(lambda: items.list.model.total > 0 and not items.list.is_reading)
        model = items.list.model
        titles = {model.headerData(at, Qt.Orientation.Horizontal): at
                  for at in range(model.columnCount())}  # fmt: skip
        rows = range(model.rowCount())
        read = {name: [model.index(row, at).data() for row in rows] for name, at in titles.items()}
        assert read["Action"][0] == f"Go to {site.url}/login"
        (typed,) = [at for at, words in enumerate(read["Action"]) if words.startswith("Type {{")]
        assert " into " in read["Action"][typed]
        assert read["Page"][typed] == f"{site.url}/login"
        assert SECRET not in str(read)
        assert not items.list.table.isColumnHidden(titles["Page"])


async def test_a_re_run_of_a_recording_offers_its_replay(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "COMPLETED", kind="recording")])
        window.table.select_ids([a_view(1).task_id])
        dialog = await dialog_by_act(window, "rerun", Question)
        failed = heard(window.requests.failed)
        press(dialog, "Replay…")
        await failed  # there is no such folder, and the window says so
        assert window.banner.isVisible()


async def test_only_what_an_export_can_write_is_offered_and_the_rest_says_why(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "RUNNING", kind="task_run"), a_view(2, "COMPLETED")])
        export = window.acts["export_tasks"]
        assert "Select a task first" in export.toolTip()
        window.table.select_ids([a_view(1).task_id])
        assert not export.isEnabled()
        assert "Export the list instead" in export.toolTip()
        window.table.select_ids([a_view(1).task_id, a_view(2).task_id])
        assert export.isEnabled()
        assert export.toolTip().startswith("Export")


async def test_disabled_buttons_of_the_toolbar_say_why(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "COMPLETED"), a_view(2, "RUNNING")])
        window.table.select_ids([a_view(1).task_id])
        assert "cannot be completed" in window.acts["force"].toolTip()
        assert "not ended" in window.acts["cancel"].toolTip()
        window.table.select_ids([a_view(2).task_id])
        assert "Only ended tasks" in window.acts["rerun"].toolTip()
        assert window.acts["cancel"].toolTip().startswith("Cancel")


async def test_a_form_that_was_changed_outlives_escape_without_its_secrets(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        task = {
            "task_name": "log in",
            "task_intention": "see",
            "commands": [
                {
                    "tool_name": "browser_interact",
                    "intention": "type",
                    "args": {"action": "type", "selector": "#p", "text": "{{password}}"},
                }
            ],
            "variables": {},
        }
        window.requests.starting.open(Asked("commands", task), whole=True)
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        assert not dialog.draft.isVisible()
        QTest.keyClicks(form_of(dialog).variables.lines[0].value, SECRET)
        QTest.keyClicks(form_of(dialog)["task_name"].editor, " again")
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        assert not dialog.isVisible()

        again = await dialog_by_act(window, "new", StartDialog)
        assert again.draft.isVisible()
        assert again.form.kind == "crawl"
        again.activateWindow()
        await become(again.isActiveWindow)
        faults = [one for one in walk_by_tab(again) if "Recent" not in one]  # left of the form
        assert faults == []
        again.draft.click()
        assert not again.draft.isVisible()
        assert again.form.asked.args["task_name"] == "log in again"
        assert form_of(again).variables.lines[0].value.text() == ""
        assert not again.start.isEnabled()  # the secret has to be typed again
        again.reject()
        assert window.requests.starting.presets.draft is not None
    for file, data in contents(home.parent).items():
        assert SECRET.encode() not in data, file


async def test_a_form_that_was_only_looked_at_leaves_no_draft(home: Path) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "new", StartDialog)
        for kind in startable():
            dialog.form.choose(kind)
        dialog.reject()
        starting = session.window.requests.starting
        starting.open(Asked("crawl", {"url": "https://example.com/"}), whole=True)
        dialog_of(session).reject()
        assert starting.presets.draft is None


async def test_a_form_that_is_open_at_the_end_of_the_program_is_a_draft(home: Path) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "new", StartDialog)
        starting = session.window.requests.starting
        QTest.keyClicks(dialog.form["url"].editor, "example.com/docs")
    assert starting.presets.draft is not None
    assert starting.presets.draft.asked.args["url"] == "https://example.com/docs"


async def test_json_that_cannot_be_kept_is_not_lost_without_a_question(home: Path) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "new", StartDialog)
        dialog.tabs.setCurrentWidget(dialog.json)
        dialog.json.text.setPlainText('{"kind": ')
        dialog.reject()
        assert dialog.isVisible()
        question = next(one for one in dialog.findChildren(Question) if one.isVisible())
        press(question, "Discard")
        assert not dialog.isVisible()


async def test_a_retry_of_a_replay_needs_no_value_a_second_time(home: Path, site: Site) -> None:
    """The window keeps the values of what it started; after a restart it asks for them."""
    commands = [
        {
            "tool_name": "browser_navigate",
            "intention": "go",
            "args": {"action": "goto", "url": f"{site.url}/login"},
        },
        {
            "tool_name": "browser_interact",
            "intention": "type into nothing",
            "args": {
                "action": "type",
                "selector": "#nothing",
                "text": "{{password}}",
                "timeout": 100,
            },
        },
    ]
    args = {"task_name": "a", "task_intention": "b", "commands": commands}
    given = {**args, "variables": {"password": SECRET}}
    async with opened(home) as session:
        window, batch, told = session.window, session.bridge.batch, heard(session.bridge.started)
        assert not session.bridge.problems(Asked("commands", given))
        session.bridge.begin(Asked("commands", given))
        (first,) = await told
        assert await ended(session, first.task_id) == "FAILED"
        window.table.select_ids([first.task_id])
        await until(lambda: window.acts["retry_failed"].isEnabled(), batch)
        window.acts["retry_failed"].trigger()
        await become(lambda: window.findChildren(Question))
        press(dialog_of(session), "Start")
        (second,) = [
            one
            for one in await until(
                lambda: window.model.total == 2 and list(window.model.ids), batch
            )
            if one != first.task_id
        ]
        assert await ended(session, second) == "FAILED"
        assert session.bridge.remembers(second)
        again = await session.bridge.remainder(second, "")
        assert again.refusal is None
        assert again.request is not None
        assert again.request.args["variables"] == given["variables"]
        assert SECRET not in (home / "tasks" / second / "meta.json").read_text()
