"""The user's own images are learned with a narrower net on a CPU, in plans, studies and whatever reads them."""

import shlex
import textwrap
import tomllib

import pytest

from droptop import BadRequest, api, make_learner, make_stream
from droptop.cli.run_flags import parse
from droptop.nets import ViTConfig
from droptop.options import flatten
from droptop.runs.config import configure
from droptop.runs.flags import flags_of
from droptop.runs.on_cpu import lighter
from droptop.runs.own_objects import handed_over
from droptop.runs.plan import plan_of
from droptop.runs.requests import begin, load
from droptop.sweeps.grid import folder_name, read_study
from droptop.sweeps.sweep import sweep
from droptop.training.observer import Observer

from compasses import FILE, compass
from pictures import write_tree

SAID = "on a CPU: width 16; --width 64, or --device cuda, gives what a GPU gets"
OWN = ("folder:pictures", "csv:pictures.csv", "hf:some/pictures")
PUBLISHED = ("waterbirds", "celeba", "split-tiny-imagenet9", "split-imagenet9", "split-cifar10", "spawrious:o2o_hard")


class Listening(Observer):
    def __init__(self):
        self.said = []

    def note(self, text):
        self.said.append(text)


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree", {"train": {"a": 40, "b": 40}, "test": {"a": 2, "b": 2}})


def asked(*words):
    return parse("compare", [*map(str, words), "--out", "x"]).plan


def widths(plan):
    return {arm.net.width for arm in plan.arms.values()}


@pytest.mark.parametrize("data", OWN)
def test_ones_own_images_have_a_net_for_the_device(data):
    on_cpu, on_gpu = (asked("--data", data, "--device", device) for device in ("cpu", "cuda"))
    assert (widths(on_cpu), widths(on_gpu)) == ({16}, {64})
    assert (on_cpu.note, on_gpu.note) == (SAID, "")
    others = [
        {path: value for path, value in flatten(plan.arms["droptop"]).items() if path not in ("device", "net.width")}
        for plan in (on_cpu, on_gpu)
    ]
    assert others[0] == others[1]
    assert asked("--data", data) == on_cpu
    assert asked("--data", data, "--device=cuda") == on_gpu
    assert [configure(data, device=device).net.width for device in ("cpu", "cuda")] == [16, 64]


@pytest.mark.parametrize("kind", ["file", "object"])
def test_so_has_a_stream_of_ones_own(kind, tmp_path):
    (tmp_path / "compass.py").write_text(textwrap.dedent(FILE))
    with handed_over(data=str(tmp_path / "compass.py") if kind == "file" else compass()) as names:
        plans = [plan_of("run", names["data"], "er", "none", {"device": device}) for device in ("cpu", "cuda")]
    assert [(widths(plan), plan.note) for plan in plans] == [({16}, SAID), ({64}, "")]


def test_a_stream_of_ones_own_with_a_known_name_is_learned_as_that_is():
    with handed_over(data=make_stream("fashion", limit=64)) as names:
        plan = plan_of("run", names["data"], "er", "none", {})
    assert (widths(plan), plan.note) == ({12}, "")


@pytest.mark.parametrize("data", PUBLISHED)
def test_published_images_have_the_net_of_their_papers(data):
    plan = plan_of("compare", data, "er", "droptop", {})
    assert (widths(plan), plan.note) == ({64}, "")


def test_what_the_user_sets_wins_and_nothing_is_said_of_it(tmp_path):
    for width in (16, 20, 64):
        plan = asked("--data", OWN[0], "--width", width)
        assert (widths(plan), plan.note) == ({width}, "")
    plan = asked("--data", OWN[0], "--width", 64, "--against", "width=16")
    assert (widths(plan), plan.note) == ({16, 64}, "")
    plan = asked("--data", OWN[0], "--against", "width=64")  # the other arm is as the machine has it
    assert (widths(plan), plan.note) == ({16, 64}, SAID)
    file = tmp_path / "asked.toml"
    file.write_text(f'data = "{OWN[0]}"\ndevice = "cuda"\n')
    assert widths(asked("--config", file)) == {64}
    assert widths(asked("--config", file, "--device", "cpu")) == {16}
    file.write_text(f'data = "{OWN[0]}"\n[net]\nwidth = 16\n')
    assert asked("--config", file).note == ""
    with pytest.raises(BadRequest, match=r"^--device takes cpu, cuda, a GPU such as cuda:1, .*, not gpu$"):
        asked("--data", OWN[0], "--device", "gpu")


def test_a_net_that_is_not_built_by_width_stays_as_it_is(tmp_path):
    (tmp_path / "net.py").write_text("from torch import nn\nnet = nn.Identity()\n")
    assert plan_of("run", OWN[0], "er", "none", {"model": str(tmp_path / "net.py")}).note == ""
    vit = plan_of("run", OWN[0], "l2p", "none", {"weights": "random"})
    assert isinstance(vit.arms["none"].net, ViTConfig)
    assert vit.note == ""
    assert flatten(vit.arms["none"].net) == flatten(configure(OWN[0], "l2p", "none", device="cuda").net)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("more", [(), ("--width", 16), ("--width", 64), ("--against", "width=20"), ("--method", "mir")])
