"""Components that the program consists of, with their licenses and the license texts.

From source they are read from the installed packages. A packaged program carries them in the file
`THIRD-PARTY-LICENSES.txt`, which its build writes:

    python -m engine.doctor.third_party_licenses OUTPUT [--system-library NAME …]
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import msgspec

from engine.model.build_info import bundle
from engine.model.errors import LicensesUnreadable

FILE_NAME: Final = "THIRD-PARTY-LICENSES.txt"
PROGRAM: Final = "openchrome-monitor"
# Texts of licenses that a wheel names without containing them, as those of Qt do.
TEXTS_FOLDER: Final = Path(__file__).parent / "license_texts"
_STANDARD_TEXTS: Final = {"LGPL-3.0": ("LGPL-3.0.txt", "GPL-3.0.txt")}
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)""")
_TEXT_FILE: Final = re.compile(r"(licen[sc]e|copying|notice|authors|copyright)", re.IGNORECASE)
_CLASSIFIER: Final = "License :: OSI Approved :: "
_MAX_NAME_CHARS: Final = 200  # some packages give the whole text as the name of their license
# Unambiguous names, by their SPDX identifier; "BSD License" is ambiguous.
_SPDX: Final = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_EVERY_EXTRA: Final = "*"


@dataclass(frozen=True, slots=True)
class Component:
    """One component; `license` is an SPDX expression, or the name that its makers use.

    `is_python` tells packages of the Python package index from other components. A system library
    has a name only.
    """

    name: str
    version: str = ""
    license: str = ""
    text: str = ""
    is_python: bool = False


def components(texts: Path = TEXTS_FOLDER, system_libraries: Iterable[str] = ()) -> list[Component]:
    """Return all components, sorted by name.

    A requirement for another system is left out, as is an extra that is not installed. Takes 0.2 s.

    Args:
        texts: folder of the texts of licenses that wheels name without containing them.
        system_libraries: names of libraries of the system that a package contains.

    Raises:
        LicensesUnreadable: the file of a packaged program is missing or damaged.
    """
    folder = bundle()
    if folder is not None:
        return _of_package(folder / FILE_NAME)
    found = [_of_distribution(one, texts) for one in _required(PROGRAM)]
    found += [_python(), *_playwright_driver()]
    found += [Component(_one_line(name)) for name in set(system_libraries)]
    return sorted(found, key=lambda one: (one.name.casefold(), one.name))


def _of_package(file: Path) -> list[Component]:
    try:
        return parsed(file.read_bytes().decode())
    except OSError as error:
        raise LicensesUnreadable(path=str(file), reason=error.strerror or "") from error
    except ValueError as error:
        raise LicensesUnreadable(path=str(file), reason=_NO_LIST) from error


# Packages of the Python package index.


def _required(root: str) -> Iterator[Distribution]:
    """Yield each installed distribution that `root` needs, with all of its extras."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(root, _EVERY_EXTRA)]  # a name with one extra; "" stands for none
    while left:
        name, extra = left.pop()
        key = _normalised(name)
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        try:
            one = found.get(key) or distribution(key)
        except PackageNotFoundError:
            continue
        if key not in found and key != root:
            yield one
        found[key] = one
        for requirement in one.requires or ():
            left += _needs(requirement, extra)


def _needs(requirement: str, extra: str) -> list[tuple[str, str]]:
    """Return the (name, extra) pairs that `requirement` adds for a package with `extra`."""
    needed, condition = _REQUIREMENT.match(requirement), _EXTRA.search(requirement)
    if needed is None or (condition is not None and extra not in (_EVERY_EXTRA, condition[1])):
        return []
    extras = [one.strip() for one in (needed[2] or "").split(",")]
    return [(needed[1], one) for one in {"": None} | dict.fromkeys(extras)]


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).casefold()


def _of_distribution(one: Distribution, texts: Path) -> Component:
    facts = one.metadata
    expression, given, classifiers = (
        facts.get_all(key) or [] for key in ("License-Expression", "License", "Classifier")
    )
    name = license_name("".join(expression), "".join(given), classifiers)
    found = [_plain(text) for text in _texts_of(one)]
    if not found:
        found = _standard_texts(name, texts)
    return Component(_one_line(one.name), _one_line(one.version), name, "\n\n".join(found), True)


def license_name(expression: str, given: str, classifiers: Iterable[str]) -> str:
    """Return one line for a license: the expression, else the given name, else the classifiers."""
    named = [one.removeprefix(_CLASSIFIER) for one in classifiers if one.startswith(_CLASSIFIER)]
    given = given.strip()
    if "\n" in given or len(given) > _MAX_NAME_CHARS:
        given = ""
    names = [expression or given] if expression or given else named
    return _one_line(" AND ".join(_SPDX.get(name, name) for name in names))


def _texts_of(one: Distribution) -> Iterator[bytes]:
    """Yield the license files of a distribution; from RECORD where its metadata names none."""
    named = one.metadata.get_all("License-File") or []
    places = [[f"licenses/{name}", name] for name in named]
    if not named:
        listed = sorted(map(str, one.files or ()))
        parts = [place.partition(".dist-info/")[2] for place in listed]
        places = [[part] for part in parts if _TEXT_FILE.search(part.rpartition("/")[2])]
    # `Distribution.read_text` fails for a text that is not UTF-8.
    folder = Path(str(one.locate_file(""))) / _folder_name(one)
    for candidates in places:
        files = [file for part in candidates if (file := folder / part).is_file()]
        if files:
            yield files[0].read_bytes()


def _folder_name(one: Distribution) -> str:
    """Return the name of the folder with the metadata, whose spelling differs from the name's."""
    ends = (str(file) for file in one.files or () if str(file).endswith(".dist-info/METADATA"))
    return next(ends, "").rpartition("/")[0]


