import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from droptop import BadRequest, Samples
from droptop.data import image_cache as cache
from droptop.data import image_store
from droptop.data.image_cache import ImageSet, Room, forget_reads, read_once, sharing_reads
from droptop.data.image_decoding import read_image
from droptop.data.image_folders import read_part, read_tree
from droptop.data.image_store import StoredImages
from droptop.data.scenes import plain

from pictures import picture, pixels, save, write_tree
from toys import environment


@pytest.fixture
def part(tmp_path):
    return read_tree(write_tree(tmp_path / "tree", {"train": {"a": 3, "b": 2}, "test": {"a": 1, "b": 1}}))[0]


@pytest.fixture
def decodes(monkeypatch):
    """The images that were read, in turn."""
    read = []
    monkeypatch.setattr(
        "droptop.data.scenes.read_image", lambda path, at_least: (read.append(path.name), read_image(path, at_least))[1]
    )
    return read


def images(part, size=12, room=2**20):
    return cache.load_images(plain(part, size, "a tree"), part.y, Room(room))


def test_images_are_decoded_as_pillow_decodes_them(part):
    samples = images(part)
    assert isinstance(samples, Samples)
    assert (samples.x.dtype, samples.y.tolist()) == (torch.uint8, [0, 0, 0, 1, 1])
    for row in range(5):
        assert np.array_equal(samples.x[row].permute(1, 2, 0).numpy(), pixels(part.path(row)))


def test_images_beyond_the_room_stay_on_the_disk(part):
    room = Room(5 * 3 * 12 * 12)
    memory, disk = (cache.load_images(plain(part, 12, "a tree"), part.y, room) for _ in range(2))
    assert (type(memory), type(disk), room.left) == (Samples, StoredImages, 0)
    assert torch.equal(memory.x, disk[torch.arange(5)].x)


def test_shorter_side_fits_and_the_centre_stays(tmp_path):
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = picture(1, (10, 10))
    Image.fromarray(wide).save(tmp_path / "wide.png")
    assert np.array_equal(cache.fit(read_image(tmp_path / "wide.png"), (10, 10)), wide[:, 10:20])
    halved = np.asarray(cache.fit(Image.fromarray(wide), (5, 5)))
    assert halved.shape == (5, 5, 3)
    assert halved.mean() == pytest.approx(wide[:, 10:20].mean(), rel=0.1)


def test_seeds_of_one_process_share_what_is_in_memory(part):
    first = images(part)
    assert images(part) is first
    assert images(part, size=8) is not first


# -- Whether it is made anew ------------------------------------------------------------------------------------------


def test_a_cache_is_made_once(part, decodes):
    first = images(part)
    assert sorted(decodes) == ["0.png", "0.png", "1.png", "1.png", "2.png"]
    assert torch.equal(images(part).x, first.x)
    assert len(decodes) == 5


def test_a_changed_image_or_size_makes_another_cache(part, decodes):
    keys = {
        plain(part, 12, "").key,
        plain(part, 13, "").key,
        plain(part.select([1, 0, 2, 3, 4]), 12, "").key,
        ImageSet("", "another way", 12, part.home, part.names, range(5), Image.Image).key,
    }
    assert len(keys) == 4
    before = images(part)
    save(picture(77), part.path(3))
    after = images(part)
    assert len(decodes) == 10
    assert [torch.equal(a, b) for a, b in zip(before.x, after.x)] == [True, True, True, False, True]
    os.utime(part.path(0), ns=(0, 0))
    images(part)
    assert len(decodes) == 15


def test_a_moved_folder_keeps_its_cache(part, tmp_path, decodes):
    images(part)
    part.home.rename(tmp_path / "elsewhere")
    images(read_tree(tmp_path / "elsewhere")[0])
    assert len(decodes) == 5


