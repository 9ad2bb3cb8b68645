"""A page that follows its folder, on this machine alone."""

import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from droptop import BadRequest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.report.page.serve import Pages, server, version_of

from toys import command, environment


def test_pages_follow_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("droptop.report.page.serve.PAUSE", 0.0)
    made = []

    def make(version):
        if (tmp_path / "broken").exists():
            raise BadRequest("not now")
        made.append(version)
        return f"page {len(made)}"

    pages = Pages(tmp_path, make)
    (tmp_path / "metrics.jsonl").write_text("one")
    with server(pages, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        place = serving.address

        def get(path):
            return urllib.request.urlopen(place + path, timeout=10).read().decode()

        first = get("version")
        assert [get(""), get("?again")] == ["page 1", "page 1"]
        (tmp_path / "metrics.jsonl").write_text("one two")
        assert get("version") == version_of(tmp_path) != first
        assert get("") == "page 2"
        (tmp_path / "broken").touch()
        (tmp_path / "metrics.jsonl").write_text("one two three")
        assert get("") == "page 2"
        with pytest.raises(urllib.error.HTTPError):
            get("etc/passwd")
        with pytest.raises(BadRequest, match="--port takes a free port"):
            server(pages, serving.server_port)
        serving.shutdown()


def test_watch_serves_until_it_is_interrupted(stopped):
    process = subprocess.Popen(
        command("report", stopped, "--watch"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    told = process.stdout.readline()
    address = told.split()[2]
    html = urllib.request.urlopen(address, timeout=30).read().decode()
    assert "Not finished: 0 of 2 seeds are done" in html
    assert 'data-version="' in html
    for _ in range(3):  # clients that ask and go
        with socket.create_connection((urlsplit(address).hostname, urlsplit(address).port), timeout=30) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            gone.sendall(f"GET {urlsplit(address).path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\n\r\n".encode())
            gone.recv(10)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
