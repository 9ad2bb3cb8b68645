"""A hub on this machine, as far as the libraries ask for one data set: its commit, its list of files, its files."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Hub:
    """Serve the files of a folder as a repository at one commit, and note what is asked for."""

    def __init__(self, repository: str, folder: Path, commit: str) -> None:
        self.repository, self.commit = repository, commit
        self.files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
        self.asked: list[str] = []
        self.gated = False
        self.address = ""

    def listing(self) -> list[dict[str, Any]]:
        folders = {"type": "directory", "path": "data", "oid": "0" * 40, "size": 0}
        return [folders] + [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in self.files.items()
        ]

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers."""
        self.asked.append(path)
        about, files = f"/api/datasets/{self.repository}", f"/datasets/{self.repository}/resolve/{self.commit}/"
        if self.gated:
            return 403, b"", {"X-Error-Code": "GatedRepo"}
        if path.startswith(f"{about}/tree/"):
            return 200, json.dumps(self.listing()).encode(), {}
        if path in (about, f"{about}/revision/main", f"{about}/revision/{self.commit}"):
            siblings = [{"rfilename": name} for name in self.files]
            return 200, json.dumps({"id": self.repository, "sha": self.commit, "siblings": siblings}).encode(), {}
        if path.startswith(f"{about}/revision/"):
            return 404, b"", {"X-Error-Code": "RevisionNotFound"}
        if path.startswith(files):
            data = self.files.get(path.removeprefix(files))
            if data is None:
                return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": self.commit}
            return 200, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": self.commit}
        return 404, b"", {"X-Error-Code": "RepoNotFound"}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body, headers = hub.answer(self.path.partition("?")[0])
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
