"""Messages of the command line only, by id; shared phrases are in `words`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.model.display import display

ENGLISH: Final[Mapping[str, str]] = {
    "list.none": "No tasks in {root}",
    "result.none": "There is no result yet.",
    "result.none.ended": "It ended without a result; `octask export` gives what it kept, if any.",
    "cancel.asked": "asked to stop",
    "cancel.already": "already {status}",
    "cancel.none": "No task that could be cancelled matches.",
    "cancel.pending": "{count} waiting: cancelled at once",
    "cancel.running": "{count} running: they stop after the unit they are on; what is done is kept",
    "cancel.at_once": "{count} driven from outside: cancelled at once",
    "cancel.foreign": "{count} run by another program: asked only, that program must act",
    "cancel.skipped": "{count} skipped: {why}",
    "cancel.ended": "{count} already ended",
    "cancel.lost": "{count} without a living owner",
    "cancel.unknown": "{count} in a state that is not known here",
    "cancel.requested": "{count} already asked to stop",
    "cancel.question": "Cancel {count} tasks?",
    "cancel.question.one": "Cancel 1 task?",
    "cancel.kept": "Nothing was cancelled.",
    "reap.unjudged": "{task_id}  left as it is: {why}",
    "reap.none": "Nothing to reap.",
    "run.ended": "{name}: {status}, {done} of {total} commands in {took}  ({task_id})",
    "run.failed.url": "at {told}",
    "run.failed.screenshot": "picture: {told}",
    "run.queued": "… {count} waiting",
    "run.warning": "warning",
    "complete.asked": "{task_id}  will be COMPLETED at its next page",
    "complete.ended": "{task_id}  {status}",
    "contract.line": (
        "{id}  {done}/{total} {key}: {completed} completed, {failed} failed, {skipped} skipped"
    ),
    "contract.cursor": "  cursor: {value}",
    "contract.cut": "  and {count} more {word}",
    "contract.none": "No contracts.",
    "forced": "  Forced by {by} {ago} ago: {reason}",
    "task_run.line": "{id}  {status}  {completed} completed, {failed} failed  {goal}",
    "task_run.none": "No task runs.",
    "task_run.progress_summary": "  {value}",
    "task_run.current_cursor": "  cursor: {value}",
    "task_run.needs_help": "  needs help: {value}",
    "task_run.resume_hint": "  afterwards: {value}",
    "task_run.checkpoint": "  checkpoint: {value}",
    "schedule.none": "No schedules. `octask schedules add KIND URL --every 6h` adds one.",
    "schedule.nothing_due": "Nothing is due.",
    "schedule.deleted": "{id}  deleted; its tasks stay",
    "serve.ready": "Serving on {url}  (Ctrl-C ends it)",
    "serve.token": "Address and token: {path}",
    "serve.ending": "Ending; running tasks are cancelled and keep what is finished.",
    "start.accepted": "Started {task_id}",
    "start.away": "The ledger folder is away, waiting.",
    "start.back": "The ledger folder is back; the task goes on.",
    "start.back.ending": "The ledger folder is back; the task is being cancelled.",
    "place.silent": "The ledger folder does not answer yet, waiting: {root}",
    "start.cancelling": "Cancelling; what is finished is kept. Press Ctrl-C again to end at once.",
    "start.stopping": "Stopping the recording in good order. Press Ctrl-C again to end at once.",
    "stop.asked": "{task_id}  asked to end in good order",
    "stop.ended": "{task_id}  has ended: {status}",
    "recording.written": "Wrote {path} ({format})",
    "recording.left_out": "Not replayed: action {action}: {why}",
    "recording.variables": (
        "To replay it, give values to {names}: "
        "`octask recording export {task_id} --format variables -o FILE` writes a file to fill in."
    ),
    "recording.uploads": (
        "It uploads {names}: `octask run --allow-files DIR` says in which folder they lie."
    ),
    "start.ended": "{task_id}  {status}: {done} in {took}",
    "start.result": "Result: {path}",
    "resume.resumes": "{count} resumed, each as a new task that keeps the finished pages",
    "resume.whole": "{count} skipped: ended by themselves",
    "resume.resumed": "{count} skipped: resumed before",
    "resume.live": "{count} skipped: not ended",
    "resume.asks": "{count} skipped: their request is not stored whole",
    "resume.elsewhere": "{count} skipped: in another ledger",
    "resume.other": "{count} skipped: no crawls of this program",
    "resume.lost": "{count} skipped: cannot be read",
    "resume.none": "No task that could be resumed matches.",
    "resume.question": "Resume {count} tasks?",
    "resume.question.one": "Resume 1 task?",
    "resume.kept": "Nothing was resumed.",
    "watch.summary": "{total} tasks · {running} running · {root}",
    "watch.loading": "Reading {loaded} of {total}…",
    "watch.gone": "The ledger folder is gone: {root}",
    "watch.back": "The ledger folder is back: {root}",
    "export.done": "{rows} rows in {path}",
    "export.done.one": "1 row in {path}",
    "export.so_far": "{n} rows",
    "prune.preview.trash": "Would go to the trash: {number} ({size}).",
    "prune.preview.delete": "Would be deleted for good: {number} ({size}).",
    "prune.confirm": (
        "Nothing has been changed. Run it again with --yes. "
        "Records of their runs and contracts stay."
    ),
    "prune.kept": "Kept: {told}.",
    "prune.kept.rules": "by the limits given",
    "prune.kept.living": "not ended",
    "prune.kept.unreadable": "unreadable",
    "prune.kept.locked": "locked",
    "prune.kept.just_ended": "just ended",
    "prune.kept.changed": "changed since",
    "prune.kept.gone": "gone already",
    "prune.stayed": "{task_id}  kept: {why}",
    "prune.done.trash": "Moved to the trash: {number} ({size}).",
    "prune.done.delete": "Deleted: {number} ({size}).",
    "output.failed": "The answer could not be written: {reason}",
    "result.damaged": "result.json is not valid JSON",
    "result.holes": (
        "result.json is damaged: parts of it were never written (holes), and are left out here"
    ),
    "usage": "The command was not understood",
    "unexpected": "Something unexpected happened ({name}).",
    "unexpected.log": "The details are in {path}",
    "mistakes": "{title}:",
    "mistake.at": "  character {at}: {said}",
    "field.reason": "reason: {value}",
    "field.file": "file: {value}",
    "runs.none": "No runs yet.",
    "field.calls": "last calls:",
    "field.commands": "commands:",
    "crawl.routes": "{count} addresses with #/ or #!; `--fragments routes` follows them",
    "crawl.routes.one": "1 address with #/ or #!; `--fragments routes` follows it",
    "ended.recording.cancelled": "a cancel; what was recorded is kept",
    "ended.recording.failed": "a failure; what was recorded is kept",
    "field.arguments": "arguments:",
    "mcp.there": "exists ",
    "mcp.missing": "missing",
    "mcp.question": "Write this change?",
    "mcp.preview": "Nothing has been changed. To write it to {path}, run it again with --yes.",
    "mcp.present": "Nothing to change: {path} has this entry.",
    "mcp.absent": "Nothing to remove: {path} has no entry of this program.",
    "mcp.written": "Wrote {path}. Restart {host}, or reload its servers.",
    "mcp.undo": "To undo it: {command}",
    "mcp.long": "A line is too long to show. The entry is:",
    "mcp.by_hand": "To add it by hand:",
    "install.waiting": "Waiting for the download of another program…",
    "install.connecting": "Connecting…",
    "install.downloading": "Downloading Chromium…",
    "install.extracting": "Extracting…",
    "install.checking": "Starting it once…",
    "install.done": "Installed Chromium {version}: {path}",
    "install.present": "Already installed: Chromium {version}, {path}",
    "install.unused": "Tasks use another browser, which comes first: {path}",
    "column.id": "Id",
    "column.task": "Task",
}


def say(message_id: str, /, **fields: object) -> str:
    """Fill in a message's fields, each sanitised for a terminal.

    An unknown id raises `KeyError` (a bug).
    """
    safe = {name: display(text) if isinstance(text, str) else text for name, text in fields.items()}
    return ENGLISH[message_id].format(**safe)
