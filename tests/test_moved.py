"""Folders on another machine: images that moved, and files of the user's own that nobody asked to run."""

import shutil

import pytest

import droptop
from droptop import BadRequest
from droptop.cli import main

from pictures import picture, save

SMALL = {"width": 4, "memory": 16, "seeds": 1, "image_size": 16, "batch": 8, "stem": "3x3", "maps": 4}


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    for part in ("train", "test"):
        for number, name in enumerate("abcd"):
            for index in range(12):
                save(picture(12 * number + index), tmp_path / "images" / part / name / f"{index}.png")
    return tmp_path / "images"


def lines(run, *seeds):
    return [(run / f"seed-{seed}/metrics.jsonl").read_bytes() for seed in seeds]


def test_a_run_goes_on_to_the_same_bytes_where_its_images_are_now(images, tmp_path, monkeypatch, capsys):
    """In the middle of a seed, from its checkpoint; config.toml then has the new place."""
    straight, out, place = tmp_path / "straight", tmp_path / "out", tmp_path / "moved"
    droptop.compare(f"folder:{images}", out=straight, **SMALL)
    shutil.copytree(straight, out)
    seed = out / "droptop/seed-0"
    (seed / "result.json").unlink()  # as if it had been killed after its last checkpoint
    (out / "compare.json").unlink()
    checkpoints = sorted(path.name for path in (seed / "checkpoints").glob("step-*.json"))
    images.rename(place)
    assert main(["resume", str(out), "--data", f"folder:{place}"]) == 0
    assert f'data = "folder:{place}"' in (out / "config.toml").read_text()
    assert f'data = "folder:{place}"' in (out / "droptop/config.toml").read_text()
    assert lines(out / "droptop", 0) == lines(straight / "droptop", 0)
    assert sorted(path.name for path in (seed / "checkpoints").glob("step-*.json")) == checkpoints
    capsys.readouterr()
    assert main(["resume", str(out)]) == 0  # which needs not be told again
    assert "has changed" not in capsys.readouterr().err
    droptop.load_learner(out)


def test_other_images_are_refused_and_nothing_is_changed(images, tmp_path, capsys):
    out, other = tmp_path / "out", tmp_path / "other"
    droptop.run(f"folder:{images}", "finetune", None, out=out, **SMALL | {"limit": 8})
    shutil.copytree(images, other)
    save(picture(99), other / "train/a/more.png")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for data in (f"folder:{other}", "folder:/not/there", "fashion"):
        assert main(["resume", str(out), "--data", data]) == 2
        assert f"--data {data} does not have the images that {out} began with" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    built_in = tmp_path / "built-in"
    droptop.run("fashion", "finetune", None, out=built_in, limit=32, width=4, seeds=1)
    with pytest.raises(BadRequest, match="does not have the images"):
        droptop.resume(built_in, data="fashion-sticker")


def test_commands_that_only_look_run_no_code_of_the_user(tmp_path, capsys, monkeypatch):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from pathlib import Path\n\nfrom droptop.methods import ER\n\n"
        "Path(__file__).with_name('ran').write_text('yes')\n\n\nclass Mine(ER):\n    pass\n"
    )
    out = tmp_path / "out"
    droptop.run("fashion", str(mine), None, out=out, limit=32, width=4, seeds=1)
    assert (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    for name in [name for name in __import__("sys").modules if name.startswith("droptop_method_")]:
        monkeypatch.delitem(__import__("sys").modules, name)
    for command in ("status", "report"):
        assert main([command, str(out)]) == 0
    assert not (tmp_path / "ran").exists()
    assert "was changed after the run began" not in (out / "report.html").read_text()


def test_images_that_are_gone_or_others_are_told_where_to_name_them(images, tmp_path, capsys):
    out = tmp_path / "out"
    droptop.run(f"folder:{images}", "finetune", None, out=out, **SMALL | {"limit": 8})
    hint = f"; if the images have moved: `droptop resume {out} --data folder:NEW`\n"
    images.rename(tmp_path / "elsewhere")
    assert main(["resume", str(out), "--seeds", "2"]) == 2
    assert capsys.readouterr().err == f"droptop: {images} is not an existing folder{hint}"
    (out / "seed-0/result.json").unlink()
    assert main(["resume", str(out)]) == 2
    assert capsys.readouterr().err.endswith(hint)
    shutil.copytree(tmp_path / "elsewhere", images)
    save(picture(99), images / "train/a/more.png")
    assert main(["resume", str(out)]) == 2
    assert capsys.readouterr().err.endswith(hint)
    assert main(["resume", str(out), "--seeds", "0"]) == 2  # another reason, and images that are others, too
    (images / "train/a/more.png").unlink()
    capsys.readouterr()
    assert main(["resume", str(out), "--seeds", "0"]) == 2
    assert "have moved" not in capsys.readouterr().err
