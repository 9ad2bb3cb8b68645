import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from droptop import Samples, Spec, Stream, StreamConfig
from droptop.data import image_store
from droptop.data.image_store import BadCache, StoredImages

from toys import environment

ROWS, SIZE = 37, 5


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (ROWS, 3, SIZE, SIZE), dtype=np.uint8)


@pytest.fixture
def path(tmp_path, images):
    image_store.write(tmp_path / "a.images", "key", ROWS, SIZE, np.split(images, [10, 30]))
    return tmp_path / "a.images"


def labels():
    return torch.arange(ROWS) % 4


def test_rows_are_read_back(path, images):
    kept = StoredImages(path, labels())
    rows = torch.tensor([36, 0, 0, 17])
    assert torch.equal(kept[rows].x, torch.from_numpy(images)[rows])
    assert kept[rows].y.tolist() == [0, 0, 0, 1]
    assert kept[torch.tensor([], dtype=torch.int64)].x.shape == (0, 3, SIZE, SIZE)
    assert (len(kept), kept.nbytes) == (ROWS, images.nbytes)
    assert [entry.name for entry in path.parent.iterdir()] == ["a.images"]


def test_only_a_whole_file_of_its_key_is_used(path, tmp_path):
    assert image_store.whole(path, "key")
    assert not image_store.whole(path, "another key")
    assert not image_store.whole(tmp_path / "none", "key")
    data = path.read_bytes()
    for length in (0, 1, 4095, 4096, 5000, len(data) - 1):
        path.write_bytes(data[:length])
        assert not image_store.whole(path, "key")
    path.write_bytes(data + b"x")
    assert not image_store.whole(path, "key")
    for place in (3, len(data) - 1):  # the header, the table
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert not image_store.whole(path, "key")
    path.write_bytes(bytes(len(data)))
    assert not image_store.whole(path, "key")


@pytest.mark.parametrize("row", [0, 20, 36])
def test_a_damaged_row_is_never_used(path, row):
    data = bytearray(path.read_bytes())
    data[image_store.HEADER + row * 3 * SIZE * SIZE + 40] ^= 4
    path.write_bytes(data)
    assert image_store.whole(path, "key")  # only reading can tell
    kept = StoredImages(path, labels())
    assert len(kept[torch.tensor([row + 1 if row < 36 else 0])]) == 1
    with pytest.raises(BadCache, match=f"row {row} is damaged"):
        kept[torch.tensor([1, row])]
    assert not path.exists()


def test_a_file_cut_short_while_open_is_refused(path):
    kept = StoredImages(path, labels())
    os.truncate(path, image_store.HEADER + 100)
    with pytest.raises(BadCache, match="row 9 is damaged"):
        kept[torch.tensor([9])]


def test_the_file_is_closed_with_its_owner(path):
    kept = StoredImages(path, labels())
    descriptor = kept.file
    del kept
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


def test_a_stream_from_disk_is_the_stream_from_memory(path, images):
    spec, config = Spec((3, SIZE, SIZE), tuple("abcd")), StreamConfig(tasks=2, batch=4)
    memory = Stream("toy", spec, Samples(torch.from_numpy(images), labels()), {}, config, 1)
    disk = Stream("toy", spec, StoredImages(path, labels()), {}, config, 1)
    for ours, theirs in zip(memory, disk, strict=True):
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)
        assert ours.task == theirs.task


FLAT = """
import sys, resource
from pathlib import Path
import numpy as np, torch
torch.set_num_threads(1)
from droptop import Spec, Stream, StreamConfig
from droptop.data import image_store

def resident():  # of files and of its own, in MB
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

ROWS, SIZE, path = 200_000, 16, Path(sys.argv[1])
def blocks():  # an image says which it is
    for start in range(0, ROWS, 1000):
        block = np.zeros((1000, 3, SIZE, SIZE), np.uint8)
        block.reshape(1000, -1)[:, :4] = np.arange(start, start + 1000, dtype="<u4").view(np.uint8).reshape(1000, 4)
        yield block
image_store.write(path, "key", ROWS, SIZE, blocks())
y = torch.arange(ROWS) % 10
spec, config = Spec((3, SIZE, SIZE), tuple("abcdefghij")), StreamConfig(batch=80)
stream = Stream("toy", spec, image_store.StoredImages(path, y), {}, config, 0)
batches, seen, least, most = iter(stream), [], 1e9, 0.0
for batch in batches:
    rows = batch.x.flatten(1)[:, :4].contiguous().view(torch.int32)[:, 0]
    assert torch.equal(rows % 10, batch.y)
    seen.append(rows)
    if len(seen) % 100 == 0:
        now = resident()
        least, most = min(least, now), max(most, now)
assert torch.cat(seen).unique().numel() == len(seen) * 80 == 200_000
print(path.stat().st_size / 1e6, most - least)
"""


def test_memory_stays_flat_over_200_000_images(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FLAT, str(tmp_path / "large.images")],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    read, grown = map(float, done.stdout.split())
    assert read > 150
    assert grown < 15  # MB, numbers of rows seen among them
