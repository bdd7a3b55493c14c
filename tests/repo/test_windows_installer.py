"""The installer of Windows installs, updates and removes exactly its own files."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP_ID = "io.github.openchrome.monitor"
UNINSTALL = rf"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\{APP_ID}"
INSIDE = r"C:\users\ann\Programs ä\OpenChrome Monitor"
# Longer than a string of NSIS, with a part that Windows expands, and as long as the Path may be.
LONG_PATH = ";".join(["%USERPROFILE%\\bin", *(f"C:\\tools\\{number:04}" for number in range(110))])

needs_makensis = pytest.mark.skipif(shutil.which("makensis") is None, reason="no makensis here")
needs_wine = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("wine") is None or shutil.which("makensis") is None,
    reason="no Wine or no makensis here",
)


def script(name: str) -> ModuleType:
    """Load a script of the packaging folder by its path."""
    place = ROOT / "packaging" / "windows" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"windows_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def payload(folder: Path, *more: str, octask: bytes = b"octask") -> Path:
    names = ["openchrome-monitor.exe", "_internal/build.json", "_internal/a b/ü 文件.txt"]
    names += ["_internal/$x/$INSTDIR.txt", "_internal/#a;b/100%.txt", "_internal/it's.txt"]
    names += [
        f"_internal/lib {one}/inner/deeper/{two}.txt" for one in range(30) for two in range(9)
    ]
    for name in (*names, *more):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name, "utf-8")
    (folder / "octask.exe").write_bytes(octask)
    return folder


def files(folder: Path) -> set[str]:
    return {place.relative_to(folder).as_posix() for place in folder.rglob("*") if place.is_file()}


def test_the_uninstaller_removes_every_file_of_the_payload_and_nothing_else(tmp_path: Path) -> None:
    file_list = script("file_list")
    folder = payload(tmp_path / "payload ä")
    file_list.write_lists(folder, tmp_path / "lists")
    text = (tmp_path / "lists" / "uninstall.nsh").read_text("utf-8-sig")
    assert file_list.removed(text) == files(folder)
    folders = [line for line in text.splitlines() if line.startswith("RMDir")]
    assert len(folders) == len([place for place in folder.rglob("*") if place.is_dir()])
    assert "/r" not in " ".join(line.split('"')[0] for line in text.splitlines())


@pytest.mark.parametrize("name", ["a${b}.txt", 'a"b.txt', "a`b.txt"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_name_that_the_script_cannot_hold_ends_the_build(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("", "utf-8")
    with pytest.raises(ValueError, match="no script of NSIS can name"):
        script("file_list").payload(tmp_path)


def test_no_line_of_the_installer_removes_a_whole_folder() -> None:
    text = (ROOT / "packaging" / "windows" / "installer.nsi").read_text("utf-8").lower()
    assert "rmdir /r" not in text
    assert "taskkill" not in text


@needs_makensis
def test_a_signature_that_fails_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OC_SIGN", f'"{sys.executable}" -c "import sys; sys.exit(3)"')
    folder = payload(tmp_path / "payload")
    with pytest.raises(SystemExit, match="ommand returned"):
        script("installer").compile_installer(folder, "1.0", tmp_path / "a-setup.exe")


class Wine:
    """A prefix of Wine with two versions of the installer."""

    def __init__(self, place: Path) -> None:
        self.drive = place / "prefix" / "drive_c"
        self.folder = self.drive / "users" / "ann" / "Programs ä" / "OpenChrome Monitor"
        self.first, self.second = place / "v1-setup.exe", place / "v2-setup.exe"
        self._environ = {
            **{key: value for key, value in os.environ.items() if key != "DISPLAY"},
            "WINEPREFIX": str(place / "prefix"),
            "WINEDEBUG": "-all",
            "LC_ALL": "C.UTF-8",  # Wine reads its arguments by it
            # The builder of menus would still read the program for its icon after an installation,
            # and the next one take it for a running program.
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
        }

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        # A file, not a pipe: the services that Wine starts on demand inherit the output and
        # live on, so that the end of a pipe may come long after the end of the program.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                ["wine", *map(str, words)],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=150,
                check=False,
            )
            output.seek(0)
            # What programs of a console print under this locale.
            printed = output.read().decode("cp437")
        return subprocess.CompletedProcess(done.args, done.returncode, printed)

    def start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["wine", *map(str, words)],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def install(self, setup: Path, *options: str, folder: str | None = INSIDE) -> int:
        # NSIS takes /D and _?= to the end of the line and without quotes, which Wine would put
        # around a word with spaces. Without /D it takes the folder of the earlier version.
        place = f"/D={folder}".split(" ") if folder else []
        return self.run(setup, "/S", *options, *place).returncode

    def uninstall(self) -> int:
        # With _?= the uninstaller does not copy itself, so that its exit code arrives.
        return self.run(self.folder / "uninstall.exe", "/S", *f"_?={INSIDE}".split(" ")).returncode

    def value(self, key: str, name: str) -> str | None:
        done = self.run("reg", "query", key, "/v", name)
        found = [line for line in done.stdout.splitlines() if " REG_" in line]
        return found[0].split(maxsplit=2)[2].strip() if found and not done.returncode else None

    def link_command(self) -> str:
        done = self.run(
            "reg", "query", r"HKCU\Software\Classes\openchrome-monitor\shell\open\command"
        )
        return done.stdout.partition("REG_SZ")[2].strip()

    def set_path(self, text: str) -> None:
        words = ("/v", "Path", "/t", "REG_EXPAND_SZ", "/d", text, "/f")
        assert self.run("reg", "add", r"HKCU\Environment", *words).returncode == 0

    def path(self) -> str | None:
        return self.value(r"HKCU\Environment", "Path")

    def close(self) -> None:
        subprocess.run(["wineserver", "-k"], env=self._environ, check=False)
        subprocess.run(["wineserver", "-w"], env=self._environ, check=False, timeout=60)


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Compile both installers for 64 bits, which every Wine runs, and create the prefix once."""
    place = tmp_path_factory.mktemp("wine")
    made = Wine(place)
    try:
        assert made.run("wineboot", "--init").returncode == 0
        # A program that runs until its input ends stands for octask.
        waiting = (made.drive / "windows" / "system32" / "cmd.exe").read_bytes()
        payload(place / "v1", "_internal/only in v1/old.txt", octask=waiting)
        payload(place / "v2", "_internal/only in v2/new.txt", octask=waiting)
        compiler = script("installer")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OC_NSIS_TARGET", "amd64-unicode")
            compiler.compile_installer(place / "v1", "1.0", made.first)
            compiler.compile_installer(place / "v2", "2.0", made.second)
        yield made
    finally:
        made.close()


