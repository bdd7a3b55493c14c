"""A task's folder as one zip file: what stands in it, as it stands, without locks and links."""

from __future__ import annotations

import zipfile
from typing import BinaryIO, Final

from engine.export.errors import ExportStopped
from engine.export.exporter import Exported, Watch
from engine.ledger.reader import LedgerLook

BLOCK: Final = 1024 * 1024
_PACKED = (".png", ".jpg", ".jpeg", ".webp", ".zip", ".gz")  # no smaller when deflated


def zip_folder(ledger: LedgerLook, task_id: str, out: BinaryIO, watch: Watch) -> Exported:
    """Write every file of the task into `out`, block by block.

    Raises:
        NotATaskId, TaskNotFound, TaskUnreadable: there is nothing to read.
        ExportStopped: somebody stopped it.
    """
    files = ledger.files(task_id)
    done, whole = 0, sum(size for _, size, _ in files)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        for number, (name, *_) in enumerate(files):
            facts = zipfile.ZipInfo(f"{task_id}/{name}")
            packed = name.lower().endswith(_PACKED)
            facts.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            with (
                ledger.open_file(task_id, name) as file,
                archive.open(facts, "w", force_zip64=True) as inside,
            ):
                while block := file.read(BLOCK):
                    if watch.stop.is_set():
                        raise ExportStopped(rows=number)
                    inside.write(block)
                    done += len(block)
                    watch.told(number, done, whole)
    return Exported(task_id, "zip", "", len(files), False, "", [])
