"""A field's label loses its colon, so that no text behind it passes for the secret itself."""

import pytest

from engine import redact
from engine.work.recording_actions import plain_label
from engine.work.recording_export import command_task

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
