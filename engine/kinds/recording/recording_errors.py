"""Errors of recordings."""

from __future__ import annotations

from engine.model.errors import EngineError


class NoDisplay(EngineError):
    """A window was requested, but no display is available."""

    code = "no_display"
    title = "There is no screen"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "A recording with a window needs a screen, and there is none here. "
        "Record without a window (--headless), or start it where there is a screen."
    )


class NotStoppable(EngineError):
    """A stop was requested for a task that only supports cancel."""

    code = "not_stoppable"
    title = "This task cannot be stopped in good order"
    sentence = "Task {task_id} is of the kind {kind}: only a recording can be stopped."
    advice_text = "Cancel it instead; what it has finished is kept."


class NotARecording(EngineError):
    """An export as a command task or trace was requested for another kind of task."""

    code = "not_a_recording"
    title = "This is no recording"
    sentence = "Task {task_id} is of the kind {kind}, not a recording."
    advice_text = "Look for recordings with `octask list --kind recording`."


class NothingToReplay(EngineError):
    """A recording without any action that a command can replay."""

    code = "nothing_to_replay"
    title = "There is nothing to replay"
    sentence = "Recording {task_id} holds no action that can be replayed."
    advice_text = "Record again, and do in the page what is to be replayed."
