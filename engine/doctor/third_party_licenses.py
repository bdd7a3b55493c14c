"""Libraries that the program consists of, with their licenses and the texts of these.

From source the texts come from the installed packages. A package of the program carries them in the
file `THIRD-PARTY-LICENSES.txt`, which its build writes.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import (
    Distribution,
    PackageMetadata,
    PackageNotFoundError,
    distribution,
)
from pathlib import Path
from typing import Final

FILE_NAME: Final = "THIRD-PARTY-LICENSES.txt"
ROOT: Final = "openchrome-monitor"
_RULE: Final = "=" * 78
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)""")
_TEXTS: Final = re.compile(r"(licen[sc]e|copying|notice|authors|copyright)", re.IGNORECASE)
_CLASSIFIER: Final = "License :: OSI Approved :: "
# Wheels that name a license and hold no text of it.
_QT_TEXTS: Final = ("LGPL-3.0.txt", "GPL-3.0.txt")


@dataclass(frozen=True, slots=True)
class Component:
    """One library: `license` is an SPDX expression or the name that its makers give."""

    name: str
    version: str
    license: str
    text: str
    is_python: bool = True


def components(
    texts: Path | None = None, system_libraries: tuple[str, ...] = ()
) -> list[Component]:
    """Return the parts of the program, by name.

    Args:
        texts: folder with the texts of licenses that wheels name only (LGPL-3.0.txt, GPL-3.0.txt).
        system_libraries: names of further libraries, without version and text.
    """
    found = [*gathering(texts)]
    found += [Component(name, "", "", "", is_python=False) for name in system_libraries]
    return sorted(found, key=lambda one: one.name.casefold())


def gathering(texts: Path | None = None) -> Iterator[Component]:
    """Yield the parts of the program one by one, for a window that must not wait (2 ms each)."""
    if getattr(sys, "frozen", False):
        yield from parsed((Path(sys._MEIPASS) / FILE_NAME).read_text("utf-8"))  # type: ignore[attr-defined]
        return
    for one in _required(ROOT):
        yield _of_distribution(one, texts)
    yield _python()
    yield from _of_playwright()


def _required(root: str) -> Iterator[Distribution]:
    """Yield every installed distribution that `root` needs, with all extras of `root`."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(root, "*")]  # a name with one extra; "" is without any
    while left:
        name, extra = left.pop()
        key = _normal(name)
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        if key not in found:
            try:
                found[key] = distribution(key)
            except PackageNotFoundError:
                continue  # of another system, or an extra that is not installed
            if key != _normal(root):
                yield found[key]
        for requirement in found[key].requires or ():
            needed = _REQUIREMENT.match(requirement)
            of_extra = _EXTRA.search(requirement)
            if needed and (of_extra is None or extra in {"*", of_extra[1]}):
                extras = (needed[2] or "").split(",")
                left += [(needed[1], one.strip()) for one in {"", *extras}]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).casefold()


def _of_distribution(one: Distribution, texts: Path | None) -> Component:
    told = one.metadata
    expression = _field(told, "License-Expression") or _classified(told.get_all("Classifier") or [])
    written = _field(told, "License")
    license_name = expression or (written if written and "\n" not in written else "")
    parts = [
        Path(str(file.locate())).read_text("utf-8", "replace")
        for file in sorted(one.files or (), key=str)
        if ".dist-info" in file.parts[0] and _TEXTS.search(file.name) and file.suffix != ".py"
    ]
    if not parts and "LGPL-3.0" in license_name and texts is not None:
        parts = [(texts / name).read_text("utf-8") for name in _QT_TEXTS]
    return Component(one.name, one.version, license_name, "\n\n".join(map(str.strip, parts)))


def _field(told: PackageMetadata, name: str) -> str:
    return str(told[name]).strip() if name in told else ""


def _classified(classifiers: list[str]) -> str:
    names = [one.removeprefix(_CLASSIFIER) for one in classifiers if one.startswith(_CLASSIFIER)]
    return ", ".join(names)


def _python() -> Component:
    """Return the interpreter, which a package of the program carries."""
    for place in (Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix)):
        for name in ("LICENSE.txt", "LICENSE"):
            if (place / name).is_file():
                text = (place / name).read_text("utf-8", "replace").strip()
                return Component("CPython", platform.python_version(), "PSF-2.0", text, False)
    return Component("CPython", platform.python_version(), "PSF-2.0", "", False)


def _of_playwright() -> list[Component]:
    """Return what the wheel of Playwright carries: its driver, and Node.js with its parts."""
    driver = Path(str(distribution("playwright").locate_file("playwright"))) / "driver"
    version = str(json.loads((driver / "package" / "package.json").read_text("utf-8"))["version"])
    found = []
    for name, license_name, places in (
        ("Node.js", "MIT", ("LICENSE",)),
        ("playwright-driver", "Apache-2.0", ("package/LICENSE", "package/NOTICE")),
        ("playwright-driver-libraries", "", ("package/ThirdPartyNotices.txt",)),
    ):
        texts = [driver / place for place in places if (driver / place).is_file()]
        text = "\n\n".join(one.read_text("utf-8", "replace").strip() for one in texts)
        known = version if name.startswith("playwright") else ""
        found.append(Component(name, known, license_name, text, is_python=False))
    return found


def rendered(found: list[Component]) -> str:
    """Return one text of all components; `parsed` reads it back."""
    parts = [
        "\n".join((_RULE, one.name, one.version, one.license, str(one.is_python), _RULE, one.text))
        for one in found
    ]
    return "\n".join(parts) + "\n"


def parsed(text: str) -> list[Component]:
    """Return the components of a text that `rendered` made; of another text, none."""
    lines = text.removesuffix("\n").split("\n")
    heads = [
        at
        for at in range(len(lines) - 5)
        if lines[at] == _RULE and lines[at + 5] == _RULE and lines[at + 4] in {"True", "False"}
    ]
    found = []
    for at, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        name, version, license_name, is_python = lines[at + 1 : at + 5]
        text = "\n".join(lines[at + 6 : end])
        found.append(Component(name, version, license_name, text, is_python == "True"))
    return found
