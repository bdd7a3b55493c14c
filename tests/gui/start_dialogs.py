"""A start dialog alone, with the engine's own validation."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QLabel, QWidget

from engine.model.errors import Problem
from engine.service.requests import problems
from engine.service.rerun import Asked

LOOK_TASK: dict[str, Any] = {
    "task_name": "look",
    "task_intention": "see <b>it</b>",
    "commands": [
        {
            "tool_name": "browser_navigate",
            "intention": "open",
            "args": {"action": "goto", "url": "http://127.0.0.1:9/"},
        },
        {
            "tool_name": "browser_execute",
            "intention": "run",
            "args": {"action": "evaluate", "script": "1"},
        },
    ],
}


def judged(asked: Asked) -> tuple[Problem, ...]:
    return problems(asked.kind, asked.args, asked.name, asked.terms)


def words_of(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())
