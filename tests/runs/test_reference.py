"""`--against`: which arm all others of a comparison are compared with, and what the arms are called."""

import tomllib
from pathlib import Path

import pytest
import tomli_w

from droptop import BadRequest, configure
from droptop.cli.run_flags import parse
from droptop.runs.flags import flags_of
from droptop.runs.folder import read_request
from droptop.runs.plan import plan_of
from droptop.runs.requests import load

FOG = str(Path(__file__).parents[1] / "debias/fog.py")
SLOW = {"slow": {"lr": 0.01}, "both": {"lr": 0.01, "debias": "droptop"}}


def asked(*flags):
    """The plan of a command line of `compare`."""
    return parse("compare", ["--data", "fashion", *flags, "--out", "x"]).plan


@pytest.fixture
def mine(tmp_path):
    """A method of a user's own, whose momentum is another one."""
    file = tmp_path / "mine.py"
    file.write_text("from droptop.methods import ER\n\n\nclass Mine(ER):\n    preset = {'momentum': 0.25}\n")
    return str(file)


@pytest.mark.parametrize(
    ("flags", "arms"),
    [
        (["--debias", "robust", "--against", "droptop"], {"droptop": ("er", "droptop"), "robust": ("er", "robust")}),
        (["--method", "derpp", "--against", "er"], {"er": ("er", "none"), "derpp": ("derpp", "none")}),
        (["--method", "mir", "--against", "method=er"], {"er": ("er", "none"), "mir": ("mir", "none")}),
        (
            ["--method", "derpp", "--debias", "droptop", "--against", "er"],
            {"er": ("er", "droptop"), "derpp": ("derpp", "droptop")},
        ),
        (
            ["--method", "derpp", "--debias", "none,droptop", "--against", "er,debias=none"],
            {"er-none": ("er", "none"), "derpp-none": ("derpp", "none"), "derpp-droptop": ("derpp", "droptop")},
        ),
        (
            ["--debias", "none,robust,droptop", "--against=droptop"],
            {"droptop": ("er", "droptop"), "none": ("er", "none"), "robust": ("er", "robust")},
        ),
        (["--against", "robust"], {"robust": ("er", "robust"), "droptop": ("er", "droptop")}),
        (["--against", "none"], {"none": ("er", "none"), "droptop": ("er", "droptop")}),
        (["--debias", "robust", "--against", f"debias={FOG}"], {"fog": ("er", FOG), "robust": ("er", "robust")}),
        (
            ["--debias", "droptop", "--against", f"robust+{FOG}"],
            {"robust+fog": ("er", f"robust+{FOG}"), "droptop": ("er", "droptop")},
        ),
    ],
)
def test_arms_are_named_by_what_they_differ_in(flags, arms):
    plan = asked(*flags)
    assert {name: (arm.options.method, arm.options.debias) for name, arm in plan.arms.items()} == arms
    assert list(plan.arms) == list(arms)
    for arm in plan.arms.values():
        assert arm == configure("fashion", arm.options.method, arm.options.debias)


def test_a_method_of_ones_own_against_er(mine):
    """Each with its own presets; an option that is typed holds for both."""
    plan = asked("--method", mine, "--against", "er", "--memory", "77")
    assert list(plan.arms) == ["er", "mine"]
    assert [arm.learner.momentum for arm in plan.arms.values()] == [0.0, 0.25]
    assert [arm.learner.memory for arm in plan.arms.values()] == [77, 77]
    assert [arm.options.method for arm in asked("--against", f"method={mine}").arms.values()] == [mine, "er"]


def test_an_option_with_its_value_is_a_reference():
    plan = asked("--against", "net.width=20")
    assert {name: arm.net.width for name, arm in plan.arms.items()} == {"width=20": 20, "width=12": 12}
    assert {arm.options.debias for arm in plan.arms.values()} == {"none"}
    assert list(asked("--width", "20", "--against", "width=12").arms) == ["width=12", "width=20"]  # 12 is the default
    plan = asked("--debias", "droptop", "--lr", "0.3", "--against", "lr=0.1,stem=3x3")
    assert list(plan.arms) == ["stem=3x3-lr=0.1", "stem=7x7_2-lr=0.3"]
    assert [(arm.learner.lr, arm.net.stem, arm.droptop.gamma) for arm in plan.arms.values()] == [
        (0.1, "3x3", 5.0),
        (0.3, "7x7/2", 5.0),
    ]
    plan = asked("--debias", "robust", "--against", "droptop,gamma=3,lr=1")
    assert list(plan.arms) == ["droptop-lr=1-gamma=3", f"robust-lr={plan.arms[list(plan.arms)[1]].learner.lr}"]
    assert plan.arms["droptop-lr=1-gamma=3"].droptop.gamma == 3
    assert [arm.learner.average for arm in asked("--against", "average=true").arms.values()] == [True, False]
    split = "0,1/2,3"  # a value with commas, and a switch behind it
    plan = asked("--against", f"stream.split={split},lr=1")
    assert [arm.stream.split for arm in plan.arms.values()] == [split, None]


