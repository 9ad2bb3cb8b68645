"""The page while a run goes on: served on this machine alone, made anew when the folder has changed.

The page asks for the folder's version every few seconds and, when it is another one, loads itself again.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from droptop.errors import BadRequest

WATCHED = ("metrics.jsonl", "result.json", "summary.json", "compare.json", "failed.json", "study.toml")
PAUSE = 3.0  # seconds between two looks at the folder


class Pages:
    """The newest page of a folder; however many ask, it is made once a version."""

    def __init__(self, folder: Path, make: Callable[[str], str]) -> None:
        self.folder, self.make, self.lock = folder, make, threading.Lock()
        self.looked, self.version, self.page, self.made = 0.0, "", b"", ""

    def current(self) -> str:
        """The folder's version, looked up every few seconds."""
        with self.lock:
            if time.monotonic() - self.looked >= PAUSE or not self.version:
                self.version, self.looked = version_of(self.folder), time.monotonic()
            return self.version

    def html(self) -> bytes:
        version = self.current()
        with self.lock:
            if self.made != version:
                try:
                    self.page, self.made = self.make(version).encode(), version
                except Exception:  # caught in the middle of a change: what was there will do
                    if not self.page:
                        raise
            return self.page


def version_of(folder: Path) -> str:
    """Another one whenever a file that the page is made of has changed."""
    digest = hashlib.sha256()
    for name in WATCHED:
        for path in sorted(folder.rglob(name)):
            try:
                found = path.stat()
            except OSError:  # gone since
                continue
            digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def server(pages: Pages, port: int) -> ThreadingHTTPServer:
    """Listens on 127.0.0.1, on a free port where it is given 0."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if self.headers.get("Host", "").partition(":")[0] not in ("127.0.0.1", "localhost"):
                self.send_error(403)  # a page from elsewhere, by a name that leads here
            elif path == "/version":
                self.answer(pages.current().encode(), "text/plain")
            elif path == "/":
                self.answer(pages.html(), "text/html; charset=utf-8")
            elif path == "/favicon.ico":
                self.answer(b"", "image/x-icon")
            else:
                self.send_error(404)

        def answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody wants to read of every question."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise BadRequest(f"--port takes a free port, not {port}: {error.strerror}") from None
