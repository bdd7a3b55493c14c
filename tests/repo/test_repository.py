"""The repository has no foreign files, and its documents are correct."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.cli import calls, exit_codes

ROOT = Path(__file__).resolve().parents[2]
TOP = {
    *(".ci", ".github", ".gitignore", "dev", "dev.ps1", "pyproject.toml", "requirements.lock"),
    *("CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "docs"),
    *("engine", "fixtures", "gui", "packaging", "resources", "tests"),
}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PINNED = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# Built from parts, so that this file does not break its own rule.
INSIDE = re.compile(
    "|".join(
        (
            r"(?<![\w.)}])/wo" + r"rk/",
            r"/tmp/pl" + r"an\b",
            r"\bSP" + r"EC\b",
            r"(?<!\w)sha" + r"red/(?=\w+\.md|open|corpus)",
            r"\b(?:STACK|UX|FORMAT|STYLE)(?:\.md| §)",
            r"\b(?:RELIABIL" + r"ITY|PERFOR" + r"MANCE|ARCHITEC" + r"TURE)\b",
            r"\bissues? #?\d{1,2}\b",
            r"\bissues sh" + r"ow\b",
        )
    )
)


def tracked() -> list[Path]:
    """Every file of the repository; without git (an archive), every file but what tools made."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        listed = subprocess.run(
            [git, "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
        return [place for place in files if place.is_file()]
    made = re.compile(r"(^|/)(\.venv|\.git|__pycache__|\.\w+_cache|\.hypothesis|build|dist)(/|$)")
    places = (place for place in ROOT.rglob("*") if place.is_file())
    return [place for place in places if not made.search(place.relative_to(ROOT).as_posix())]


FILES = tracked()


def text_of(place: Path) -> str:
    try:
        return place.read_text("utf-8")
    except UnicodeDecodeError:
        return ""  # a picture


def test_the_top_level_holds_only_what_is_planned() -> None:
    assert {place.relative_to(ROOT).parts[0] for place in FILES} <= TOP


def test_no_file_speaks_of_the_place_where_it_was_made() -> None:
    found = [
        f"{place.relative_to(ROOT)}:{number}: {match[0]}"
        for place in FILES
        if not place.is_relative_to(ROOT / "fixtures" / "openchrome")
        and not place.is_relative_to(
            ROOT / "engine" / "doctor" / "license_texts"
        )  # the words of others
        for number, line in enumerate(text_of(place).splitlines(), 1)
        if (match := INSIDE.search(line))
    ]
    assert not found, "\n".join(found)


def test_no_file_is_heavy() -> None:
    heavy = {place.name: place.stat().st_size for place in FILES if place.stat().st_size > 300_000}
    assert not heavy


def test_the_lock_names_no_host() -> None:
    assert not re.search(r"https?://|--index-url|--find-links|^-i ", LOCK, re.MULTILINE)


def test_every_locked_package_has_its_hash() -> None:
    entries = re.split(r"\n(?=\w)", LOCK)
    bare = [
        entry.split()[0] for entry in entries if entry.strip() and "--hash=sha256:" not in entry
    ]
    assert not bare


def test_everything_that_is_asked_for_is_locked_within_its_bounds() -> None:
    locked: dict[str, list[str]] = {}
    for name, version in PINNED.findall(LOCK):
        locked.setdefault(canonicalize_name(name), []).append(version)
    asked = PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["dev"]
    for need in map(Requirement, asked):
        versions = locked[canonicalize_name(need.name)]
        assert any(need.specifier.contains(version) for version in versions), str(need)


def test_packages_hold_what_the_program_needs_in_the_version_that_is_tested() -> None:
    packed = (ROOT / "packaging" / "requirements.lock").read_text("utf-8")
    locked = [
        {(canonicalize_name(name), version) for name, version in PINNED.findall(lock)}
        for lock in (packed, LOCK)
    ]
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    for need in map(Requirement, chain(PYPROJECT["project"]["dependencies"], *extras)):
        name = canonicalize_name(need.name)
        versions, tested = ({one[1] for one in lock if one[0] == name} for lock in locked)
        assert versions, name
        assert versions <= tested, name


def test_qt_that_ends_old_pythons_is_kept_out() -> None:
    """PySide6 6.12 drops a reference of None on every call, fatal before Python 3.12."""
    line = next(
        line for line in LOCK.splitlines() if re.match(r"pyside6-essentials==6\.12", line, re.I)
    )
    assert "python_full_version >= '3.12'" in line


def test_only_engine_and_gui_are_shipped() -> None:
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["engine", "gui"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_link_inside_the_documents_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text("utf-8"))
    broken = [link for link in links if not (document.parent / link).exists()]
    assert not broken


def test_readme_names_the_exit_codes_as_they_are() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.MULTILINE)}
    assert codes == {
        *calls.BY_STATUS.values(),
        *(code for _, code in calls.BY_ERROR),
        exit_codes.KILLED,
    }


def test_readme_names_every_command_of_octask() -> None:
    from engine.cli.octask import octask

    readme = (ROOT / "README.md").read_text("utf-8")
    shown = {name for name, command in octask.commands.items() if not command.hidden}
    assert shown == set(re.findall(r"^octask ([\w-]+)", readme, re.MULTILINE))


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")
@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_the_scripts_can_be_started_and_parse(script: str) -> None:
    place = ROOT / script
    assert place.stat().st_mode & 0o111
    shell = "sh" if script == "dev" else "bash"
    assert subprocess.run([shell, "-n", str(place)], check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")
def test_a_command_that_dev_does_not_know_gets_the_list_of_those_it_knows() -> None:
    done = subprocess.run(
        [ROOT / "dev", "tset"], capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode != 0
    assert "./dev test" in done.stderr
    assert "'tset' is not a command" in done.stderr


def test_both_entrances_know_the_same_commands() -> None:
    def commands(script: str, call: str) -> set[str]:
        return set(re.findall(rf"^{call} (\w+)", (ROOT / script).read_text("utf-8"), re.MULTILINE))

    assert commands("dev", r"\./dev") == commands("dev.ps1", r"\.\\dev\.ps1") != set()


def test_ci_runs_the_command_that_readme_tells() -> None:
    assert "./dev test" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "./dev test" in (ROOT / "README.md").read_text("utf-8")
