"""A cluster on several hosts, whose network ends silently and comes back.

The hosts are network namespaces of this machine, each with an address of its own. A switch in this
process joins them: it delays each frame, and drops those of a host that is cut off. The programs
are those of docs/scale.md: `dask scheduler`, `octask worker` and `octask start`, with TLS.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from engine.cluster.cluster_address import ClusterNotInstalled, import_library
from tests.hard.figures import Figures, RigUnavailable, most_s

REPO: Final = Path(__file__).resolve().parents[2]
DELAY_MS: Final = 20.0  # of each frame, so that an answer takes 40 ms
LIMIT_S: Final = 400.0
TAP, SET_NAME = 0x0002 | 0x1000, 0x400454CA  # IFF_TAP | IFF_NO_PI, TUNSETIFF
PAGE_MS: Final = 60_000  # it is not this limit that ends the wait for a worker
LOST_S: Final = 25.0
CERTIFICATES: Final = """
set -e
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $new -days 30 -subj "/CN=crawl cluster" -keyout ca.key -out ca.pem
openssl req $new -subj "/CN=crawl node" -keyout node.key -out node.csr
openssl x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out node.pem
"""


class Switch(threading.Thread):
    """Passes on the frames of all ports after `DELAY_MS`, but those of the hosts in `cut`."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="switch")
        self.cut: set[str] = set()
        self.is_over = threading.Event()
        self._hosts: dict[int, str] = {}  # by the descriptor of their port
        self._ports: dict[bytes, int] = {}  # by the hardware address behind them
        self._frames: list[tuple[float, int, int, bytes]] = []  # when due, number, port
        self._count = 0

    def add_port(self, host: str, device: str) -> None:
        import fcntl  # not on Windows

        port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        self._hosts[port] = host
        fcntl.ioctl(port, SET_NAME, struct.pack("16sH", device.encode(), TAP))

    def run(self) -> None:
        poll = select.poll()
        for port in self._hosts:
            poll.register(port, select.POLLIN)
        while not self.is_over.is_set():
            self._send_due()
            wait_ms = 50.0
            if self._frames:
                wait_ms = min(wait_ms, (self._frames[0][0] - time.monotonic()) * 1_000 + 1)
            for port, _ in poll.poll(max(0, int(wait_ms))):
                self._receive(port)
        for port in self._hosts:
            os.close(port)

    def _send_due(self) -> None:
        while self._frames and self._frames[0][0] <= time.monotonic():
            _, _, port, frame = heapq.heappop(self._frames)
            if self._hosts[port] not in self.cut:
                with contextlib.suppress(OSError):  # the host is not up yet
                    os.write(port, frame)

    def _receive(self, port: int) -> None:
        due_s = time.monotonic() + DELAY_MS / 1_000
        with contextlib.suppress(BlockingIOError):
            while frame := os.read(port, 2_048):
                target, self._ports[frame[6:12]] = frame[:6], port
                if self._hosts[port] in self.cut:
                    continue
                others = [one for one in self._hosts if one != port]
                for one in [self._ports[target]] if target in self._ports else others:
                    self._count += 1
                    heapq.heappush(self._frames, (due_s, self._count, one, frame))


