"""`lifecycle.jsonl`: every transition of a run, in the audit session that the run is linked to."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from engine.contracts.lifecycle.run_record import RUN_ID
from engine.ledger import journal
from engine.ledger.files import Folder, writing
from engine.ledger.lease import make_root
from engine.model.errors import EngineError

log = logging.getLogger(__name__)

FOLDER: Final = "audit"
FILE: Final = "lifecycle.jsonl"


class Audit:
    """The audit sessions below `<home>/audit/`; `session_id` is this process' own.

    Its folder is made with its first line, so that a process that only looks leaves none.
    """

    def __init__(self, home: Path, session_id: str | None = None) -> None:
        self._folder = home / FOLDER
        self.session_id = session_id or f"session-{uuid4()}"

    def write(self, session_id: str, line: dict[str, Any]) -> None:
        """Add one line by one write. What cannot be written is logged: the run itself counts."""
        if not RUN_ID.fullmatch(session_id):
            session_id = self.session_id
        try:
            make_root(self._folder)
            with writing(str(self._folder)), Folder.at(str(self._folder)) as audit:
                with suppress(FileExistsError):
                    audit.make_folder(session_id)
                with audit.enter(session_id) as session:
                    session.append(FILE, journal.line(line), heal=True)
        except EngineError as error:
            log.warning("audit session %s: a transition was not written: %s", session_id, error)
