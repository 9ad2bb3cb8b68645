"""What is shown is what was written: manifests of seeds, seals of options, and `droptop verify`."""

import json
import shutil
from dataclasses import replace

import pytest

from droptop.results.seed_result import seed_result
from droptop.runs.compared import unfit
from droptop.runs.folder import read_request
from droptop.runs.manifest import Unfit, read_manifest, sha256_of, write_manifest
from droptop.runs.seed_files import SeedFiles
from droptop.runs.verify import verify_folder
from droptop.system.files import write_json
from droptop.system.sealed_json import write_sealed
from droptop.system.toml_files import seal_holds

from damage import without_checksums


@pytest.fixture
def copied(comparison, tmp_path):
    return shutil.copytree(comparison[0], tmp_path / "copy")


def exchange(one, other):
    beside = one.with_name("beside")
    one.rename(beside)
    other.rename(one)
    beside.rename(other)


def change_digit(path, name="A_avg"):
    """Change the first digit of the first number of a name."""
    text = path.read_text()
    at = text.index(f'"{name}": ') + len(name) + 4
    path.write_text(f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}")


def test_a_manifest_has_every_file_of_a_seed(comparison):
    for arm in read_request(comparison[0]).arms:
        for seed in arm.seeds:
            files = SeedFiles(arm, seed, whole=True)
            told = files.manifest
            assert (told.seed, told.arm, told.configuration) == (seed, arm.name, arm.configuration)
            kinds = (files.folder.glob(kind) for kind in ("*.json*", "*/*.safetensors"))
            there = {path.relative_to(files.folder).as_posix(): path for kind in kinds for path in kind}
            there.pop("manifest.json")
            assert {name: sha256_of(path) for name, path in there.items()} == told.files
            assert (files.unfit, files.unsealed) == ([], False)


def test_a_damaged_manifest_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    write_manifest(tmp_path, [tmp_path / "a.txt", tmp_path / "gone.txt"])
    assert set(read_manifest(tmp_path).files) == {"a.txt"}
    path = tmp_path / "manifest.json"
    for damage in ("", "[]", "[" * 10**5, path.read_text().replace("a.txt", "b.txt"), '{"seal": 1}'):
        path.write_text(damage)
        with pytest.raises(Unfit, match=r"manifest\.json is damaged"):
            read_manifest(tmp_path)
    for change in ({"files": ["a.txt"]}, {"files": {"/dev/zero": ""}}, {"files": {"../a": ""}}, {"run": []}):
        content = {"format": 1, "files": {}} | change
        write_sealed(path, content)
        with pytest.raises(Unfit, match=r"manifest\.json is damaged"):
            read_manifest(tmp_path)
    path.unlink()
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize("what", ["seeds", "arms", "results"])
def test_exchanged_results_are_left_out_and_named(copied, here, what):
    """Whole folders of two seeds, or of two arms; or the results alone, each in the other's folder."""
    one, other = {
        "seeds": ("none/seed-0", "none/seed-1"),
        "arms": ("none/seed-0", "droptop/seed-0"),
        "results": ("none/seed-0/result.json", "none/seed-1/result.json"),
    }[what]
    exchange(copied / one, copied / other)
    shown = here("results", copied)
    for name in (one, other):
        assert f"note: {copied / name}" in shown.stderr or f"{copied / name} is of another run" in shown.stderr
    assert shown.stderr.count("left out") == 2
    assert here("status", copied).stdout.count("damaged") == 2
    checked = here("verify", copied)
    assert checked.returncode == 1
    assert "2 problems" in checked.stdout.replace("3 problems", "2 problems")  # compare.json too, of whole folders
    if what != "results":  # nobody knows where they belong: nothing is removed
        before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
        refused = here("resume", copied)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert "put it back, or remove it to make the seed anew" in refused.stderr
        assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