@pytest.mark.parametrize("damage", ["cut", "row", "gone", "another"])
def test_a_damaged_cache_is_made_again(part, cache_folder, damage, decodes):
    good = images(part).x.clone()  # of the samples themselves nothing is left, or they would be shared
    (path,) = cache_folder.glob("*.images")
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "another":
        image_store.write(path, "another", 5, 12, [np.zeros((5, 3, 12, 12), np.uint8)])
    elif damage == "cut":
        path.write_bytes(data[:5000])
    else:
        data[5000] ^= 1
        path.write_bytes(data)
    assert torch.equal(images(part).x, good)
    assert len(decodes) == 10


def test_shared_reads_end_when_they_are_forgotten(part):
    looked = []
    assert [read_once("a", lambda: looked.append(1)) for _ in range(2)] == [None, None]
    assert len(looked) == 2  # nobody asked for less
    with sharing_reads():
        for key in "aabba":
            read_once(key, lambda: looked.append(1))
        assert len(looked) == 5  # one set at a time
        forget_reads()
        read_once("a", lambda: looked.append(1))
        assert len(looked) == 6


# -- What may go wrong while it is made -------------------------------------------------------------------------------


def test_a_file_that_does_not_decode_is_named(part, cache_folder):
    part.path(3).write_bytes(part.path(3).read_bytes()[:200])
    with pytest.raises(BadRequest, match=r"train/b/0\.png does not decode: .+") as error:
        images(part)
    assert "\n" not in str(error.value)
    assert [entry.name for entry in cache_folder.iterdir()] == ["lock"]


@pytest.mark.parametrize("content", [b"", b"no image at all", b"\x89PNG\r\n\x1a\n" + bytes(50), b"\xff\xd8\xff\xe0"])
def test_files_that_are_no_images_are_named(tmp_path, content):
    (tmp_path / "x.jpg").write_bytes(content)
    with pytest.raises(BadRequest, match=r"x\.jpg does not decode"):
        read_image(tmp_path / "x.jpg")
    with pytest.raises(BadRequest, match=r"y\.jpg does not decode: No such file"):
        read_image(tmp_path / "y.jpg")


@pytest.mark.parametrize("when", ["at once", "half-way"])
def test_a_full_disk_leaves_nothing(part, cache_folder, monkeypatch, when):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if when == "at once":
        monkeypatch.setattr(os, "posix_fallocate", full)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadRequest, match="cache: No space left on device; the decoded images of a tree take"):
        images(part)
    assert [entry.name for entry in cache_folder.iterdir()] == ["lock"]


def test_a_cache_that_cannot_be_written_is_refused(part, cache_folder):
    cache_folder.write_text("a file")
    with pytest.raises(BadRequest, match="cache: File exists"):
        images(part)


SLOW = """
import sys, time
from pathlib import Path
from PIL import Image
from droptop.data import image_cache as cache
def make(row):
    time.sleep(float(sys.argv[2]) if row >= 4 else 0)
    with open(sys.argv[1], "a") as log:
        log.write(f"{row}\\n")
    return Image.new("RGB", (8, 8), (row, 0, 0))
cache.progress.set(lambda done, total, what: print(done, what, flush=True))
cache.BLOCK = 4
print(cache.decoded(cache.ImageSet("it", "slowly", 8, Path("."), [], range(16), make)), flush=True)
"""


