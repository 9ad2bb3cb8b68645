"""Load a trained learner from its run folder, without the data it was trained on.

    learner = droptop.load_learner("runs/first")                 # a comparison: the arm after the plain one, first seed
    learner = droptop.load_learner("runs/first", arm="none", seed=3)
    learner.predict(images)                                      # uint8 N, c, h, w -> logits

A run folder can be copied to another machine. `seed-K/spec.json` has what a learner must know of its images; the
checkpoint and config.toml have the rest. The frozen weights of a prompt learner are outside of the folder; of the
user's own files it has copies, which are executed only on trust (`trust.py`); that of a stream is not needed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from droptop.errors import BadCheckpoint, BadRequest, require, typed
from droptop.learner import Learner
from droptop.nets import Precision, ViTConfig, is_library_net
from droptop.nets.weights import RANDOM
from droptop.runs import checkpoint
from droptop.runs.build import build_learner
from droptop.runs.config import Config
from droptop.runs.folder import seed_folder, whole_result
from droptop.runs.noted import environments
from droptop.runs.own_objects import Model, handed_over
from droptop.runs.requests import load
from droptop.runs.spec_file import read_spec
from droptop.runs.trust import trusted
from droptop.streams import find
from droptop.system import user_files
from droptop.types import Spec


class SeedPlace(NamedTuple):
    """Name one seed of a run, with the run's configuration."""

    config: Config
    run: Path
    seed: int

    @property
    def folder(self) -> Path:
        """Return the folder of the seed."""
        return seed_folder(self.run, self.seed)


class LoadedLearner(NamedTuple):
    """Hold a learner, the seed it is of, and what a person should know about it."""

    learner: Learner
    place: SeedPlace
    notes: list[str]


def load_learner(
    run: str | Path,
    arm: str | None = None,
    seed: int | None = None,
    *,
    device: str = "cpu",
    weights: str | None = None,
    model: Model | None = None,
    trust: bool = False,
) -> Learner:
    """Return the learner of a run, as its newest whole checkpoint has it.

    Args:
        run: Folder of a run, a comparison, or one seed.
        arm: Arm of a comparison, by its name; the one after the plain arm by default.
        seed: Seed; the first one by default.
        device: Device to load it on. On another kind than the run's its generators begin anew. On a GPU, torch's
            switches for TF32 stay as they are.
        weights: A prompt learner's frozen weights, where they have moved since its run.
        model: The model that the run began with, where that was an object.
        trust: Whether to execute Python files that only the folder names, and its copies of those that are gone or
            have changed; read them first.

    Returns:
        The learner, ready to predict or to go on learning.

    Raises:
        BadRequest: If the folder has no such learner.
        BadCheckpoint: If none of its checkpoints is whole.
    """
    with without_stream(Path(run), trust, "trust=True"):
        place = find_seed(Path(run), arm, seed)
        with handed_over({"model": place.config.options.model}, model=model):
            return restore(place, device, weights).learner


@contextmanager
def without_stream(run: Path, trust: bool, again: str) -> Iterator[None]:
    """Let what a run needs to predict be executed inside this context, as `trusted` does: no stream, no tracker."""
    with user_files.hidden("data"), trusted(run, trust, again, without=("data", "log")):
        yield


def border_of(place: SeedPlace) -> int:
    """Return how many black pixels are around the images of a run."""
    data = place.config.options.data
    if not user_files.is_own(data):
        return find(data).border
    noted = environments(place.run)
    return int(noted[0].get("border", 0)) if noted else 0


def find_seed(run: Path, arm: str | None = None, seed: int | None = None) -> SeedPlace:
    """Return the place of a seed, by the folder of a run, a comparison or the seed itself; refuse any other."""
    is_seed = re.fullmatch(r"seed-(\d+)", run.absolute().name)
    if is_seed and (run.absolute().parent / "config.toml").is_file():
        number = int(is_seed[1])
        require(seed in (None, number), "seed", f"{number} with {run}", seed)
        run, seed = run.absolute().parent, number
    if not run.is_dir():
        raise BadRequest(f"{run} is not {'a' if run.exists() else 'an existing'} folder")
    if (run / "study.toml").is_file():
        raise BadRequest(f"{run} is a study: name one of its runs, which are in {run / 'runs'}")
    plan = load(run)
    names = list(plan.arms)
    if plan.command == "compare":
        require(arm in (None, *names), "arm", f"one of {', '.join(names)}", arm)
        chosen = names[1] if arm is None else arm
        run, config = run / chosen, plan.arms[chosen]
    else:
        require(arm in (None, *names), "arm", f"{names[0]} with {run}, which has no other", arm)
        config = plan.arms[names[0]]
    seeds = config.seeds
    require(seed is None or seed in seeds, "seed", f"one of {', '.join(map(str, seeds))} with {run}", seed)
    return SeedPlace(config, run, seeds[0] if seed is None else seed)


