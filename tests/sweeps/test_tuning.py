"""Tuning: what is chosen, by which images, and that a kill neither loses nor repeats a trial."""

import tomllib

import pytest

from droptop.errors import BadRequest, Diverged, DroptopError, WorkerDied
from droptop.runs.requests import load
from droptop.sweeps.tuning.request import load_request
from droptop.sweeps.tuning.study import Study, Teller
from droptop.sweeps.tuning.tune_json import read_found
from droptop.sweeps.tuning.tuner import Trials, tune
from droptop.training.workers import Failure

from plans import parsed
from studies import Silent
from tunings import Trained, read, request

LR = {"learner.lr": "log:0.003:0.3"}


def by_lr(best, top=60.0):
    """An objective that is highest at one learning rate."""
    return lambda config, seed: top - 100 * abs(config.learner.lr - best)


def test_the_choice_is_the_best_mean_on_fresh_seeds_not_the_luckiest_trial(tmp_path):
    reached = {0.01: (90.0, 40.0), 0.05: (50.0, 50.0), 0.1: (60.0, 55.0), 0.2: (10.0, 99.0)}  # in its trial, later

    def objective(config, seed):
        lucky, later = reached[config.learner.lr]
        return lucky if seed == 10_000 else later + (seed - 10_001)

    engine = Trained(objective)
    found = tune(request({"learner.lr": "0.01,0.05,0.1,0.2"}), tmp_path / "out", engine, Silent())
    assert found["chosen"]["settings"] == {"learner.lr": 0.1}
    means = {each.settings["learner.lr"]: each.mean for each in found["confirmed"]}
    assert means == {0.01: 40.5, 0.1: 55.5, 0.05: 50.5}  # the best two trials, and the usual learning rate
    assert [seed for name, seed in engine.jobs if name == "trial-1"] == [10_000, 10_001, 10_002]
    config = parsed("--config", str(tmp_path / "out/best.toml"))
    assert (config.learner.lr, config.stream.hold_out, config.options.first_seed) == (0.1, 0.0, 0)
    from droptop.report.tuning import answer

    said = " ".join(answer(found))
    assert "The choice is lr 0.1: 55.5% on average over 2 fresh seeds" in said
    assert "The luckiest trial, lr 0.01, had 90.0% and has 40.5% on fresh seeds" in said
    assert "Beside the usual options (lr 0.05; 50.5%): +5.0 points" in said
    assert "too good, and no verdict" in said  # the seeds that chose it


def test_every_configuration_holds_images_out_and_no_seed_is_one_of_the_run(tmp_path):
    engine = Trained(by_lr(0.1))
    tune(request(LR), tmp_path / "out", engine, Silent())
    assert {config.stream.hold_out for config in engine.configs} == {10.0}
    assert min(seed for _, seed in engine.jobs) == 10_000
    for run in (tmp_path / "out/runs").iterdir():
        (arm,) = load(run).arms.values()
        assert (arm.stream.hold_out, arm.options.maps, arm.options.log) == (10.0, 0, None)


def test_the_first_task_alone(tmp_path):
    engine = Trained(by_lr(0.1))
    tune(request(LR, by="first-task"), tmp_path / "out", engine, Silent())
    assert {config.stream.split for config in engine.configs} == {"t-shirt,trouser"}


@pytest.mark.parametrize("done", [3, 9])
def test_a_tuning_that_was_killed_goes_on_with_the_same_trials_and_repeats_none(tmp_path, done):
    asked = request(LR | {"learner.momentum": "0,0.9"})
    whole = Trained(by_lr(0.1))
    tune(asked, tmp_path / "whole", whole, Silent())
    killed, rest = Trained(by_lr(0.1), stop_after=done), Trained(by_lr(0.1))
    with pytest.raises(KeyboardInterrupt):
        tune(asked, tmp_path / "out", killed, Silent())
    found = tune(load_request(tmp_path / "out"), tmp_path / "out", rest, Silent())
    assert killed.jobs + rest.jobs == whole.jobs
    assert found["trials"] == read(tmp_path / "whole")["trials"]
    assert (tmp_path / "out/best.toml").read_bytes() == (tmp_path / "whole/best.toml").read_bytes()
    again = Trained(by_lr(0.1))
    assert tune(asked, tmp_path / "out", again, Silent())["chosen"] == found["chosen"]
    assert again.jobs == []


