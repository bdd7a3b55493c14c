"""Errors of an export; after each of them no partial file is left."""

from __future__ import annotations

from engine.model.errors import EngineError


class NothingToExport(EngineError):
    """The task has no stored unit and no result."""

    code = "nothing_to_export"
    title = "There is nothing to export"
    sentence = "Task {task_id} has kept nothing yet."
    advice_text = "Wait until it has finished a first page or step."


class NothingKept(NothingToExport):
    """The task has ended without any stored unit or result."""

    code = "nothing_kept"
    sentence = "Task {task_id} ended as {status} and has kept nothing."
    advice_text = "`octask get {task_id}` says why; `octask rerun {task_id}` starts it once more."


class ExportExists(EngineError):
    """The file exists already, and replacing it was not allowed."""

    code = "export_exists"
    title = "The file is there already"
    sentence = "There is a file {path} already."
    advice_text = "Give another name, or --force to replace it."


class ExportRefused(EngineError):
    """The path is not valid for an export: a folder, a device, or inside the ledger."""

    code = "export_refused"
    title = "Not there"
    sentence = "Nothing can be exported to {path}: {reason}."
    advice_text = "Give the name of a new file."


class ExportFailed(EngineError):
    """Writing failed (a full disk, say); no file was left behind."""

    code = "export_failed"
    title = "The export could not be written"
    sentence = "The export could not be written to {path}: {reason}"
    advice_text = "Free some space or choose another folder, then try again."


class ExportStopped(EngineError):
    """The user stopped it; no file was left behind."""

    code = "export_stopped"
    title = "The export was stopped"
    sentence = "The export was stopped after {rows} rows; no file was left behind."


class ResultDamaged(EngineError):
    """result.json is truncated or no JSON, so that an export would be incomplete."""

    code = "result_damaged"
    title = "The result is damaged"
    sentence = "result.json of task {task_id} cannot be read: {reason} (behind row {rows})."
    advice_text = "Mend or remove the file; `octask get ID --result` shows it as it stands."
