"""A class-correlated cue on images of any source, painted as they are read: the stored images stay as they are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from droptop import array_checks
from droptop.errors import BadBatch, BadRequest, meant, require
from droptop.groups import Groups
from droptop.options import BIASED, NO_CUE, RANDOM, REMOVED
from droptop.rng import derive
from droptop.streams.cues import CUES, DRAWS
from droptop.streams.cues.appearance import Tables
from droptop.streams.cues.draws import content_numbers, cues_of, draws
from droptop.types import Samples, Source, Spec, Subset, groups_of, read

USUAL_CORRELATION = 0.95


class Shortcut(NamedTuple):
    """Say which cue to paint, and how: see the options of `StreamConfig`. None is what the cue usually has."""

    name: str
    correlation: float = USUAL_CORRELATION
    strength: float | None = None
    size: int | None = None

    def check(self) -> None:
        """Raise BadRequest if a value is out of its range, or set and without effect."""
        takes = f"{NO_CUE} or one of {', '.join(CUES)}"
        require(self.name in (NO_CUE, *CUES), "shortcut", takes, f"{self.name}{meant(str(self.name), CUES)}")
        require(0 <= self.correlation <= 1, "shortcut_correlation", "a number from 0 to 1", self.correlation)
        strength, size = self.strength, self.size
        require(strength is None or 0 < strength <= 1, "shortcut_strength", "a number above 0 and up to 1", strength)
        require(size is None or size >= 1, "shortcut_size", "a number of pixels from 1", size)
        for option, value, usual in (
            ("shortcut_correlation", self.correlation, USUAL_CORRELATION),
            ("shortcut_strength", strength, None),
            ("shortcut_size", size, None),
        ):
            require(value == usual or self.name != NO_CUE, option, "a --shortcut beside it", value)
        sized = ", ".join(name for name, cue in CUES.items() if cue.usual_size is not None)
        has_size = self.name == NO_CUE or CUES[self.name].usual_size is not None
        require(size is None or has_size, "shortcut_size", f"one of the shortcuts {sized} beside it", size)


@dataclass(frozen=True)
class Painter:
    """Paint the cue of its class, or with some probability another one, on images of a spec."""

    shortcut: Shortcut
    classes: int
    size: int
    tables: Tables
    seed: int  # a hash of the stream's seed and of which set is painted
    correlation: float

    def __call__(self, samples: Samples, numbers_N: Tensor, foreground: Tensor | None = None) -> Samples:
        """Return the samples with their cues; a number per image decides which cue it has, and where."""
        cue = CUES[self.shortcut.name]
        drawn = draws(self.seed, numbers_N.to(samples.x.device), 2 + DRAWS)
        cues = cues_of(samples.y, self.correlation, self.classes, drawn[:, :2])
        extra = () if foreground is None else (foreground,)
        strength = cue.strength if self.shortcut.strength is None else self.shortcut.strength
        x, pixels = cue.paint(samples.x, cues, drawn[:, 2:], self.tables, self.size, strength, *extra)
        known = {"x": x, "follows": cues == samples.y} | ({} if pixels is None else {"shortcut": pixels})
        return samples.with_columns(known)


@dataclass(frozen=True)
class Painted:
    """Give the samples of a source with their cues; the same image has the same cue in any order and batch.

    A source of masks (N, 1, H, W), whose values above half of their range are the foreground, goes with backgrounds.
    """

    source: Source
    painter: Painter
    masks: Source | None = None

    @property
    def y(self) -> Tensor:
        return self.source.y

    @property
    def groups(self) -> dict[str, Groups]:
        """Return the groups of all rows by column."""
        return groups_of(self.source)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Tensor | slice) -> Samples:
        """Return the samples of these rows, painted: by a slice, by numbers, or by True and False for each.

        Numbers below 0 count from the end; raise BadBatch for one that is out of range.
        """
        array_checks.check_rows(rows, len(self))
        if isinstance(rows, slice):
            rows = torch.arange(len(self), device=self.y.device)[rows]
        elif rows.dtype == torch.bool:
            rows = rows.nonzero()[:, 0]
        else:
            rows = torch.where(rows < 0, rows + len(self), rows)
        foreground = None if self.masks is None else read(self.masks, rows).x[:, 0] > 127
        return self.painter(read(self.source, rows), rows, foreground)


@dataclass(frozen=True)
class OnDark:
    """Give the masks of images that show their object on black: what is brighter than `darkest`, from 0 to 255."""

    source: Source
    darkest: int

    @property
    def y(self) -> Tensor:
        return self.source.y

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Tensor) -> Samples:
        """Return the masks of these rows (N, 1, H, W), 0 or 255."""
        samples = read(self.source, rows)
        return samples.with_columns({"x": 255 * (samples.x[:, :1] > self.darkest).to(torch.uint8)})


class Masks(NamedTuple):
    """Hold the masks of the training images and of the first test set."""

    train: Source
    test: Source


MasksReader = Callable[[], Masks | None]  # None where there are no masks


def on_dark(train: Source, test: Source, darkest: int) -> MasksReader:
    """Return how to get the masks of images on black."""
    return lambda: Masks(OnDark(train, darkest), OnDark(test, darkest))


def painter_of(shortcut: Shortcut, spec: Spec, seed: int) -> Callable[[str, float], Painter]:
    """Return what makes a painter by a set's name and its correlation; refuse images that the cue does not go on."""
    shortcut.check()
    cue, (channels, height, width) = CUES[shortcut.name], spec.shape
    if cue.coloured and channels != 3:
        grey = ", ".join(name for name, each in CUES.items() if not each.coloured)
        raise BadRequest(
            f"--shortcut {shortcut.name} paints in colours, which images of {channels} channel{'s' * (channels > 1)} "
            f"do not have: choose {grey}, or give the images three channels"
        )
    usual = cue.usual_size(height, width) if cue.usual_size is not None else 0
    size, classes = shortcut.size or usual, len(spec.classes)
    tables = cue.prepare(classes, height, width, size)

    def painter(part: str, correlation: float) -> Painter:
        return Painter(shortcut, classes, size, tables, derive(seed, "shortcut", part), correlation)

    return painter


