"""The list of licenses: what it contains, and its file in a packaged program."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.doctor.third_party_licenses import (
    Component,
    components,
    license_name,
    parsed,
    rendered,
)
from engine.model.errors import LicensesUnreadable

REFUSED = "the file is damaged|invalid literal"
lines = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=20)
words = st.lists(st.text("abcXYZ0.-+", min_size=1, max_size=6), max_size=3).map(" ".join)
texts = st.lists(
    st.one_of(lines, st.sampled_from(["=" * 78, "Component: x", "Lines: 3", ""])), max_size=12
).map("\n".join)
component = st.builds(Component, words, words, words, texts, st.booleans())


@pytest.fixture(scope="module")
def found():
    return {one.name: one for one in components(system_libraries=["libfoo.so.1"])}


def test_every_package_that_the_program_needs_is_listed(found):
    needed = map(Requirement, requires("openchrome-monitor") or ())
    here = [one for one in needed if not one.marker or one.marker.evaluate({"extra": "server"})]
    names = {canonicalize_name(name) for name in found}
    direct = {canonicalize_name(one.name) for one in here}
    assert direct <= names
    assert {"greenlet", "shiboken6", "multidict"} <= names  # needed by those
    assert not {"pytest", "openchrome-monitor", "ruff"} & names


def test_every_component_has_a_license_and_its_text(found):
    without_text = {one.name for one in found.values() if not one.text}
    without_license = {one.name for one in found.values() if not one.license}
    assert without_text == {"libfoo.so.1"}
    assert without_license == {"libfoo.so.1", "Playwright driver: libraries"}


def test_qt_comes_with_the_texts_that_its_wheel_lacks(found):
    text = found["PySide6_Essentials"].text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert found["PySide6_Essentials"].license.startswith("LGPL-3.0-only")


def test_the_driver_the_interpreter_and_node_are_listed(found):
    assert "Node.js is licensed" in found["Node.js"].text
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in found["CPython"].text
    assert found["Playwright driver"].version
    assert "npm" in found["Playwright driver: libraries"].text
    assert not found["Node.js"].is_python


def test_the_list_is_the_same_each_time_and_sorted(found):
    again = components(system_libraries=["libfoo.so.1"])
    assert rendered(again) == rendered(found.values())
    names = [one.name.casefold() for one in again]
    assert names == sorted(names)


@given(st.lists(component, min_size=1, max_size=5))
def test_the_file_gives_back_the_same_components(listed):
    assert parsed(rendered(listed)) == listed


@given(st.text(max_size=300))
def test_another_text_is_refused_with_a_value_error(text):
    with pytest.raises(ValueError, match=REFUSED):
        parsed(text)


@given(component, st.data())
def test_a_file_that_was_cut_off_is_refused(one, data):
    whole = rendered([one])
    at = data.draw(st.integers(0, len(whole) - 3))
    with pytest.raises(ValueError, match=REFUSED):
        parsed(whole[:at])


def test_a_build_writes_the_file_and_a_packaged_program_reads_it(tmp_path, monkeypatch):
    target = tmp_path / "THIRD-PARTY-LICENSES.txt"
    command = (sys.executable, "-m", "engine.doctor.third_party_licenses", target)
    subprocess.run([*command, "--system-library", "libz.so.1"], check=True)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    listed = components()
    assert Component("libz.so.1") in listed
    assert len(listed) > 40
    assert rendered(listed).encode() == target.read_bytes()


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"a text"])
def test_a_packaged_program_without_a_usable_file_says_so(tmp_path, monkeypatch, content):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    if content is not None:
        (tmp_path / "THIRD-PARTY-LICENSES.txt").write_bytes(content)
    with pytest.raises(LicensesUnreadable):
        components()


@pytest.mark.parametrize(
    ("expression", "given_name", "classifiers", "shown"),
    [
        ("MIT AND PSF-2.0", "other", [], "MIT AND PSF-2.0"),
        ("", "Apache 2.0", ["License :: OSI Approved :: BSD License"], "Apache-2.0"),
        ("", "", ["License :: OSI Approved :: MIT License"], "MIT"),
        ("", "line\nline", ["License :: OSI Approved :: BSD License"], "BSD License"),
        ("", "x" * 300, [], ""),
    ],
)
def test_a_license_is_named_in_one_line(expression, given_name, classifiers, shown):
    assert license_name(expression, given_name, classifiers) == shown
