"""Task envelopes (seed 004): an objective, a phase and budgets around an agent's own work.

An envelope has no body here: a host drives it through browser tools, and each call that
names it is counted. Nothing is ever stopped by it.
"""

from engine.budget import ToolCall
from engine.envelopes.envelopes import Envelopes, apply, edge_events
from engine.envelopes.errors import EnvelopeEnded, NotAnEnvelope
from engine.envelopes.lasting import Lasting
from engine.envelopes.request import PHASES, EnvelopeRequest, envelope_request
from engine.envelopes.state import EnvelopeState, has_budget, state_of

__all__ = [
    "PHASES",
    "EnvelopeEnded",
    "EnvelopeRequest",
    "EnvelopeState",
    "Envelopes",
    "Lasting",
    "NotAnEnvelope",
    "ToolCall",
    "apply",
    "edge_events",
    "envelope_request",
    "has_budget",
    "state_of",
]