@pytest.fixture
def clean(wine: Wine) -> Iterator[Wine]:
    yield wine
    if (wine.folder / "uninstall.exe").exists():
        wine.uninstall()
    shutil.rmtree(wine.drive / "users" / "ann", ignore_errors=True)


@needs_wine
@pytest.mark.timeout(280)
def test_install_and_uninstall_leave_nothing_but_what_the_user_made(clean: Wine) -> None:
    ledger = clean.drive / "users" / "ann" / ".openchrome" / "meta.json"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("{}", "utf-8")
    assert clean.install(clean.first) == 0
    assert files(clean.folder) == files(clean.first.parent / "v1") | {"uninstall.exe"}
    assert clean.value(UNINSTALL, "DisplayVersion") == "1.0"
    assert clean.value(UNINSTALL, "InstallLocation") == INSIDE
    assert clean.link_command() == rf'"{INSIDE}\openchrome-monitor.exe" -- "%1"'
    # Wine has no property store for shortcuts: their AppUserModelID shows on Windows only.
    assert len(list(clean.drive.rglob("OpenChrome Monitor.lnk"))) == 1
    own = clean.folder / "_internal" / "lib 3" / "notes of the user.txt"
    own.write_text("mine", "utf-8")
    # As Windows calls it: the uninstaller goes on as a copy of itself, which can delete it.
    assert clean.run(clean.folder / "uninstall.exe", "/S").returncode == 0
    wait_until(lambda: not (clean.folder / "uninstall.exe").exists())
    left = files(clean.drive / "users" / "ann")
    assert {name.rpartition("/")[2] for name in left} == {"meta.json", own.name}
    assert not list(clean.drive.rglob("OpenChrome Monitor.lnk"))
    assert clean.value(UNINSTALL, "DisplayVersion") is None
    assert clean.run("reg", "query", r"HKCU\Software\Classes\openchrome-monitor").returncode != 0


