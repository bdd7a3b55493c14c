"""A field's label loses its colon, so that no text behind it passes for the secret itself."""

import pytest

from engine.kinds.recording.recording_actions import Action
from engine.kinds.recording.recording_export import command_task
from engine.model import redact
from engine.results.action_words import plain_label

LABELS = ["Password:", "Password: *", "Secret token :", "Passwort：", "API-Key:"]


@pytest.mark.parametrize("label", LABELS)
def test_an_intention_with_a_label_survives_the_redactor(label: str) -> None:
    typed = {
        "n": 1,
        "type": "type",
        "selector": "#p",
        "role": "textbox",
        "name": label,
        "text": "{{p}}",
        "variable": "p",
    }
    task = command_task({}, [typed])
    assert task is not None
    (command,) = task["commands"]
    assert label.split()[0].rstrip(":：") in command["intention"]
    assert redact.text(command["intention"]) == command["intention"]


def test_a_label_of_nothing_but_signs_stays() -> None:
    assert plain_label("*") == "*"
    assert plain_label("Name") == "Name"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action(1, "click", 1, "", name="Save"), "Click element “Save”"),
        (Action(1, "click", 1, "", name="Save", count=2), "Double-click element “Save”"),
        (
            Action(1, "click", 1, "", name="Save", button="right"),
            "Click element “Save” with the right button",
        ),
        (Action(1, "check", 1, "", name="Gift", on=True), "Check element “Gift”"),
        (Action(1, "check", 1, "", name="Gift", on=False), "Uncheck element “Gift”"),
    ],
)
def test_labels_name_count_and_button_of_clicks(action: Action, words: str) -> None:
    assert action.words() == words
