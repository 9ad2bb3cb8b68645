"""Pipes, devices and links in the places of a folder's files: nothing hangs, and nothing is written where they lead."""

import os
import shutil

import pytest
from matplotlib.figure import Figure

from droptop.figures import style
from droptop.system.files import write_atomic
from droptop.system.plain_files import bytes_of, open_to_write

from damage import in_time

READ = (
    "none/seed-0/metrics.jsonl",
    "none/seed-0/result.json",
    "none/seed-0/manifest.json",
    "none/seed-0/spec.json",
    "none/seed-0/maps/images.safetensors",
    "none/config.toml",
    "environment.json",
    "manifest.json",
    "cost.json",
    "tuned.json",
)
WRITTEN = (  # by `report`, and by a `resume` that begins a seed anew
    "report.html",
    "report.html.part",
    "compare.json.part",
    "manifest.json.part",
    "figures/effects.png",
    "figures/effects.png.part",
    "none/seed-0/metrics.jsonl",
    "none/seed-0/result.json.part",
    "none/seed-0/.lock",
)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_looking_at_pipes_and_devices_comes_to_an_end(comparison, tmp_path, here, kind):
    for name in READ:
        folder = shutil.copytree(comparison[0], tmp_path / name.replace("/", "-"))
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name) if kind == "pipe" else (folder / name).symlink_to("/dev/zero")
        with in_time(60):
            for command in ("status", "results", "verify"):
                done = here(command, folder)
                assert done.returncode in (0, 1, 2), (name, done)
                assert done.returncode < 2 or len(done.stderr.splitlines()) == 1
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_written_where_a_link_leads(comparison, tmp_path, here, name):
    folder, precious = shutil.copytree(comparison[0], tmp_path / "out"), tmp_path / "precious"
    precious.write_text("precious")
    if name.endswith(("metrics.jsonl", "result.json.part")):
        shutil.rmtree(folder / "none/seed-0")
        (folder / "none/seed-0").mkdir()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(precious)
    commands = ["report", "resume"] if name.startswith("report") else ["resume"]
    for command in commands:
        done = here(command, folder)
        if done.returncode:
            assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
            assert f"{folder / name}: is a link, and nothing is written through links" in done.stderr
    assert precious.read_text() == "precious"


def test_files_are_read_and_written_as_ever_but_for_links(tmp_path):
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert bytes_of(tmp_path / "link") == b"a"  # to look at a link is no harm
    with pytest.raises(OSError, match="is a link, and nothing is written through links"):
        open_to_write(tmp_path / "link", "r+b")
    write_atomic(tmp_path / "link", b"b")  # in its place
    assert (bytes_of(tmp_path / "file"), bytes_of(tmp_path / "link")) == (b"a", b"b")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/one.png").symlink_to(tmp_path / "file")
    style.save(Figure(), tmp_path, "one")
    assert bytes_of(tmp_path / "file") == b"a"
    assert bytes_of(tmp_path / "figures/one.png").startswith(b"\x89PNG")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is no file"):
        bytes_of(tmp_path / "pipe")
