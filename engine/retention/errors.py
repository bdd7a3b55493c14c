"""What can stand in the way of letting a task go; each is one task's, the rest goes on."""

from __future__ import annotations

from engine.model.errors import EngineError


class NoTrash(EngineError):
    """The system has no trash for that folder, or does not take it; it stands untouched."""

    code = "no_trash"
    title = "It could not be moved to the trash"
    sentence = "Task {task_id} could not be moved to the trash: {reason}."
    advice_text = "Delete it for good with --delete, or move its folder away yourself."


class TaskStays(EngineError):
    """A task that a person wanted to let go of is not to be touched now."""

    code = "task_stays"
    title = "The task stays"
    sentence = "Task {task_id} stays: {reason}."
    advice_text = "Try again when it has ended and nobody writes there."


class DeleteFailed(EngineError):
    """A folder could not be deleted. What is left of it stands at `path`."""

    code = "delete_failed"
    title = "It could not be deleted"
    sentence = "Task {task_id} could not be deleted: {reason} ({path})."
    advice_text = "Close whatever has its files open, or remove the folder yourself."
