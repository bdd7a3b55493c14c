"""The argument of a cluster: its addresses, and what never goes there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.config
import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.cluster.cluster_address import (
    ClusterAddress,
    ClusterNotInstalled,
    ClusterWithoutCertificate,
    cluster_address,
    import_library,
    tls_of_dask,
)
from engine.cluster.cluster_connection import certificate
from engine.kinds.crawl.crawl_cluster import cluster_of_crawl as cluster_of
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.model.proxies import DefaultProxy
from engine.verbs.schemas import kind_schema

ROOT = Path(__file__).resolve().parents[2]
FILES = {"ca-file": "ca.pem", "client.cert": "node.pem", "client.key": "node.key"}
THERE = "tcp://10.0.0.5:8786"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("tcp://10.0.0.5:99", ClusterAddress("tcp", "10.0.0.5", 99)),
        ("tls://head.example", ClusterAddress("tls", "head.example", 8786)),
        ("tcp://[::1]:5/", ClusterAddress("tcp", "::1", 5)),
        (" local:2 ", ClusterAddress(local=2)),
    ],
)
def test_an_address_is_read(given: str, found: ClusterAddress) -> None:
    assert cluster_address(given) == found
    assert cluster_address(str(found)) == found


@pytest.mark.parametrize(
    "given",
    [
        *("", "head:8786", "http://head:1", "ws://head:1", "tcp://", "tcp://a:0", "tcp://a:70000"),
        *("local:0", "local:17", "local:", "tcp://user:pw@head:1", "tcp://a:1/x", "tcp://a b:1"),
    ],
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="local:N"):
        cluster_address(given)


def tools(tmp_path: Path, **settings: Any) -> Tools:
    found = Settings(home=tmp_path, root=tmp_path / "tasks", **settings)
    return Tools(found, BrowserSession())


def parsed(tmp_path: Path, given: dict[str, Any], kind: str = "crawl", **settings: Any) -> Any:
    parse = KINDS[kind].parse_here
    assert parse is not None
    return parse({"url": "https://a.test/", **given}, tools(tmp_path, **settings))


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("profile", {"profile": "shop"}),
    ("username", {"username": "me", "password": "secret-1"}),
    ("username", {"url": "https://me:secret-1@a.test/"}),
    ("url", {"url": "https://a.test/?token=secret-of-the-address"}),
    ("url", {"url": "https://a.test/?token=abc"}),
    ("url", {"url": "https://a.test/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk"}),
    ("headers", {"headers": ["X-Api-Key: secret-of-a-header"]}),
    ("proxy", {"proxy": "http://127.0.0.1:3128"}),
    ("proxy", {"proxy": "socks5://127.0.0.1:3128", "proxy_username": "u"}),
    ("dismiss_consent", {"dismiss_consent": True}),
]
REFUSED_CRAWLS: list[tuple[str, dict[str, Any]]] = [
    ("archive", {"archive": "warc"}),
    ("concurrency", {"concurrency": "auto"}),
    ("urls", {"urls": ["https://a.test/b?token=secret-of-the-address"]}),
]
EVIDENCE = "oc_evidence_bundle"


@pytest.mark.parametrize(
    ("kind", "name", "given"),
    [
        *(("crawl", *one) for one in (*REFUSED, *REFUSED_CRAWLS)),
        *(("crawl_sitemap", *one) for one in (*REFUSED, *REFUSED_CRAWLS[:2])),
        *((EVIDENCE, *one) for one in REFUSED),
    ],
)
def test_what_does_not_go_to_other_machines_is_refused_by_name(
    tmp_path: Path, kind: str, name: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parsed(tmp_path, {**given, "cluster": THERE}, kind)
    assert name in [problem.path for problem in refused.value.problems]
    assert "secret" not in str(refused.value)
    parsed(tmp_path, given, kind)  # here it goes


def test_the_tab_of_an_agent_is_on_this_machine(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="cluster: does not go with tab"):
        parsed(tmp_path, {"url": None, "tab": "tab_1", "cluster": THERE}, EVIDENCE)
    parsed(tmp_path, {"url": None, "tab": "tab_1"}, EVIDENCE, environ={"OC_CLUSTER": THERE})


@pytest.mark.parametrize("kind", ["crawl", EVIDENCE])
def test_the_proxy_of_the_settings_does_not_go_there_either(tmp_path: Path, kind: str) -> None:
    proxy = DefaultProxy("http://127.0.0.1:3128")
    with pytest.raises(InvalidArguments, match=r"default proxy \(OC_PROXY or the settings\)"):
        parsed(tmp_path, {"cluster": THERE}, kind, proxy=proxy)
    parsed(tmp_path, {"cluster": THERE, "proxy": "none"}, kind, proxy=proxy)


@pytest.mark.parametrize("route", ["mcp", "http"])
def test_programs_do_not_choose_a_cluster(tmp_path: Path, route: str) -> None:
    for kind in ("crawl", EVIDENCE):
        with pytest.raises(InvalidArguments, match="operator"):
            parsed(tmp_path, {"cluster": THERE}, kind, route=route)
    found = tools(tmp_path, environ={"OC_CLUSTER": THERE}).on_route(route)
    args = parsed(tmp_path, {})
    assert cluster_of(args, found.settings) is None


@pytest.mark.parametrize("kind", ["crawl", "crawl_sitemap", EVIDENCE])
def test_the_schemas_for_programs_do_not_name_it(kind: str) -> None:
    assert "cluster" not in kind_schema(kind)["properties"]


def test_the_environment_names_the_cluster_of_crawls_without_one(tmp_path: Path) -> None:
    settings = tools(tmp_path, environ={"OC_CLUSTER": "local:3"}).settings
    assert cluster_of(parsed(tmp_path, {}), settings) == ClusterAddress(local=3)
    assert cluster_of(parsed(tmp_path, {"cluster": "none"}), settings) is None
    assert str(cluster_of(parsed(tmp_path, {"cluster": THERE}), settings)) == THERE
    with pytest.raises(InvalidArguments, match="OC_CLUSTER"):
        parsed(tmp_path, {}, environ={"OC_CLUSTER": "head"})


@pytest.mark.parametrize("given", [{"url": None, "tab": "tab_1"}, {"headers": ["X-Team: a"]}])
def test_a_default_that_is_no_address_refuses_nothing_that_cannot_use_it(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    environ = {"OC_CLUSTER": "head"}
    parsed(tmp_path, given, EVIDENCE, environ=environ)
    with pytest.raises(InvalidArguments, match="OC_CLUSTER"):
        parsed(tmp_path, {}, EVIDENCE, environ=environ)


def test_the_environment_comes_before_the_setting(tmp_path: Path) -> None:
    args = parsed(tmp_path, {})
    assert cluster_of(args, tools(tmp_path, cluster="local:2").settings) == ClusterAddress(local=2)
    both = tools(tmp_path, cluster="local:2", environ={"OC_CLUSTER": "local:3"}).settings
    assert cluster_of(args, both) == ClusterAddress(local=3)
    none = tools(tmp_path, cluster="local:2", environ={"OC_CLUSTER": "none"}).settings
    assert cluster_of(args, none) is None


@pytest.mark.parametrize("default", [{"environ": {"OC_CLUSTER": THERE}}, {"cluster": THERE}])
def test_a_default_cluster_refuses_no_crawl(tmp_path: Path, default: dict[str, Any]) -> None:
    args = parsed(tmp_path, {"archive": "warc"}, **default)
    settings = tools(tmp_path, **default).settings
    assert cluster_of(args, settings) is None
    assert cluster_of(parsed(tmp_path, {}), settings) is not None


@pytest.mark.parametrize("route", ["mcp", "http"])
def test_the_setting_is_not_for_programs(tmp_path: Path, route: str) -> None:
    found = tools(tmp_path, cluster=THERE).on_route(route)
    assert cluster_of(parsed(tmp_path, {}), found.settings) is None


def test_certificates_are_asked_for_at_once() -> None:
    with pytest.raises(ClusterWithoutCertificate, match="CA_FILE"):
        tls_of_dask(cluster_address("tls://head"), "client")


def test_a_certificate_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    names = {name: str(tmp_path / name) for name in FILES.values()}
    orders, _ = certificate()
    (tmp_path / "ca.pem").write_text(orders["tls_ca_file"])
    (tmp_path / "node.pem").write_text(orders["tls_client_cert"])
    tls = {f"distributed.comm.tls.{part}": names[name] for part, name in FILES.items()}
    with (
        dask.config.set(tls),
        pytest.raises(ClusterWithoutCertificate, match=r"node\.key is not there"),
    ):
        tls_of_dask(cluster_address("tls://127.0.0.1:1"), "client")


def test_a_missing_library_is_an_error_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ClusterNotInstalled, match=r"pip install 'openchrome-monitor\[cluster\]'"):
        import_library("distributed.security")


def test_a_crawl_without_a_cluster_imports_nothing_of_it() -> None:
    source = """
import asyncio, sys, tempfile, threading
from pathlib import Path
from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from fixtures.site.site import Site
from tests.support.memory_context import MemoryContext

async def main():
    kind, context = KINDS["crawl"], MemoryContext()
    tools = Tools(Settings.at(home=Path(tempfile.gettempdir())), BrowserSession())
    with Site(pages=3) as site:
        args = kind.parse_here({"url": site.url, "engine": "static", "delay_ms": 0}, tools)
        await kind.body(args, context, tools)
    assert context.pages

asyncio.run(main())
names = ("dask", "distributed", "tornado", "engine.cluster.cluster_pages")
names += ("engine.cluster.worker_pool", "engine.cluster.cluster_connection")
names += ("engine.cluster.page_records", "engine.cluster.wire")
print([name for name in names if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, check=True, timeout=150
    )
    assert found.stdout.decode().strip() == "[]"