def test_its_flags_and_its_config_toml_make_the_same_plan(device, more, tmp_path):
    plan = asked("--data", OWN[0], "--device", device, *more)
    flags = flags_of(plan)
    assert parse("compare", [*flags, "--out", "x"]).plan == plan, shlex.join(flags)
    (tmp_path / "config.toml").write_text(plan.toml())
    again = asked("--config", tmp_path / "config.toml")
    assert (again, again.note) == (plan, "")
    assert load(tmp_path) == plan
    elsewhere = asked("--config", tmp_path / "config.toml", "--device", "cuda" if device == "cpu" else "cpu")
    assert widths(elsewhere) == widths(plan)


def test_a_folder_keeps_the_net_that_it_was_begun_with(tree, tmp_path, here):
    """As folders of earlier versions were: on a CPU, with the net that is now a GPU's."""
    few = {"limit": 32, "seeds": 1, "maps": 0, "image_size": 8, "memory": 8}
    older = plan_of("run", f"folder:{tree}", "er", "none", few | {"width": 64})
    begin(older, tmp_path / "older")
    done = here("resume", tmp_path / "older")
    assert (done.returncode, "on a CPU" in done.stdout) == (0, False)
    noted = tomllib.loads((tmp_path / "older/config.toml").read_text())
    assert (noted["net"]["width"], load(tmp_path / "older")) == (64, older)
    assert "--width 64" in shlex.join(flags_of(load(tmp_path / "older")))


def test_it_is_said_once_at_the_start(tree, tmp_path, here):
    few = ("--limit", 32, "--seeds", 1, "--maps", 0, "--image-size", 8, "--memory", 8)
    done = here("run", "--data", f"folder:{tree}", *few, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count(f"note: {SAID}") == 1
    assert tomllib.loads((tmp_path / "run/config.toml").read_text())["net"]["width"] == 16
    assert "on a CPU" not in here("resume", tmp_path / "run").stdout


def test_in_python_the_device_decides_as_well(tree, monkeypatch):
    asked_for = []
    monkeypatch.setattr(api, "start", lambda plan, *_: asked_for.append(plan) or {"arms": {}})
    api.run(f"folder:{tree}", out="x")
    api.run(f"folder:{tree}", device="cuda", out="x")
    assert [(widths(plan), plan.note) for plan in asked_for] == [({16}, SAID), ({64}, "")]
    stream = make_stream(f"folder:{tree}", image_size=8)
    assert make_learner("er", stream, "none").model.conv1.out_channels == 16


@pytest.mark.parametrize(
    ("text", "width", "said"), [("", 16, [SAID]), ("width = 16\n", 16, []), ("width = 20\n", 20, [])]
)
def test_a_study_says_it_once(text, width, said, tree, tmp_path, monkeypatch):
    observer, out = Listening(), tmp_path / "study"
    file = tmp_path / "study.toml"
    file.write_text(
        text + f'data = "folder:{tree}"\nseeds = 1\nimage_size = 8\nmethod = ["er", "mir"]\ndebias = "none"\n'
    )
    assert {config.net.width for config in read_study(file)} == {width}
    monkeypatch.setattr("droptop.sweeps.sweep.summarise", lambda *_: None)
    for expected in (said, []):  # nothing is new the second time
        sweep(file, out, lambda packs, driver: None, observer)
        assert [line for line in observer.said if "left out by batches" not in line] == expected
        observer.said.clear()


def test_a_study_for_a_gpu_has_its_net(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(f'device = "cuda"\ndata = ["{OWN[0]}", "fashion"]\n')
    configs = read_study(file)
    assert [config.net.width for config in configs] == [64, 12]
    assert all(lighter(config, ()) == {} for config in configs)


def test_a_study_goes_on_in_the_folders_of_an_earlier_version(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("droptop.sweeps.sweep.summarise", lambda *_: None)
    text = f'data = "folder:{tree}"\nseeds = 1\nimage_size = 8\ndebias = "none"\n'
    file, out, observer = tmp_path / "study.toml", tmp_path / "study", Listening()
    file.write_text(text + "width = 64\n")
    (older,) = read_study(file)
    sweep(file, out, lambda packs, driver: None, observer)
    file.write_text(text)
    (out / "study.toml").write_text(text)
    packs = []
    sweep(out / "study.toml", out, lambda given, driver: packs.extend(given), observer)
    assert [(job.run.name, job.config) for pack in packs for job in pack] == [(folder_name(older), older)]
    assert [line for line in observer.said if "left out by batches" not in line] == []
