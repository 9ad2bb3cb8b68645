"""What to try next: commands that the command line takes, chosen from what was found."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from droptop.cli.run_flags import parse
from droptop.debias import PoE
from droptop.methods import METHODS
from droptop.report.next_steps import WITH_POE, Facts, next_steps, seeds_wanted
from droptop.report.sentences import readable
from droptop.results.diagnosis import diagnosed
from droptop.results.statistics import compare, paired_effect

NOISE = (np.random.default_rng(1).normal(size=10)).tolist()
AGAIN = "droptop compare --data fashion-sticker --method er --debias droptop --width 4 --seeds 5 --out here/first-again"
OPTIONS = {"data": "fashion-sticker", "method": "er", "debias": "none", "learner.lr": 0.05, "learner.iterations": 1}


def facts(tmp_path, plain=(80.0, 60.0), effect=0.0, seeds=5, again=AGAIN, arm="droptop", tests=2, **options):
    """What a comparison has found: accuracies of the plain arm with the cue and without, and what debiasing adds."""
    arms = {
        name: {
            "method": "er",
            "data": "d",
            "debias": name,
            "seeds": list(range(seeds)),
            "tests": {
                test: {"A_avg": [mean + added + change for change in NOISE[shift : shift + seeds]]}
                for test, mean in list(zip(("test", "test-nologo"), plain))[:tests]
            },
            "guesses": {
                test: dict.fromkeys(("chance", "constant"), (25.0,) * seeds) for test in ("test", "test-nologo")
            },
        }
        for name, added, shift in (("none", 0.0, 0), (arm, effect, 1))
    }
    comparison = readable(diagnosed(compare(arms)))
    return Facts(tmp_path / "first", again, OPTIONS | options, comparison["diagnosis"], comparison)


def commands(*args, **options):
    steps = next_steps(facts(*args, **options))
    assert len(steps) <= 2
    assert all(step.why for step in steps)
    return [shlex.split(step.command) for step in steps]


def plan_of(command):
    """The plan of a command of `run` or `compare`, as the command line reads it."""
    return parse(command[1], command[2:])


def test_few_seeds_call_for_five(tmp_path):
    assert commands(tmp_path, seeds=3)[0] == ["droptop", "resume", str(tmp_path / "first"), "--seeds", "5"]


def test_who_has_barely_learned_is_to_learn_more(tmp_path):
    more_steps, higher_rate = commands(tmp_path, plain=(27.0, 26.0))
    asked = plan_of(more_steps)
    assert {arm.learner.iterations for arm in asked.plan.arms.values()} == {3}
    assert {arm.net.width for arm in asked.plan.arms.values()} == {4}  # and all else as it was
    assert asked.out == tmp_path / "first-iterations-3"
    assert {arm.learner.lr for arm in plan_of(higher_rate).plan.arms.values()} == {0.15}


def test_no_seeds_are_asked_for_where_all_arms_guess_without_the_cue(tmp_path):
    """They lean on the cue: 80% with it; without it 26%, where a guess has 25%."""
    for seeds in (2, 5):
        found = commands(tmp_path, plain=(80.0, 26.0), seeds=seeds)
        assert not any("resume" in command for command in found)
        assert {arm.learner.iterations for arm in plan_of(found[0]).plan.arms.values()} == {3}
    assert commands(tmp_path, seeds=2)[0][1] == "resume"  # where they do not guess


def test_a_quick_look_in_which_little_is_learned_asks_for_no_seeds(tmp_path):
    first, *_ = commands(tmp_path, plain=(26.0, 26.0), seeds=2, limit=64, again=f"{AGAIN} --limit 64")
    assert plan_of(first).plan.options.seeds == 5  # as it was asked for
    first, *_ = commands(
        tmp_path, plain=(26.0, 26.0), seeds=2, limit=64, again=f"{AGAIN} --limit 64".replace("--seeds 5", "--seeds 2")
    )
    assert plan_of(first).plan.options.seeds == 2


def test_a_quick_look_comes_before_a_whole_one(tmp_path):
    again = AGAIN.replace("--seeds 5", "--seeds 2 --limit 64")
    first, *_ = commands(tmp_path, seeds=2, again=again, limit=64)
    asked = plan_of(first)
    assert (asked.plan.options.limit, asked.plan.options.seeds) == (None, 5)
    assert asked.out == tmp_path / "first-whole"


def test_a_whole_look_says_so_where_a_file_has_the_limit(tmp_path):
    file = tmp_path / "asked.toml"
    file.write_text('data = "fashion"\nlimit = 64\n[arms.one]\nlr = 0.1\n')
    first, *_ = commands(tmp_path, again=f"droptop compare --config {file} --out here/again", limit=64)
    assert plan_of(first).plan.options.limit is None


def test_other_options_are_not_advised_where_arms_were_tuned(tmp_path):
    of_arms = facts(tmp_path, seeds=3, limit=64)
    tuned = of_arms._replace(comparison=dict(of_arms.comparison) | {"tuning": {"trials": 2}})
    assert [shlex.split(step.command)[:2] for step in next_steps(tuned)] == [["droptop", "resume"]]


def test_a_folder_that_is_there_is_not_named_again(tmp_path):
    (tmp_path / "first-whole").mkdir()
    first, *_ = commands(tmp_path, limit=64, again=f"{AGAIN} --limit 64")
    assert plan_of(first).out == tmp_path / "first-whole-2"


def test_robust_is_tried_where_droptop_does_not_help(tmp_path):
    asked = plan_of(commands(tmp_path)[-1])
    assert list(asked.plan.arms) == ["none", "robust"]
    stronger = plan_of(commands(tmp_path, arm="robust")[-1])
    assert list(stronger.plan.arms) == ["none", "robust+poe"]
    assert not any("robust" in " ".join(command) for command in commands(tmp_path, arm="robust+poe"))
    assert commands(tmp_path, effect=10.0) == []  # it helps: nothing is missing


def test_poe_is_advised_to_the_methods_that_take_it():
    assert set(WITH_POE) == {name for name, kind in METHODS.items() if kind.takes(PoE)}


def test_nothing_is_suggested_against_a_cue_that_is_not_used(tmp_path):
    assert not any("--debias" in command and "robust" in command for command in commands(tmp_path, plain=(80.0, 80.0)))


def test_a_folder_without_a_set_that_lacks_the_cue_gets_one(tmp_path):
    (tmp_path / "images/test/a").mkdir(parents=True)
    images = tmp_path / "images"
    first, *_ = commands(tmp_path, tests=1, data=f"folder:{images}")
    assert first == ["cp", "-r", str(images / "test"), str(images / "test-no-cue")]
    assert not any(command[0] == "cp" for command in commands(tmp_path, tests=1))


@pytest.mark.parametrize("debias", ["none", "mixstyle"])
def test_a_run_is_compared(tmp_path, debias):
    again = f"droptop run --data fashion-sticker --method er --debias {debias} --width 4 --out x-again"
    of_pair = facts(tmp_path, again=again, debias=debias)
    steps = next_steps(of_pair._replace(comparison=None))
    asked = plan_of(shlex.split(steps[0].command))
    assert list(asked.plan.arms) == ["none", "droptop" if debias == "none" else debias]


def test_so_many_seeds_are_named_as_would_have_seen_the_effect():
    """By simulation: differences of 1 with a spread of 1.5 are seen by 20 seeds in most cases, by 10 not."""
    random = np.random.default_rng(0)
    differences = random.normal(size=5)
    differences = 1 + 1.5 * (differences - differences.mean()) / differences.std(ddof=1)
    effect = paired_effect([0.0] * 5, differences.tolist())
    assert seeds_wanted(effect, 5) == 20
    assert seeds_wanted(effect, 3) == 5
    assert seeds_wanted(effect | {"diff": 0.01}, 5) is None


def test_seeds_are_those_that_see_the_effect_without_the_cue(tmp_path):
    """On the set with the cue the effect is far larger, which no seeds need be added for."""
    found = facts(tmp_path)
    figures = {"test": (30.0, 35.0), "test-nologo": (1.2, 2.0)}
    for test, (diff, least) in figures.items():
        found.comparison["effects"]["droptop"][test]["A_avg"] |= {"diff": diff, "least": least, "p": 0.3, "p_holm": 0.5}
    step = next_steps(found)[0]
    wanted = seeds_wanted(found.comparison["effects"]["droptop"]["test-nologo"]["A_avg"], 5)
    assert step.why == f"{wanted} seeds would see an effect as large as that of droptop on test-nologo (+1.2 points)"
    assert step.command.endswith(f"--seeds {wanted}")


def test_commands_name_the_folder_as_it_was_typed():
    steps = next_steps(facts(Path("runs"), seeds=2))
    assert steps[0].command == "droptop resume runs/first --seeds 5"


def test_a_task_of_few_steps_calls_for_a_smaller_batch(tmp_path):
    barely = facts(tmp_path, plain=(27.0, 26.0), **{"stream.batch": 32})
    first, second = next_steps(barely._replace(steps=10))
    assert {arm.stream.batch for arm in plan_of(shlex.split(first.command)).plan.arms.values()} == {16}
    assert "10 steps" in first.why
    assert "--iterations 3" in second.command
    for steps in (20, None):  # enough of them, or nobody knows
        assert not any("--batch" in step.command for step in next_steps(barely._replace(steps=steps)))
    small = facts(tmp_path, plain=(27.0, 26.0), **{"stream.batch": 4})
    assert not any("--batch" in step.command for step in next_steps(small._replace(steps=1)))
    learned = facts(tmp_path, **{"stream.batch": 32})
    assert not any("--batch" in step.command for step in next_steps(learned._replace(steps=1)))
