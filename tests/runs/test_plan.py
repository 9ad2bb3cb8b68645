"""Plans: what arms names and tables stand for, and what is no comparison."""

import tomllib
from pathlib import Path

import pytest

from droptop import BadRequest, configure
from droptop.cli.run_flags import parse
from droptop.options import flatten
from droptop.runs.plan import Plan, plan_of
from droptop.runs.reference import debias_name
from droptop.runs.requests import load
from droptop.system import user_files

FOG = str(Path(__file__).parents[1] / "debias/fog.py")


def compared(debias="droptop", options=(), arms=None):
    return plan_of("compare", "fashion", "er", debias, dict(options), arms)


def asked(tmp_path, text, *flags):
    """The plan that a TOML file asks `compare` for."""
    file = tmp_path / "asked.toml"
    file.write_text(text)
    return parse("compare", ["--config", str(file), *flags, "--out", "x"]).plan


def test_names_are_arms_behind_the_plain_one():
    plan = compared("robust,droptop+mixstyle")
    assert list(plan.arms) == ["none", "robust", "droptop+mixstyle"]
    for name, arm in plan.arms.items():
        assert arm == configure("fashion", "er", name)
    assert list(compared("none,droptop").arms) == ["none", "droptop"]
    assert {run: arm.options.debias for run, arm in plan.folders(Path("out")).items()} == {
        Path("out/none"): "none",
        Path("out/robust"): "robust",
        Path("out/droptop+mixstyle"): "droptop+mixstyle",
    }


def test_a_run_is_one_arm_in_the_folder_itself():
    plan = plan_of("run", "fashion", "er", "robust", {"lr": 0.2})
    assert plan.arms == {"robust": configure("fashion", "er", "robust", lr=0.2)}
    assert list(plan.folders(Path("out"))) == [Path("out")]


def test_options_go_to_every_arm_that_has_them():
    plan = compared("droptop,robust", {"lr": 0.25, "gamma": 2.5, "colour.share": 0.75, "seeds": 2})
    none, droptop, robust = plan.arms.values()
    assert {arm.learner.lr for arm in plan.arms.values()} == {0.25}
    assert {arm.options.seeds for arm in plan.arms.values()} == {2}
    assert (droptop.droptop.gamma, robust.members.colour.share) == (2.5, 0.75)
    assert not vars(none.members)
    assert flatten(robust).keys() & {"droptop.gamma"} == set()


def test_arms_have_options_of_their_own():
    """The plain one too; an arm without `debias` has that of the comparison."""
    arms = {"slow": {"lr": 0.01}, "none": {"lr": 0.5}, "mir": {"method": "mir", "debias": "rsc", "rsc.percent": 9.0}}
    plan = compared("none", {"memory": 77}, arms)
    assert list(plan.arms) == ["none", "slow", "mir"]
    none, slow, mir = plan.arms.values()
    assert (none.learner.lr, slow.learner.lr, slow.options.debias) == (0.5, 0.01, "none")
    assert (mir.options.method, mir.options.debias, mir.members.rsc.percent) == ("mir", "rsc", 9.0)
    assert {arm.learner.memory for arm in plan.arms.values()} == {77}
    assert compared("rsc", arms={"slow": {"lr": 0.01}}).arms["slow"].options.debias == "rsc"
    for own in ({}, {"none": {"lr": 0.5}}):
        assert compared("rsc", arms={"slow": {"lr": 0.01}} | own).arms["none"].options.debias == "none"


def test_options_of_an_arm_win_over_those_of_all():
    plan = compared("droptop", {"lr": 0.3, "gamma": 4.0}, {"mild": {"gamma": 1.0, "droptop.kappa_0": 1.0}})
    assert (plan.arms["mild"].droptop.gamma, plan.arms["mild"].learner.lr) == (1.0, 0.3)


