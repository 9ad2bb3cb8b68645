import json
import os
import subprocess

import pytest
import torch

from droptop import BadCheckpoint
from droptop.runs import checkpoint

TENSORS = {"a": torch.arange(300.0), "b": torch.tensor(3), "c": torch.full((2, 2), torch.nan, dtype=torch.float64)}
ABOUT = {"seed": 3, "position": [1, 2]}


@pytest.fixture
def saved(tmp_path):
    checkpoint.write(tmp_path, checkpoint.step_name(7), TENSORS, ABOUT)
    return tmp_path / f"{checkpoint.step_name(7)}.json"


def test_a_checkpoint_is_read_back(saved):
    tensors, about = checkpoint.read(saved)
    assert about == ABOUT
    assert all(tensors[name].numpy().tobytes() == value.numpy().tobytes() for name, value in TENSORS.items())
    assert all(tensors[name].dtype == value.dtype for name, value in TENSORS.items())


def test_the_newest_two_checkpoints_are_kept(tmp_path):
    for step in (10, 20, 30, 40, 25):
        checkpoint.write(tmp_path, checkpoint.step_name(step), TENSORS, {})
    assert [path.stem for path in checkpoint.newest_first(tmp_path)] == ["step-000000025"]
    for step in (35, 45):
        checkpoint.write(tmp_path, checkpoint.step_name(step), TENSORS, {})
    assert [path.stem for path in checkpoint.newest_first(tmp_path)] == ["step-000000045", "step-000000035"]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_every_flipped_bit_is_noticed(saved, suffix):
    path = saved.with_suffix(suffix)
    whole = path.read_bytes()
    random = torch.Generator().manual_seed(0)
    for position in torch.randint(0, 8 * len(whole), (200,), generator=random).tolist():
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(BadCheckpoint, match=saved.stem):
            checkpoint.read(saved)
    path.write_bytes(whole)
    checkpoint.read(saved)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_every_truncation_is_noticed(saved, suffix):
    path = saved.with_suffix(suffix)
    whole = path.read_bytes()
    for length in torch.linspace(0, len(whole) - 1, 100).long().tolist():
        path.write_bytes(whole[:length])
        with pytest.raises(BadCheckpoint, match=saved.stem):
            checkpoint.read(saved)


def test_hostile_and_foreign_files_are_refused(saved):
    class Evil:
        def __reduce__(self):
            return (os.system, ("touch hacked",))

    torch.save({"x": Evil()}, saved.with_suffix(".safetensors"))
    with pytest.raises(BadCheckpoint):
        checkpoint.read(saved)
    for text in ("", "null", "[]", "{}", json.dumps({"format": 99, "seal": ""})):
        saved.write_text(text)
        with pytest.raises(BadCheckpoint):
            checkpoint.read(saved)
    with pytest.raises(BadCheckpoint):
        checkpoint.read(saved.with_name("step-000000009.json"))


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        checkpoint.write(disk, checkpoint.step_name(1), TENSORS, ABOUT)
        with pytest.raises(OSError, match="No space left"):
            checkpoint.write(disk, checkpoint.step_name(2), {"large": torch.zeros(10**5)}, ABOUT)
        assert [path.stem for path in checkpoint.newest_first(disk)] == ["step-000000001"]
        assert checkpoint.read(checkpoint.newest_first(disk)[0])[1] == ABOUT
        assert not list(disk.glob("*.part"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_seed_folder_that_was_removed_is_not_made_anew(tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint.write(tmp_path / "seed-0/checkpoints", checkpoint.step_name(1), TENSORS, ABOUT)
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_tidied(tmp_path):
    for step in (10, 20):
        checkpoint.write(tmp_path, checkpoint.step_name(step), TENSORS, {})
    kept = sorted(tmp_path.iterdir())
    for suffix in (".json", ".safetensors"):
        old = tmp_path / f"{checkpoint.step_name(5)}{suffix}"
        old.write_bytes(kept[0].with_suffix(suffix).read_bytes())
    (tmp_path / "step-000000030.safetensors").touch()  # its header was never written
    (tmp_path / "step-000000030.json.part").touch()
    checkpoint.tidy(tmp_path)
    assert sorted(tmp_path.iterdir()) == kept
