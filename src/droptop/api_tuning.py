"""The command `tune` as a function; the command line calls the same code."""

from pathlib import Path
from typing import Unpack

from droptop.api import with_model
from droptop.options import NO_DEBIAS
from droptop.report.seed_progress import Plain
from droptop.report.shown import Tuned
from droptop.runs.own_objects import Data, Model, handed_over
from droptop.runs.plan import plan_of
from droptop.runs.trust import named
from droptop.sweeps.local import local
from droptop.sweeps.tuning.request import HOLD_OUT, SEED, By, Search, tune_request
from droptop.sweeps.tuning.space import Over, said_in_python
from droptop.sweeps.tuning.tuner import tune as run_tuning
from droptop.typed_options import Options


def tune(
    data: Data = "fashion-sticker",
    method: str = "er",
    debias: str | None = "droptop",
    *,
    model: Model | None = None,
    first: str | None = None,
    last: str | None = None,
    over: Over | None = None,
    trials: int = 30,
    by: By = "hold-out",
    confirm: int = 5,
    confirm_seeds: int = 5,
    tune_seed: int = SEED,
    at_once: int | None = None,
    out: str | Path,
    **options: Unpack[Options],
) -> Tuned:
    """Find options on training images that are held out, by Optuna, and confirm the best on fresh seeds.

    Test sets are not looked at. The choice is the best mean over fresh seeds, never the luckiest trial.

    Args:
        data: The name of a stream; or a `Stream`, or a function of a seed that gives one.
        method: The name of a learner, or a Python file that defines one.
        debias: What to debias with, by name; None for nothing.
        model: Your own model, as `run` takes it; so are `first` and `last`.
        first: Name of the model's submodule that gives the first map.
        last: Name of the submodule that gives the last map.
        over: What may vary, by option: `{"lr": "log:0.003:0.3", "memory_batch": "int:16:64", "momentum": [0, 0.9]}`; by
            default the learning rate around the usual one, and momentum.
        trials: Number of trials, each on the same seed.
        by: Held-out images of all tasks, or of the first task, which is then learned alone.
        confirm: Number of trials that are run again on fresh seeds, the best ones.
        confirm_seeds: Number of fresh seeds.
        tune_seed: Seed of the trials; those after it confirm.
        at_once: Number of trials at once; by default one per core, 5 on a GPU. With 1, the same call gives the same
            trials.
        out: The folder of the tuning, new or one to continue; `best.toml` in it has the choice.
        options: Any option of the command line, such as `limit=500`; `hold_out` is the percentage of each class's
            training images to measure on, by default 10.

    Returns:
        What stands in `tune.json`, a dict that shows itself as a table: all trials, what was confirmed, the choice.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    with handed_over(data=data, model=model) as names:
        chosen = NO_DEBIAS if debias is None else debias
        given = with_model(options, names, first, last)
        named({"method": method, "debias": chosen} | given)
        plan = plan_of("run", names["data"], method, chosen, given)
        (config,) = plan.arms.values()
        search = Search(trials, by, config.stream.hold_out or HOLD_OUT, confirm, confirm_seeds, tune_seed)
        request = tune_request(config, said_in_python(over), search)
        return Tuned(run_tuning(request, Path(out), local, Plain(), at_once))
