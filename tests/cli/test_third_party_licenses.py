"""The list of libraries in the program, with their licenses."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from engine.doctor.third_party_licenses import Component, components, parsed, rendered

TEXTS = Path(__file__).resolve().parents[2] / "resources" / "licenses"
_LINE = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
_COMPONENT = st.builds(
    Component, _LINE, _LINE, _LINE, st.lists(_LINE).map("\n".join), st.booleans()
)


def test_every_needed_library_is_listed_with_license_and_text() -> None:
    found = {one.name: one for one in components(TEXTS)}
    for name in ("PySide6_Essentials", "playwright", "aiohttp", "Node.js", "CPython"):
        assert found[name].license
        assert len(found[name].text) > 1_000, name
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in found["PySide6_Essentials"].text
    assert found["aiohttp"].version == distribution("aiohttp").version


def test_what_extras_need_is_listed_and_what_tests_need_is_not() -> None:
    names = {one.name for one in components(TEXTS)}
    assert {"mcp", "cryptography", "cffi"} <= names
    assert not {"pytest", "hypothesis", "ruff", "openchrome-monitor"} & names


def test_libraries_of_the_system_are_named() -> None:
    found = [one for one in components(TEXTS, ("libxcb.so.1",)) if one.name == "libxcb.so.1"]
    assert found == [Component("libxcb.so.1", "", "", "", is_python=False)]


@given(st.lists(_COMPONENT, min_size=1))
def test_the_file_of_a_package_is_read_back(found: list[Component]) -> None:
    assert parsed(rendered(found)) == found


def test_another_file_holds_no_components() -> None:
    assert parsed("some text") == []
