"""Errors of removing a task; each concerns one task, and the others continue."""

from __future__ import annotations

from engine.model.errors import EngineError


class NoTrash(EngineError):
    """The system has no trash for that folder, or refuses it; the folder is untouched."""

    code = "no_trash"
    title = "It could not be moved to the trash"
    sentence = "Task {task_id} could not be moved to the trash: {reason}."
    advice_text = "Delete it for good with --delete, or move its folder away yourself."


class TaskStays(EngineError):
    """A task that a person wanted to remove must stay for now."""

    code = "task_stays"
    title = "The task stays"
    sentence = "Task {task_id} stays: {reason}."
    advice_text = "Try again when it has ended and nobody writes there."


class DeleteFailed(EngineError):
    """A folder could not be deleted. The rest of it is at `path`."""

    code = "delete_failed"
    title = "It could not be deleted"
    sentence = "Task {task_id} could not be deleted: {reason} ({path})."
    advice_text = "Close whatever has its files open, or remove the folder yourself."
