"""A web server for one person on this machine: nobody else learns what it serves, and no client can tire it.

Who asks must know a token that is drawn anew for every server and stands in its address, and must use the name of this
machine: a site elsewhere that points its own name at 127.0.0.1 (DNS rebinding) is refused. Only GET and HEAD are
answered. A connection has seconds to ask and a minute to take its answer, and only a few are held at a time; one that
is slow, broken or gone is closed, and nothing is printed about it.
"""

import hmac
import io
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from droptop.errors import BadRequest

ADDRESS = "127.0.0.1"
METHODS = ("GET", "HEAD")
MOST_CONNECTIONS = 32
LONGEST_REQUEST = 16 * 1024  # bytes, of its line and its headers
ASKING = 10.0  # seconds in which the whole request must have come
ANSWERING = 60.0  # seconds in which the whole answer must have been taken
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # what a page cannot say of itself
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the token is in the address
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Answer(NamedTuple):
    """Hold what is sent for a path."""

    body: bytes
    kind: str  # its media type


class PrivateServer(ThreadingHTTPServer):
    """Serve answers by path under `address`, which has the token, on 127.0.0.1."""

    request_queue_size = MOST_CONNECTIONS

    def __init__(self, answer: Callable[[str], Answer | None], port: int) -> None:
        """Listen on a port, any free one where it is 0; `answer` gives None for a path that there is not."""
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            raise BadRequest(f"--port takes a free port, not {port}: {error.strerror}") from None
        self.answer, self.token = answer, secrets.token_urlsafe(16)
        self.lock, self.deadlines = threading.Lock(), dict[Any, float]()  # of open connections, by socket
        names = [ADDRESS, "localhost"]
        self.hosts = [f"{name}:{self.server_port}" for name in names] + (names if self.server_port == 80 else [])

    @property
    def address(self) -> str:
        """Return where the server is."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def give(self, connection: Any, seconds: float) -> None:
        """Give a connection so many seconds from now."""
        with self.lock:
            if connection in self.deadlines:
                self.deadlines[connection] = time.monotonic() + seconds

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, or close it at once where there are too many."""
        with self.lock:
            full = len(self.deadlines) >= MOST_CONNECTIONS
            if not full:
                self.deadlines[request] = time.monotonic() + ASKING
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and forget it."""
        with self.lock:
            self.deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End the connections whose time is up; called about twice a second."""
        now = time.monotonic()
        with self.lock:
            late = [connection for connection, deadline in self.deadlines.items() if deadline < now]
        for connection in late:
            with suppress(OSError):  # it has just ended by itself
                connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answer one request."""

    server: PrivateServer

    def version_string(self) -> str:
        """Return the server's name, without the versions of Python and its libraries."""
        return "droptop"

    def handle(self) -> None:
        """Answer, once the whole request has come; say nothing to who sends none."""
        head = bytearray()
        while b"\r\n\r\n" not in head and b"\n\n" not in head:
            part = self.connection.recv(4096)
            if not part:
                return
            head += part
            if len(head) > LONGEST_REQUEST:
                return
        self.server.give(self.connection, ANSWERING)
        self.rfile = io.BytesIO(head)
        super().handle()

    def parse_request(self) -> bool:
        """Read the request; refuse a method that is neither GET nor HEAD, and a name that is not this machine's."""
        if not super().parse_request():
            return False
        if self.command not in METHODS:
            self.send_error(405)
        elif [host.strip().lower() for host in self.headers.get_all("Host", [])] not in [
            [host] for host in self.server.hosts
        ]:
            self.send_error(403)  # a foreign site that points its own name at this machine
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer with what there is under the path, for who knows the token."""
        path, prefix = self.path.partition("?")[0], f"/{self.server.token}/"
        known = hmac.compare_digest(path[: len(prefix)].encode("utf-8", "replace"), prefix.encode())
        found = self.server.answer(path[len(prefix) :]) if known else None
        if found is None:
            self.send_error(404)
        else:
            self.send(200, found)

    do_HEAD = do_GET

    def send(self, code: int, answer: Answer) -> None:
        """Send an answer; its headers alone where only they were asked for."""
        self.send_response(code)
        sizes = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        for name, value in (sizes | HEADERS | ({"Allow": ", ".join(METHODS)} if code == 405 else {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a code and what it stands for; nothing of what was asked comes back."""
        self.send(int(code), Answer(f"{self.responses.get(code, ('refused',))[0]}\n".encode(), "text/plain"))

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing about a request."""
