"""Errors of a named envelope."""

from __future__ import annotations

from engine.model.errors import EngineError


class NotAnEnvelope(EngineError):
    """A call, an update or a finish names a task with its own body; nothing was written."""

    code = "not_an_envelope"
    title = "The task is no envelope"
    sentence = "Task {task_id} is a {kind}, not a browser_task: it cannot be driven from outside."
    advice_text = "Only a task started as browser_task takes updates and calls."


class EnvelopeEnded(EngineError):
    """The envelope has ended; terminal is final, and nothing was written."""

    code = "envelope_ended"
    title = "The envelope has ended"
    sentence = "Envelope {task_id} is {status} already."
    advice_text = "Start a new one for more work."