def test_a_trial_that_had_only_some_of_its_settings_gets_the_others_as_it_would_have(tmp_path):
    asked = request(LR | {"learner.momentum": "0,0.9", "learner.memory_batch": "int:8:32"}, trials=3)
    first, second = (
        Study(tmp_path, asked.space, 1) for tmp_path in (tmp_path / "a", tmp_path / "b") if not tmp_path.mkdir()
    )
    settings = first.ask().settings
    trial = second.study.ask()  # killed after its first option was noted
    second.study.sampler = second.sampler(0, "learner.lr")
    trial.suggest_float("learner.lr", 0.003, 0.3, log=True)
    assert second.ask_again(0).settings == settings
    assert second.trials()[0].settings == settings


def test_more_trials_are_added_and_another_tuning_is_refused(tmp_path):
    first, more = Trained(by_lr(0.1)), Trained(by_lr(0.1))
    before = tune(request(LR, trials=4), tmp_path / "out", first, Silent())["trials"]
    found = tune(request(LR, trials=6), tmp_path / "out", more, Silent())["trials"]
    assert (found[:4], len(found)) == (before, 6)
    assert [name for name, seed in more.jobs if seed == 10_000] == ["trial-4", "trial-5"]
    bytes_before = (tmp_path / "out/tune.toml").read_bytes()
    for other in (
        request(LR, confirm_seeds=3),
        request({"learner.lr": "log:0.001:0.3"}),
        request(LR, debias="droptop"),
    ):
        with pytest.raises(BadRequest, match="out is of another"):
            tune(other, tmp_path / "out", more, Silent())
    assert (tmp_path / "out/tune.toml").read_bytes() == bytes_before


def test_the_usual_options_come_first_and_a_small_space_is_tried_whole(tmp_path):
    engine, notes = Trained(by_lr(0.1)), Silent()
    found = tune(request({"learner.lr": "0.02,0.05", "learner.momentum": "0,0.9"}), tmp_path / "a", engine, notes)
    tried = [tuple(trial["settings"].values()) for trial in found["trials"]]
    assert tried == [(0.05, 0.0), (0.02, 0.0), (0.02, 0.9), (0.05, 0.9)]
    assert notes.notes[0] == "there are 4 settings: 4 trials try all of them"
    first, *_ = tune(request(LR, trials=2), tmp_path / "b", engine, Silent())["trials"]
    assert first["settings"] == {"learner.lr": 0.05}
    outside = {"learner.lr": "log:0.1:0.3"}
    found = tune(request(outside, trials=2), tmp_path / "c", Trained(by_lr(0.05)), Silent())
    assert [each.eligible for each in found["confirmed"]] == [True, True, False]
    assert found["chosen"]["settings"]["learner.lr"] >= 0.1  # outside of the space, it is only compared with


def test_settings_that_were_tried_are_not_tried_again(tmp_path):
    engine = Trained(by_lr(0.1))
    found = tune(
        request({"learner.lr": "0.01,0.02,0.03,0.05,0.06,0.07,0.1"}, trials=6), tmp_path / "out", engine, Silent()
    )
    trained = [number for number, seed in engine.jobs if seed == 10_000]
    unlike = {trial["settings"]["learner.lr"] for trial in found["trials"]}
    assert len(trained) == len(unlike)
    for trial in found["trials"]:
        assert trial["value"] is None or trial["value"] == pytest.approx(
            60 - 100 * abs(trial["settings"]["learner.lr"] - 0.1)
        )


def test_packs_and_how_many_are_in_flight(tmp_path):
    """On a CPU a trial per worker; on a GPU several in a pack; never more at once than were asked for."""
    asked = request(LR, trials=7)

    def packs(at_once, on_gpu, workers=1):
        out = tmp_path / f"{at_once}-{on_gpu}-{workers}"
        out.mkdir()
        trials = Trials(out, asked, Study(out, asked.space, 0), Silent(), at_once)
        trials.on_gpu, trials.workers = on_gpu, workers
        return [len(pack) for _ in range(9) for pack in trials.more()]

    assert packs(None, False) == [1] * 7
    assert packs(2, False) == [1, 1]  # until one of them is done
    assert packs(None, True) == [5, 2]
    assert packs(3, True) == [3]
    assert packs(5, True, workers=2) == [3, 2]  # a share for each GPU