@needs_wine
@pytest.mark.timeout(280)
def test_an_update_removes_the_files_that_only_the_older_version_had(clean: Wine) -> None:
    assert clean.install(clean.first) == 0
    assert clean.install(clean.second) == 0
    assert files(clean.folder) == files(clean.first.parent / "v2") | {"uninstall.exe"}
    assert clean.value(UNINSTALL, "DisplayVersion") == "2.0"


@needs_wine
@pytest.mark.timeout(280)
def test_an_update_to_another_folder_removes_the_older_version(clean: Wine) -> None:
    assert clean.install(clean.first, folder=r"C:\users\ann\old place") == 0
    assert clean.install(clean.second) == 0
    assert not (clean.drive / "users" / "ann" / "old place").exists()
    assert files(clean.folder) == files(clean.first.parent / "v2") | {"uninstall.exe"}


@needs_wine
@pytest.mark.timeout(280)
@pytest.mark.parametrize("name", ["notes.txt", "uninstall.exe"])
def test_a_folder_with_files_of_others_is_refused_and_stays_as_it_is(
    clean: Wine, name: str
) -> None:
    clean.folder.mkdir(parents=True)
    (clean.folder / name).write_text("of others", "utf-8")
    assert clean.install(clean.first) == 5
    assert files(clean.folder) == {name}


@needs_wine
@pytest.mark.timeout(280)
def test_a_folder_whose_paths_would_be_too_long_is_refused(clean: Wine) -> None:
    assert clean.install(clean.first, folder="C:\\users\\ann\\" + "x" * 220) == 5


@needs_wine
@pytest.mark.timeout(280)
def test_a_running_program_is_neither_replaced_nor_ended(clean: Wine) -> None:
    assert clean.install(clean.first) == 0
    running = clean.start(rf"{INSIDE}\octask.exe")
    try:
        assert running.stdout is not None
        assert running.stdout.read(1)  # it has started
        assert clean.install(clean.second) == 3
        assert clean.uninstall() == 3
        assert running.poll() is None
    finally:
        assert running.stdin is not None
        running.stdin.write(b"exit\r\n")
        running.stdin.close()
        running.wait(timeout=60)
        assert running.stdout is not None
        running.stdout.close()
    assert files(clean.folder) == files(clean.first.parent / "v1") | {"uninstall.exe"}
    wait_until(lambda: clean.uninstall() == 0)
    assert not clean.folder.exists() or files(clean.folder) <= {"uninstall.exe"}


@needs_wine
@pytest.mark.timeout(280)
def test_the_path_of_the_user_is_extended_and_restored_without_losing_a_character(
    clean: Wine,
) -> None:
    assert len(LONG_PATH) > 1024
    clean.set_path(LONG_PATH)
    assert clean.install(clean.first, "/ADDPATH") == 0
    assert clean.path() == f"{LONG_PATH};{INSIDE}"
    assert clean.install(clean.second) == 0  # an update keeps the choice
    assert clean.path() == f"{LONG_PATH};{INSIDE}"
    assert clean.uninstall() == 0
    assert clean.path() == LONG_PATH


@needs_wine
@pytest.mark.timeout(280)
@pytest.mark.parametrize("folder", [None, f"{INSIDE}\\"], ids=["the same", "with a backslash"])
def test_an_update_into_the_same_folder_keeps_one_entry_of_the_path(
    clean: Wine, folder: str | None
) -> None:
    clean.set_path(r"C:\tools")
    assert clean.install(clean.first, "/ADDPATH") == 0
    assert clean.install(clean.second, folder=folder) == 0
    assert files(clean.folder) == files(clean.first.parent / "v2") | {"uninstall.exe"}
    assert clean.value(UNINSTALL, "InstallLocation") == INSIDE
    assert clean.path() == rf"C:\tools;{INSIDE}"
    assert clean.uninstall() == 0
    assert clean.path() == r"C:\tools"


@needs_wine
@pytest.mark.timeout(280)
def test_a_path_that_would_become_too_long_is_left_alone(clean: Wine) -> None:
    whole = f"{LONG_PATH};{'x' * (2040 - len(LONG_PATH))}"
    clean.set_path(whole)
    assert clean.install(clean.first, "/ADDPATH") == 0
    assert clean.path() == whole


def wait_until(condition, limit_s: float = 60.0) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.2)
