import hashlib
import io
import os
import socket
import tarfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from droptop.data import cifar, download, mnist
from droptop.data.download import PACKAGES, Package, bring, fetch
from droptop.errors import BadRequest, DownloadFailed

DATA = bytes(range(256)) * 4000
MD5 = hashlib.md5(DATA).hexdigest()


@dataclass
class Site:
    """A server's files, and how it behaves."""

    files: dict[str, bytes]
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)  # bytes after which the next connections break
    status: list[int] = field(default_factory=list)  # errors to answer the next requests with
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path and range of each request
    address: str = ""


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    servers = []

    def start(site: Site) -> Site:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append((self.path, self.headers.get("Range")))
                data = site.files.get(self.path)
                if data is None or site.status:
                    return self.send_error(404 if data is None else site.status.pop(0))
                start = 0
                if site.ranges and self.headers.get("Range"):
                    start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                    if start >= len(data):
                        return self.send_error(416)
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                self.wfile.write(data[start:][: site.breaks.pop(0) if site.breaks else None])

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        site.address = f"http://127.0.0.1:{server.server_port}/"
        return site

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def nobody():
    """An address that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def quiet(done, total, name):
    pass


def test_a_download_reports_its_progress(serve, tmp_path):
    site, seen = serve(Site({"/a.bin": DATA})), []
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, lambda *step: seen.append(step))
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["a.bin"]
    assert seen[0] == (0, len(DATA), "a.bin")
    assert seen[-1] == (len(DATA), len(DATA), "a.bin")
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert len(site.asked) == 1  # what is there is not fetched again


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_continues_from_a_part(serve, tmp_path, ranges):
    site, seen = serve(Site({"/a.bin": DATA}, ranges)), []
    (tmp_path / "a.bin.part").write_bytes(DATA[:1000])
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, lambda *step: seen.append(step))
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert site.asked == [("/a.bin", "bytes=1000-")]
    assert seen[0] == (1000 if ranges else 0, len(DATA), "a.bin")
    assert seen[-1] == (len(DATA), len(DATA), "a.bin")


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_resumed(serve, tmp_path, ranges):
    site = serve(Site({"/a.bin": DATA}, ranges, breaks=[500_000, 400_000]))
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert [span for _, span in site.asked] == [None, "bytes=500000-", "bytes=900000-" if ranges else "bytes=400000-"]


def test_a_failed_download_leaves_its_part_for_the_next_command(serve, tmp_path):
    site = serve(Site({"/a.bin": DATA}, breaks=[100_000] * 3))
    with pytest.raises(DownloadFailed, match="the connection broke after 300,000 of 1,024,000 bytes"):
        fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin.part").read_bytes() == DATA[:300_000]
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_the_next_mirror_continues_the_part(serve, tmp_path):
    first, second = serve(Site({"/a.bin": DATA}, breaks=[1000])), serve(Site({"/m/a.bin": DATA}))
    fetch([first.address + "a.bin", second.address + "m/a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert second.asked == [("/m/a.bin", "bytes=1000-")]
    assert (tmp_path / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize("extra", [b"", b"and more"])
def test_a_part_that_is_too_long_is_fetched_again(serve, tmp_path, extra):
    site = serve(Site({"/a.bin": DATA}))
    (tmp_path / "a.bin.part").write_bytes(DATA + extra)
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert len(site.asked) == (2 if extra else 1)


def test_a_part_of_another_file_is_fetched_again(serve, tmp_path):
    site = serve(Site({"/a.bin": DATA}))
    (tmp_path / "a.bin.part").write_bytes(b"something else")
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert [span for _, span in site.asked] == ["bytes=14-", None]


def test_a_wrong_checksum_is_refused(serve, tmp_path):
    wrong, right = serve(Site({"/a.bin": DATA[:-1] + b"!"})), serve(Site({"/a.bin": DATA}))
    with pytest.raises(DownloadFailed, match="sends another file: its MD5 is not " + MD5):
        fetch([wrong.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert len(wrong.asked) == 1
    assert os.listdir(tmp_path) == []
    fetch([wrong.address + "a.bin", right.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_missing_file_is_named(serve, tmp_path):
    empty, full = serve(Site({})), serve(Site({"/a.bin": DATA}))
    with pytest.raises(DownloadFailed, match="HTTP 404 Not Found"):
        fetch([empty.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert len(empty.asked) == 1
    fetch([empty.address + "a.bin", full.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_busy_server_is_asked_again(serve, tmp_path):
    site = serve(Site({"/a.bin": DATA}, status=[503, 503]))
    fetch([site.address + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert len(site.asked) == 3


def test_a_missing_connection_is_named(nobody, tmp_path):
    with pytest.raises(DownloadFailed) as error:
        fetch([nobody + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    text = str(error.value)
    assert nobody + "a.bin" in text
    assert f"put it at {tmp_path / 'a.bin'}" in text
    assert "refused" in text
    assert "\n" not in text


def test_a_file_put_there_by_hand_must_be_the_right_one(nobody, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"wrong")
    with pytest.raises(BadRequest, match=r"a.bin is not the file it should be"):
        fetch([nobody + "a.bin"], tmp_path / "a.bin", MD5, quiet)
    assert (tmp_path / "a.bin").read_bytes() == b"wrong"


# -- Whole data sets --------------------------------------------------------------------------------------------------


def archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return file.getvalue()


def package(site, files, folder, archive=True):
    for name, data in files.items():
        site.files["/" + name] = data
    sums = {name: hashlib.md5(data).hexdigest() for name, data in files.items()}
    return Package("A set", (site.address,), sums, folder, archive)


def test_an_archive_is_unpacked(serve, tmp_path):
    site, root = serve(Site({})), tmp_path / "new" / "data"
    pack = package(site, {"set.tar.gz": archive({"set/a": b"1", "set/b": b"2"})}, "set")
    assert bring(pack, root, quiet) == f"A set is in {root / 'set'}"
    assert sorted(os.listdir(root)) == ["set", "set.tar.gz"]
    assert {name: (root / "set" / name).read_bytes() for name in os.listdir(root / "set")} == {"a": b"1", "b": b"2"}
    assert "already" in bring(pack, root, quiet)
    assert len(site.asked) == 1


def test_an_archive_put_there_by_hand_needs_no_connection(serve, nobody, tmp_path):
    data = archive({"set/a": b"1"})
    (tmp_path / "set.tar.gz").write_bytes(data)
    bring(package(Site({}, address=nobody), {"set.tar.gz": data}, "set"), tmp_path, quiet)
    assert (tmp_path / "set" / "a").read_bytes() == b"1"


@pytest.mark.parametrize(
    "members", [{"set/a": b"1", "../evil": b"2"}, {"set/a": b"1", "set/../../evil": b"2"}, {"other/a": b"1"}]
)
def test_an_archive_unpacks_nowhere_else_and_whole_or_not_at_all(serve, tmp_path, members):
    root = tmp_path / "root"
    with pytest.raises(DownloadFailed):
        bring(package(serve(Site({})), {"set.tar.gz": archive(members)}, "set"), root, quiet)
    assert os.listdir(tmp_path) == ["root"]
    assert os.listdir(root) == ["set.tar.gz"]


def test_a_truncated_archive_is_refused(serve, tmp_path):
    pack = package(serve(Site({})), {"set.tar.gz": archive({"set/a": os.urandom(9999)})[:-500]}, "set")
    with pytest.raises(DownloadFailed, match=r"set.tar.gz"):
        bring(pack, tmp_path, quiet)
    assert os.listdir(tmp_path) == ["set.tar.gz"]


def test_a_package_of_single_files_is_fetched(serve, tmp_path):
    site = serve(Site({}))
    pack = package(site, {"x-ubyte.gz": b"1", "y-ubyte.gz": b"2"}, "raw", archive=False)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "y-ubyte").write_bytes(b"decompressed")
    bring(pack, tmp_path, quiet)
    assert sorted(os.listdir(tmp_path / "raw")) == ["x-ubyte.gz", "y-ubyte"]
    assert site.asked == [("/x-ubyte.gz", None)]


def test_a_folder_that_cannot_be_written_is_refused(serve, tmp_path):
    (tmp_path / "file").touch()
    pack = package(serve(Site({})), {"set.tar.gz": archive({"set/a": b"1"})}, "set")
    with pytest.raises(DownloadFailed, match="file"):
        bring(pack, tmp_path / "file" / "below", quiet)


def test_unknown_packages_are_refused(tmp_path):
    with pytest.raises(BadRequest, match="one of cifar10, cifar100, mnist, not imagenet"):
        download.download("imagenet", tmp_path, quiet)


def test_downloads_lie_where_streams_look():
    for layout in (cifar.CIFAR10, cifar.CIFAR100):
        pack = PACKAGES[layout.download]
        assert (pack.folder, list(pack.files), pack.archive) == (layout.folder, [layout.archive], True)
    assert PACKAGES["mnist"].folder == mnist.FOLDER
    assert set(PACKAGES["mnist"].files) == {
        f"{part}-{kind}-ubyte.gz" for part in mnist.PARTS for kind in ("images-idx3", "labels-idx1")
    }
