"""A trained learner, back from the folder that its run left: without the data it was trained on.

    learner = droptop.load_learner("runs/first")                 # a comparison: its debiased arm, its first seed
    learner = droptop.load_learner("runs/first", arm="none", seed=3)
    learner.predict(images)                                      # uint8 N, c, h, w -> logits

A run folder can be copied to another machine. What a learner must know of its images is in `seed-K/spec.json`, the rest
in checkpoint and config.toml. Prompt learners need a file besides, the frozen weights that they began with, and a
method of one's own needs the file that it is in.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from droptop.errors import BadCheckpoint, BadRequest, require, typed
from droptop.learner import Learner
from droptop.methods import from_file
from droptop.nets import Precision, ViTConfig
from droptop.runs import checkpoint
from droptop.runs.build import build_learner
from droptop.runs.config import Config
from droptop.runs.folder import environments, seed_folder, whole_result
from droptop.runs.requests import arms, load
from droptop.runs.spec_file import read_spec
from droptop.streams import find
from droptop.types import Spec


class SeedPlace(NamedTuple):
    """One seed of one run, and what it was asked to do."""

    config: Config
    run: Path
    seed: int

    @property
    def folder(self) -> Path:
        return seed_folder(self.run, self.seed)


class LoadedLearner(NamedTuple):
    learner: Learner
    place: SeedPlace
    notes: list[str]  # what a person should know of it


def load_learner(
    run: str | Path, arm: str | None = None, seed: int | None = None, *, device: str = "cpu", weights: str | None = None
) -> Learner:
    """The learner of a run, a comparison (its debiased arm unless told) or a seed's own folder, as its newest whole
    checkpoint has it; of the first seed unless told. `weights` names a prompt learner's frozen weights where they are
    not where its run found them. On a device of another kind its generators begin anew."""
    return restore(find_seed(Path(run), arm, seed), device, weights).learner


def find_seed(run: Path, arm: str | None = None, seed: int | None = None) -> SeedPlace:
    """Where the seed lies that is asked for."""
    own = re.fullmatch(r"seed-(\d+)", run.absolute().name)
    if own and (run.absolute().parent / "config.toml").is_file():
        number = int(own[1])
        require(seed in (None, number), "seed", f"{number} with {run}", seed)
        run, seed = run.absolute().parent, number
    if not run.is_dir():
        raise BadRequest(f"{run} is not {'a' if run.exists() else 'an existing'} folder")
    if (run / "study.toml").is_file():
        raise BadRequest(f"{run} is a study: name one of its runs, which are in {run / 'runs'}")
    command, config = load(run)
    if command == "compare":
        known = {each.options.debias: (folder, each) for folder, each in arms(command, config, run).items()}
        chosen = config.options.debias if arm is None else arm
        require(chosen in known, "arm", f"one of {', '.join(known)}", arm)
        run, config = known[chosen]
    else:
        require(
            arm in (None, config.options.debias), "arm", f"{config.options.debias} with {run}, which has no other", arm
        )
    seeds = config.seeds
    require(seed is None or seed in seeds, "seed", f"one of {', '.join(map(str, seeds))} with {run}", seed)
    return SeedPlace(config, run, seeds[0] if seed is None else seed)


def restore(
    place: SeedPlace, device: str = "cpu", weights: str | None = None, precision: Precision | None = None
) -> LoadedLearner:
    """The learner on a device, by its newest whole checkpoint, computing as its run did unless told."""
    config, notes = place.config, list[str]()
    header, tensors, about = newest_whole(place, notes)
    if about["config"] != config.fingerprint():
        notes.append(f"{place.run / 'config.toml'} has changed since {header} was written")
    method = from_file.sha256(config.options.method)
    if any(noted.get("method", method) != method for noted in environments(place.run)[:1]):
        notes.append(f"{config.options.method} has changed since {place.run} began")
    if whole_result(place.run, place.seed) is None:
        notes.append(
            f"{place.folder} is not finished: this is the learner after {int(tensors['clock.step'])} steps, "
            f"which has seen {int(tensors['seen'].sum())} of {len(tensors['seen'])} classes"
        )
    learner = build_learner(bare(config, device, weights, precision), spec_of(place), place.seed)
    now = learner.state_dict()
    if any(tensors[name].shape != now[name].shape for name in now if name.startswith("random.") and name in tensors):
        tensors |= {name: value for name, value in now.items() if name.startswith("random.")}  # of another device
    try:
        learner.load_state_dict(tensors)
    except BadCheckpoint as error:
        option = "--weights is another file than the run's, or " if "frozen" in tensors else ""
        raise BadRequest(f"{header} does not go with {place.run / 'config.toml'}: {option}{error}") from None
    return LoadedLearner(learner, place, notes)


def newest_whole(place: SeedPlace, notes: list[str]) -> tuple[Path, dict[str, Tensor], dict[str, Any]]:
    """A seed's newest checkpoint that is whole: its header, its tensors, and what was said about them."""
    folder, done = place.folder / "checkpoints", whole_result(place.run, place.seed) is not None
    headers = checkpoint.newest_first(folder)
    if not headers and not done:
        raise BadRequest(f"{place.folder} has no checkpoint yet")
    for header in headers:
        try:
            return header, *checkpoint.read(header)
        except BadCheckpoint as error:
            notes.append(f"{error}; going back to what was before it")
    first = f"delete {place.folder / 'result.json'}, and " if done else ""  # or resume takes it for finished
    raise BadCheckpoint(f"no checkpoint in {folder} is whole: {first}{typed('resume', place.run)} makes them anew")


def bare(config: Config, device: str, weights: str | None, precision: Precision | None) -> Config:
    """What of a configuration it takes to build a learner whose weights come from a checkpoint, on this machine."""
    frozen = isinstance(config.net, ViTConfig)
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
        weights=(weights or config.options.weights) if frozen else None,
        precision=precision or config.options.precision,
    )
    return replace(config, options=options)


def spec_of(place: SeedPlace) -> Spec:
    """What the run's images are like: as it noted or, where it is older than such notes, as its data say."""
    if (noted := read_spec(place.folder)) is not None:
        return noted
    options = place.config.options
    return find(options.data).build(place.config.stream, place.seed, options.limit, options.root).spec