def test_what_is_damaged_is_made_anew(copied, here, comparison):
    """From the metrics, to the same bytes; but pictures are no more taken for what they were."""
    seed = copied / "none/seed-1"
    change_digit(seed / "result.json")
    lost = sorted(seed.glob("confusion/*"))[0]
    lost.write_bytes(lost.read_bytes()[:-1] + b"!")
    done = here("resume", copied)
    assert done.returncode == 0, done.stderr
    assert f"{lost} is not what was written, and is left out" in done.stdout
    for name in ("none/seed-1/result.json", "none/seed-1/metrics.jsonl", "compare.json", "none/summary.json"):
        assert (copied / name).read_bytes() == (comparison[0] / name).read_bytes()
    assert not lost.exists()
    assert here("verify", copied).returncode == 0
    manifest = read_manifest(seed)
    assert replace(manifest, files=manifest.files | {f"confusion/{lost.name}": ""}).files.keys() == (
        read_manifest(comparison[0] / "none/seed-1").files.keys()
    )


def test_changed_costs_and_pictures_are_told(copied, here):
    (copied / "cost.json").write_text(json.dumps({arm: {"passes": 1.0, "ms": 2.5} for arm in ("none", "droptop")}))
    write_manifest(copied, [copied / "cost.json", *copied.glob("figures/*"), copied / "config.toml"])
    assert here("verify", copied).returncode == 0
    change_digit(copied / "cost.json", "ms")
    picture = next(copied.glob("figures/*"))
    picture.write_bytes(picture.read_bytes()[:-1])
    checked = here("verify", copied)
    assert checked.returncode == 1
    assert f"{picture} is not what was written" in checked.stdout
    assert "2 problems" in checked.stdout
    assert f"note: {copied / 'cost.json'} is not what was measured: left out" in here("report", copied).stderr


def test_edited_options_are_told_and_not_gone_on_with(copied, here):
    path = copied / "config.toml"
    assert seal_holds(path) is True
    path.write_text(path.read_text().replace("seeds = 2", "seeds = 1"))
    for looking in ("status", "results", "report"):
        assert f"note: {path} has changed since droptop wrote it" in here(looking, copied).stderr
    checked = here("verify", copied)
    assert checked.returncode == 1
    assert "seed-1 is of no seed that config.toml has" in checked.stdout
    refused = here("resume", copied)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert f"if that was you, `droptop resume {copied} --seeds 1` goes on by it" in refused.stderr
    for text, says in (
        ("seeds = -3", "from 1 for seeds"),
        ("seeds = 99999999", "at most 10,000"),
        ('seeds = "x"', "seeds"),
    ):
        path.write_text(path.read_text().replace("seeds = 1", text, 1))
        refused = here("resume", copied)
        assert (refused.returncode, len(refused.stderr.splitlines()), says in refused.stderr) == (2, 1, True)
        path.write_text(path.read_text().replace(text, "seeds = 1", 1))


@pytest.mark.parametrize("text", ["", 'debias = "none"\n'])
def test_an_edited_study_is_not_swept_unless_it_is_named(swept_copy, here, text):
    """Emptied, it would ask for five whole trainings of the defaults."""
    study = swept_copy / "study.toml"
    study.write_text(text)
    refused = here("sweep", "--out", swept_copy)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert f"`droptop sweep {study} --out {swept_copy}` sweeps it as it is" in refused.stderr
    for looking in ("status", "verify"):
        done = here(looking, swept_copy)
        assert f"{study} has changed since droptop wrote it" in done.stdout + done.stderr


def test_folders_of_earlier_versions_say_that_they_carry_no_checksums(copied, here):
    shown = here("results", copied).stdout
    without_checksums(copied)
    for looking in ("status", "results", "report"):
        said = here(looking, copied)
        assert said.returncode == 0
        assert len(said.stderr.splitlines()) == 1
        assert f"4 of 4 finished seeds in {copied} carry no checksums" in said.stderr
    assert here("results", copied).stdout == shown
    checked = here("verify", copied)
    assert checked.returncode == 0
    assert "4 seeds without checksums" in checked.stdout
    assert "no checksums" in checked.stdout