class Failing(Trained):
    """An engine in which jobs fail, of the kind that a learning rate decides."""

    def __init__(self, kind):
        super().__init__(by_lr(0.1))
        self.kind = kind

    def __call__(self, packs, driver):
        waiting = list(packs)
        while waiting := waiting or driver.more():
            (job,) = waiting.pop(0)
            if kind := self.kind(job):
                waiting += driver.retry([job], Failure(kind, "it is cursed", "trace"))
            else:
                self.train(job)
                driver.done(job)


def test_a_loss_that_is_not_finite_ends_a_trial_and_is_no_failure(tmp_path):
    found = tune(
        request(LR), tmp_path / "out", Failing(lambda job: Diverged if job.config.learner.lr > 0.06 else None), Silent()
    )
    high = [trial for trial in found["trials"] if trial["settings"]["learner.lr"] > 0.06]
    assert high
    assert {(trial["state"], trial["value"], trial["why"]) for trial in high} == {("pruned", None, "it is cursed")}
    assert len(found["trials"]) == 8


def test_trials_that_fail_are_tried_twice_and_made_up_for_next_time(tmp_path):
    observer = Silent()
    found = tune(
        request(LR), tmp_path / "out", Failing(lambda job: WorkerDied if job.run.name == "trial-2" else None), observer
    )
    assert [trial["state"] for trial in found["trials"]].count("failed") == 1
    assert observer.failures == [("trial-2", 10_000)]
    (cursed,) = (trial["settings"] for trial in found["trials"] if trial["state"] == "failed")
    found = tune(request(LR), tmp_path / "out", Trained(by_lr(0.1)), Silent())
    assert found["trials"][8]["settings"] == cursed
    assert sum(trial["state"] in ("done", "pruned") for trial in found["trials"]) == 8
    everything = Failing(lambda job: WorkerDied)
    with pytest.raises(DroptopError, match="no trial came to its end: it is cursed"):
        tune(request(LR), tmp_path / "cursed", everything, Silent())
    assert len(read(tmp_path / "cursed")["trials"]) == 3  # then it gives up


def test_the_pruner_ends_what_is_below_the_median_in_the_second_half_alone(tmp_path):
    study = Study(tmp_path, request(LR).space, 0)
    for reached in (40.0, 50.0, 60.0, 70.0, 80.0):
        teller = Teller(tmp_path, study.ask().number)
        assert not any(teller.after(task, reached, 4) for task in range(4))
        study.tell(teller.trial.number, reached)
    bad, good = (Teller(tmp_path, study.ask().number) for _ in range(2))
    assert [bad.after(task, 30.0, 4) for task in range(3)] == [False, False, True]
    assert [good.after(task, accuracy, 4) for task, accuracy in enumerate((99.0, 61.0, 61.0, 0.0))] == [False] * 4
    steps = study.trials()[good.trial.number].steps
    assert [steps[task] for task in range(4)] == [24.75, 40.0, 55.25, 55.25]  # the part of the mean that is earned
    again = Teller(tmp_path, good.trial.number)  # as after a kill
    again.after(2, 1.0, 4)
    assert study.trials()[good.trial.number].steps == steps


def test_findings_are_read_without_optuna_and_refused_where_there_are_none(tmp_path):
    tune(request(LR, trials=2), tmp_path / "out", Trained(by_lr(0.1)), Silent())
    assert read_found(tmp_path / "out")["fresh"] == [10_001, 10_002]
    (tmp_path / "out/tune.json").write_text("{")
    with pytest.raises(BadRequest, match="is damaged"):
        read_found(tmp_path / "out")
    with pytest.raises(BadRequest, match="has no trial yet"):
        read_found(tmp_path)
    noted = tomllib.loads((tmp_path / "out/tune.toml").read_text())["tune"]
    assert noted["over"] == LR