def restore(
    place: SeedPlace, device: str = "cpu", weights: str | None = None, precision: Precision | None = None
) -> LoadedLearner:
    """Return the learner of a seed on a device, from its newest whole checkpoint; by default in its run's precision.

    Raise BadRequest if the checkpoint does not fit the configuration, BadCheckpoint if no checkpoint is whole.
    """
    config, notes = place.config, list[str]()
    header, tensors, about = newest_checkpoint(place, notes)
    if user_files.is_there(config.options.data, "data") and about["config"] != config.fingerprint():
        notes.append(f"{place.run / 'config.toml'} has changed since {header} was written")
    for option, names in config.options.user_files().items():
        if option in ("data", "model"):  # known by what they give, not by their files
            continue
        sha256 = user_files.sha256(*names)
        if any(noted.get(option, sha256) != sha256 for noted in environments(place.run)[:1]):
            notes.append(f"{' or '.join(names)} has changed since {place.run} began")
    if whole_result(place.run, place.seed) is None:
        notes.append(
            f"{place.folder} is not finished: this is the learner after {int(tensors['clock.step'])} steps, "
            f"which has seen {int(tensors['seen'].sum())} of {len(tensors['seen'])} classes"
        )
    learner = build_learner(without_data(config, device, weights, precision), find_spec(place), place.seed)
    now = learner.state_dict()
    if any(tensors[name].shape != now[name].shape for name in now if name.startswith("random.") and name in tensors):
        tensors |= {name: value for name, value in now.items() if name.startswith("random.")}  # of another device
    try:
        learner.load_state_dict(tensors)
    except BadCheckpoint as error:
        option = "--weights is another file than the run's, or " if "frozen" in tensors else ""
        raise BadRequest(f"{header} does not go with {place.run / 'config.toml'}: {option}{error}") from None
    return LoadedLearner(learner, place, notes)


def newest_checkpoint(place: SeedPlace, notes: list[str]) -> tuple[Path, dict[str, Tensor], dict[str, Any]]:
    """Return a seed's newest whole checkpoint: path of its header, tensors, and what is noted about them.

    Add a note for every damaged one; raise BadCheckpoint if none is whole, BadRequest if none was written yet.
    """
    folder, done = place.folder / "checkpoints", whole_result(place.run, place.seed) is not None
    headers = checkpoint.newest_first(folder)
    if not headers and not done:
        raise BadRequest(f"{place.folder} has no checkpoint yet")
    for header in headers:
        try:
            tensors, about = checkpoint.read(header)
            if about["seed"] != place.seed:
                raise BadCheckpoint(f"{header} is of seed {about['seed']}")
            return header, tensors, about
        except BadCheckpoint as error:
            notes.append(f"{error}; going back to what was before it")
    first = (
        f"delete {place.folder / 'result.json'}, and " if done else ""
    )  # otherwise resume takes the seed for finished
    raise BadCheckpoint(f"no checkpoint in {folder} is whole: {first}{typed('resume', place.run)} makes them anew")


def without_data(config: Config, device: str, weights: str | None, precision: Precision | None) -> Config:
    """Return the configuration that builds the learner on this machine: no data, uncompiled, on the device given.

    Weights come from the checkpoint, except the frozen ones of a prompt learner; raise BadRequest for others.
    """
    frozen = isinstance(config.net, ViTConfig)
    kept = config.options.weights
    if not frozen:  # a net of a library takes images as if it began with weights, where it did
        began = kept is not None or config.options.pretrained
        kept = RANDOM if began and is_library_net(config.net.net) else None
    require(
        weights is None or frozen,
        "weights",
        f"nothing with --method {config.options.method}, whose weights are all in the checkpoint",
        weights,
    )
    options = replace(
        config.options,
        root=None,
        compile=False,
        device=device,
        weights=weights or kept,
        pretrained=config.options.pretrained and frozen and weights is None,
        precision=precision or config.options.precision,
    )
    return replace(config, options=options)


def find_spec(place: SeedPlace) -> Spec:
    """Return the spec of a run's images, from spec.json or, in a folder that is older than that file, from the data."""
    if (noted := read_spec(place.folder)) is not None:
        return noted
    options = place.config.options
    return find(options.data).build(place.config.stream, place.seed, options.limit, options.root).spec
