"""Install and start what `dist/` holds, as its users would: `./dev package --check` runs it.

Linux: the .deb in a clean root without anything else, the folder moved to a path with a space and
other letters, the archive, and the wheel in a fresh environment. Every program starts with an empty
environment, on a virtual screen. Pictures of the windows are left in `build/package/pictures`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE)]

import archives  # noqa: E402
from smoke_test import bare  # noqa: E402

DIST, WORK = ROOT / "dist", ROOT / "build" / "package"
PICTURES = WORK / "pictures"
NAME = "openchrome-monitor"
DISPLAY = ":97"
MAX_UNPACKED_MIB, MAX_DEB_MB, MAX_PAINT_S = 350, 110, 1.5
SUITE = "bookworm"


class Failed(Exception):
    """A check failed; the text says what and how."""


def main() -> int:
    PICTURES.mkdir(parents=True, exist_ok=True)
    checks = [checksums, folder_elsewhere, portable_archive, wheel]
    if sys.platform == "linux":
        checks += [desktop_files, deb_sizes, deb_in_a_clean_root, app_dir, windows_installer]
    failed = 0
    for check in checks:
        began = time.monotonic()
        try:
            told = check()
        except (Failed, subprocess.SubprocessError, OSError) as problem:
            failed += 1
            told = f"FAILED: {problem}"
            output = getattr(problem, "stderr", None) or getattr(problem, "output", None)
            told += f"\n{output}" if output else ""
        took = time.monotonic() - began
        say(f"{check.__name__.replace('_', ' ')}: {told} ({took:.0f} s)")
    say(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def checksums() -> str:
    told = archives.checksums(DIST)
    lines = (DIST / "SHA256SUMS").read_text("utf-8").splitlines()
    if {name: digest for digest, name in (line.split("  ") for line in lines)} != told:
        raise Failed("SHA256SUMS does not describe the files of dist/")
    return f"{len(told)} files"


def folder_elsewhere() -> str:
    """The built folder works from any path, without Python and without an environment."""
    built = WORK / "dist" / NAME
    mib = archives.size(built) / 2**20
    if mib > MAX_UNPACKED_MIB:
        raise Failed(f"the folder has {mib:.0f} MiB")
    with place("moved to ä ö 文件") as folder:
        archives.copy(built, folder / NAME)
        told = self_test(folder / NAME / exe(NAME))
        started = window(folder / NAME / exe(NAME), "folder")
        answers(folder / NAME / exe("octask"))
        check_cluster(folder / NAME / exe("octask"))
    return f"{mib:.0f} MiB, {told}, {started}"


def portable_archive() -> str:
    if sys.platform != "linux":
        return "only on Linux"
    (archive,) = DIST.glob("*-linux-*.tar.gz")
    with place("archive") as folder:
        run("tar", "-xzf", archive, "-C", folder)
        (inside,) = folder.iterdir()
        return self_test(inside / NAME)


def wheel() -> str:
    """The wheel works in a fresh environment, from the locked packages."""
    (found,) = DIST.glob("*.whl")
    with place("wheel") as folder:
        run(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        lock = HERE / "requirements.lock"
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "-c",
            _constraints(lock, folder),
            f"{found}[server,cluster]",
        )
        answers(python.with_name(exe("octask")))
        check_cluster(python.with_name(exe("octask")))
        return self_test(python.with_name(exe(NAME)))


def _constraints(lock: Path, folder: Path) -> Path:
    """Return the lock without hashes: the wheel itself has none in it."""
    lines = [
        line.removesuffix(" \\")
        for line in lock.read_text("utf-8").splitlines()
        if line and not line.startswith((" ", "#"))
    ]
    (folder / "constraints.txt").write_text("\n".join(lines), "utf-8")
    return folder / "constraints.txt"


def desktop_files() -> str:
    linux = ROOT / "resources" / "linux"
    tools: dict[str, tuple[object, ...]] = {
        "desktop-file-validate": (*linux.glob("*.desktop"),),
        "appstreamcli": ("validate", "--no-net", *linux.glob("*.metainfo.xml")),
        "lintian": ("--allow-root", "--fail-on", "error,warning", *DIST.glob("*.deb")),
        "rpm": ("-K", "--nosignature", *DIST.glob("*.rpm")),
    }
    for tool, words in tools.items():
        if shutil.which(tool) is None:
            raise Failed(f"{tool} is not installed")
        run(tool, *words)
    return ", ".join(tools)


def deb_sizes() -> str:
    (deb,) = DIST.glob("*.deb")
    megabytes = deb.stat().st_size / 1e6
    if megabytes > MAX_DEB_MB:
        raise Failed(f"the .deb has {megabytes:.0f} MB")
    return f"{megabytes:.0f} MB"


def deb_in_a_clean_root() -> str:
    """A minimal system, `apt install ./x.deb`, a start as a user, a crawl, a picture, a purge."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise Failed("this needs root and mmdebstrap")
    (deb,) = DIST.glob("*.deb")
    system = WORK / "root"
    _clean_root(system)
    shutil.copy(deb, system / "tmp")
    before = set(_installed_files(system))
    with mounted(system):
        chroot(system, "apt-get", "update", "-q")
        _check_libraries(system, f"/tmp/{deb.name}")
        began = time.monotonic()
        chroot(system, "apt-get", "install", "-y", "-q", f"/tmp/{deb.name}")
        installed = time.monotonic() - began
        chroot(system, "useradd", "-m", "ann")
        told = as_user(system, f"/usr/bin/{NAME} --self-test")
        with virtual_screen():
            command = _user_command(system, f"DISPLAY={DISPLAY}", f"/usr/bin/{NAME}")
            photograph(subprocess.Popen(command), "deb")
        page = as_user(system, "octask --version")
        ledger = system / "home" / "ann" / ".openchrome"
        if not ledger.is_dir():
            raise Failed("the window created no ledger")
        chroot(system, "apt-get", "purge", "-y", "-q", NAME)
        if not ledger.is_dir():
            raise Failed("the purge deleted the user's ledger")
        left = [path for path in _installed_files(system) if NAME in path and path not in before]
        if left:
            raise Failed(f"the purge left {left[:5]}")
    return f"installed in {installed:.0f} s; {told.strip()} {page.strip()}; purged without rest"


