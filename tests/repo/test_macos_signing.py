"""The script that signs and notarizes on macOS: its order, and what it does without secrets.

Apple's own programs are replaced: each writes its arguments down.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MACOS = Path(__file__).resolve().parents[2] / "packaging" / "macos"
SCRIPT = MACOS / "sign_and_notarize.sh"
APPLE = ("codesign", "ditto", "hdiutil", "plutil", "spctl", "xcrun")
IDENTITY = "Developer ID Application: Example (ABCDE12345)"
KEY = {
    "MACOS_IDENTITY": IDENTITY,
    "NOTARY_KEY_FILE": "/keys/a.p8",
    "NOTARY_KEY_ID": "K1",
    "NOTARY_ISSUER": "I1",
}
NODE = "Frameworks/playwright/driver/node"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not Path("/usr/bin/file").exists(), reason="a POSIX script"
)


def mach_o(kind: int) -> bytes:
    """Return the header of a file for arm64: 2 is a program, 6 a library."""
    words = (0xFEEDFACF, 0x0100000C, 0, kind, 0, 0, 0, 0)
    return b"".join(word.to_bytes(4, "little") for word in words)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    app = tmp_path / "OpenChrome Monitor.app"
    for name, data in {
        "MacOS/openchrome-monitor": mach_o(2),
        "MacOS/octask": mach_o(2),
        NODE: mach_o(2),
        "Frameworks/PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore": mach_o(6),
        "Frameworks/lib a ü.dylib": mach_o(6),
        "Resources/build.json": b"{}",
        "Resources/of java.class": bytes.fromhex("cafebabe00000034"),
    }.items():
        place = app / "Contents" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return app


def run(app: Path, status: str = "Accepted", **environ: str) -> tuple[int, list[str], str]:
    """Run the script; return its exit code, the calls of Apple's programs, and its errors."""
    tools, calls = app.parent / "tools", app.parent / "calls"
    tools.mkdir()
    calls.touch()
    for name in APPLE:
        tool = tools / name
        tool.write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{calls}"\n'
            'case "$*" in *--display*) echo allow-jit ;; *"extract status"*) echo '
            f'{status} ;; *"extract id"*) echo 1-2 ;; esac\n',
            "utf-8",
        )
        tool.chmod(0o755)
    done = subprocess.run(
        [SCRIPT, app, app.parent / "out.dmg"],
        env={"PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, calls.read_text("utf-8").splitlines(), done.stderr


def signed(calls: list[str]) -> list[str]:
    """Return what was signed, in its order, by its place in the bundle."""
    lines = [line for line in calls if line.startswith("codesign --force")]
    return [
        line.partition("OpenChrome Monitor.app")[2].removeprefix("/Contents/") for line in lines
    ]


def test_every_program_and_library_is_signed_before_what_contains_it(app: Path) -> None:
    code, calls, errors = run(app)
    assert code == 0, errors
    order = signed(calls)
    assert order[-1] == ""  # the bundle itself
    framework = "Frameworks/PySide6/Qt/lib/QtCore.framework"
    assert order.index(f"{framework}/Versions/A/QtCore") < order.index(framework)
    assert {NODE, "Frameworks/lib a ü.dylib", "MacOS/octask"} < set(order)
    assert not any("Resources" in name for name in order)


def test_programs_get_the_entitlements_and_libraries_do_not(app: Path) -> None:
    _, calls, _ = run(app, MACOS_IDENTITY=IDENTITY)
    lines = [line for line in calls if line.startswith("codesign --force")]
    with_rights = {line.rpartition("/")[2] for line in lines if "--entitlements" in line}
    assert with_rights == {"node", "octask", "openchrome-monitor", "OpenChrome Monitor.app"}
    bundle = [line for line in lines if not line.endswith(".dmg")]
    assert all("--options runtime" in line and "--timestamp" in line for line in bundle)


def test_without_secrets_the_image_is_made_with_an_ad_hoc_signature(app: Path) -> None:
    code, calls, errors = run(app)
    assert code == 0
    assert "Not notarized" in errors
    assert any(line.startswith("hdiutil create") for line in calls)
    assert not any(line.startswith(("xcrun", "spctl")) for line in calls)
    assert not any("--timestamp" in line for line in calls)


def test_with_secrets_the_bundle_gets_its_ticket_before_the_image_is_made(app: Path) -> None:
    code, calls, errors = run(app, **KEY)
    assert code == 0, errors
    steps = [
        " ".join(line.split()[:3]) for line in calls if line.startswith(("xcrun", "hdiutil c"))
    ]
    assert steps == [
        "xcrun notarytool submit",
        "xcrun stapler staple",
        "hdiutil create -quiet",
        "xcrun notarytool submit",
        "xcrun stapler staple",
        "xcrun stapler validate",
    ]
    assert sum(line.startswith("spctl --assess") for line in calls) == 2


def test_a_bundle_that_apple_refuses_ends_the_release(app: Path) -> None:
    code, calls, errors = run(app, status="Invalid", **KEY)
    assert code != 0
    assert "Apple answered Invalid" in errors
    assert any("notarytool log 1-2" in line for line in calls)
    assert not any("staple" in line or "hdiutil create" in line for line in calls)


def test_a_bundle_without_node_ends_the_release(app: Path) -> None:
    (app / "Contents" / NODE).unlink()
    code, _, errors = run(app)
    assert code != 0
    assert "driver/node is not in the bundle" in errors


def test_the_entitlements_are_the_three_that_node_and_python_need() -> None:
    rights = plistlib.loads((MACOS / "entitlements.plist").read_bytes())
    assert set(rights.values()) == {True}
    assert {name.removeprefix("com.apple.security.cs.") for name in rights} == {
        "allow-jit",
        "allow-unsigned-executable-memory",
        "disable-library-validation",
    }


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_finds_nothing_in_the_script() -> None:
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
