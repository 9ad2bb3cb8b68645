"""A config.toml that cannot be read: what is said to do about it mends it, to the byte."""

import json
import shlex
import shutil

import pytest

from droptop.cli.run_flags import parse

DAMAGE = ("command = ", 'command = "sweep"', "a = [[[[")


@pytest.mark.parametrize("damage", DAMAGE)
def test_that_of_a_comparison_is_made_again_by_its_flags(comparison, tmp_path, here, damage):
    out = shutil.copytree(comparison[0], tmp_path / "out")
    file, before = out / "config.toml", (out / "config.toml").read_bytes()
    file.write_text(damage)
    advice = f"put a copy in its place: the flags in {out}/environment.json make the same one in a new folder"
    for command in ("resume", "status", "report", "verify"):
        done = here(command, out)
        assert (done.returncode, advice in done.stdout + done.stderr) == (1 if command == "verify" else 2, True)
    flags = shlex.split(json.loads((out / "environment.json").read_text())["flags"])
    again = parse("compare", [*flags, "--out", str(tmp_path / "again")]).plan.toml().encode()
    assert again == before
    file.write_bytes(again)
    assert here("verify", out).returncode == 0


def test_that_of_an_arm_is_written_by_resume(comparison, tmp_path, here):
    out = shutil.copytree(comparison[0], tmp_path / "out")
    file, before = out / "none/config.toml", (out / "none/config.toml").read_bytes()
    file.write_text("command = ")
    assert f"remove it, and `droptop resume {out}` writes it anew" in here("report", out / "none").stderr
    file.unlink()
    assert here("resume", out).returncode == 0
    assert file.read_bytes() == before


def test_that_of_a_run_of_a_study_is_written_by_sweep(swept_copy, here):
    file = sorted(swept_copy.glob("runs/*/config.toml"))[0]
    before = file.read_bytes()
    file.write_text("command = ")
    done = here("sweep", "--out", swept_copy)
    assert done.returncode == 2
    assert f"remove it, and `droptop sweep --out {swept_copy}` writes it anew" in done.stderr
    file.unlink()
    done = here("sweep", "--out", swept_copy)
    assert (done.returncode, "4 cells done, 0 failed" in done.stdout) == (0, True)
    assert file.read_bytes() == before


def test_without_flags_a_copy_or_another_folder_is_left(tmp_path, here):
    (tmp_path / "config.toml").write_text("command = ")
    said = here("resume", tmp_path).stderr
    assert said.endswith("; put a copy in its place, or begin anew in another folder\n")
    assert len(said.splitlines()) == 1
