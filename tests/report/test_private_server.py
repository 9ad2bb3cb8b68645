"""A server that answers one person on this machine: real sockets; clients that ask well, badly, slowly, or leave."""

import socket
import threading
import time
from contextlib import closing, contextmanager

import pytest

from droptop.report.page import private_server
from droptop.report.page.private_server import HEADERS, MOST_CONNECTIONS, Answer, PrivateServer

LARGE = b"x" * 8_000_000  # more than sockets hold


def answer(path):
    return {"": Answer(b"the page", "text/html; charset=utf-8"), "large": Answer(LARGE, "text/plain")}.get(path)


@contextmanager
def served():
    with PrivateServer(answer, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server():
    with served() as server:
        yield server


def connect(server):
    return closing(socket.create_connection(("127.0.0.1", server.server_port), timeout=20))


def rest(connection):
    """All that still comes; nothing where the other side has cut the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def request(server, path="", method="GET", host=None, more=""):
    """The bytes of a request; a path with a slash in front is without the token."""
    place = path if path.startswith("/") else f"/{server.token}/{path}"
    names = [f"127.0.0.1:{server.server_port}"] if host is None else host
    lines = [f"{method} {place} HTTP/1.1", *(f"Host: {name}" for name in names)]
    return ("\r\n".join(lines) + "\r\n" + more + "\r\n").encode()


def ask(server, *args, **kwargs):
    """Code, headers and body of an answer."""
    with connect(server) as connection:
        connection.sendall(request(server, *args, **kwargs))
        return parsed(rest(connection))


def parsed(said):
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_knows_the_token_is_answered(server):
    code, headers, body = ask(server)
    assert (code, body, headers["Content-Type"]) == (200, b"the page", "text/html; charset=utf-8")
    assert ask(server, "?again")[2] == body
    assert ask(server, host=[f"LOCALHOST:{server.server_port}"])[0] == 200
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    assert ask(server, "large")[2] == LARGE


def test_every_server_has_another_token(server):
    with served() as other:
        assert len({server.token, other.token}) == 2
        assert len(server.token) >= 22
        assert ask(server, f"/{other.token}/")[0] == 404


@pytest.mark.parametrize(
    "path", ["/", "/version", "/favicon.ico", "//", "/%2e%2e/", "/é/", "nothing", "../", "large/x"]
)
def test_others_are_not(server, path):
    code, _, body = ask(server, path)
    assert (code, body) == (404, b"Not Found\n")
    assert ask(server, f"/{server.token[:-1]}/")[0] == ask(server, f"/{server.token}")[0] == 404


def test_only_this_machines_name_is_answered(server):
    """A site elsewhere, whose name was made to lead here, asks by that name."""
    port = server.server_port
    for host in (
        ["example.org"],
        [f"example.org:{port}"],
        [f"127.0.0.1.example.org:{port}"],
        [f"127.0.0.1:{port + 1}"],
        ["127.0.0.1"],
        [f"127.0.0.1:{port}", "example.org"],
        [f"127.0.0.1:{port}@example.org"],
        [""],
        [],
    ):
        code, _, body = ask(server, host=host)
        assert (code, body) == (403, b"Forbidden\n"), host


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "<b>"])
def test_other_methods_are_refused(server, method):
    code, headers, body = ask(server, method=method)
    assert (code, headers["Allow"], body) == (405, "GET, HEAD", b"Method Not Allowed\n")


def test_head_has_headers_alone(server):
    code, headers, body = ask(server, method="HEAD")
    assert (code, headers["Content-Length"], body) == (200, "8", b"")
    assert ask(server, "nothing", method="HEAD")[::2] == (404, b"")


def test_answers_can_be_neither_framed_nor_sniffed_nor_kept(server):
    for code, headers, _ in (ask(server), ask(server, "/"), ask(server, method="POST"), ask(server, host=["x"])):
        assert headers.items() >= HEADERS.items(), code
        assert headers["Server"] == "droptop"  # and not which Python it is
    assert HEADERS["X-Frame-Options"] == "DENY"
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in HEADERS["Content-Security-Policy"]


BROKEN = {
    "nothing": b"",
    "half a line": b"GET /",
    "half a request": b"GET / HTTP/1.1\r\nHost: 127.0.0.1",
    "noise": bytes(range(256)) * 4 + b"\r\n\r\n",
    "an old request": b"GET /\r\n\r\n",
    "a version that there is not": b"GET / HTTP/9.9\r\n\r\n",
    "a handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a long line": b"GET /" + b"x" * 100_000,
    "many headers": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2500 + b"\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    "a script": b"<script>alert(1)</script> / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_clients_print_nothing(server, what, capfd):
    with connect(server) as connection:
        try:
            connection.sendall(BROKEN[what])
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it hung up before all was sent
        said = rest(connection)
    assert b"200" not in said
    assert b"script" not in said
    wait_for(lambda: not server.deadlines)
    assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_clients_that_go_away_print_nothing(server, capfd):
    for count in range(40):
        with connect(server) as connection:
            if count % 2:  # away with a reset rather than an end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(request(server, "large"))
            if count % 4 < 2:
                connection.recv(100)
    wait_for(lambda: not server.deadlines)
    assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_slow_clients_are_ended(server, capfd, monkeypatch):
    """One that never ends its request, byte after byte, and one that never takes its answer."""
    monkeypatch.setattr(private_server, "ASKING", 0.3)
    monkeypatch.setattr(private_server, "ANSWERING", 0.3)
    with connect(server) as slow, connect(server) as deaf:
        deaf.sendall(request(server, "large"))
        slow.sendall(b"GET / HTTP/1.1\r\n")
        sent, deadline = 0, time.monotonic() + 20
        try:
            while time.monotonic() < deadline:  # each byte comes soon after the one before
                slow.sendall(b"a")
                sent += 1
                time.sleep(0.01)
        except OSError:
            pass
        assert sent < 1500
        wait_for(lambda: not server.deadlines)
        assert len(rest(deaf)) < len(LARGE)
    assert capfd.readouterr() == ("", "")


def test_few_connections_are_held(server, capfd):
    """More than that are closed at once and cost no thread; when the first ones go, there is room again."""
    held, before = [], threading.active_count()
    for _ in range(MOST_CONNECTIONS):
        held.append(socket.create_connection(("127.0.0.1", server.server_port), timeout=20))
    wait_for(lambda: len(server.deadlines) == MOST_CONNECTIONS)
    for _ in range(50):
        with connect(server) as connection:
            assert rest(connection) == b""
    assert threading.active_count() <= before + MOST_CONNECTIONS
    for connection in held:
        connection.close()
    wait_for(lambda: not server.deadlines)
    assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_an_error_of_its_own_is_not_hidden(server, capfd, monkeypatch):
    monkeypatch.setattr(server, "answer", lambda path: 1 / 0)
    with connect(server) as connection:
        connection.sendall(request(server))
        rest(connection)
    assert "ZeroDivisionError" in capfd.readouterr().err
