"""`droptop compare` on a folder of images with a painted logo: first what the plain arm does, then the effect."""

import json
import re
import shlex
import shutil

import numpy as np
import pytest
from PIL import Image

from toys import droptop_here, made_once

CLASSES = {"a": (255, 0, 0), "b": (0, 255, 0), "c": (0, 0, 255), "d": (255, 255, 0)}
SMALL = shlex.split("--image-size 16 --tasks 2 --batch 8 --width 4 --stem 3x3 --memory 40 --augment none --maps 0")


def paint(folder, count, logo, random):
    """Noise, with a logo in the corner whose colour tells the class."""
    for name, colour in CLASSES.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 100, (16, 16, 3), dtype=np.uint8)
            if logo:
                pixels[1:7, 1:7] = colour
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison of five seeds, beside its images."""

    def make(out):
        random, images = np.random.default_rng(0), out.parent / "images"
        for part, count, logo in (("train", 60, True), ("test", 10, True), ("test-nologo", 10, False)):
            paint(images / part, count, logo, random)
        return droptop_here("compare", "--data", f"folder:{images}", *SMALL, "--seeds", 5, "--out", out)

    return made_once(tmp_path_factory, "logo", make)


def test_a_learner_of_logos_is_found_out(compared):
    out, printed = compared
    result = json.loads((out / "compare.json").read_text())
    found, figures = result["diagnosis"], result["arms"]["none"]["tests"]
    assert (found["arm"], found["finding"], found["cue"]) == ("none", "relies", "test")
    lost = np.subtract(figures["test"]["A_avg"], figures["nologo"]["A_avg"])
    assert found["lost"]["nologo"]["diff"] == pytest.approx(lost.mean())
    assert lost.mean() > 30
    assert found["accuracy"]["nologo"]["chance"] == found["accuracy"]["nologo"]["constant"] == 37.5
    said = f"plain er relies on the cue: against test, it loses {lost.mean():.1f} points ("
    order = [printed.index(text) for text in (said, "test set", "(5 seeds, p-values corrected for 2 test sets).")]
    assert order == sorted(order)
    assert re.search(r"the smallest effect that 5 seeds would have seen \(80% power, p < 0.05\): [\d.]+ ", printed)


def test_a_page_begins_with_the_same(compared, tmp_path, here):
    out, printed = compared
    done = here("report", out, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    said = next(line for line in printed.splitlines() if line.startswith("plain er relies"))
    assert page.index(said) < page.index("<h1>")


def test_folders_of_earlier_versions_are_shown(compared, tmp_path, here):
    """Their results have neither guesses nor which test sets have the cue."""
    out, printed = compared
    older = shutil.copytree(out, tmp_path / "older")
    (older / "compare.json").unlink()
    for path in older.rglob("manifest.json"):
        path.unlink()
    for path in older.glob("*/seed-*/result.json"):
        result = json.loads(path.read_text())
        path.write_text(json.dumps({key: result[key] for key in result.keys() - {"guesses", "cue"}}))
    done = here("resume", older)
    assert done.returncode == 0, done.stderr
    said = next(line for line in printed.splitlines() if line.startswith("plain er relies"))
    assert said in done.stdout
    assert "guess" not in done.stdout


def test_the_commands_to_try_next_run(compared, here, tmp_path):
    out, _ = compared
    copy = shutil.copytree(out, tmp_path / "copy")
    for arm in ("none", "droptop"):
        for seed in range(2, 5):
            shutil.rmtree(copy / arm / f"seed-{seed}")
    done = here("resume", copy, "--seeds", 2)
    _, _, after = done.stdout.partition("what to try next")
    command = next(line.strip() for line in after.splitlines() if line.strip().startswith("droptop "))
    assert command.endswith(f"--batch 6 --out {copy}-batch-6")  # no seeds: all arms guess where the cue is gone
    for asked in (command, f"droptop resume {copy} --seeds 5"):
        again = here(*shlex.split(asked)[1:])
        assert again.returncode == 0, again.stderr
    assert (copy / "compare.json").read_bytes() == (out / "compare.json").read_bytes()
