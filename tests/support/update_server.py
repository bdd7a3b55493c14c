"""A real https server for update checks, with a certificate that only this test trusts."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PAGE = "https://example.org/releases"


@dataclass
class Seen:
    """What the server answers with, and the requests that it got."""

    body: bytes = json.dumps({"version": "99.1", "page": PAGE}).encode()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    port: int = 0
    held: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/latest.json"


def certificate(folder: Path) -> Path:
    """Write key and certificate for 127.0.0.1 into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(private + made.public_bytes(pem))
    return file


@contextmanager
def update_server(file: Path, seen: Seen | None = None) -> Iterator[Seen]:
    """Serve https with the certificate in `file`."""
    seen = seen or Seen()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(lambda: seen))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[assignment]  # a client that refuses us
    server.socket = context.wrap_socket(server.socket, server_side=True)
    seen.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(seen_now: Callable[[], Seen]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen = seen_now()
            seen.requests.append((self.command, self.path, dict(self.headers.items())))
            if seen.held is not None:
                seen.held.wait(60)
            is_redirected = self.path == "/moved"
            self.send_response(200 if is_redirected else seen.status)
            for name, value in {} if is_redirected else seen.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(seen.body)))
            self.send_header("Set-Cookie", "id=1")
            self.end_headers()
            self.wfile.write(seen.body)

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    return Handler
