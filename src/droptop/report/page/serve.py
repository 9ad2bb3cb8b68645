"""The page while a run goes on: served on this machine alone, made again when the folder has changed.

The page asks for the folder's version every few seconds and reloads itself when the version has changed.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from droptop.errors import BadRequest

WATCHED = ("metrics.jsonl", "result.json", "summary.json", "compare.json", "failed.json", "study.toml")
PAUSE = 3.0  # seconds for which a version of the folder is taken for current


class Pages:
    """Keep the newest page of a folder, which is made once per version, however many readers ask for it."""

    def __init__(self, folder: Path, make: Callable[[str], str]) -> None:
        self.folder, self.make, self.lock = folder, make, threading.Lock()
        self.checked, self.version, self.page, self.made = 0.0, "", b"", ""

    def current(self) -> str:
        """Return the folder's version, which is determined again every few seconds."""
        with self.lock:
            if time.monotonic() - self.checked >= PAUSE or not self.version:
                self.version, self.checked = version_of(self.folder), time.monotonic()
            return self.version

    def html(self) -> bytes:
        """Return the newest page; the one before it where the folder cannot be read while it changes."""
        version = self.current()
        with self.lock:
            if self.made != version:
                try:
                    self.page, self.made = self.make(version).encode(), version
                except Exception:  # files may be half written: the last page will do
                    if not self.page:
                        raise
            return self.page


def version_of(folder: Path) -> str:
    """Return a version that changes whenever a file that the page is made of does."""
    digest = hashlib.sha256()
    for name in WATCHED:
        for path in sorted(folder.rglob(name)):
            try:
                stat = path.stat()
            except OSError:  # removed since it was listed
                continue
            digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def server(pages: Pages, port: int) -> ThreadingHTTPServer:
    """Return a server of pages on 127.0.0.1, on any free port where `port` is 0; refuse a port that is taken."""

    class Handler(BaseHTTPRequestHandler):
        """Answer requests from this machine."""

        def do_GET(self) -> None:
            """Answer with the page or its version."""
            path = self.path.partition("?")[0]
            if self.headers.get("Host", "").partition(":")[0] not in ("127.0.0.1", "localhost"):
                self.send_error(403)  # a foreign site that points its own name at this machine
            elif path == "/version":
                self.answer(pages.current().encode(), "text/plain")
            elif path == "/":
                self.answer(pages.html(), "text/html; charset=utf-8")
            elif path == "/favicon.ico":
                self.answer(b"", "image/x-icon")
            else:
                self.send_error(404)

        def answer(self, body: bytes, kind: str) -> None:
            """Send a body of a media type."""
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
            """Print nothing about a request."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise BadRequest(f"--port takes a free port, not {port}: {error.strerror}") from None