@pytest.mark.parametrize(
    ("debias", "options", "arms", "says"),
    [
        ("none", {}, None, "--debias takes something to compare with none"),
        ("none,none", {}, None, "--debias takes every arm once, not none,none"),
        ("droptop,droptop", {}, None, "--debias takes every arm once, not droptop,droptop"),
        ("droptop,", {}, None, "--debias takes none, .*, not "),
        ("droptop,dorptop", {}, None, "--debias takes none, .*, not dorptop; did you mean droptop[?]"),
        ("droptop,robust", {}, {"slow": {"lr": 0.1}}, "--debias takes one beside arms of their own, .* not droptop,ro"),
        ("none", {}, {"none": {"lr": 0.1}}, "--debias takes something to compare with none"),
        ("none", {}, {"a/b": {"lr": 0.1}}, "--arms takes names of letters, digits, _, [+], =, [.] and -, not a/b"),
        ("none", {}, {"..": {"lr": 0.1}}, "--arms takes names of letters, .*, not [.][.]"),
        ("none", {}, {"-x": {"lr": 0.1}}, "--arms takes names of letters, .*, not -x"),
        ("none", {}, {"": {"lr": 0.1}}, "--arms takes names of letters, .*, not "),
        ("none", {}, {"slow": {"seeds": 3}}, r"\[arms.slow\]: seeds is one for all arms and stands at the top"),
        ("none", {}, {"slow": {"data": "cifar10"}}, r"\[arms.slow\]: data is one for all arms and stands at the top"),
        ("none", {}, {"slow": {"gama": 3}}, r"\[arms.slow\]: unknown option gama with .* --debias none"),
        ("droptop,robust", {"gama": 3}, None, "unknown option gama with .* --debias robust"),
        ("robust", {"gamma": 3}, None, "unknown option gamma with .* --debias robust"),
        ("droptop,robust", {"gamma": 120.0}, None, "--gamma takes a percentage from 0 to 100, not 120.0"),
        ("droptop,robust", {"gamma": 2.0, "kappa_0": 4.0}, None, "--kappa-0 takes a percentage up to gamma, 2.0, not"),
        ("none", {}, {"a": {"debias": "droptop", "gamma": 2.0, "kappa_0": 4.0}}, "--kappa-0 takes a percentage up to"),
    ],
)
def test_what_is_no_comparison_is_refused_in_a_line(debias, options, arms, says):
    with pytest.raises(BadRequest, match=f"^{says}") as error:
        compared(debias, options, arms)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("debias", "arms"), [("droptop,robust", None), ("droptop", {"slow": {"lr": 0.1}})])
def test_a_run_of_several_arms_is_refused(debias, arms):
    with pytest.raises(BadRequest, match="--debias takes one with run; `droptop compare` takes several arms"):
        plan_of("run", "fashion", "er", debias, {}, arms)


@pytest.fixture(autouse=True)
def named():
    """Say that this file may be executed, as the command line does."""
    user_files.named(FOG)


def test_files_name_arms_by_their_text_before_the_ending(tmp_path):
    assert (debias_name(FOG), debias_name(f"droptop+{FOG}:Fog"), debias_name("robust")) == (
        "fog",
        "droptop+fog",
        "robust",
    )
    plan = compared(f"{FOG},droptop+{FOG}", {"fog.share": 0.25})
    assert list(plan.arms) == ["none", "fog", "droptop+fog"]
    assert [arm.members.fog.share for name, arm in plan.arms.items() if name != "none"] == [0.25, 0.25]
    assert plan.arms["droptop+fog"].options.debias == f"droptop+{FOG}"
    other = tmp_path / "fog.py"
    other.write_text(Path(FOG).read_text())
    user_files.named(str(other))
    with pytest.raises(BadRequest, match="--debias takes every arm once"):
        compared(f"{FOG},{other}")


PLANS = {
    "pair": lambda: compared("droptop", {"gamma": 2.0, "kappa_0": 1.0}),
    "three": lambda: compared("droptop,robust,robust+droptop", {"gamma": 2.0, "kappa_0": 1.0, "seeds": 3}),
    "tables": lambda: compared("none", {}, {"slow": {"lr": 0.01}, "mir": {"method": "mir", "debias": "rsc"}}),
    "own plain": lambda: compared("average", {}, {"none": {"memory_batch": 64}, "a+b-c_1": {"average_decay": 0.9}}),
    "nets": lambda: compared("none", {"weights": "random"}, {"l2p": {"method": "l2p", "debias": "droptop"}}),
    "file": lambda: compared(f"{FOG},mixstyle+{FOG}:Fog"),
    "run": lambda: plan_of("run", "fashion", "derpp", "robust", {"distill_weight": 0.1}),
}


