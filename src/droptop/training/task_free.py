"""Learning from any iterable of `(x, y)` batches, without tasks, measured every so many samples.
Batches `(x, y, task)` have tasks; those of a `Stream` are such batches.

    import torch, droptop

    spec = droptop.Spec((3, 32, 32), classes=("cat", "dog", "owl"))
    learner = droptop.make_learner("er", spec, memory=200, width=8)
    test = droptop.Samples(torch.randint(0, 256, (90, 3, 32, 32), dtype=torch.uint8), torch.arange(90) % 3)
    batches = ((test.x[n:n + 10], test.y[n:n + 10]) for n in range(0, 90, 10))  # or a DataLoader, or a socket
    history = droptop.learn(learner, batches, {"test": test}, every=30)
    print(history.samples, history.accuracy("test"), history.anytime("test"))
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from torch import Tensor

from droptop.errors import BadBatch, BadRequest, Diverged, meant, require
from droptop.learner import Learner
from droptop.results.metrics import Evaluation, accuracy, anytime_accuracy
from droptop.training.evaluation import evaluate
from droptop.types import Source, check_source


@dataclass(repr=False)
class History:
    """Hold the evaluations of a learner along the way."""

    samples: list[int] = field(default_factory=list)  # samples that had arrived by each evaluation
    evaluations: dict[str, list[Evaluation]] = field(default_factory=dict)  # by test set, one per time

    def __repr__(self) -> str:
        """Return how many evaluations there are, and the accuracies of the last, in one line."""
        last = [f"{test} {self.accuracy(test)[-1]:.1f}%" for test in self.evaluations]
        after = f", the last after {self.samples[-1]:,} samples: {', '.join(last)}" if self.samples else ""
        return f"History({len(self.samples)} evaluations{after})"

    def accuracy(self, test: str) -> list[float]:
        """Return the accuracy at each evaluation, in percent over the classes seen by then.

        Args:
            test: Name of a test set.

        Returns:
            A number per evaluation; NaN where the test set has no sample of the classes seen.

        Raises:
            BadRequest: If there is no such test set.
        """
        if test not in self.evaluations:
            raise BadRequest(
                f"there is no test set {test}; there are {', '.join(self.evaluations) or 'none'}"
                f"{meant(str(test), self.evaluations)}"
            )
        return [accuracy(groups) for groups in self.evaluations[test]]

    def anytime(self, test: str) -> float:
        """Return A_auc: the area under accuracy against samples, as a mean in percent.

        Args:
            test: Name of a test set.

        Returns:
            A number; NaN where the accuracy is NaN.

        Raises:
            BadRequest: If there is no such test set.
        """
        return anytime_accuracy(list(zip(self.samples, self.accuracy(test))))

    def measure(self, learner: Learner, samples: int, tests: Mapping[str, Source]) -> None:
        """Evaluate a learner on every test set and add the results.

        Args:
            learner: The learner.
            samples: Samples that have arrived so far.
            tests: Test sets by name.
        """
        self.samples.append(samples)
        for name, test in tests.items():
            self.evaluations.setdefault(name, []).append(evaluate(learner, test))


def learn(learner: Learner, batches: Iterable[Any], tests: Mapping[str, Source], every: int = 1000) -> History:
    """Train on every batch once; evaluate whenever another `every` samples have arrived, and at the end.

    Args:
        learner: The learner, which is trained in place.
        batches: Tuples or lists of images, labels and, where there are tasks, the number of the task. A third part
            that is no integer and further parts are ignored.
        tests: Test sets by name.
        every: Samples between evaluations.

    Returns:
        The evaluations along the way.

    Raises:
        BadBatch: If the learner refuses a batch, or there is none; the message has the number of the batch. The
            learner is then as the batches before left it.
        Diverged: If a loss is not finite, likewise.
        BadRequest: If a test set or `every` does not fit.
    """
    require(every >= 1, "every", "a number of samples from 1", every)
    if not isinstance(tests, Mapping):
        raise BadRequest(f'test sets come by name, such as {{"test": samples}}, not as a {type(tests).__name__}')
    for name, test in tests.items():
        check_source(learner.spec, test, f"test set {name}")
        if len(test) == 0:
            raise BadRequest(f"test set {name} must hold samples")
    history, samples = History(), 0
    for index, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) < 2:
            raise BadBatch(f"batch {index} must be a tuple of images and labels, not a {type(batch).__name__}")
        try:
            learner.observe(batch[0], batch[1], task_of(batch))
        except (BadBatch, Diverged) as error:
            raise type(error)(f"batch {index}: {error}") from None
        before, samples = samples, samples + len(batch[1])
        if samples // every > before // every:
            history.measure(learner, samples, tests)
    if samples == 0:
        raise BadBatch("there are no batches to learn from")
    if history.samples[-1:] != [samples]:
        history.measure(learner, samples, tests)
    return history


def task_of(batch: Sequence[Any]) -> int:
    """Return the task of a batch: its third part, if that is one integer; else 0, the one task of all batches."""
    task = batch[2] if len(batch) > 2 else 0
    if isinstance(task, Tensor) and task.dim() == 0:
        task = task.item()
    return int(task) if isinstance(task, Integral) and not isinstance(task, bool) else 0
