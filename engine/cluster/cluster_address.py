"""Addresses of clusters, the errors of finding one, and the import of Dask's libraries."""

from __future__ import annotations

import importlib
import os
import re
import socket
import ssl
from collections.abc import Mapping
from types import ModuleType
from typing import Final, Literal, NamedTuple

from engine.model.addresses import ServiceAddress, service_address
from engine.model.errors import EngineError, PageError

MOST_LOCAL: Final = 16  # workers of an embedded cluster
DEFAULT_PORT: Final = 8_786  # Dask's own
NO_CLUSTER: Final = "none"
_LOCAL: Final = re.compile(r"local:(\d{1,2})")

Scheme = Literal["tcp", "tls"]


class ClusterNotInstalled(EngineError):
    """The libraries of clusters are not installed."""

    code = "cluster_not_installed"
    title = "The cluster libraries are not installed"
    # The message has the way out, because it is all that is stored of an error that ends a task.
    sentence = (
        "The libraries for clusters are not installed ({name} is missing). Install them with: "
        "pip install 'openchrome-monitor[cluster]'"
    )


class ClusterSettingsUnusable(EngineError):
    """The libraries of clusters are there, and their settings cannot be read."""

    code = "cluster_settings_unusable"
    title = "The settings of Dask cannot be read"
    sentence = (
        "The libraries for clusters cannot be loaded, mostly because of a mistake in the settings "
        "of Dask (~/.config/dask): {reason}."
    )


class ClusterUnreachable(EngineError):
    """The scheduler of a cluster cannot be used; no page was loaded."""

    code = "cluster_unreachable"
    title = "The cluster cannot be reached"
    sentence = "The cluster {address} cannot be reached: {reason}."


class ClusterWithoutCertificate(EngineError):
    """A tls:// address was given, and Dask's settings name no certificates."""

    code = "cluster_certificate"
    title = "The certificates for the cluster are missing"
    sentence = (
        "The cluster {address} needs certificates, and Dask's settings give no usable ones: "
        "{reason}. Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE and those of the certificate and key "
        "(docs/scale.md)."
    )


class LocalClusterFailed(EngineError):
    """A process of the embedded cluster does not start."""

    code = "local_cluster_failed"
    title = "The local cluster does not start"
    sentence = "The local cluster does not start: {reason}."


class WorkerLost(PageError):
    """A worker did not give the result of a page; another one may load it.

    `began`: it may have begun to load the page.
    """

    code = "worker_lost"
    title = "The worker of a page was lost"

    def __init__(self, worker: str, reason: str, *, began: bool = True) -> None:
        self.worker, self.reason, self.began = worker, reason, began
        super().__init__("worker", f"the worker {worker} was lost: {reason}")


class WorkerBusy(WorkerLost):
    """A worker has no room for a page at the moment, because it serves other engines as well."""

    code = "worker_busy"
    title = "The worker is busy"

    def __init__(self, worker: str) -> None:
        super().__init__(worker, "it serves other tasks", began=False)


class ClusterAddress(NamedTuple):
    """A scheduler, or an embedded cluster of `local` workers."""

    scheme: Scheme = "tcp"
    host: str = ""
    port: int = DEFAULT_PORT
    local: int = 0

    def __str__(self) -> str:
        if self.local:
            return f"local:{self.local}"
        return str(ServiceAddress(self.scheme, self.host, self.port))


def cluster_address(given: str) -> ClusterAddress:
    """Read tcp://HOST:PORT, tls://HOST:PORT or local:N. Raises ValueError with the reason."""
    text = given.strip()
    if found := _LOCAL.fullmatch(text):
        number = int(found[1])
        if not 1 <= number <= MOST_LOCAL:
            raise ValueError(f"local:N takes 1 to {MOST_LOCAL} workers")
        return ClusterAddress(local=number)
    service = service_address(text, DEFAULT_PORT)
    if service is None:
        raise ValueError("must be tcp://HOST:PORT, tls://HOST:PORT, local:N or none")
    return ClusterAddress(*service)


def is_cluster(text: str) -> bool:
    """Return whether `text` is the address of a cluster."""
    try:
        cluster_address(text)
    except ValueError:
        return False
    return True


def import_library(module: str) -> ModuleType:
    """Import a module of this package, or of Dask, whose libraries are an extra.

    It takes half a second, so that the loop must not do it.

    Raises:
        ClusterNotInstalled: a library is missing.
        ClusterSettingsUnusable: Dask reads its settings during the import, and cannot.
    """
    try:
        return importlib.import_module(module)
    except (ValueError, TypeError, OSError) as error:
        raise ClusterSettingsUnusable(reason=str(error).rstrip(".")) from error
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("engine"):
            raise
        raise ClusterNotInstalled(name=error.name or "a library") from error


def tls_of_dask(address: ClusterAddress, role: Literal["client", "worker"]) -> ssl.SSLContext:
    """Return the certificates of Dask's own settings, for one side of the connections.

    Raises:
        ClusterNotInstalled: Dask is missing.
        ClusterWithoutCertificate: the settings name none, or they cannot be read.
    """
    security = import_library("distributed.security").Security()
    try:
        found = security.get_connection_args(role)["ssl_context"]
    except (OSError, ValueError) as failed:
        reason = _missing_file(security.get_tls_config_for_role(role)) or failed
        raise ClusterWithoutCertificate(address=address, reason=reason) from failed
    if not isinstance(found, ssl.SSLContext):
        raise ClusterWithoutCertificate(address=address, reason="no certificate is named")
    return found


def _missing_file(files: Mapping[str, str | None]) -> str:
    """Return which file of a certificate is not there, if one is not: OpenSSL does not name it."""
    paths = (files.get(part) for part in ("ca_file", "cert", "key"))
    for path in paths:
        if path and "\n" not in path and not os.path.exists(path):  # else the certificate itself
            return f"the file {path} is not there"
    return ""


def default_worker_name() -> str:
    """Return the name of a worker without one: that of its machine, and its process."""
    return f"{socket.gethostname()[:40] or 'worker'}-{os.getpid()}"