def _standard_texts(name: str, texts: Path) -> list[str]:
    files = [file for key, found in _STANDARD_TEXTS.items() if key in name for file in found]
    return [_plain((texts / file).read_bytes()) for file in files]


# Components that are no such package.


def _python() -> Component:
    """Return the interpreter."""
    folders = (Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix))
    files = (folder / name for folder in folders for name in ("LICENSE.txt", "LICENSE"))
    text = next((_plain(file.read_bytes()) for file in files if file.is_file()), "")
    return Component("CPython", platform.python_version(), "PSF-2.0", text)


def _playwright_driver() -> list[Component]:
    """Return what Playwright's wheel contains besides Python: its driver and Node.js."""
    driver = Path(str(distribution("playwright").locate_file("playwright/driver")))
    package = driver / "package"
    libraries = [package / "ThirdPartyNotices.txt", *sorted(package.glob("lib/**/*.LICENSE"))]
    try:
        version = msgspec.json.decode((package / "package.json").read_bytes())["version"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        version = ""
    return [
        Component("Node.js", "", "MIT", _joined([driver / "LICENSE"])),
        Component(
            "Playwright driver",
            _one_line(str(version)),
            "Apache-2.0",
            _joined([package / "LICENSE", package / "NOTICE"]),
        ),
        Component("Playwright driver: libraries", "", "", _joined(libraries)),
    ]


def _joined(files: Iterable[Path]) -> str:
    return "\n\n".join(_plain(file.read_bytes()) for file in files if file.is_file())


def _plain(content: bytes) -> str:
    """Return a text with plain line ends, without form feeds and blank lines around it."""
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(line.rstrip() for line in text.replace("\f", "\n").split("\n")).strip("\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


# The file of a package. Each component has a header with the number of lines of its text, so that
# no text can be mistaken for a header.

_RULE: Final = "=" * 78
_KEYS: Final = ("Component", "Version", "License", "Kind", "Lines")
_PYTHON_KIND, _OTHER_KIND = "Python package", "other"
_HEADER_LINES: Final = len(_KEYS) + 2
_NO_LIST: Final = "the file is damaged"


def rendered(found: Iterable[Component]) -> str:
    """Return all components as one text, which `parsed` reads."""
    return "".join(map(_rendered_one, found))


def _rendered_one(one: Component) -> str:
    lines = one.text.split("\n") if one.text else []
    kind = _PYTHON_KIND if one.is_python else _OTHER_KIND
    values = (one.name, one.version, one.license, kind, str(len(lines)))
    header = [f"{key}: {value}".rstrip() for key, value in zip(_KEYS, values, strict=True)]
    return "\n".join([_RULE, *header, _RULE, *lines]) + "\n\n"


def parsed(text: str) -> list[Component]:
    """Return the components of a text that `rendered` made.

    Raises:
        ValueError: the text has another form.
    """
    lines, found, at = text.split("\n"), [], 0
    while at < len(lines) - 1:
        values = _header(lines[at : at + _HEADER_LINES])
        start = at + _HEADER_LINES
        end = start + int(values[4])
        if not start <= end < len(lines) - 1:
            raise ValueError(_NO_LIST)
        body = "\n".join(lines[start:end])
        name, version, license_line, kind = values[:4]
        found.append(Component(name, version, license_line, body, kind == _PYTHON_KIND))
        at = end + 1
    if not found:
        raise ValueError(_NO_LIST)
    return found


def _header(lines: list[str]) -> list[str]:
    if len(lines) < _HEADER_LINES or lines[0] != _RULE or lines[-1] != _RULE:
        raise ValueError(_NO_LIST)
    values = []
    for key, line in zip(_KEYS, lines[1:-1], strict=True):
        if not line.startswith(f"{key}:"):
            raise ValueError(_NO_LIST)
        values.append(line[len(key) + 2 :])
    return values


def main() -> None:
    """Write the file of a package."""
    parser = argparse.ArgumentParser(description="Write the licenses of all components to a file.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--texts", type=Path, default=TEXTS_FOLDER, help="folder of further texts")
    parser.add_argument("--system-library", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    found = components(options.texts, options.system_library)
    options.output.write_bytes(rendered(found).encode())


if __name__ == "__main__":
    main()
