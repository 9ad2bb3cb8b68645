"""The arms of a comparison, tuned alike: the same space, trials and held-out images; then fresh seeds."""

import json

import pytest

from droptop.errors import BadRequest
from droptop.runs.plan import plan_of
from droptop.runs.requests import load
from droptop.sweeps.tuning import arms
from droptop.sweeps.tuning.arms import Alike, awaits_tuning, begin_tuning, check_all, load_arms, tune_all, tuned_arms
from droptop.sweeps.tuning.request import load_request

from studies import Silent
from tunings import SMALL, Trained, read

OVER = {"lr": "0.02,0.05,0.2"}


@pytest.fixture
def plan(monkeypatch):
    """A comparison of two arms, each of which is confirmed by few seeds."""
    few = arms.Search
    monkeypatch.setattr(arms, "Search", lambda **given: few(**({"confirm": 2, "confirm_seeds": 2} | given)))
    return plan_of("compare", "fashion", "er", "average", SMALL | {"seeds": 2})


def best_of_each(config, seed):
    """Plain learning is best at a low rate, averaged weights at a high one."""
    best = 0.2 if config.learner.average else 0.02
    return 60 - 100 * abs(config.learner.lr - best)


def test_every_arm_has_the_same_space_trials_and_held_out_images(plan, tmp_path):
    asked = tuned_arms(plan, Alike(3, OVER))
    assert check_all(asked) == []
    engine = Trained(best_of_each)
    begin_tuning(asked, tmp_path)
    assert awaits_tuning(tmp_path)
    assert load_arms(tmp_path) == asked
    observer = Silent()
    tuned = tune_all(asked, tmp_path, engine, observer)
    assert observer.notes[:3] == [
        "tuning none: 3 trials on held-out training images; then the best 2 and the usual options on 2 fresh seeds",
        "confirming 2 settings on fresh seeds: 4 of 4 runs are to come",
        "tuned none: lr 0.02",
    ]
    assert {name: arm.learner.lr for name, arm in tuned.arms.items()} == {"none": 0.02, "average": 0.2}
    requests = [load_request(tmp_path / "tuning" / name) for name in tuned.arms]
    assert requests[0].over == requests[1].over == {"learner.lr": "0.02,0.05,0.2"}
    assert requests[0].search == requests[1].search
    found = [read(tmp_path / "tuning" / name) for name in tuned.arms]
    assert [trial["settings"] for trial in found[0]["trials"]] == [trial["settings"] for trial in found[1]["trials"]]
    assert {config.stream.hold_out for config in engine.configs} == {10.0}
    assert set(plan.seeds).isdisjoint(seed for _, seed in engine.jobs)
    said = read(tmp_path, "tuned.json")
    assert (said["trials"], said["over"], said["for"], said["hold_out"]) == (3, requests[0].over, None, 10.0)
    assert said["arms"]["average"]["settings"] == {"learner.lr": 0.2}
    assert said["arms"]["average"]["usual"] == {"learner.lr": 0.05}
    assert said["arms"]["average"]["confirmed"]["mean"] == 60.0
    assert tuned.seeds == plan.seeds


def test_one_arm_is_tuned_for_all_and_it_is_said(plan, tmp_path):
    asked = tuned_arms(plan, Alike(3, OVER, "none"))
    begin_tuning(asked, tmp_path)
    assert load_arms(tmp_path) == asked
    tuned = tune_all(asked, tmp_path, Trained(best_of_each), Silent())
    assert {arm.learner.lr for arm in tuned.arms.values()} == {0.02}
    assert [path.name for path in (tmp_path / "tuning").iterdir() if path.is_dir()] == ["none"]
    from droptop.report.tuning import tuned_alike, tuned_caption

    said = read(tmp_path, "tuned.json")
    assert (
        "tuned for none alone and given to all arms, which is usual and favours none: lr 0.02" in tuned_alike(said)[0]
    )
    assert tuned_caption(said) == "; options tuned for none alone, by 3 trials, and given to all"


def test_a_comparison_that_was_killed_while_it_was_tuned_goes_on(plan, tmp_path):
    asked = tuned_arms(plan, Alike(3, OVER))
    whole, killed, rest = Trained(best_of_each), Trained(best_of_each, stop_after=9), Trained(best_of_each)
    expected = tune_all(asked, tmp_path / "whole", whole, Silent())
    begin_tuning(asked, tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        tune_all(asked, tmp_path / "out", killed, Silent())
    assert tune_all(load_arms(tmp_path / "out"), tmp_path / "out", rest, Silent()) == expected
    assert killed.jobs + rest.jobs == whole.jobs
    assert json.dumps(read(tmp_path / "out", "tuned.json")) == json.dumps(read(tmp_path / "whole", "tuned.json"))
    with pytest.raises(BadRequest, match="is a comparison whose arms are being tuned: `droptop resume"):
        load(tmp_path / "out")


@pytest.mark.parametrize(
    ("debias", "options", "own", "wanted", "says"),
    [
        ("droptop", {}, None, Alike(3, {"gamma": "lin:1:5"}), "unknown option gamma"),
        ("none", {}, {"slow": {"lr": 0.01}}, Alike(3, OVER), "none and slow would be one"),
        ("average", {"hold_out": 10.0}, None, Alike(3, OVER), "leave out --hold-out"),
        ("average", {}, None, Alike(3, OVER, "robust"), "an arm to tune for all: none, average, not robust"),
        ("average", {}, None, Alike(0, OVER), "--trials takes a number of trials from 1"),
        ("average", {"first_seed": 9_999, "seeds": 3}, None, Alike(3, OVER), "seeds other than those of the run"),
    ],
)
def test_what_would_not_be_fair_or_cannot_be_is_refused(debias, options, own, wanted, says):
    plan = plan_of("compare", "fashion", "er", debias, SMALL | options, own)
    with pytest.raises(BadRequest, match=says):
        check_all(tuned_arms(plan, wanted))
