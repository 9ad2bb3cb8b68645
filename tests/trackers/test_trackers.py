"""Trackers hear everything once, whatever happens to a run, and no run notices them."""

import csv
import glob
import importlib.util
import json
import re
import struct
from pathlib import Path

import pytest

import droptop
from droptop import BadRequest, api
from droptop.cli import main
from droptop.results.metrics import accuracy
from droptop.runs.config import configure
from droptop.trackers.wandb import run_id
from droptop.training.seed_run import Interrupted, SeedRun

from toys import QUICK

OPTIONS = QUICK | {
    "limit": 64,
    "batch": 8,
    "width": 4,
    "split": "0,1/2,3",
    "memory": 20,
    "memory_batch": 8,
    "seeds": 1,
    "eval_every": 6,
    "kappa_0": 2.0,
    "significance": 0.49,
}


class Recorder(droptop.Tracker):
    """Keeps what it is told."""

    told: list[tuple] = []

    def __init__(self, folder, group, name):
        super().__init__(folder, group, name)
        Recorder.told = [("begin", folder, group, name)]

    def hyperparameters(self, values):
        self.told.append(("hyperparameters", values))

    def scalars(self, step, values):
        self.told.append((step, values))

    def figure(self, name, picture):
        self.told.append(("figure", name, picture.size))

    def close(self):
        self.told.append(("close",))


class Failing(droptop.Tracker):
    def scalars(self, step, values):
        if step == 2:
            raise OSError(28, "No space left on device")