class Hosts:
    """Hosts by name with what runs on them; a context manager."""

    def __init__(self, names: list[str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hosts-"))
        self.address = {name: f"10.77.0.{at}" for at, name in enumerate(names, 2)}
        self.switch = Switch()
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Hosts:
        try:
            for at, (name, address) in enumerate(self.address.items()):
                self._add_host(f"ochost{os.getpid() % 10_000}-{at}", name, address)
        except (OSError, subprocess.CalledProcessError) as refused:
            self.__exit__()
            raise RigUnavailable(f"no host can be made here: {refused}") from refused
        self.switch.start()
        subprocess.run(
            ["sh", "-c", CERTIFICATES], cwd=self._folder, check=True, capture_output=True
        )
        return self

    def _add_host(self, device: str, name: str, address: str) -> None:
        _ip("netns", "add", self._space(name))
        self.switch.add_port(name, device)
        _ip("link", "set", device, "netns", self._space(name))
        for words in (
            ("addr", "add", f"{address}/24", "dev", device),
            ("link", "set", device, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", self._space(name), *words)
        (self._folder / name).mkdir()

    def __exit__(self, *_: object) -> None:
        for one in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
        self.switch.is_over.set()
        if self.switch.ident is not None:
            self.switch.join()
        for name in self.address:
            _end_all(self._space(name))
            _ip("netns", "del", self._space(name), check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _space(self, name: str) -> str:
        return f"octask-{os.getpid()}-{name}"

    def run(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a program on a host, with a home of its own."""
        given = {key: one for key, one in os.environ.items() if not key.startswith("OC_")}
        given |= {"HOME": str(self._folder / name), "PYTHONPATH": str(REPO)}
        given["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "true"
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        given[f"{tls}CA_FILE"] = str(self._folder / "ca.pem")
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            given[f"{tls}{role}__CERT"] = str(self._folder / "node.pem")
            given[f"{tls}{role}__KEY"] = str(self._folder / "node.key")
        with open(self._folder / f"{name}.log", "ab") as log:
            started = subprocess.Popen(
                ["ip", "netns", "exec", self._space(name), *words],
                env=given,
                cwd=self._folder / name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(started)
        return started

    def wait_for(self, name: str, text: str) -> None:
        """Wait until the programs of a host have said this."""
        log = self._folder / f"{name}.log"
        until(lambda: log.exists() and text in log.read_text("utf-8", "replace"), text)

    def lines(self, name: str, file: str) -> list[dict[str, Any]]:
        """The whole lines of a file of the one task on a host."""
        found = list((self._folder / name).glob(f".openchrome/tasks/*/{file}"))
        text = found[0].read_text("utf-8") if found else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
    return done.stdout


def _end_all(space: str) -> None:
    for process in _ip("netns", "pids", space, check=False).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)


def until(is_so: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > ends_s:
            raise TimeoutError(what)
        time.sleep(0.1)  # the state of other processes, which can only be read again


class Cluster:
    """The sample site, a scheduler, and one task of the engine's host."""

    def __init__(self, hosts: Hosts, pages: int) -> None:
        self._hosts, self._wanted = hosts, pages
        self.address = f"tls://{hosts.address['scheduler']}:8786"
        self.site = f"http://{hosts.address['site']}:8000"
        site = (sys.executable, "-m", "fixtures.site", "--host", hosts.address["site"])
        hosts.run("site", *site, "--port", "8000", "--pages", str(2 * pages))
        dask = (sys.executable, "-m", "dask", "scheduler", "--protocol", "tls", "--no-dashboard")
        hosts.run("scheduler", *dask, "--host", hosts.address["scheduler"], "--port", "8786")

    def add_workers(self, *names: str) -> None:
        for name in names:
            octask = (sys.executable, "-m", "engine.cli", "worker")
            self._hosts.run(name, *octask, self.address, "--name", name)
        for name in names:
            self._hosts.wait_for(name, "is connected")

    def start(self, kind: str, path: str, **given: Any) -> None:
        args = {"url": f"{self.site}{path}", "timeout_ms": PAGE_MS, "cluster": self.address}
        octask = (sys.executable, "-m", "engine.cli", "start", kind)
        self._began_s = time.monotonic()
        self.task = self._hosts.run("engine", *octask, "--args", json.dumps({**args, **given}))

    def crawl(self, path: str, **given: Any) -> None:
        limits = {"max_pages": self._wanted, "max_depth": 99, "concurrency": 2}
        self.start("crawl", path, **limits, **given)

    @property
    def done(self) -> int:
        return len(self._hosts.lines("engine", "pages.jsonl"))

    def reach(self, pages: int) -> None:
        """Wait until the crawl has so many pages, or has ended."""
        until(lambda: self.done >= pages or self.task.poll() is not None, f"{pages} pages")

    def lost(self) -> int:
        """How often a worker was lost."""
        events = self._hosts.lines("engine", "events.jsonl")
        return sum("was lost" in str((one.get("data") or {}).get("note")) for one in events)

    def cut_off(self, name: str) -> float:
        """Cut off a worker until it is lost; return the seconds that this took."""
        self._hosts.switch.cut.add(name)
        began_s, before = time.monotonic(), self.lost()
        until(lambda: self.lost() > before, f"the loss of {name}")
        return round(time.monotonic() - began_s, 1)

    def ended(self) -> dict[str, Any]:
        self.task.wait(LIMIT_S)
        pages = self._hosts.lines("engine", "pages.jsonl")
        times = Counter(page["url"] for page in pages)
        return {
            "exit": self.task.returncode,
            "missing": self._wanted - len(times),
            "doubled": len(pages) - len(times),
            "failed": sum("error" in page for page in pages),
            "lost": self.lost(),
            "workers": dict(Counter(page.get("worker", "") for page in pages)),
            "lasted_s": round(time.monotonic() - self._began_s),
        }


PARTS: Final = {"dom", "screenshot"}
HOSTS: Final = ["site", "scheduler", "engine", "worker-1", "worker-2"]


def one_after_the_other() -> dict[str, Any]:
    """A worker, the scheduler and the engine are cut off, and come back."""
    with Hosts(HOSTS) as hosts:
        cluster = Cluster(hosts, 900)
        cluster.add_workers("worker-1", "worker-2")
        cluster.crawl("/static/", engine="static", delay_ms=100)
        cluster.reach(40)
        lost_s = cluster.cut_off("worker-1")
        hosts.switch.cut.clear()
        cluster.reach(cluster.done + 120)
        hosts.switch.cut.add("scheduler")
        cluster.reach(cluster.done + 120)  # the known workers go on
        hosts.switch.cut = {"engine"}
        time.sleep(10)  # no event can tell it: no host reaches the engine
        hosts.switch.cut = set()
        return {**cluster.ended(), "lost_s": lost_s}


def for_good(pages: int, path: str, **given: Any) -> dict[str, Any]:
    """One of two workers is cut off, and does not come back."""
    with Hosts(HOSTS) as hosts:
        cluster = Cluster(hosts, pages)
        cluster.add_workers("worker-1", "worker-2")
        cluster.crawl(path, **given)
        cluster.reach(pages // 4)
        lost_s = cluster.cut_off("worker-1")
        return {**cluster.ended(), "lost_s": lost_s}


def bundle_elsewhere() -> dict[str, Any]:
    """The worker of an evidence bundle is cut off while its page loads."""
    with Hosts(HOSTS) as hosts:
        cluster = Cluster(hosts, 0)
        cluster.add_workers("worker-1")
        cluster.start("oc_evidence_bundle", "/slow?ms=9000")
        hosts.wait_for("engine", "A worker takes the bundle")
        time.sleep(3)  # no event tells that its page loads; the answer takes 9 s
        lost_s = cluster.cut_off("worker-1")
        cluster.add_workers("worker-2")
        cluster.task.wait(LIMIT_S)
        parts = {one["part"] for one in hosts.lines("engine", "pages.jsonl")}
        missing = len(PARTS - parts)
        return {"exit": cluster.task.returncode, "missing": missing, "lost_s": lost_s}


def measure(*, short: bool) -> Figures:
    """Pages of a crawl whose cluster loses its network."""
    try:
        import_library("distributed.security")
    except ClusterNotInstalled as missing:
        raise RigUnavailable(str(missing)) from missing
    if why := why_not():
        raise RigUnavailable(why)
    facts = {"a worker, for good": for_good(60, "/static/", engine="static", delay_ms=50)}
    if not short:
        facts["one after the other"] = one_after_the_other()
        facts["a browser, for good"] = for_good(111, "/js/", delay_ms=0)
        facts["a bundle"] = bundle_elsewhere()
    misses = [
        f"{name}: {told[key]} {key}"
        for name, told in facts.items()
        for key in ("exit", "missing", "doubled", "failed")
        if told.get(key)
    ]
    misses += [
        f"{name}: the worker was lost after {told['lost_s']} s"
        for name, told in facts.items()
        if told["lost_s"] > most_s(LOST_S, short=short)
    ]
    return Figures("cluster", facts, misses)


def why_not() -> str:
    """Why this machine cannot do it; empty when it can."""
    if sys.platform != "linux" or os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return "hosts in network namespaces need root, and /dev/net/tun"
    missing = [one for one in ("ip", "openssl") if shutil.which(one) is None]
    return f"{' and '.join(missing)} is not installed" if missing else ""