def start(folder, seconds):
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder / "log"), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_two_processes_make_one_cache_and_a_killed_one_leaves_no_trace(tmp_path, cache_folder):
    """First one alone, killed half-way; then two at once."""
    killed = start(tmp_path, 60)
    first = killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert first == "4 it\n"
    assert [entry.suffix for entry in cache_folder.iterdir() if entry.name != "lock"] == [".part"]
    (tmp_path / "log").unlink()
    both = [start(tmp_path, 0.1), start(tmp_path, 0.1)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    made = sorted((tmp_path / "log").read_text().split(), key=int)
    assert made == [str(row) for row in range(16)]  # once each
    assert said[0][-1] == said[1][-1]
    kept = StoredImages(Path(said[0][-1]), torch.zeros(16, dtype=torch.int64))
    assert kept[torch.arange(16)].x[:, 0, 0, 0].tolist() == list(range(16))
    assert sorted(entry.suffix for entry in cache_folder.iterdir()) == ["", ".images"]


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    assert cache.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("DROPTOP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.cache_folder() == Path("/somewhere/droptop")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.cache_folder() == Path("/home/me/.cache/droptop")


def test_progress_counts_the_images(part, monkeypatch):
    told = []
    monkeypatch.setattr(cache, "BLOCK", 2)
    token = cache.progress.set(lambda *report: told.append(report))
    images(part)
    cache.progress.reset(token)
    assert told == [(2, 5, "a tree"), (4, 5, "a tree"), (5, 5, "a tree")]


# -- Images as people keep them ---------------------------------------------------------------------------------------


def test_every_kind_of_image(tmp_path):
    grey = np.arange(0, 250, 10, dtype=np.uint8).reshape(5, 5)
    clear = np.stack([grey, grey, grey, np.where(grey > 100, 255, 0)], -1).astype(np.uint8)
    rgb = np.stack([grey] * 3, -1)
    pictures = {
        "grey": (Image.fromarray(grey), rgb),
        "deep": (Image.fromarray(grey.astype(np.uint16) << 8), rgb),
        "two": (Image.fromarray(grey > 100), np.where(rgb > 100, 255, 0)),
        "palette": (Image.fromarray(rgb).quantize(25), rgb),
        "clear": (Image.fromarray(clear), np.where(rgb > 100, rgb, 0)),
    }
    for name, (image, expected) in pictures.items():
        image.save(tmp_path / f"{name}.png")
        assert np.array_equal(np.asarray(read_image(tmp_path / f"{name}.png")), expected), name
    Image.fromarray(rgb).quantize(25).save(tmp_path / "gap.png", transparency=b"\x00\xff")
    assert read_image(tmp_path / "gap.png").mode == "RGB"
    Image.fromarray(rgb).save(tmp_path / "a.webp", lossless=True)
    assert np.array_equal(np.asarray(read_image(tmp_path / "a.webp")), rgb)
    Image.new("CMYK", (5, 5)).save(tmp_path / "print.jpg")
    assert read_image(tmp_path / "print.jpg").mode == "RGB"


def test_images_are_turned_as_the_camera_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    image = picture(3, (8, 4))
    image.save(tmp_path / "x.png", exif=exif)
    assert np.array_equal(np.asarray(read_image(tmp_path / "x.png")), np.rot90(np.asarray(image), -1))


def test_a_large_photograph_is_not_decoded_in_full(tmp_path):
    Image.linear_gradient("L").resize((800, 640)).convert("RGB").save(tmp_path / "x.jpg", quality=95)
    assert read_image(tmp_path / "x.jpg").size == (800, 640)
    assert read_image(tmp_path / "x.jpg", at_least=64).size == (200, 160)
    small = [np.asarray(cache.fit(read_image(tmp_path / "x.jpg", least), (64, 64)), int) for least in (None, 64)]
    assert abs(small[0] - small[1]).max() <= 3


def test_two_folders_of_equal_names_have_two_caches(tmp_path):
    """Names, lengths and times agree, as in archives that are made reproducibly."""
    homes = []
    for place, colour in (("one", 40), ("two", 200)):
        for name in ("a", "b"):
            (tmp_path / place / "train" / name).mkdir(parents=True)
            image = tmp_path / place / "train" / name / "0.png"
            Image.new("RGB", (12, 12), (colour,) * 3).save(image, compress_level=0)
            os.utime(image, (0, 0))
        homes.append(read_part(tmp_path / place / "train"))
    assert [int(images(part).x.max()) for part in homes] == [40, 200]