def _check_libraries(system: Path, deb: str) -> None:
    """Fail unless the dependencies alone bring every library; then remove all of it again."""
    chroot(system, "apt-get", "install", "-y", "-q", "--no-install-recommends", deb)
    inner = f"/usr/lib/{NAME}/_internal"
    look = f"find {inner} -type f '(' -name '*.so*' -o -name node ')' -exec ldd {{}} +"
    told = chroot(system, "sh", "-c", f"LD_LIBRARY_PATH={inner} {look}")
    missing = {line.split()[0] for line in told.splitlines() if "not found" in line}
    if missing:
        raise Failed(f"libraries are missing: {', '.join(sorted(missing))}")
    chroot(system, "apt-get", "purge", "-y", "-q", "--autoremove", NAME)


def app_dir() -> str:
    return self_test(WORK / f"{NAME}.AppDir" / "AppRun")


def windows_installer() -> str:
    """The tests of the installer run here without a skip: NSIS compiles it, Wine runs it."""
    for tool in ("makensis", "wine"):
        if shutil.which(tool) is None:
            raise Failed(f"{tool} is not installed")
    told = run(sys.executable, "-m", "pytest", "-q", ROOT / "tests/repo/test_windows_installer.py")
    return told.strip().splitlines()[-1]


# --- Helpers ------------------------------------------------------------------------------------