def test_a_comparison_whose_arms_were_tuned_fits(copied):
    tuned = {"trials": 2, "hold_out": 10.0, "over": {"learner.lr": "0.1,0.2"}, "for": None, "arms": {}}
    compared = copied / "compare.json"
    write_json(copied / "tuned.json", tuned)
    write_json(compared, json.loads(compared.read_text()) | {"tuning": tuned})
    write_manifest(copied, [copied / "config.toml", compared, copied / "tuned.json"])
    assert [line for checked in verify_folder(copied) for line in checked.problems] == []
    write_json(copied / "tuned.json", tuned | {"trials": 200})
    lines = [line for checked in verify_folder(copied) for line in checked.problems]
    assert f"{copied / 'tuned.json'} is not what was written: its SHA-256 is not that of its manifest" in lines
    assert unfit(copied) == [f"{copied / 'tuned.json'} is not what was measured: left out"]


def test_recompute_finds_what_was_sealed_anew(copied, here):
    """Who rewrites the manifest too is not noticed, but by the figures that others come to."""
    assert here("verify", copied, "--recompute").returncode == 0
    for path in (copied / "compare.json", *copied.glob("*/summary.json"), copied / "manifest.json"):
        path.unlink()
    for path in copied.glob("*/manifest.json"):
        path.unlink()
    changed, seed = copied / "none/seed-0", copied / "droptop/seed-0"
    change_digit(changed / "result.json")
    *lines, last = [json.loads(line) for line in (seed / "metrics.jsonl").read_text().splitlines()]
    correct = last["eval"]["removed"]["all"]["correct"]
    correct[correct.index(max(correct))] -= 1
    (seed / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*lines, last)))
    result = json.loads((seed / "result.json").read_text())
    anew = seed_result([*lines, last], result["classes"], result["tasks"], None, result["cue"])
    write_json(seed / "result.json", anew)
    for folder in (changed, seed):
        told = read_manifest(folder)
        replace(told, files={name: sha256_of(folder / name) for name in told.files}).write(folder)
    assert here("verify", copied).returncode == 0
    checked = here("verify", copied, "--recompute", "--json")
    assert checked.returncode == 1
    of_result, by_checkpoint = json.loads(checked.stdout)["problems"]
    assert of_result == f"{changed}/result.json is not what metrics.jsonl comes to"
    n, right = sum(last["eval"]["removed"]["all"]["n"]), sum(correct)
    of = f"of {n} samples of removed, metrics.jsonl says"
    assert by_checkpoint == f"{seed}: its last checkpoint is right on {right + 1} {of} {right} of {n}"


@pytest.mark.parametrize("args", [[], ["--json"], ["--recompute"]])
def test_verify_refuses_what_is_not_ours(tmp_path, here, args):
    done = here("verify", tmp_path, *args)
    assert (done.returncode, len(done.stderr.splitlines()), done.stdout) == (2, 1, "")


def test_a_study_is_verified_run_by_run(swept_copy, here):
    assert here("verify", swept_copy).returncode == 0
    run = next(swept_copy.glob("runs/*none*"))
    change_digit(run / "seed-1/result.json")
    cells = swept_copy / "cells.json"
    cells.write_text(cells.read_text().replace(" 1\n", " 0\n", 1))
    checked = here("verify", swept_copy)
    assert checked.returncode == 1
    assert f"{run / 'seed-1/result.json'} is not what was written" in checked.stdout
    assert f"{cells} is damaged: cells are counted anew" in checked.stdout
    shown = here("results", swept_copy)
    assert f"note: {cells} is damaged" in shown.stderr
    assert "result.json is not what was written: its SHA-256 is not that of its manifest: left out" in shown.stderr
