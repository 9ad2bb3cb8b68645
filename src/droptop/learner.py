"""A replay learner: the paper's Algorithm 1. The methods in `methods/` say only what differs from it.

A learner is tensors: weights, optimiser, memory, intensities, histories and generators all stand behind
`state_dict()`. `step` and `probe` never ask the device for a value (no `.item()`, no `if tensor:`), so they can be
captured and replayed; choices that depend on data are made by `torch.where`.
"""

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop import learner_state
from droptop.debias import DropTop, DropTopConfig, Trace, check_last_map
from droptop.errors import BadBatch, BadRequest, Diverged, require, wrong
from droptop.memory import Buffer, Rows, reservoir_slots
from droptop.nets import Adapted, Backbone, NetConfig, ViTConfig, evaluating, flat_buffers, last_map
from droptop.optim import SGD, Fused
from droptop.rng import PURPOSES, generator
from droptop.streams.augment import Augment, augment
from droptop.types import Spec, split_rows

PROBE_CHUNK = 125  # memory rows a forward pass, so few that the probe fits where a training step of 64 did


@dataclass(frozen=True)
class LearnerConfig:
    lr: float = 0.1
    """Learning rate of SGD."""
    momentum: float = 0.0
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Weight decay of SGD."""
    memory: int = 500
    """Samples the replay memory holds."""
    memory_batch: int = 32
    """Memory samples replayed a step."""
    iterations: int = 1
    """Training iterations a stream batch, each with a memory batch of its own."""
    augment: Augment = "crop-flip"
    """Augmentation of every image trained on."""
    crop_area: float = 0.25
    """Least share of an image that crop-resize may show."""
    replay_forward: Literal["joint", "separate"] = "joint"
    """One forward pass over stream and memory samples, or one each (BatchNorm then sees each half alone)."""

    def __post_init__(self) -> None:
        require(0 < self.lr < float("inf"), "lr", "a learning rate above 0", self.lr)
        require(0 <= self.momentum < 1, "momentum", "a number from 0 and below 1", self.momentum)
        require(0 <= self.weight_decay < float("inf"), "weight_decay", "a number from 0", self.weight_decay)
        require(self.memory >= 1, "memory", "a number of samples from 1", self.memory)
        require(self.memory_batch >= 1, "memory_batch", "a number of samples from 1", self.memory_batch)
        require(self.iterations >= 1, "iterations", "a number from 1", self.iterations)
        require(0 < self.crop_area <= 1, "crop_area", "a share above 0 and up to 1", self.crop_area)


class Joined(NamedTuple):
    """What is trained on: the stream's rows, then the memory's."""

    x: Tensor
    y: Tensor
    stream: int  # how many are the stream's
    replayed: Rows  # the memory's rows, with whatever else the method keeps of a sample
    rows: Rows  # every column that stream and memory have in common, joined as x and y are


class Learner:
    """ER, the learner that the others are made from: `observe` learns from a batch, `predict` tells classes."""

    config_type: ClassVar[type[LearnerConfig]] = LearnerConfig
    net_type: ClassVar[type[NetConfig | ViTConfig]] = NetConfig
    preset: ClassVar[dict[str, Any]] = {}  # options that suit this method
    paper: ClassVar[dict[str, Any]] = {}  # those that the paper's appendix E has for its DropTop, where ours are others
    compiles: ClassVar[bool] = True  # may its net be compiled?
    tasks: ClassVar[int | None] = None  # how many tasks it must be given, if that is what it is about

    def __init__(
        self,
        model: Backbone,
        spec: Spec,
        config: LearnerConfig,
        debias: DropTopConfig | None = None,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.spec, self.config, self.device = spec, config, torch.device(device)
        self.random = {purpose: generator(seed, purpose, device=device) for purpose in PURPOSES}
        self.debias = None if debias is None else DropTop(debias, len(spec.classes), self.random["debias"]).to(device)
        self.model = model.to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.replicas = [self.model]
        if debias is not None and debias.intensity.reference:
            self.replicas.append(copy.deepcopy(model))  # trains on the increment while `model` does on the decrement
        self.models = nn.ModuleDict(dict(zip(("model", "twin"), self.replicas)))
        self.statistics = flat_buffers(self.models)
        self.weights = {name: weight for name, weight in self.models.named_parameters() if weight.requires_grad}
        self.frozen = learner_state.digest(weight for weight in self.models.parameters() if not weight.requires_grad)
        self.optimizer = self.make_optimizer(list(self.weights.values()))
        if not isinstance(self.optimizer, Fused):
            raise BadRequest(
                "make_optimizer gives an optimiser of droptop.optim's kind, which can skip a step and has "
                f"its state before the first one, not {type(self.optimizer).__name__}"
            )
        self.mean, self.std = (torch.tensor(value, device=device).view(-1, 1, 1) for value in (spec.mean, spec.std))
        self.memory = Buffer(config.memory, self.columns(), device)
        self.seen = torch.zeros(len(spec.classes), dtype=torch.bool, device=device)
        self.trace: Trace | None = None  # what was dropped from the stream's rows of the last batch, for reports
        self.finite = torch.ones((), dtype=torch.bool, device=device)  # until a loss is not
        self.clock = {"step": 0, "task": 0, "task_step": 0}  # the host's only state: it chooses when to probe
        self.check_maps()

    @classmethod
    def presets(cls, stream: dict[str, Any]) -> dict[str, Any]:
        """Options before anybody's own wishes: what suits the data wins over what suits the method."""
        return cls.preset | stream

    # -- Algorithm 1 ---------------------------------------------------------------------------------------------

    def observe(self, x: Tensor, y: Tensor, task: int = 0) -> Tensor:
        """One batch of the stream, seen once; gives its loss. A batch that is refused changes nothing."""
        self.check(x, y)
        self.enter(task)
        loss = self.step(x.to(self.device), y.to(self.device))
        if not self.finite:
            self.finite.fill_(True)
            raise Diverged(
                f"the {wrong(loss.item())} at step {self.clock['step'] + 1}; the learner is as before it, "
                "but for its draws"
            )
        if self.tick(task):
            self.probe()
        return loss

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Lines 6 to 16: replay, debias, learn, remember."""
        stream = self.arrive(x, y)
        guarded = self.guarded()
        before = [tensor.clone() for tensor in guarded]
        for _ in range(self.config.iterations):
            replayed = self.retrieve(stream)
            rows = {name: torch.cat([column, replayed[name]]) for name, column in stream.items()}
            batch = Joined(rows["x"], rows["y"], len(x), replayed, rows)
            images = self.prepare(batch.x)
            logits = [self.forward(model, images, batch, direction) for direction, model in enumerate(self.replicas)]
            losses = [self.objective(model, output, batch) for model, output in zip(self.replicas, logits)]
            self.update(torch.stack(losses).sum())
        with torch.no_grad():
            for tensor, old in zip(guarded, before):
                tensor.copy_(torch.where(self.finite, tensor, old))
        self.remember(stream | {"logits": logits[0][: len(x)].detach()})
        self.seen |= torch.zeros_like(self.seen).index_fill(0, y, True) & self.finite
        return losses[0].detach()

    def tick(self, task: int) -> bool:
        """Line 17: counts the step; is it time to adjust the intensities, as every p steps?"""
        new_task = task != self.clock["task"]
        self.clock = {
            "step": self.clock["step"] + 1,
            "task": task,
            "task_step": 1 if new_task else self.clock["task_step"] + 1,
        }
        if self.debias is None or not self.debias.adapts:
            return False
        config = self.debias.config.intensity
        return self.clock["step" if config.p_counter == "global" else "task_step"] % config.period == 0

    def enter(self, task: int) -> None:
        """Told the task of the next step, outside of it; for methods that care."""

    def arrive(self, x: Tensor, y: Tensor) -> Rows:
        """What is known of a stream batch, as columns that the memory can keep."""
        return {"x": x, "y": y}

    def retrieve(self, stream: Rows) -> Rows:
        """MemoryRetrieve: a random draw."""
        return self.memory.sample(self.config.memory_batch, self.random["memory"], fill=stream)

    def forward(self, model: Backbone, images: Tensor, batch: Joined, direction: int) -> Tensor:
        """MultiLevelDropMask and DebiasForward, over stream and memory samples together (or each alone)."""
        together = self.config.replay_forward == "joint" or len(images) == batch.stream
        sizes = [len(images)] if together else [batch.stream, len(images) - batch.stream]
        outputs = []
        for part, rows in zip(images.split(sizes), split_rows(batch.rows, sizes)):
            outputs.append(self.logits(model, part, rows, self.debias, direction))
            if self.debias is not None and model is self.model and len(outputs) == 1:  # the part with the stream
                self.trace = Trace(*(rows[: batch.stream] for rows in self.debias.last))
        return torch.cat(outputs)

    def logits(
        self, model: Backbone, images: Tensor, rows: Rows, debias: DropTop | None = None, direction: int = 0
    ) -> Tensor:
        """Run one forward pass: stem, debias, trunk, head. When predicting, nothing is debiased."""
        if debias is not None:
            own = direction if len(self.replicas) == 2 else None
            mask, norm = partial(debias, labels=rows["y"], direction=own), debias.attention_pass
        if isinstance(model, Adapted):  # somebody's own model, in which hooks do the same
            return model(images) if debias is None else model.changed(images, mask, norm)
        first = model.stem(images)
        given = self.given(model, first, rows)
        if debias is not None:
            first = mask(first, last=lambda: last_map(model, first, *given, norm=norm or "batch"))
        return model.head(model.trunk(first, *given))

    def given(self, model: Backbone, first: Tensor, rows: Rows) -> tuple[Any, ...]:
        """What the trunk takes besides the first map, from the unmasked one and what is known of its samples."""
        return ()

    def objective(self, model: Backbone, logits: Tensor, batch: Joined) -> Tensor:
        """What one of the replicas minimises."""
        return self.loss(logits, batch)

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Cross-entropy over stream and memory rows alike."""
        return F.cross_entropy(logits, batch.y)

    def guarded(self) -> list[Tensor]:
        """What a loss that is not finite must not leave changed, besides what `update` does not touch then."""
        tensors = [*self.statistics, *learner_state.method_tensors(self).values()]
        if self.config.iterations == 1:
            return tensors
        moments = [value for of_weight in self.optimizer.state.values() for value in of_weight.values()]
        return [*tensors, *self.weights.values(), *moments]

    def update(self, loss: Tensor) -> None:
        """One step of the optimiser; where the loss or a gradient is not finite, weights stay as they were."""
        self.optimizer.zero_grad()
        loss.backward()
        self.finite &= loss.isfinite()
        for model in self.replicas:
            weights = [weight for weight in model.parameters() if weight.grad is not None]
            norm = nn.utils.get_total_norm([weight.grad for weight in weights])
            self.finite &= norm.isfinite()
            self.clip(weights, norm)
        # Fused optimisers skip the step themselves, on the device, where this says so.
        self.optimizer.found_inf = (~self.finite).float()
        self.optimizer.step()

    def clip(self, weights: list[nn.Parameter], norm: Tensor) -> None:
        """May shorten the gradients of a model's weights, whose length this is."""

    def remember(self, stream: Rows) -> None:
        """MemoryUpdate: reservoir sampling. `stream` also has the logits that the training pass gave."""
        slots = reservoir_slots(self.memory, len(stream["y"]), self.finite, self.random["memory"])
        self.memory.write(slots, stream)

    def probe(self) -> None:
        """AdjustDropIntensity: the loss of every class on the memory, unmasked, unaugmented, in eval mode."""
        assert self.debias is not None
        intensity = self.debias.intensity
        if intensity.config.probe:
            slots, there = self.memory.draw(intensity.config.probe, self.random["debias"])
        else:
            slots, there = torch.arange(self.memory.capacity, device=self.device), self.memory.filled()
        rows, losses = self.memory.read(slots), []
        for model in self.replicas:
            with evaluating(model):
                logits = (self.classify(model, part) for part in split_rows(rows, PROBE_CHUNK))
                losses.append(intensity.mean_losses(logits, rows["y"].split(PROBE_CHUNK), there))
        intensity.record(torch.stack(losses))

    # -- Images in, predictions out ------------------------------------------------------------------------------

    def prepare(self, x: Tensor) -> Tensor:
        return self.normalise(augment(x, self.config.augment, self.random["augment"], self.config.crop_area))

    def normalise(self, x: Tensor) -> Tensor:
        if x.dtype == torch.uint8:
            x = (x.float() / 255 - self.mean) / self.std
        return x.contiguous(memory_format=torch.channels_last)

    def predict(self, x: Tensor) -> Tensor:
        """Logits (B, classes), those of classes not seen yet at minus infinity; changes no state."""
        self.check_images(x)
        with evaluating(self.model):
            return self.classify(self.model, {"x": x.to(self.device)}).masked_fill(~self.seen, -torch.inf)

    @property
    def independent(self) -> bool:
        """Is what it predicts of an image the same whatever else it is shown beside it?"""
        return True

    def classify(self, model: Backbone, rows: Rows) -> Tensor:
        """Logits of images as they are, unmasked."""
        return self.logits(model, self.normalise(rows["x"]), rows)

    # -- What is refused -----------------------------------------------------------------------------------------

    def check(self, x: Tensor, y: Tensor) -> None:
        """Refuses a batch that this learner cannot learn from."""
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            raise BadBatch(f"images and labels must be tensors, not {type(x).__name__} and {type(y).__name__}")
        self.check_images(x)
        if len(x) == 0:
            raise BadBatch("a batch must hold one image at least")
        if y.dtype != torch.int64 or y.shape != x.shape[:1]:
            raise BadBatch(f"labels must be {len(x)} int64 values, not {tuple(y.shape)} of {y.dtype}")
        if y.min() < 0 or y.max() >= len(self.spec.classes):
            raise BadBatch(f"labels must lie in 0 to {len(self.spec.classes) - 1}, not {y.min()} to {y.max()}")
        if x.is_floating_point() and not x.isfinite().all():
            raise BadBatch("images must be finite: this batch holds NaN or infinity")

    def check_images(self, x: Tensor) -> None:
        """Refuses images that this learner would not understand."""
        if not isinstance(x, Tensor):
            raise BadBatch(f"images must be a tensor, not {type(x).__name__}")
        if x.dtype != self.spec.dtype:
            raise BadBatch(f"images must be {self.spec.dtype}, not {x.dtype}")
        if x.dim() != 4 or x.shape[1:] != self.spec.shape:
            raise BadBatch(
                f"images must have shape (batch, {', '.join(map(str, self.spec.shape))}), not {tuple(x.shape)}"
            )

    def check_tasks(self, count: int) -> None:
        """Refuses a stream of so many tasks."""
        require(self.tasks in (None, count), "tasks", f"{self.tasks} with this method", count)

    def check_maps(self) -> None:
        """Refuses or warns where the last map says nothing."""
        if self.debias is None or not self.debias.attention_pass:
            return
        with evaluating(self.model):
            last = self.model.features(torch.zeros(1, *self.spec.shape, device=self.device)).map
        check_last_map(self.debias.config, last.shape[-2:].numel(), self.model.finer)

    # -- State -----------------------------------------------------------------------------------------------------

    def columns(self) -> Rows:
        """What the memory keeps of a sample, as an example row."""
        return {"x": torch.zeros(self.spec.shape, dtype=self.spec.dtype), "y": torch.zeros((), dtype=torch.int64)}

    def make_optimizer(self, weights: list[nn.Parameter]) -> Fused:
        """The optimiser with all of its state, before the first step."""
        return SGD(weights, self.config.lr, self.config.momentum, self.config.weight_decay)

    def report(self) -> dict[str, Any]:
        """Figures of a method's own for the results, after every task."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by name."""
        return learner_state.gather(self)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        learner_state.restore(self, tensors)