def self_test(program: Path) -> str:
    """Crawl the bundled site with the program; an empty environment, a home of its own."""
    with place("home") as home:
        command = [str(program), "--self-test"]
        if sys.platform == "linux":
            command = ["xvfb-run", "-a", *command]
        done = subprocess.run(
            command, env=bare(home), capture_output=True, text=True, timeout=120, check=False
        )
    if done.returncode != 0:
        raise Failed(f"the self-test ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def answers(octask: Path) -> None:
    """The command line starts, lists and schedules; the ledger's verification passes.

    Where there is no browser, the step of the verification that opens a page fails alone.
    """

    def run_octask(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [octask, *words],
            env=bare(home),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode not in (0, code):
            raise Failed(f"octask {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    with place("home") as home:
        for words in (
            ("--version",),
            ("list", "--json"),
            ("doctor", "--json"),
            ("serve", "--help"),
        ):
            run_octask(*words)
        run_octask("schedules", "add", "crawl", "https://example.com/", "--cron", "0 6 * * 1")
        if len(json.loads(run_octask("schedules", "list", "--json"))["schedules"]) != 1:
            raise Failed("octask schedules list does not have the schedule")
        found = json.loads(run_octask("doctor", "--verify", "--json", code=1))["findings"]
        wrong = [one for one in found if one["state"] == "problem" and one["subject"] != "browser"]
        if wrong or found[-1]["subject"] != "wait":
            raise Failed(f"octask doctor --verify: {wrong or found[-1]}")


def check_cluster(octask: Path) -> None:
    """A worker of a local cluster loads a page: Dask imports parts of itself by name."""
    with place("home") as home, _served_page() as url:
        command = [octask, "start", "crawl", url, "--cluster", "local:1", "--engine", "static"]
        done = subprocess.run(
            command, env=bare(home), capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise Failed(f"a crawl on a local cluster: {done.stdout}{done.stderr}")
        (pages,) = home.glob(".openchrome/tasks/*/pages.jsonl")
        if not json.loads(pages.read_text("utf-8")).get("worker"):
            raise Failed("no worker loaded the page")


@contextlib.contextmanager
def _served_page() -> Iterator[str]:
    with place("site") as folder:
        (folder / "index.html").write_text("<title>page</title><p>text</p>", "utf-8")
        handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


def window(program: Path, picture: str) -> str:
    """Open the window, take its picture, end it; return how soon it was painted."""
    if sys.platform != "linux":
        return "no picture here"
    with place("home") as home, virtual_screen():
        began = time.monotonic()
        started = subprocess.Popen([program], env=bare(home) | {"DISPLAY": DISPLAY})
        took = photograph(started, picture) - began
    if took > MAX_PAINT_S:
        raise Failed(f"the window came after {took:.2f} s")
    return f"window after {took:.2f} s"


def photograph(started: subprocess.Popen[bytes], picture: str) -> float:
    """Wait for the window, take the picture of the screen, end the program; return when it came."""
    try:
        wait_for_window()
        came = time.monotonic()
        time.sleep(3)  # for the picture only: the engine has said what it found
        run(
            "env",
            f"DISPLAY={DISPLAY}",
            "import",
            "-silent",
            "-window",
            "root",
            PICTURES / f"{picture}.png",
        )
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(20)
    return came


def wait_for_window(limit_s: float = 30.0) -> None:
    """Wait until the program's window is on the virtual screen."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        told = subprocess.run(
            ["xwininfo", "-root", "-tree", "-display", DISPLAY],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        if "OpenChrome Monitor" in told:
            return
        time.sleep(0.02)
    raise Failed("no window came")


@contextlib.contextmanager
def virtual_screen() -> Iterator[None]:
    """A screen of 1600 x 1000."""
    server = subprocess.Popen(
        ["Xvfb", DISPLAY, "-screen", "0", "1600x1000x24", "-nolisten", "tcp", "-ac"],
        stderr=subprocess.DEVNULL,
    )
    try:
        while subprocess.run(
            ["xwininfo", "-root", "-display", DISPLAY], capture_output=True, check=False
        ).returncode:
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def place(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="package ") as folder:
        inside = Path(folder) / name
        inside.mkdir()
        yield inside


def exe(name: str) -> str:
    return f"{name}.exe" if sys.platform == "win32" else name


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(
            f"{' '.join(words[:3])} … ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def _clean_root(system: Path) -> None:
    base = WORK / "root-base"
    if not base.is_dir():
        apt = Path("/etc/apt")
        run(
            "mmdebstrap",
            "--variant=apt",
            "--include=ca-certificates,xauth",
            SUITE,
            base,
            *(
                str(path)
                for path in [*apt.glob("sources.list"), *apt.glob("sources.list.d/*")]
                if path.suffix in {".list", ".sources"}
            ),
        )
        for name in ("apt.conf.d", "auth.conf.d", "trusted.gpg.d"):
            if (apt / name).is_dir():
                shutil.copytree(apt / name, base / "etc" / "apt" / name, dirs_exist_ok=True)
        shutil.copytree(
            "/usr/local/share/ca-certificates",
            base / "usr/local/share/ca-certificates",
            dirs_exist_ok=True,
        )
        chroot(base, "update-ca-certificates")
    if system.exists():
        shutil.rmtree(system)
    run("cp", "-a", base, system)
    shutil.copy("/etc/resolv.conf", system / "etc" / "resolv.conf")


def chroot(system: Path, *command: str) -> str:
    return run(
        "env",
        "-i",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND=noninteractive",
        *(f"{name}={os.environ[name]}" for name in os.environ if name.lower().endswith("_proxy")),
        "chroot",
        system,
        *command,
    )


def _user_command(system: Path, *command: str) -> list[str]:
    return [
        "chroot",
        "--userspec=ann",
        str(system),
        "/usr/bin/env",
        "-i",
        "HOME=/home/ann",
        *command,
    ]


def as_user(system: Path, command: str) -> str:
    return run(*_user_command(system, "PATH=/usr/bin:/bin", "sh", "-c", f"cd; exec {command}"))


@contextlib.contextmanager
def mounted(system: Path) -> Iterator[None]:
    """The system's /proc, /dev/shm and the screen's socket, for the time of the check."""
    places = [("/proc", "proc"), ("/dev", "dev"), ("/tmp/.X11-unix", "tmp/.X11-unix")]
    Path("/tmp/.X11-unix").mkdir(exist_ok=True)
    made = []
    try:
        for source, inside in places:
            (system / inside).mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", source, system / inside)
            made.append(system / inside)
        yield
    finally:
        for target in reversed(made):
            run("umount", "-l", target)


def _installed_files(system: Path) -> Iterator[str]:
    for top in ("etc", "opt", "usr", "var/lib"):
        for path in (system / top).rglob("*"):
            yield path.relative_to(system).as_posix()


def say(words: str) -> None:
    sys.stderr.write(f"check: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