@pytest.mark.parametrize("name", PLANS)
def test_config_toml_is_the_plan_again(name, tmp_path):
    """By whoever reads a folder, and as a command of its own; to the byte."""
    plan = PLANS[name]().with_effective_kappa_0()
    text = plan.toml()
    (tmp_path / "config.toml").write_text(text)
    assert list(load(tmp_path).arms.values()) == list(plan.arms.values())
    again = parse(plan.command, ["--config", str(tmp_path / "config.toml"), "--out", "x"]).plan
    assert again == plan
    assert list(again.arms) == list(plan.arms)
    assert again.toml() == text


def test_config_toml_says_what_arms_share_once():
    tables = tomllib.loads(compared("droptop,robust", {"lr": 0.3}).toml())
    assert list(tables["arms"]) == ["none", "droptop", "robust"]
    assert (tables["learner"]["lr"], tables["data"]) == (0.3, "fashion")
    for own in tables["arms"].values():
        assert "data" not in own
        assert "lr" not in own.get("learner", {})
    assert "gamma" in tables["arms"]["droptop"]["droptop"]
    assert tables["arms"]["none"] == {"debias": "none", "learner": {"iterations": 1, "average": False}}
    assert tables["arms"]["robust"]["learner"]["iterations"] == 2


def test_a_file_of_arms_is_read_as_people_write_it(tmp_path):
    text = 'data = "fashion"\nlr = 0.3\n[arms.slow]\nlr = 0.01\n[arms.mild]\ndebias = "droptop"\ngamma = 1\n'
    plan = asked(tmp_path, text)
    assert list(plan.arms) == ["none", "slow", "mild"]
    assert [arm.learner.lr for arm in plan.arms.values()] == [0.3, 0.01, 0.3]
    assert plan.arms["mild"].droptop.gamma == 1
    flagged = asked(tmp_path, text, "--memory", "60", "--gamma", "2")  # flags are for all arms, below those of one
    assert {arm.learner.memory for arm in flagged.arms.values()} == {60}
    assert flagged.arms["mild"].droptop.gamma == 1
    assert list(asked(tmp_path, text, "--debias", "rsc").arms) == ["none", "rsc"]  # takes the place of the file's


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arms = 3\n", "takes a table per arm, headed"),
        ("[arms]\nslow = 0.1\n", "takes a table per arm, headed"),
        ("[arms.slow]\nlr = true\n", "--lr takes a number, not True"),
        ("[arms.slow]\nseeds = 2\n", "seeds is one for all arms"),
    ],
)
def test_files_that_hold_no_arms_are_refused(text, says, tmp_path):
    with pytest.raises(BadRequest, match=says) as error:
        asked(tmp_path, text)
    assert "\n" not in str(error.value)
    if says.startswith("takes a table"):
        (tmp_path / "config.toml").write_text('command = "compare"\ndata = "fashion"\n' + text)
        with pytest.raises(BadRequest, match=says):
            load(tmp_path)


def test_run_refuses_a_file_of_arms(tmp_path):
    file = tmp_path / "arms.toml"
    file.write_text("[arms.slow]\nlr = 0.1\n")
    with pytest.raises(BadRequest, match=r"--config takes options of one run; .* has those of a comparison's arms"):
        parse("run", ["--config", str(file), "--out", "x"])


def test_plans_with_other_arms_have_other_fingerprints():
    plans = [compared("droptop"), compared("robust"), compared("droptop,robust"), compared("robust,droptop")]
    plans += [compared("droptop,robust", {"lr": 0.3}), compared("droptop,robust,rsc")]
    assert len({plan.fingerprint() for plan in plans}) == len(plans)
    assert compared("droptop,robust").fingerprint() == compared("droptop,robust", {"seeds": 9}).fingerprint()
    assert compared("droptop").fingerprint() == configure("fashion", "er", "droptop").fingerprint()


def test_more_arms_may_be_added_under_new_names():
    plan = compared("droptop")
    more = plan.with_arms({"equal-droptop": configure("fashion", "er", "none", memory_batch=40)})
    assert list(more.arms) == ["none", "droptop", "equal-droptop"]
    assert isinstance(more, Plan)
    with pytest.raises(BadRequest, match="--arms takes a name other than droptop, which is there already, not droptop"):
        plan.with_arms({"droptop": configure("fashion")})
