"""Why an open task run stands where it stands, in a sentence."""

from __future__ import annotations

from engine.model.display import display
from engine.model.records import TaskRecord
from engine.model.status import NEEDS_HELP
from engine.text.catalogue import say


def why_open(record: TaskRecord) -> str:
    """What it waits for, or what whoever works for it says."""
    asked = record.args_summary.get("needs_help")
    if record.status == NEEDS_HELP and isinstance(asked, dict):
        told = (display(str(asked.get(name) or ""), 300) for name in ("reason", "resume_hint"))
        return say("why.help", told=" ".join(told)).strip()
    said = record.args_summary.get("progress_summary")
    summary = display(said, 300) if isinstance(said, str) else ""
    return say("why.run.doing", summary=summary) if summary else say("why.run")
