"""The page while a run goes on: served to one person on this machine, made again when the folder has changed.

The page asks for the folder's version every few seconds and reloads itself when the version has changed.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from droptop.report.page.private_server import Answer, PrivateServer

WATCHED = ("metrics.jsonl", "result.json", "summary.json", "compare.json", "failed.json", "study.toml", "tune.json")
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


def server(pages: Pages, port: int) -> PrivateServer:
    """Return a server of pages, on any free port where `port` is 0; refuse a port that is taken."""

    def answer(path: str) -> Answer | None:
        if path == "version":
            return Answer(pages.current().encode(), "text/plain; charset=utf-8")
        return Answer(pages.html(), "text/html; charset=utf-8") if path == "" else None

    return PrivateServer(answer, port)