def train(run, log, stops=(), warn=print):
    """Trains a seed, interrupted after one step more than each of these, with what a kill leaves beyond the
    checkpoint."""
    config = configure("fashion-sticker", log=log, **OPTIONS)
    for steps in stops:
        left = iter(range(steps))
        with pytest.raises(Interrupted):
            SeedRun(config, run, 0, lambda progress: None, stop=lambda left=left: next(left, None) is None)()
        with (run / "seed-0/metrics.jsonl").open("a") as file:
            file.write('{"step": 999, "task": 0, "loss": 1.0}\n')
        with (run / "seed-0/scalars.csv").open("a") as file:
            file.write("999,loss,1.0\n99")
    SeedRun(config, run, 0, lambda progress: None, warn=warn)()
    return run / "seed-0"


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A run that was interrupted twice, with three who followed it."""
    own = api.followed({"log": Recorder})["log"]
    return train(tmp_path_factory.mktemp("run") / "followed", f"csv,tensorboard,{own}", stops=(3, 7))


@pytest.fixture(scope="module")
def lines(followed):
    return [json.loads(line) for line in (followed / "metrics.jsonl").read_text().splitlines()]


def by_name(rows):
    """{scalar: {step: value}}, each step once."""
    found = {}
    for step, name, value in rows:
        assert int(step) not in found.setdefault(name, {})
        found[name][int(step)] = float(value)
    return found


def from_csv(folder):
    return by_name(list(csv.reader((folder / "scalars.csv").read_text().splitlines()))[1:])


def test_trackers_change_no_file_of_a_run(followed, tmp_path):
    alone = train(tmp_path / "alone", None)
    for name in ("metrics.jsonl", "result.json"):
        assert (alone / name).read_bytes() == (followed / name).read_bytes()
    assert sorted(path.name for path in followed.iterdir() if not (alone / path.name).exists()) == [
        "scalars.csv",
        "tensorboard",
    ]
    logged, plain = (configure("fashion", log=log) for log in ("csv", None))
    assert logged.fingerprint() == plain.fingerprint()


def test_csv_has_the_numbers_of_the_metrics(followed, lines):
    assert (followed / "scalars.csv").read_text().startswith("step,scalar,value\n0,kappa/")
    found = from_csv(followed)
    assert found["loss"] == {line["step"]: line["loss"] for line in lines}
    assert list(found["loss"]) == list(range(1, 17))
    for name in ("share", "chance"):
        assert found[f"dropped/{name}"] == {line["step"]: 100 * line["dropped"][name] for line in lines}
    for test in ("biased", "removed", "random"):
        evaluated = {line["step"]: line["eval"][test] for line in lines if "eval" in line}
        assert list(evaluated) == [6, 8, 12, 16]
        assert found[f"accuracy/{test}"] == {step: accuracy(groups) for step, groups in evaluated.items()}
        assert found[f"accuracy/{test}/task-1"] == {step: accuracy(evaluated[step], (0, 1)) for step in (8, 16)}
        assert found[f"accuracy/{test}/task-2"] == {16: accuracy(evaluated[16], (2, 3))}
        result = json.loads((followed / "result.json").read_text())["tests"][test]
        assert found[f"A_avg/{test}"] == {16: result["A_avg"]}
    moved = {(line["step"], group): value for line in lines for group, value in line.get("kappa", {}).items()}
    assert moved
    classes = json.loads((followed / "spec.json").read_text())["classes"]
    for label, name in enumerate(classes):
        assert found[f"kappa/{name}"] == {0: 2.0} | {
            step: value for (step, group), value in moved.items() if group == str(label)
        }


def test_tensorboard_has_the_same_numbers_and_pictures(followed):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(followed / "tensorboard")).Reload()
    expected = from_csv(followed)
    assert set(events.Tags()["scalars"]) == expected.keys()
    for name, values in expected.items():
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in found] == list(values)
        assert [value for _, value in found] == pytest.approx(list(values.values()), rel=1e-6)
    assert set(events.Tags()["images"]) == {f"figures/{name}" for name in ("accuracy", "matrix", "kappa", "shortcut")}
    start = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"learner.lr" in start
    assert len(list((followed / "tensorboard").iterdir())) == 1


def test_a_tracker_of_a_user_hears_everything_once(followed, lines):
    """The last of three, each of which was told everything."""
    begin, (_, options), *told, end = Recorder.told
    assert begin == ("begin", followed, "followed", "droptop seed 0")
    assert (options["method"], options["learner.memory"], options["seed"]) == ("er", 20, 0)
    assert [step for step, *_ in told] == [*range(17), 16, *["figure"] * 4]
    assert told[1][1]["loss"] == lines[0]["loss"]
    assert min(told[-1][2]) > 200
    assert end == ("close",)


def test_a_tracker_that_fails_is_dropped_with_a_note(tmp_path, followed):
    notes = []
    folder = train(tmp_path / "run", f"{__name__}:Failing,csv", warn=notes.append)
    assert notes == [f"--log {__name__}:Failing failed: [Errno 28] No space left on device; the run goes on without it"]
    assert (folder / "scalars.csv").read_bytes() == (followed / "scalars.csv").read_bytes()
    assert (folder / "result.json").exists()


@pytest.mark.parametrize(
    ("log", "names"),
    [
        ("comet", "--log takes some of csv, tensorboard, wandb and MODULE:CLASS, separated by commas, not comet"),
        ("csv,", "not an empty name"),
        ("nowhere:Tracker", "--log nowhere:Tracker: No module named 'nowhere'"),
        ("pathlib:Path", "a droptop.Tracker, not pathlib:Path"),
        ("pathlib:Nothing", "no attribute 'Nothing'"),
        ("wandb", "--log wandb takes the package wandb: pip install 'droptop[wandb]'"),
    ],
)
def test_bad_trackers_are_refused(log, names, tmp_path, capsys, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wandb" else real(name))
    assert main(["run", "--log", log, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert names in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_class_that_cannot_be_imported_is_refused():
    class Local(droptop.Tracker):
        pass

    with pytest.raises(BadRequest, match="defined inside of a function"):
        api.followed({"log": Local})


# -- W&B --------------------------------------------------------------------------------------------------------------


def records(path):
    """What an offline run holds: LevelDB's log format, blocks of 32 KiB after a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    data, place, parts = Path(path).read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield wandb_internal_pb2.Record.FromString(parts)
            parts = b""


@pytest.mark.filterwarnings("default")  # of wandb's own making
def test_wandb_records_offline(tmp_path, followed, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    folder = train(tmp_path / "run", "wandb,csv", stops=(9,))
    (path,) = glob.glob(str(folder / "wandb/offline-run-*/*.wandb"))
    found = list(records(path))
    run = next(record.run for record in found if record.HasField("run"))
    assert (run.project, run.run_group, run.display_name) == ("droptop", "run", "droptop seed 0")
    assert run.run_id == (folder / "wandb/run-id").read_text()
    expected = from_csv(folder)
    told = []
    for record in found:
        if record.HasField("history"):
            for item in record.history.item:
                name = item.key or "/".join(item.nested_key)
                if name in expected:
                    told.append((record.history.step.num, name, item.value_json))
    assert by_name(told) == expected
    assert len(glob.glob(f"{Path(path).parent}/files/media/images/figures/*.png")) == 4


@pytest.mark.parametrize("noted", [b"x/../../precious", b"*", b"", b"\xff", None])
def test_what_is_no_id_of_a_run_names_no_folder_to_remove(tmp_path, noted):
    """As a folder from somebody else may have it: what is found under the id is removed when a seed goes on."""
    if noted is not None:
        (tmp_path / "run-id").write_bytes(noted)
    number = run_id(tmp_path / "run-id")
    assert re.fullmatch("[0-9a-f]{8}", number)
    assert run_id(tmp_path / "run-id") == number
