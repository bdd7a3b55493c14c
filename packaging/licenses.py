"""Write the licenses of all libraries of the package into one file.

python licenses.py OUTPUT [SYSTEM_LIBRARY …]
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.doctor.third_party_licenses import components, rendered

TEXTS = Path(__file__).resolve().parent.parent / "resources" / "licenses"


def main() -> None:
    output, *libraries = sys.argv[1:]
    Path(output).write_text(rendered(components(TEXTS, tuple(libraries))), "utf-8")


if __name__ == "__main__":
    main()
