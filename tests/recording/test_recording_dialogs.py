"""Dialogs of a page in a recording: the person answers, and the replay answers the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.recording.recorder_messages import Answered
from engine.kinds.commands.command_check import check
from engine.kinds.recording.recording_actions import Masks, Scribe
from engine.kinds.recording.recording_export import command_task
from tests.recording.test_recording_export import exported, replayed, state_of
from tests.recording.trap_pages import served

PAGE = """<h1>Dialogs</h1><button id="delete">Delete</button> <button id="rename">Rename</button>
<button id="pin">Pin</button><p id="said"></p>
<script>
const said = document.querySelector("#said");
const say = (text) => { said.textContent += ` ${text};`; };
document.querySelector("#delete").onclick = () => say(confirm("Delete it?") ? "deleted" : "kept");
document.querySelector("#rename").onclick = () => {
  if (confirm("Rename it?")) say("named " + prompt("New name", "old"));
};
document.querySelector("#pin").onclick = () => {
  alert("Careful");
  say(prompt("Your PIN").length);
};
</script>"""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served({"dialogs": PAGE}) as url:
        yield url


async def test_a_replay_answers_dialogs_as_the_person_did(
    recording: Any, pages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.kinds.recording.recording_kind.InstanceOptions",
        lambda **given: InstanceOptions(**{**given, "asks_person": True}),
    )
    async with recording(f"{pages}/dialogs") as running:
        operator = running.operator
        answers: list[Any] = []

        async def answer(dialog: Any) -> None:
            answered = answers.pop(0)
            await (dialog.dismiss() if answered is None else dialog.accept(answered))

        operator.page.on("dialog", answer)
        for button, *given in (
            ("#delete", None),
            ("#delete", ""),
            ("#rename", "", "Weekly report"),
            ("#rename", "", "old"),
            ("#pin", "", "98127634"),
            ("#delete", None),
        ):
            answers.extend(given)
            await operator.click(button)
        await operator.heard()
        assert not answers
        wanted = await state_of(operator.page)
        end = "kept; deleted; named Weekly report; named old; 8; kept;"
        assert end in json.dumps(wanted)
        await running.stop()
        whole = json.dumps(running.result())
        assert "Weekly" not in whole
        assert "98127634" not in whole
        task = exported(running, tmp_path)
        assert "notReplayed" not in task["metadata"]
        known = {one["name"]: one["secret"] for one in task["metadata"]["variables"]}
        assert known == {"prompt": False, "prompt_2": True}
        given_values = {"prompt": "Weekly report", "prompt_2": "98127634"}
        assert await replayed(running, {**task, "variables": given_values}) == wanted


async def test_without_a_person_a_dialog_is_dismissed_and_said(recording: Any, pages: str) -> None:
    async with recording(f"{pages}/dialogs") as running:
        await running.operator.click("#delete")
        said = await running.operator.recorded("dialog")
    assert (said["dialog"], said["answer"], said["name"]) == ("confirm", "dismissed", "Delete it?")


def test_a_message_that_repeats_what_was_typed_is_masked() -> None:
    scribe = Scribe(Masks(keep_text=False))
    first = Answered(1, 0, "http://a.test/", "prompt", "Name", True, "Ada Lovelace")
    again = Answered(2, 0, "http://a.test/", "confirm", "Delete Ada Lovelace?", True)
    (_, second) = (*scribe.take(first), *scribe.take(again))
    assert second.name == "Delete {{prompt}}?"
    assert second.words() == "Accept the dialog “Delete {{prompt}}?”"


def test_dialogs_of_one_action_that_were_answered_differently_are_said_to_be_left_out() -> None:
    click = {"n": 1, "type": "click", "selector": "#a", "url": ""}
    asked = {"type": "dialog", "dialog": "confirm", "url": ""}
    task = command_task(
        {},
        [click, {**asked, "n": 2, "answer": "accepted"}, {**asked, "n": 3, "answer": "dismissed"}],
    )
    assert task is not None
    assert [one["args"]["action"] for one in task["commands"]] == ["dialog", "click"]
    assert [one["action"] for one in task["metadata"]["notReplayed"]] == [3]


def test_a_replay_stays_where_the_person_stayed_and_leaves_where_they_left() -> None:
    click = {"n": 1, "type": "click", "selector": "#a", "url": ""}
    asked = {"type": "dialog", "dialog": "beforeunload", "url": ""}
    leaves, stays = ({**asked, "answer": one} for one in ("accepted", "dismissed"))
    reload = {"type": "navigate", "how": "reload", "url": "http://a.test/"}

    def told(*actions: dict[str, Any]) -> list[str]:
        task = command_task({}, list(actions))
        assert task is not None
        check(task)
        assert "notReplayed" not in task["metadata"]
        args = [one["args"] for one in task["commands"]]
        return [one.get("answer", one["action"]) for one in args]

    assert told(click, leaves, click) == ["click", "click"]
    assert told(click, stays, click, leaves) == ["stay", "click", "leave", "click"]
    assert told(click, stays, leaves, reload) == ["stay", "click", "leave", "reload"]
