"""Task envelopes (seed 004): an objective, a phase and budgets around an agent's own work.

An envelope has no body here: a host drives it through browser tools, and each call that
names it is counted. Nothing is ever stopped by it.
"""

from engine.budgets import ToolCall
from engine.budgets.envelopes.envelope_requests import (
    PHASES,
    EnvelopeRequest,
    EnvelopeState,
    envelope_request,
    has_budget,
    state_of,
)
from engine.budgets.envelopes.envelopes import DurationMeter, Envelopes, apply, edge_events
from engine.budgets.envelopes.errors import EnvelopeEnded, NotAnEnvelope

__all__ = [
    "PHASES",
    "DurationMeter",
    "EnvelopeEnded",
    "EnvelopeRequest",
    "EnvelopeState",
    "Envelopes",
    "NotAnEnvelope",
    "ToolCall",
    "apply",
    "edge_events",
    "envelope_request",
    "has_budget",
    "state_of",
]
