"""WebSocket messages of seed 002: `task_submit` and `task_status`, and their responses.

One message is answered after the other, so a client that floods the socket waits for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
from starlette.websockets import WebSocket

from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.server.access import chosen_protocol
from engine.server.event_streams import first
from engine.server.http_answers import FAILED, NOT_JSON, Refusal, Refused
from engine.server.http_routes import ROUTE_NAMES
from engine.server.json_input import parsed
from engine.service.engine import Engine
from engine.verbs.json_answers import described_for_programs
from engine.verbs.model import CALLER, Caller
from engine.verbs.verb_table import VERBS

log = logging.getLogger(__name__)

MOST_ID: Final = 200  # characters of a message's id
GOING_AWAY: Final = 1001

NOT_TEXT: Final = Refusal(
    400, "not_text", "The message is not text", "Messages are JSON in text frames."
)
UNKNOWN_TYPE: Final = Refusal(
    400,
    "unknown_message_type",
    "There is no such message",
    "The type of a message is task_submit or task_status.",
)

Data = dict[str, Any]
# type -> verb, and the verb's parameter for each field of the message
TYPES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "task_submit": ("submit", {"task": "task", "agentId": "agent_id"}),
    "task_status": ("status", {"taskId": "task_id", "results": "results"}),
}
_OURS: Final = ("type", "id")


class Messages:
    """Answers the messages of any number of sockets."""

    def __init__(self, engine: Engine, stopping: asyncio.Event) -> None:
        self._engine = engine
        self._stopping = stopping

    async def serve(self, socket: WebSocket, caller: Caller) -> None:
        """Answer messages until the client leaves or the server ends."""
        await socket.accept(chosen_protocol(socket.scope.get("subprotocols", ())))
        while message := await first(socket.receive(), self._stopping.wait()):
            if message["type"] != "websocket.receive":
                return
            answer = await self.answer(message.get("text"), caller)
            data = await asyncio.to_thread(msgspec.json.encode, answer)
            await socket.send_text(data.decode())
        await socket.close(GOING_AWAY)

    async def answer(self, text: str | None, caller: Caller) -> Data:
        """Return the response to one message; None is a binary one."""
        head: Data = {"type": "error"}
        try:
            if text is None:
                raise Refused(NOT_TEXT)
            message = await parsed(text.encode("utf-8", "surrogatepass"))
            if not isinstance(message, dict):
                raise Refused(NOT_JSON)
            head |= _head(message)
            found = TYPES.get(message.get("type", "")) if _is_text(message.get("type")) else None
            if found is None:
                raise Refused(UNKNOWN_TYPE)
            head["type"] = f"{message['type']}_response"
            verb, fields = found
            given = {**_given(message, fields), CALLER: caller}
            return {**head, "success": True, **await self._call(verb, given, fields)}
        except Refused as refused:
            return {**head, "success": False, "error": refused.refusal.data()}
        except EngineError as error:
            return {**head, "success": False, "error": described_for_programs(error, ROUTE_NAMES)}
        except Exception:  # the client gets a typed answer, and the log the details
            log.exception("a message of the type %s failed", head.get("type"))
            return {**head, "success": False, "error": FAILED.data()}

    async def _call(self, name: str, given: Data, fields: Mapping[str, str]) -> Data:
        """Call the verb; a mistake has the name that its field has in the message."""
        verb = VERBS[name]
        if not verb.needs_caller:
            del given[CALLER]
        try:
            found: Data = await verb.call(self._engine, given)
        except InvalidArguments as error:
            of_param = {param: field for field, param in fields.items()}
            raise InvalidArguments(
                tuple(replace(one, path=of_param.get(one.path, one.path)) for one in error.problems)
            ) from None
        return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _head(message: Data) -> Data:
    """Return the id of the message, which its response repeats."""
    given = message.get("id")
    if given is None:
        return {}
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number and not (isinstance(given, str) and len(given) <= MOST_ID):
        wrong = f"must be a text of at most {MOST_ID} characters, or a whole number"
        raise InvalidArguments((Problem("id", "wrong_type", wrong),))
    return {"id": given}


def _given(message: Data, fields: Mapping[str, str]) -> Data:
    """Return the fields of a message by the names of the verb's parameters."""
    unknown = [name for name in message if name not in fields and name not in _OURS]
    if unknown:
        raise InvalidArguments(
            tuple(
                Problem(name[:MOST_ID], "unknown_argument", "is no field of this message")
                for name in unknown
            )
        )
    return {target: message[name] for name, target in fields.items() if name in message}
