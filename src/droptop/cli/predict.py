"""`droptop predict`: the classes that a loaded learner predicts for image files."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rich.table import Table
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.errors import BadRequest, require
from droptop.escapes import in_json
from droptop.system.short_names import short_name
from droptop.system.terminal import Console, complain, folded, note, say

if TYPE_CHECKING:
    from droptop.runs.loading import LoadedLearner

Run = Annotated[Positional[Path], arg(metavar="RUN", help="Folder of a run, a comparison, or one of their seeds.")]


@dataclass(frozen=True, kw_only=True)
class LoadedOptions:
    """Hold the options that say which learner to load; `predict` and `export` share them."""

    run: Run
    arm: str | None = None
    """Arm of a comparison, by its name; by default the one after the plain arm."""
    seed: int | None = None
    """Seed whose learner is taken; by default the first."""
    weights: str | None = None
    """Frozen weights of a prompt learner, where the run's own file is no longer in its place; by default that file."""
    trust: bool = False
    """Execute Python files that only the folder names, and its copies of those that are gone or have changed. Read them
    first."""

    def trusted(self) -> AbstractContextManager[None]:
        """Return a context in which what the learner needs may be executed, if it is trusted."""
        from droptop.runs.loading import without_stream

        return without_stream(self.run, self.trust, "the same command with --trust")


@dataclass(frozen=True, kw_only=True)
class PredictOptions(LoadedOptions):
    """Hold the options of `droptop predict`."""

    images: Annotated[Positional[tuple[Path, ...]], arg(metavar="IMAGES", help="Image files; folders are walked.")]
    top: int = 2
    """Number of classes to name per image, the most probable first."""
    json: bool = False
    """Print a line of JSON per image, and nothing else."""
    maps: Path | None = None
    """New folder for pictures of where the learner looks, one per image; by default none are drawn."""
    device: str = "cpu"
    """Device to predict on: cpu, cuda, cuda:1 or mps."""

    def __post_init__(self) -> None:
        require(self.top >= 1, "top", "a number of classes from 1", self.top)
        if not self.images:
            raise BadRequest("predict takes images: droptop predict RUN IMAGES...")
        if self.maps is not None and (self.maps.is_file() or (self.maps.is_dir() and any(self.maps.iterdir()))):
            raise BadRequest(f"--maps takes a new or empty folder; {self.maps} holds something already")


class Answer(NamedTuple):
    """Hold the most probable classes of an image file."""

    file: Path
    classes: list[tuple[str, float]]  # names, with their probabilities among the classes seen

    def line(self) -> str:
        """Return the answer as a line of JSON."""
        name, confidence = self.classes[0]
        top = [{"class": each, "confidence": round(share, 6)} for each, share in self.classes]
        return in_json({"file": str(self.file), "class": name, "confidence": round(confidence, 6), "top": top})


def predict(args: list[str], console: Console) -> int:
    """Print the classes of image files; return the exit code: 1 if a file could not be read, 2 if none could."""
    options = arguments.read(
        PredictOptions, args, "droptop predict", "names the most probable classes of images, by the learner of a run"
    )
    with options.trusted():
        return predicted(options, console)


def predicted(options: PredictOptions, console: Console) -> int:
    """Load the learner, and print the classes of image files; return the exit code."""
    from droptop.data.image_files import find_images
    from droptop.nets import allow_tf32
    from droptop.runs.loading import find_seed, restore

    files, place = find_images(options.images), find_seed(options.run, options.arm, options.seed)
    allow_tf32(options.device, place.config.options.precision)
    loaded = restore(place, options.device, options.weights)
    for text in loaded.notes:
        note(text)
    failed, answers = 0, list[Answer]()
    for answer in predictions(loaded, files, options):
        if isinstance(answer, str):
            failed += 1
            complain(f"droptop: {answer}")
        elif options.json:
            say(answer.line())
        else:
            answers.append(answer)
    if answers:
        show(answers, loaded, console)
    if options.maps is not None and failed < len(files) and not options.json:
        note(f"where it looks is shown in {options.maps}")
    return 0 if not failed else 1 if failed < len(files) else 2


def predictions(loaded: "LoadedLearner", files: list[Path], options: PredictOptions) -> Iterator[Answer | str]:
    """Yield an answer per file, or an error message; write the pictures of `--maps` on the way."""
    from droptop.data.image_files import load_all
    from droptop.figures.overlays import Overlays
    from droptop.runs.loading import border_of
    from droptop.training.evaluation import chunk

    learner, overlays = loaded.learner, None
    if options.maps is not None:
        try:
            options.maps.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadRequest(f"--maps takes a folder that can be written; {options.maps}: {error.strerror}") from None
        overlays = Overlays(learner, options.maps)
    border, classes = border_of(loaded.place), learner.spec.classes
    count = min(options.top, int(learner.seen.sum()))
    for paths, x, errors in load_all(files, learner.spec.shape, border, chunk(learner)):
        yield from errors
        if not paths:
            continue
        best = learner.predict(x).softmax(1).topk(count)
        if overlays is not None:
            overlays.write(paths, x)
        for path, shares, labels in zip(paths, best.values.tolist(), best.indices.tolist()):
            yield Answer(path, [(classes[label], share) for label, share in zip(labels, shares)])


def show(answers: list[Answer], loaded: "LoadedLearner", console: Console) -> None:
    """Print the answers as a table."""
    learner, (config, _, seed) = loaded.learner, loaded.place
    title = (
        f"{short_name(config.options.method)}, {short_name(config.options.debias)}, on "
        f"{short_name(config.options.data)}, seed {seed}: "
        f"{int(learner.seen.sum())} classes"
    )
    table = Table("file", "class", "confidence", *(["next best"] if len(answers[0].classes) > 1 else []), title=title)
    for file, ((name, confidence), *others) in answers:
        after = [", ".join(f"{other} {percent(share)}" for other, share in others)] if others else []
        table.add_row(folded(str(file)), name, percent(confidence), *after)
    console.print(table)


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"
