"""What can be wrong with a recording, in words."""

from __future__ import annotations

from engine.model.errors import EngineError


class NoDisplay(EngineError):
    """A window was asked for, and there is no screen to show it on."""

    code = "no_display"
    title = "There is no screen"
    # The way out stands in the sentence: of an error that ends a task nothing else is kept.
    sentence = (
        "A recording with a window needs a screen, and there is none here. "
        "Record without a window (--headless), or start it where there is a screen."
    )


class NotStoppable(EngineError):
    """Only a recording has an orderly stop; everything else is cancelled."""

    code = "not_stoppable"
    title = "This task cannot be stopped in good order"
    sentence = "Task {task_id} is of the kind {kind}: only a recording can be stopped."
    advice_text = "Cancel it instead; what it has finished is kept."


class NotARecording(EngineError):
    """An export as a command task or trace was asked of something else."""

    code = "not_a_recording"
    title = "This is no recording"
    sentence = "Task {task_id} is of the kind {kind}, not a recording."
    advice_text = "Look for recordings with `octask list --kind recording`."


class NothingToReplay(EngineError):
    """A recording in which nothing was done that a command could do again."""

    code = "nothing_to_replay"
    title = "There is nothing to replay"
    sentence = "Recording {task_id} holds no action that can be replayed."
    advice_text = "Record again, and do in the page what is to be replayed."
