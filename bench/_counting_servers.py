"""A fake object store, tracker and database, which count what reaches them.

The HTTP server answers as S3, GCS, MLflow and W&B do to the requests of ``programs/sends_things.py``; the TCP server
answers as PostgreSQL, Redis and SMTP do to the first message; both on all addresses of the host.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSWERS = (
    ("/graphql", b'{"data": {"upsertBucket": {"bucket": {"id": "1", "name": "x", "project": {"name": "p"}}}}}'),
    ("/api/2.0/mlflow", b'{"experiment": {"experiment_id": "0"}, "run": {"info": {"run_id": "1"}, "data": {}}}'),
    ("/upload/storage", b'{"kind": "storage#object", "name": "model"}'),
    ("/computeMetadata", b'{"access_token": "x", "expires_in": 3600, "token_type": "Bearer"}'),
    ("/bucket", b"data"),
)


class _Handler(BaseHTTPRequestHandler):
    """Answers each request, and counts it."""

    server: _WebServer

    def setup(self) -> None:
        """Count a connection."""
        self.server.count("connection")
        super().setup()

    def answer(self) -> None:
        """Answer any method."""
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.server.count("request")
        body = next((text for path, text in _ANSWERS if self.path.startswith(path)), b"{}")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("ETag", '"0"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


for _method in ("GET", "PUT", "POST", "HEAD", "DELETE", "PATCH"):
    setattr(_Handler, f"do_{_method}", _Handler.answer)


class _WebServer(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True

    def __init__(self, count: Callable[[str], None]) -> None:
        super().__init__(("::", 0), _Handler)
        self.count = count


class Servers:
    """All of them, until the process ends."""

    def __init__(self, folder: Path) -> None:
        """``folder``: where Unix sockets are made."""
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        web = _WebServer(self._count)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self._serve(tcp)
        udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        udp.bind(("::", 0))
        self._receive(udp)
        token = f"service-{os.urandom(6).hex()}"
        (folder / "service").mkdir(mode=0o777)
        paths = {"unix": f"{folder}/service/service.sock", "abstract": token, "device": f"/dev/{token}"}
        for name, path in paths.items():
            self._serve(_unix(f"\0{path}" if name == "abstract" else path))
        paths["unix_datagram"] = f"{folder}/service/datagram.sock"
        self._receive(_unix(paths["unix_datagram"], socket.SOCK_DGRAM))
        self.device = paths["device"]
        self.at: dict[str, object] = {
            "host": other_address(),
            "http": web.server_address[1],
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            **paths,
        }

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def take(self) -> int:
        """How many connections, requests and messages came since the last call."""
        with self._lock:
            found = self._counts.total()
            self._counts.clear()
        return found

    def _serve(self, server: socket.socket) -> None:
        def accept() -> None:
            while True:
                client, _ = server.accept()
                self._count("connection")
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

        server.listen(64)
        threading.Thread(target=accept, daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client:
            client.settimeout(5)
            try:
                if client.recv(65536):
                    self._count("request")
                    client.sendall(b"+PONG\r\n")
            except OSError:  # it says nothing, or has gone: it is counted as a connection
                return

    def _receive(self, server: socket.socket) -> None:
        def receive() -> None:
            while True:
                server.recv(65536)
                self._count("message")

        threading.Thread(target=receive, daemon=True).start()


def _unix(path: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    if path[0] != "\0":
        Path(path).chmod(0o777)
    return server


def other_address() -> str:
    """An address of this host other than loopback; loopback's if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.99", 9))
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address
