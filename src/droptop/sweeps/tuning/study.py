"""Optuna's study of a folder: it proposes settings, hears how trials go, and says which to end early.

The only module that knows Optuna, which is an extra: `pip install 'droptop[tune]'`. Its storage is a journal in the
folder, so that trials survive any process. The draws of a trial depend on its number and on the trials before it, not
on which process asks: one at a time, a folder that was killed and goes on gets the same trials as one that was not.
"""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from filelock import FileLock

from droptop.errors import BadRequest
from droptop.rng import derive
from droptop.sweeps.tuning.space import Range, Space

JOURNAL, LOCK = "optuna.log", ".optuna.lock"
State = Literal["done", "pruned", "failed", "running", "waiting"]
BEFORE_PRUNING = 5  # trials that are done before any other is ended early
FEWEST_FOR_IMPORTANCE = 10  # trials that are done, below which nobody can say which option matters


class Trial(NamedTuple):
    """Hold one trial."""

    number: int
    settings: dict[str, Any]  # by the option's path
    state: State
    value: float | None  # what it reached, once it is done
    steps: dict[int, float]  # what it had reached after each task
    why: str = ""  # why it was ended or failed, where that was not the pruner


def optuna() -> Any:
    """Return Optuna, quiet; refuse where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise BadRequest("tuning needs Optuna: pip install 'droptop[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def opened(folder: Path) -> Any:
    """Return Optuna's study of a folder, which is made where it is missing."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    # The system frees this lock when its holder dies; Optuna's own would make others wait for half a minute.
    journal = JournalFileBackend(str(folder / JOURNAL), cast(Any, FileLock(folder / LOCK)))
    return optuna().create_study(
        storage=JournalStorage(journal),
        sampler=optuna().samplers.RandomSampler(),  # takes no part: `Study` has its own for every trial
        pruner=optuna().pruners.NopPruner(),  # `Teller` has one, once it knows the number of tasks
        study_name="droptop",
        direction="maximize",
        load_if_exists=True,
    )


class Study:
    """Ask for settings, and tell what became of them."""

    def __init__(self, folder: Path, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.study = opened(folder)

    def trials(self) -> list[Trial]:
        """Return all trials by number, also those that wait."""
        return [trial_of(frozen) for frozen in self.study.get_trials(deepcopy=False)]

    def propose(self, settings: Iterable[Mapping[str, Any]]) -> None:
        """Have some settings tried before any that are drawn; those that were proposed before are left alone."""
        for each in settings:
            self.study.enqueue_trial(dict(each), skip_if_exists=True)

    def propose_failed(self) -> None:
        """Have the settings of trials that failed tried once more, unless another trial has them."""
        trials = self.trials()
        others = [trial.settings for trial in trials if trial.state != "failed"]
        for trial in trials:
            if trial.state == "failed" and trial.settings not in others:
                self.study.enqueue_trial(dict(trial.settings))
                others.append(trial.settings)

    def ask(self) -> Trial:
        """Return a new trial."""
        return self.drawn(self.study.ask()._trial_id)

    def ask_again(self, number: int) -> Trial:
        """Return a trial that was asked for before, perhaps by a process that died while it was."""
        return self.drawn(self.study.get_trials(deepcopy=False)[number]._trial_id)

    def drawn(self, trial_id: int) -> Trial:
        """Return a trial with all of its settings: those that it has, others drawn as they would have been at once."""
        trial = optuna().trial.Trial(self.study, trial_id)
        self.study.sampler = self.sampler(trial.number)
        _ = trial.relative_params  # drawn together, before any is set
        settings = {}
        for path, values in self.space.items():
            self.study.sampler = self.sampler(trial.number, path)
            settings[path] = suggested(trial, path, values)
        return Trial(trial.number, settings, "running", None, {})

    def sampler(self, number: int, *name: str) -> Any:
        """Return what draws the settings of a trial, by its number."""
        seed = derive(self.seed, "tune", number, *name) % 2**32
        return optuna().samplers.TPESampler(seed=seed, constant_liar=True)

    def tell(self, number: int, value: float | None, failed: bool = False, why: str = "") -> None:
        """Tell what became of a trial: the value that it reached, or None where it was ended before it had one."""
        frozen = self.study.get_trials(deepcopy=False)[number]
        if frozen.state.is_finished():
            return
        if why:
            optuna().trial.Trial(self.study, frozen._trial_id).set_user_attr("why", why)
        states = optuna().trial.TrialState
        if value is not None:
            self.study.tell(number, value)
        else:
            self.study.tell(number, state=states.FAIL if failed else states.PRUNED)

    def importance(self) -> tuple[dict[str, float] | None, str]:
        """Return the share of each option in what sets trials apart, by fANOVA; or None, and why nobody can say."""
        done = [trial for trial in self.trials() if trial.state == "done"]
        if len(self.space) < 2:
            return None, "one option was tuned"
        if len(done) < FEWEST_FOR_IMPORTANCE:
            return None, f"{len(done)} trials came to their end, and fewer than {FEWEST_FOR_IMPORTANCE} cannot tell"
        if max(trial.value or 0.0 for trial in done) - min(trial.value or 0.0 for trial in done) < 1e-9:
            return None, "all trials came to the same accuracy"
        evaluator = optuna().importance.FanovaImportanceEvaluator
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = optuna().importance.get_param_importances(self.study, evaluator=evaluator(seed=0))
        except ImportError:
            return None, "it needs scikit-learn, which pip install 'droptop[tune]' brings"
        return {path: float(share) for path, share in found.items()}, ""


class Teller:
    """Tell the study of a folder how far a trial is, from whichever process trains it."""

    def __init__(self, folder: Path, number: int) -> None:
        study = opened(folder)
        self.trial = optuna().trial.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)
        self.reached = dict(study.get_trials(deepcopy=False)[number].intermediate_values)

    def after(self, task: int, accuracy: float, tasks: int) -> bool:
        """Tell the accuracy after a task, from 0; return whether the trial is to be ended early.

        What is told is the part of the mean over all tasks that has been earned: it only grows, so the pruner, which
        takes the best of a trial's values, compares equals. Tasks that were told before are not told again. Nothing is
        ended in the first half of a stream, which says little of the rest.
        """
        if task not in self.reached:
            self.reached[task] = self.reached.get(task - 1, 0.0) + accuracy / tasks
            self.trial.report(self.reached[task], task)
        pruner = optuna().pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING, n_warmup_steps=tasks // 2)
        self.trial.study.pruner = pruner
        return task + 1 < tasks and bool(self.trial.should_prune())


def suggested(trial: Any, path: str, values: Any) -> Any:
    """Return the value that a trial has, or now gets, for one option."""
    if not isinstance(values, Range):
        return trial.suggest_categorical(path, values.values)
    if values.whole:
        return trial.suggest_int(path, int(values.low), int(values.high), log=values.kind == "log")
    return trial.suggest_float(path, values.low, values.high, log=values.kind == "log")


def trial_of(frozen: Any) -> Trial:
    """Return a trial as Optuna keeps it in our words."""
    states: dict[str, State] = {
        "COMPLETE": "done",
        "PRUNED": "pruned",
        "FAIL": "failed",
        "RUNNING": "running",
        "WAITING": "waiting",
    }
    state = states[frozen.state.name]
    settings = dict(frozen.params) or dict(frozen.system_attrs.get("fixed_params", {}))
    value = frozen.value if state == "done" else None
    return Trial(
        frozen.number, settings, state, value, dict(frozen.intermediate_values), frozen.user_attrs.get("why", "")
    )
