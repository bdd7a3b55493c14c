"""Workflows name files that exist, and a release is complete or not made at all."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PACKAGE = (ROOT / ".github" / "workflows" / "package.yml").read_text("utf-8")
PAGE = "https://example.org/releases/tag/v1.2.0"
# What a build leaves in dist/, by the name of the artifact.
BUILT = {
    "linux": (
        *("openchrome_monitor-1.2.0-py3-none-any.whl", "openchrome_monitor-1.2.0.tar.gz"),
        *("openchrome-monitor-1.2.0-linux-x64.tar.gz", "openchrome-monitor_1.2.0_amd64.deb"),
        "openchrome-monitor-1.2.0-1.x86_64.rpm",
    ),
    "windows": (
        "openchrome-monitor-1.2.0-windows-x64.zip",
        "openchrome-monitor-1.2.0-windows-x64-setup.exe",
    ),
    **{
        f"macos-{machine}": tuple(
            f"openchrome-monitor-1.2.0-macos-{machine}.{end}" for end in ("dmg", "zip")
        )
        for machine in ("arm64", "x64")
    },
}


@pytest.fixture
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "packaging" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    for system, names in BUILT.items():
        for name in (*names, "openchrome-monitor-1.2.0.cdx.json", "SHA256SUMS"):
            place = tmp_path / "artifacts" / system / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{system} {name}", "utf-8")
    # Also on Windows and macOS the wheel is built; only that of Linux is published.
    (tmp_path / "artifacts" / "windows" / BUILT["linux"][0]).write_text("other", "utf-8")
    return tmp_path / "artifacts"


def test_a_release_has_every_package_once_with_its_checksum(
    release: ModuleType, artifacts: Path, tmp_path: Path
) -> None:
    made = tmp_path / "release"
    names = release.gather(artifacts, made, "1.2.0", PAGE)
    assert sorted(place.name for place in made.iterdir()) == names
    assert {name for listed in BUILT.values() for name in listed} < set(names)
    assert sum(name.endswith(".cdx.json") for name in names) == 4
    lines = (made / "SHA256SUMS").read_text("utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert sums == {
        name: hashlib.sha256((made / name).read_bytes()).hexdigest()
        for name in names
        if name != "SHA256SUMS"
    }
    assert (made / BUILT["linux"][0]).read_text().startswith("linux")


def test_the_update_check_gets_the_version_and_the_page(
    release: ModuleType, artifacts: Path, tmp_path: Path
) -> None:
    release.gather(artifacts, tmp_path / "release", "1.2.0", PAGE)
    told = json.loads((tmp_path / "release" / "latest.json").read_text("utf-8"))
    assert told == {"version": "1.2.0", "page": PAGE}


@pytest.mark.parametrize("system", BUILT)
def test_a_missing_package_ends_the_release_before_anything_is_written(
    release: ModuleType, artifacts: Path, tmp_path: Path, system: str
) -> None:
    (artifacts / system / BUILT[system][-1]).unlink()
    with pytest.raises(release.Incomplete, match=system):
        release.gather(artifacts, tmp_path / "release", "1.2.0", PAGE)
    assert not (tmp_path / "release").exists()


def test_a_package_of_another_version_ends_the_release(
    release: ModuleType, artifacts: Path, tmp_path: Path
) -> None:
    with pytest.raises(release.Incomplete, match=r"not of version 1\.3\.0"):
        release.gather(artifacts, tmp_path / "release", "1.3.0", PAGE)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda place: place.name)
def test_every_file_that_a_workflow_names_exists(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    named = set(
        re.findall(r"(?<![\w/.$-])((?:packaging|resources|docs|\.ci|tests)/[\w./-]+\w)", text)
    )
    named |= set(re.findall(r"(?<![\w/])\./(\w[\w./-]*)", text))
    named |= set(re.findall(r"\.\\(\w+\.ps1)", text))
    named |= set(re.findall(r"[\w-]+\.(?:lock|toml)\b", text))
    assert named
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda place: place.name)
def test_every_action_has_a_version_and_the_workflow_only_reads_by_default(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.search(r"@v\d", name) for name in used)
    head = text.partition("\njobs:")[0]
    assert "permissions:\n  contents: read\n" in head


def test_no_shell_command_of_the_workflow_contains_a_secret() -> None:
    """A secret reaches a step by its environment: in a command it could end up in the log."""
    lines = [line.strip() for line in PACKAGE.splitlines() if "secrets." in line]
    assert lines
    assert all(re.fullmatch(r"[A-Z_]+: \$\{\{ secrets\.[A-Z_]+ \}\}", line) for line in lines)


def test_the_release_page_names_every_secret_of_the_workflow() -> None:
    page = (ROOT / "docs" / "release.md").read_text("utf-8")
    names = set(re.findall(r"(?:secrets|vars)\.([A-Z_]+)", PACKAGE))
    assert names
    assert not [name for name in names if f"`{name}`" not in page]


def test_the_workflow_builds_each_system_that_a_release_needs(release: ModuleType) -> None:
    assert set(re.findall(r"- \{ system: ([\w-]+),", PACKAGE)) == set(release.EXPECTED)