def test_an_arm_of_a_file_is_a_reference(tmp_path):
    file = tmp_path / "arms.toml"
    text = 'data = "fashion"\n[arms.slow]\nlr = 0.01\n[arms.both]\nlr = 0.01\ndebias = "droptop"\n'
    file.write_text(text)
    assert list(asked("--config", str(file)).arms) == ["none", "slow", "both"]
    assert list(asked("--config", str(file), "--against", "both").arms) == ["both", "slow"]
    file.write_text('against = "both"\n' + text)
    assert list(asked("--config", str(file)).arms) == ["both", "slow"]
    assert list(asked("--config", str(file), "--against", "slow").arms) == ["slow", "both"]  # the command line wins
    assert list(asked("--config", str(file), "--debias", "rsc").arms) == ["none", "rsc"]  # no such arm any more
    plan = asked("--config", str(file), "--against", "er,lr=0.5")
    assert {name: arm.learner.lr for name, arm in plan.arms.items()} == {"none-lr=0.5": 0.5, "slow": 0.01, "both": 0.01}


PLANS = {
    "debias": lambda: plan_of("compare", "fashion", "er", "robust,none", {"gamma": 2.0}, against="droptop"),
    "method": lambda: plan_of("compare", "fashion", "derpp", "droptop", {"seeds": 2}, against="er"),
    "option": lambda: plan_of("compare", "fashion", "er", "none", {"width": 4}, against="lr=0.1,width=20"),
    "arm": lambda: plan_of("compare", "fashion", "er", "none", {}, SLOW, against="both"),
    "arm beside": lambda: plan_of("compare", "fashion", "er", "none", {}, SLOW, against="derpp"),
    "file": lambda: plan_of("compare", "fashion", "er", FOG, {}, against="robust"),
}


@pytest.mark.parametrize("name", PLANS)
def test_config_toml_is_the_plan_again(name, tmp_path):
    """For whoever reads the folder, and as a command of its own; the reference first, wherever its table stands."""
    plan = PLANS[name]().with_effective_kappa_0()
    text = plan.toml()
    (tmp_path / "config.toml").write_text(text)
    assert tomllib.loads(text)["against"] == next(iter(plan.arms))
    assert list(load(tmp_path).arms.items()) == list(plan.arms.items())
    again = parse("compare", ["--config", str(tmp_path / "config.toml"), "--out", "x"]).plan
    assert list(again.arms.items()) == list(plan.arms.items())
    assert again.toml() == text
    tables = tomllib.loads(text)
    tables["arms"] = dict(reversed(tables["arms"].items()))
    (tmp_path / "config.toml").write_text(tomli_w.dumps(tables))
    assert read_request(tmp_path).arms[0].name == next(iter(plan.arms))


@pytest.mark.parametrize("name", ["debias", "method", "option", "file"])
def test_flags_are_the_plan_again(name):
    plan = PLANS[name]()
    flags = flags_of(plan)
    assert "--against" in flags
    assert parse("compare", [*flags, "--out", "x"]).plan == plan


def test_flags_that_cannot_say_a_plan_are_none():
    assert flags_of(PLANS["arm beside"]()) is None


def test_other_references_have_other_fingerprints():
    plans = [
        plan_of("compare", "fashion", "er", "robust", {}, against=against)
        for against in (None, "droptop", "rsc", "lr=0.3")
    ]
    assert len({plan.fingerprint() for plan in plans}) == len(plans)
    assert plans[0].fingerprint() == configure("fashion", "er", "robust").fingerprint()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            ["--against", "dropto"],
            "--against takes a debiasing, a method or OPTION=VALUE, not dropto; did you mean droptop?",
        ),
        (["--against", "derp"], "--against takes a debiasing, a method or OPTION=VALUE, not derp; did you mean derpp?"),
        (["--against", "robust+dropto"], "not robust[+]dropto; did you mean droptop?"),
        (["--against", "mine.py"], "--against takes method=mine.py or debias=mine.py, to say what the file defines"),
        (["--against", "droptop,robust"], "--against takes one arm, not droptop,robust"),
        (["--against", "widht=20"], "--against: unknown option widht with .*; did you mean --width[?]"),
        (["--against", "method=ert"], "--method takes one of .*, not ert; did you mean er"),
        (["--against", "lr=fast"], "--lr takes a number, not 'fast'"),
        (["--against", "lr=-1"], "--lr takes a learning rate above 0, not -1"),
        (["--against", "seeds=3"], "--against: seeds is one for all arms$"),
        (["--against", "width=20", "--width", "20"], "--against takes an arm that differs from those"),
        (["--against", "er"], "--against takes an arm that differs from those that are compared with it"),
        (
            ["--against", "droptop"],
            "--debias takes something to compare with droptop|--against takes an arm that differs",
        ),
        (
            ["--against", "er", "--debias", "none,droptop", "--method", "mir"],
            "beside|where --debias has several: er,deb",
        ),
        (["--against="], "--against takes a debiasing, a method or OPTION=VALUE, not $"),
    ],
)
def test_what_is_no_reference_is_refused_in_a_line(flags, says):
    with pytest.raises(BadRequest, match=says) as error:
        asked(*flags)
    assert "\n" not in str(error.value)


def test_two_arms_of_one_name_are_refused(mine, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "mine.py"
    other.write_text(Path(mine).read_text())
    with pytest.raises(BadRequest, match="--against takes an arm with another name than the others, not mine"):
        asked("--method", mine, "--against", f"method={other}")


def test_run_has_no_reference(here):
    done = here("run", "--data", "fashion", "--against", "er", "--out", "x")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "against" in done.stderr
