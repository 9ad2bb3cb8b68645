"""ER, the slow way: Algorithm 1 of the DropTop paper, with samples in Python lists. Methods replace parts of it."""

import copy
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from droptop import Learner, Spec
from droptop.debias import Chosen, DropTop, DropTopConfig, IntensityConfig
from droptop.methods import METHODS
from droptop.rng import generator, seeded

from .slow_droptop import SlowDropTop
from .slow_nets import SlowNet, SlowTinyNet, TinyNet

CLASSES = 4
SPEC = Spec((3, 8, 8), tuple("abcd"), torch.float64, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
Row = dict[str, Any]  # a sample: "x", "y", and what a method keeps of it


class SlowLearner:
    """ER: random replay, one cross-entropy over stream and memory, SGD, a reservoir."""

    def __init__(self, learner: Learner) -> None:
        self.config = learner.config
        self.random = {purpose: random.clone_state() for purpose, random in learner.random.items()}
        self.nets = [self.slow_net(learner.model)]
        self.droptop = None
        if learner.debias.droptop is not None:
            self.droptop = SlowDropTop(learner.debias.droptop.config, CLASSES, self.random["debias"])
            if self.droptop.intensity.reference:
                self.nets.append(copy.deepcopy(self.nets[0]))
        self.memory: list[Row] = []
        self.offered = 0  # samples that came by so far
        self.seen: set[int] = set()
        self.steps, self.task, self.steps_of_task = 0, 0, 0
        self.replayed: list[list[Row]] = []  # by iteration, of the last step
        self.hints: dict[str, Any] = {}  # images that droptop chose in this step, for methods whose choices may tie
        self.moments = [{name: torch.zeros_like(w) for name, w in net.weights.items()} for net in self.nets]
        self.averages = {name: weight.detach().clone() for name, weight in self.nets[0].weights.items()}

    def slow_net(self, model: torch.nn.Module) -> SlowNet:
        return SlowTinyNet(model)

    # -- Algorithm 1 ---------------------------------------------------------------------------------------------

    def observe(self, x: Tensor, y: Tensor, task: int) -> float:
        """Learn from a batch; return the loss of the first net in the last iteration."""
        arrived = [self.arrive(image, label, task) for image, label in zip(x, y.tolist())]
        self.replayed = []
        for _ in range(self.config.iterations):
            replayed = self.retrieve(arrived)
            self.replayed.append(replayed)
            loss, answers = self.train(arrived, replayed)
        self.average()
        self.remember([row | {"logits": answer} for row, answer in zip(arrived, answers)])
        self.seen |= {row["y"] for row in arrived}
        self.steps += 1
        self.steps_of_task = 1 if task != self.task else self.steps_of_task + 1
        self.task = task
        if self.droptop is not None and self.droptop.adapts:
            steps = self.steps if self.droptop.intensity.p_counter == "global" else self.steps_of_task
            if steps % self.droptop.intensity.period == 0:
                self.probe()
        return loss

    def train(self, arrived: list[Row], replayed: list[Row]) -> tuple[float, list[Tensor]]:
        """Take one step on stream and memory rows; return loss and answers to the stream's rows."""
        if self.droptop is not None:
            self.droptop.traces = []
        rows = arrived + replayed
        images = [self.normalise(image) for image in self.augmented([row["x"] for row in rows])]
        rows = self.prepared(rows, images)
        arrived, replayed = rows[: len(arrived)], rows[len(arrived) :]
        parts = [range(len(rows))]
        if self.config.replay_forward == "separate" and replayed:
            parts = [range(len(arrived)), range(len(arrived), len(rows))]
        # All nets answer before one of them learns.
        logits = [
            torch.cat(
                [
                    self.forward(net, torch.stack([images[i] for i in part]), [rows[i] for i in part], direction)
                    for part in parts
                ]
            )
            for direction, net in enumerate(self.nets)
        ]
        losses = [self.objective(net, output, arrived, replayed) for net, output in zip(self.nets, logits)]
        for place, (net, loss) in enumerate(zip(self.nets, losses)):
            gradients = torch.autograd.grad(loss, list(net.weights.values()), materialize_grads=True)
            self.update(place, dict(zip(net.weights, gradients)))
        return losses[0].item(), list(logits[0][: len(arrived)].detach())

    def forward(self, net: SlowNet, images: Tensor, rows: list[Row], direction: int) -> Tensor:
        """Stem, drop mask, trunk, head."""
        first = net.stem(images, "train")
        given = self.given(net, first, rows)
        if self.droptop is not None:

            def last() -> Tensor:
                with torch.no_grad():
                    return net.trunk(first, self.droptop.config.attention_norm, given)[0]

            fixed = direction if len(self.nets) == 2 else None
            mask = self.droptop.mask(first.detach(), last, [row["y"] for row in rows], fixed)
            first = first * mask[:, None]
        return net.head(net.trunk(first, "train", given)[1])

    def objective(self, net: SlowNet, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        """What one net minimises."""
        return self.loss(logits, arrived, replayed)

    def loss(self, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        """The mean cross-entropy over stream and memory rows alike."""
        return mean([cross_entropy(output, row["y"]) for output, row in zip(logits, arrived + replayed)])

    def update(self, place: int, gradients: dict[str, Tensor]) -> None:
        """SGD with momentum and weight decay, of the net in this place."""
        weights, moments = self.nets[place].weights, self.moments[place]
        for name, gradient in gradients.items():
            gradient = gradient + self.config.weight_decay * weights[name].detach()
            moments[name] = self.config.momentum * moments[name] + gradient
            weights[name] = (weights[name].detach() - self.config.lr * moments[name]).requires_grad_()

    def average(self) -> None:
        """Move the averaged weights towards the weights, at first by 9 / 10, 9 / 11 and so on."""
        share = max(9 / (10 + self.steps), 1 - self.config.average_decay)
        for name, weight in self.nets[0].weights.items():
            self.averages[name] = (1 - share) * self.averages[name] + share * weight.detach()

    def probe(self) -> None:
        """Measure the loss of every group on the memory, unmasked and unaugmented, and adjust the intensities."""
        rows = self.memory
        if self.droptop.intensity.probe:
            rows = [self.memory[slot] for slot in self.probed(self.droptop.intensity.probe)]
        losses = []
        for net in self.nets:
            of_group: dict[int, list[float]] = {}
            for row in rows:
                logits = self.classify(net, [row])[0]
                of_group.setdefault(self.droptop.group(row["y"]), []).append(cross_entropy(logits, row["y"]).item())
            losses.append({group: sum(some) / len(some) for group, some in of_group.items()})
        self.droptop.record(losses)

    # -- Its parts -----------------------------------------------------------------------------------------------

    def arrive(self, image: Tensor, label: int, task: int) -> Row:
        return {"x": image, "y": label}

    def draw(self, count: int, purpose: str = "memory", but: list[int] = []) -> list[int]:  # noqa: B006
        """Draw slots without replacement: each has a random key, and the highest are taken."""
        keys = torch.rand(self.config.memory, generator=self.random[purpose]).tolist()
        slots = [slot for slot in range(len(self.memory)) if slot not in but]
        return sorted(slots, key=lambda slot: -keys[slot])[:count]

    def probed(self, count: int) -> list[int]:
        """Draw slots by one number, with which each slot's own number is hashed; the highest are taken."""
        salt = int(torch.randint(2**32, (1,), generator=self.random["debias"]))

        def key(slot: int) -> int:
            number = slot ^ salt
            for _ in range(2):
                number = (number ^ number >> 16) * 0x45D9F3B % 2**32
            return number ^ number >> 16

        return sorted(range(len(self.memory)), key=key, reverse=True)[:count]

    def retrieve(self, arrived: list[Row]) -> list[Row]:
        return self.sample(self.config.memory_batch, arrived)

    def sample(self, count: int, arrived: list[Row]) -> list[Row]:
        """Draw memory samples; where there are too few, stream rows stand in for them, in turn."""
        rows = [self.memory[slot] | {"there": True} for slot in self.draw(count)]
        return rows + [arrived[place % len(arrived)] | {"there": False} for place in range(len(rows), count)]

    def remember(self, arrived: list[Row]) -> None:
        """Reservoir sampling: the n-th sample takes a random one of n places, if the memory has it."""
        uniform = torch.rand(len(arrived), generator=self.random["memory"], dtype=torch.float64).tolist()
        for row, u in zip(arrived, uniform):
            self.offered += 1
            if len(self.memory) < self.config.memory:
                self.memory.append(row)
            elif (place := math.floor(u * self.offered)) < self.config.memory:
                self.memory[place] = row

    def augmented(self, images: list[Tensor]) -> list[Tensor]:
        """Shift every image by up to 4 pixels over black, and mirror it half of the time."""
        if self.config.augment == "none":
            return images
        count, random = len(images), self.random["augment"]
        down, right = torch.randint(0, 9, (2, count, 1), generator=random).flatten(1).tolist()
        mirror = (torch.rand(count, 1, generator=random) < 0.5).flatten().tolist()
        changed = []
        for place, image in enumerate(images):
            _, height, width = image.shape
            padded = F.pad(image, (4, 4, 4, 4))
            window = padded[:, down[place] : down[place] + height, right[place] : right[place] + width]
            changed.append(window.flip(2) if mirror[place] else window)
        return changed

    def normalise(self, image: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            image = image / 255
        return torch.stack([(image[c] - SPEC.mean[c]) / SPEC.std[c] for c in range(3)])

    def prepared(self, rows: list[Row], images: list[Tensor]) -> list[Row]:
        """Add to the rows what a method wants to know of their augmented images."""
        return rows

    def given(self, net: SlowNet, first: Tensor, rows: list[Row]) -> Any:
        """What the trunk takes besides the first map: prompts."""
        return None

    def classify(self, net: SlowNet, rows: list[Row]) -> Tensor:
        """The logits of samples that are neither masked nor augmented, by running statistics."""
        with torch.no_grad():
            first = net.stem(torch.stack([self.normalise(row["x"]) for row in rows]), "running")
            given = self.given(net, first, rows)
            return net.head(net.trunk(first, "running", given)[1])

    def predict(self, x: Tensor) -> Tensor:
        net = self.nets[0].with_weights(self.averages) if self.config.average else self.nets[0]
        logits = self.classify(net, [{"x": image} for image in x])
        for label in set(range(CLASSES)) - self.seen:
            logits[:, label] = -math.inf
        return logits


def cross_entropy(logits: Tensor, label: int) -> Tensor:
    return logits.exp().sum().log() - logits[label]


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).sum() / len(values)


# -- Both of them, on the same stream ----------------------------------------------------------------------------------


def batches(steps: int, spec: Spec = SPEC, tasks: int = 2) -> list[tuple[Tensor, Tensor, int]]:
    """Images whose classes differ in colour, among much noise; two tasks of two classes, or one of four.

    Every third batch is smaller than the others.
    """
    random = generator(0, "stream of the oracles")
    colours = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    stream = []
    for step in range(steps):
        task, classes, size = step * tasks // steps, CLASSES // tasks, 3 if step % 3 == 2 else 5
        y = torch.randint(classes * task, classes * (task + 1), (size,), generator=random)
        x = 0.7 * torch.rand(size, *spec.shape, generator=random) + 0.3 * colours[y][:, :, None, None]
        x = x.float().double()  # droptop takes images in single precision: nothing of them is lost then
        stream.append(((255 * x).to(torch.uint8) if spec.dtype == torch.uint8 else x, y, task))
    return stream


def fast(
    method: str, debias: dict[str, Any] | None = None, spec: Spec = SPEC, seed: int = 0, **options: Any
) -> Learner:
    """Droptop's learner with a tiny net and a small memory; `debias` has the options of DropTop, if it is wanted."""
    kind = METHODS[method]
    config = kind.config_type(**{"lr": 0.1, "memory": 9, "memory_batch": 4} | options)
    chosen = [] if debias is None else [Chosen(DropTop, droptop_config(debias))]
    with seeded(seed, "net of the oracles"):
        model = TinyNet(CLASSES)
    return kind(model, spec, config, chosen, seed=seed)


def droptop_config(options: dict[str, Any]) -> DropTopConfig:
    """Intensities that move often: a decision takes two entries per direction, and half of them are one."""
    fields = IntensityConfig.__dataclass_fields__
    intensity = {"alpha": 0.6, "period": 1, "history": 2, "significance": 0.4}
    intensity |= {name: value for name, value in options.items() if name in fields}
    layer = {"gamma": 20.0, "kappa_0": 10.0} | {name: v for name, v in options.items() if name not in fields}
    return DropTopConfig(**layer, intensity=IntensityConfig(**intensity))


def agree(learner: Learner, slow: SlowLearner, stream: list[tuple[Tensor, Tensor, int]]) -> None:
    """Feed both learners; fail at the first step after which they differ."""
    drawn: list[dict[str, Tensor]] = []
    retrieve = learner.retrieve

    def noted(arrived: dict[str, Tensor]) -> dict[str, Tensor]:
        drawn.append(retrieve(arrived))
        return drawn[-1]

    learner.retrieve = noted  # type: ignore[method-assign]
    for x, y, task in stream:
        drawn.clear()
        loss = learner.observe(x, y, task).item()
        slow.hints = {"replayed": [rows["x"] for rows in drawn], "kept": learner.memory.rows["x"][:-1]}
        assert loss == pytest.approx(slow.observe(x, y, task), rel=1e-6)
        assert len(drawn) == len(slow.replayed)
        for rows, expected in zip(drawn, slow.replayed):
            same_rows(rows, expected)
        assert learner.memory.size == len(slow.memory)
        same_rows(learner.memory.read(torch.arange(len(slow.memory))), slow.memory)
        for model, net in zip(learner.replicas, slow.nets, strict=True):
            close(dict(model.state_dict()), net.weights | net.others)
        if slow.droptop is not None:
            same_intensities(learner, slow.droptop)
            for traced, expected in zip(learner.trace, slow.droptop.traces[0]):  # the first net's, of the stream first
                close(traced, expected[: len(x)])
        close(learner.predict(x), slow.predict(x))


def same_rows(rows: dict[str, Tensor], expected: list[Row]) -> None:
    """Images and labels are the same to the bit; what was computed of them is close."""
    assert len(rows["y"]) == len(expected)
    for name, column in rows.items():
        for value, row in zip(column, expected):
            if value.is_floating_point() and name != "x":
                # A stand-in has what it had of the stream, and nothing of what only the memory keeps.
                close(value, row[name] if row.get("there", True) or name == "query" else torch.zeros_like(value))
            else:
                assert torch.equal(value, torch.as_tensor(row[name])), name


def same_intensities(learner: Learner, slow: SlowDropTop) -> None:
    intensity = learner.debias.droptop.intensity
    close(intensity.kappa, slow.kappa)
    for direction in (0, 1):
        close(intensity.candidates[direction], [pair[direction] for pair in slow.candidates])
        entries = [len(history) for history in slow.histories[direction]]
        assert intensity.entries[direction].tolist() == entries
        for group, history in enumerate(slow.histories[direction]):
            if history:
                close(intensity.history[direction, group, -len(history) :], history)


def close(value: Any, expected: Any) -> None:
    """Some numbers are kept in single precision (attention, shares of the average): hence 1e-6."""
    if isinstance(value, dict):
        assert value.keys() == expected.keys()
        for name in value:
            torch.testing.assert_close(
                value[name], expected[name], rtol=1e-6, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}"
            )
        return
    torch.testing.assert_close(
        torch.as_tensor(value).double(), torch.as_tensor(expected).double(), rtol=1e-6, atol=1e-6
    )
