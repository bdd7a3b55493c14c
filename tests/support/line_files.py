"""Line files that another process or thread may be writing."""

import json
from pathlib import Path
from typing import Any


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines; none if the file is not there.

    A last line without its end is left out: its writer has not finished it.
    """
    if not path.exists():
        return []
    *lines, _unfinished = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]
