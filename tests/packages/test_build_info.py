"""Facts of a build, and what becomes of a file that is missing or damaged."""

from __future__ import annotations

import json
import sys

import pytest

from engine.model.build_info import BuildInfo, build_info, read_build_info
from engine.model.config import VERSION


def test_a_packaged_program_knows_its_version_commit_and_channel(tmp_path, monkeypatch):
    told = {
        "version": "0.3.0",
        "commit": "0123456789abcdef0123",
        "channel": "appimage",
        "updates_url": "https://example.org/latest.json",
    }
    (tmp_path / "build.json").write_text(json.dumps(told), "utf-8")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    build_info.cache_clear()
    try:
        found = build_info()
    finally:
        build_info.cache_clear()
    assert found == BuildInfo(**told)
    assert found.offers_updates
    assert str(found) == "0.3.0 (appimage, 0123456789ab)"


def test_a_program_run_from_source_knows_its_version_only():
    build_info.cache_clear()
    assert build_info() == BuildInfo(VERSION, "", "", "")
    assert not build_info().offers_updates
    assert str(build_info()) == VERSION


@pytest.mark.parametrize("channel", ["deb", "rpm"])
def test_packages_of_a_distribution_offer_no_updates(channel):
    assert not BuildInfo(channel=channel, updates_url="https://example.org/").offers_updates


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"{",
        b"null",
        b'{"version": 3, "commit": [], "channel": "a\\nb", "updates_url": null}',
        b'{"updates_url": "' + b"x" * 100_000 + b'"}',
        b"[" * 60_000,
    ],
)
def test_a_missing_or_damaged_file_counts_as_source(tmp_path, content):
    file = tmp_path / "build.json"
    if content is not None:
        file.write_bytes(content)
    assert read_build_info(file) == BuildInfo()


def test_a_build_with_changes_keeps_its_mark():
    assert str(BuildInfo("1.0", "0123456789abcdef-changed", "deb")) == (
        "1.0 (deb, 0123456789ab-changed)"
    )