def with_shortcut(
    shortcut: Shortcut,
    spec: Spec,
    seed: int,
    train: Source,
    tests: Mapping[str, Source],
    masks: MasksReader | None = None,
    held: Tensor | None = None,
) -> tuple[Source, dict[str, Source]]:
    """Return training images and test sets with a cue; `held` are the rows of `train` that are tested on, if any.

    The first test set becomes three: `biased` as in training, `removed` as it was, `random` with the cue of any class.
    Further ones stay as they are. Refuse images that have a shortcut already, and backgrounds without masks.
    """
    painter = painter_of(shortcut, spec, seed)
    if isinstance(train, Samples) and train.follows is not None:
        raise BadRequest(f"--shortcut {shortcut.name} takes images without a shortcut of their own, which these have")
    of_train = of_test = None
    if CUES[shortcut.name].masked:
        known = None if masks is None else masks()
        if known is None:
            raise BadRequest("--shortcut background takes images whose foreground is known, by masks; these have none")
        of_train, of_test = known if held is None else (known.train, Subset(known.train, held))
    painted = Painted(train, painter("train", shortcut.correlation), of_train)
    return painted, painted_tests(shortcut, painter, tests, of_test)


def painted_tests(
    shortcut: Shortcut, painter: Callable[[str, float], Painter], tests: Mapping[str, Source], masks: Source | None
) -> dict[str, Source]:
    """Return test sets with a cue, as `with_shortcut` describes them."""
    if not tests:
        return {}
    (_, first), *others = tests.items()
    if taken := {BIASED, REMOVED, RANDOM} & {other for other, _ in others}:
        raise BadRequest(f"--shortcut {shortcut.name} makes a test set {min(taken)}, and there is one already")
    painters = {BIASED: painter(BIASED, shortcut.correlation)}
    classes = painters[BIASED].classes
    made: dict[str, Source] = {BIASED: Painted(first, painters[BIASED], masks), REMOVED: first}
    return made | {RANDOM: Painted(first, painter(RANDOM, 1 / classes), masks)} | dict(others)


def paint_batches(
    batches: Iterable[Any], tests: Mapping[str, Source], spec: Spec, shortcut: str, seed: int = 0, **options: Any
) -> tuple[Iterator[Any], dict[str, Source]]:
    """Paint a class-correlated cue on any iterable of batches, and on test sets to measure it by.

    Args:
        batches: Tuples or lists of images, labels and whatever else; as `droptop.learn` takes them.
        tests: Test sets by name. The first becomes `biased`, `removed` and `random`.
        spec: What the images are like.
        shortcut: The cue: sticker, watermark, frame, colour or frequency.
        seed: Decides, with an image's pixels, which cue it has and where.
        **options: `correlation`, `strength` and `size`, as the options `--shortcut-...` of the command line.

    Returns:
        The batches, painted as they come, and the test sets.

    Raises:
        BadRequest: The cue is not known, or does not go on these images.
    """
    wanted = Shortcut(shortcut, **options)
    require(shortcut != NO_CUE, "shortcut", f"one of {', '.join(CUES)}", shortcut)
    painter = painter_of(wanted, spec, seed)
    if CUES[shortcut].masked:
        raise BadRequest("--shortcut background takes a stream with masks, not an iterable of batches")
    train = painter("train", wanted.correlation)

    def painted() -> Iterator[Any]:
        for index, batch in enumerate(batches):
            try:
                samples = Samples(batch[0], batch[1])
            except BadBatch as error:
                raise BadBatch(f"batch {index}: {error}") from None
            tables = {name: table.to(samples.x.device) for name, table in train.tables.items()}
            x = replace(train, tables=tables)(samples, content_numbers(samples.x)).x
            yield (x, *batch[1:])

    return painted(), painted_tests(wanted, painter, tests, None)
