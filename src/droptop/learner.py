"""A replay learner: the paper's Algorithm 1, top to bottom. The methods in `methods/` say only what differs from it.

`observe` runs one step of the algorithm, `step` is its body, `forward` and `logits` make the debiased forward pass,
`probe` adjusts the drop intensities. Line numbers below are those of Algorithm 1 (appendix A of the paper).

A learner is tensors: weights, optimiser, memory, intensities, histories and generators are all in `state_dict()`.
`step` and `probe` never read a value from the device (no `.item()`, no `if tensor:`), so that they can be captured as
CUDA graphs; where a choice depends on data, `torch.where` makes it. The file is long because every part that a method
may replace is described where it stands.
"""

import copy
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop import learner_checks, learner_state
from droptop.average import Average
from droptop.debias import Chosen, Debiaser, Family, Trace, View, check_last_map, of_rows
from droptop.errors import BadBatch, BadRequest, Diverged, DroptopError, a_kind, require, wrong
from droptop.memory import Buffer, Rows, reservoir_slots
from droptop.nets import Backbone, NetConfig, ViTConfig, evaluating, flat_buffers, last_map, least_rows, untracked
from droptop.optim import SGD, Fused
from droptop.rng import PURPOSES, generator
from droptop.streams.augment import Augment, augment
from droptop.system.devices import moved
from droptop.types import Spec, sizes_text, split_rows

PROBE_CHUNK = 125  # memory rows per forward pass: the probe then fits on a device that holds a training step of 64


UNLEARNED = "this learner has learned nothing yet, and predicts among the classes that it has seen"


@dataclass(frozen=True)
class LearnerConfig:
    """Hold the settings that every method has."""

    preset: Literal["paper", "tuned"] = "paper"
    """Several options together: those of the paper, or those that `droptop tune` found for this method and stream.
    Options that you set win over it."""
    lr: float = 0.1
    """Learning rate of SGD."""
    momentum: float = 0.0
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Weight decay of SGD."""
    memory: int = 500
    """Samples that the replay memory holds."""
    memory_batch: int = 32
    """Memory samples that are replayed per iteration."""
    iterations: int = 1
    """Training iterations per step, each with a new memory batch."""
    augment: Augment = "crop-flip"
    """How training images are changed at random: crop-flip shifts and mirrors them (for 32 px), crop-resize enlarges a
    random box of them and mirrors (for 64 px and more)."""
    crop_area: float = 0.25
    """Smallest share of an image that crop-resize may keep."""
    replay_forward: Literal["joint", "separate"] = "joint"
    """One forward pass for stream and memory samples together (joint), or one for each (separate: BatchNorm then sees
    each half alone)."""
    average: bool = False
    """Predict by averaged weights instead of the last ones."""
    average_decay: float = 0.99
    """Share of the average that is kept at each step; less at first, when the average spans the latest ninth of the
    steps."""

    def __post_init__(self) -> None:
        require(0 < self.lr < float("inf"), "lr", "a learning rate above 0", self.lr)
        require(0 <= self.momentum < 1, "momentum", "a number from 0 and below 1", self.momentum)
        require(0 <= self.weight_decay < float("inf"), "weight_decay", "a number from 0", self.weight_decay)
        require(self.memory >= 1, "memory", "a number of samples from 1", self.memory)
        require(self.memory_batch >= 1, "memory_batch", "a number of samples from 1", self.memory_batch)
        require(self.iterations >= 1, "iterations", "a number from 1", self.iterations)
        require(0 < self.crop_area <= 1, "crop_area", "a share above 0 and up to 1", self.crop_area)
        require(0 <= self.average_decay < 1, "average_decay", "a number from 0 and below 1", self.average_decay)


class Joined(NamedTuple):
    """Hold a training batch: the rows of the stream, then those of the memory."""

    x: Tensor
    y: Tensor
    stream: int  # number of rows from the stream
    replayed: Rows  # the memory's rows, with every column that the method keeps of a sample
    rows: Rows  # the columns that stream and memory have in common, joined as x and y are


class Learner:
    """Learn from a stream as ER does: `observe` takes a batch, `predict` names classes. All methods derive from it.

    Args:
        model: The backbone. The learner trains this very model, from the weights that it has.
        spec: What the images and classes are like.
        config: The settings of the method.
        debias: The debiasers and their settings; none by default.
        seed: Decides all random draws of the learner.
        device: Where weights, memory and batches are kept.
    """

    config_type: ClassVar[type[LearnerConfig]] = LearnerConfig
    net_type: ClassVar[type[NetConfig | ViTConfig]] = NetConfig
    preset: ClassVar[dict[str, Any]] = {}  # options that suit this method
    named_presets: ClassVar[dict[str, dict[str, Any]]] = {}  # options that each name stands for which --preset takes
    paper: ClassVar[dict[str, Any]] = {}  # options of the paper's appendix E for this method that differ from ours
    compiles: ClassVar[bool] = True  # may its net be compiled?
    takes_prompts: ClassVar[bool] = False  # is its net given prompts, which droptop's own ViT takes alone?
    has_logits: ClassVar[bool] = True  # does its training pass give logits? `rsc` and penalties take such a method
    tasks: ClassVar[int | None] = None  # the only number of tasks that makes sense for it, if there is one
    memory_batches: ClassVar[int] = 1  # how many of `memory_batch` rows it replays per step; 0 without a memory

    def __init__(
        self,
        model: Backbone,
        spec: Spec,
        config: LearnerConfig,
        debias: Sequence[Chosen] = (),
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.spec, self.config, self.seed, self.device = spec, config, seed, torch.device(device)
        self.random = {purpose: generator(seed, purpose, device=device) for purpose in PURPOSES}
        # Line 3: of the debiasers, DropTop holds the intensities.
        self.debias = Family(debias, len(spec.classes), self.random["debias"])
        # Line 1: weights, and what the optimiser keeps of them.
        self.model = moved(model, device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.replicas = [self.model]
        if self.debias.droptop is not None and self.debias.droptop.config.intensity.reference:
            self.replicas.append(copy.deepcopy(model))  # trains on the increment while `model` trains on the decrement
        self.models = nn.ModuleDict(dict(zip(("model", "twin"), self.replicas)))
        self.statistics = flat_buffers(self.models)
        self.weights = {name: weight for name, weight in self.models.named_parameters() if weight.requires_grad}
        self.average = Average(self.model, config.average_decay) if config.average else None
        self.frozen = learner_state.digest(weight for weight in self.models.parameters() if not weight.requires_grad)
        self.optimizer = self.make_optimizer(list(self.weights.values()))
        if not isinstance(self.optimizer, Fused):
            raise BadRequest(
                "make_optimizer gives an optimiser of droptop.optim's kind, which can skip a step and has "
                f"its state before the first one, not {type(self.optimizer).__name__}"
            )
        self.mean, self.std = (torch.tensor(value, device=device).view(-1, 1, 1) for value in (spec.mean, spec.std))
        # Line 2: the replay memory.
        self.for_debias = self.debias_columns()  # an example row of each column that it keeps for debiasers
        self.memory = Buffer(config.memory, self.columns() | self.for_debias, device)
        self.seen = torch.zeros(len(spec.classes), dtype=torch.bool, device=device)
        self.trace: Trace | None = None  # what was dropped from the stream's rows of the last batch, for reports
        self.finite = torch.ones((), dtype=torch.bool, device=device)  # false from the first loss that is not finite
        self.clock = {"step": 0, "task": 0, "task_step": 0}  # the only state on the host: it decides when to probe
        self.settled = False  # is what `refresh` computes up to date?
        self.least_rows = least_rows(self.model, spec.shape)
        self.check_maps()

    def __repr__(self) -> str:
        """Return what it is and how far it is, in two lines; on a GPU this waits for it."""
        weights = sum(weight.numel() for weight in self.model.parameters())
        return (
            f"{type(self).__name__}({type(self.model).__name__} of {weights:,} weights for {len(self.spec.classes)} "
            f"classes of {sizes_text(self.spec.shape)}, debias {'+'.join(self.debias.members) or 'none'}, seed "
            f"{self.seed}, on {self.device},\n{' ' * len(type(self).__name__)} step {self.clock['step']:,} in task "
            f"{self.clock['task']}, {int(self.seen.sum())} classes seen, {int(self.memory.size):,} of "
            f"{self.memory.capacity:,} samples in memory)"
        )

    # -- Algorithm 1 ---------------------------------------------------------------------------------------------

    def observe(self, x: Tensor, y: Tensor, task: int = 0) -> Tensor:
        """Learn from one batch of the stream, which is seen once.

        Args:
            x: Images (B, channels, height, width), of the shape and dtype that the spec names.
            y: Their labels (B), int64.
            task: The number of their task, from 0.

        Returns:
            The loss before the update, of the last iteration where there are several: one number.

        Raises:
            BadBatch: If images or labels do not fit the spec; the learner is unchanged.
            Diverged: If the loss is not finite; the learner is as before the batch, except for its random draws.
        """
        self.check(x, y)
        self.enter(task)
        loss = self.step(x.to(self.device), y.to(self.device))  # lines 6 to 16
        if not self.finite:
            self.finite.fill_(True)
            raise Diverged(
                f"the {wrong(loss.item())} at step {self.clock['step'] + 1}; the learner is as before it, "
                "but for its draws"
            )
        if self.tick(task):
            self.probe()  # line 18
        return loss

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Replay, debias, learn and remember: lines 6 to 16; return the loss, on the device.

        Takes what `check` has accepted. If the loss is not finite, leaves `finite` false and all else as it was.
        """
        stream = self.arrive(x, y)  # line 6: X_n, Y_n
        stream |= {name: row.expand(len(x), *row.shape) for name, row in self.for_debias.items()}  # known after a pass
        guarded = self.guarded()
        before = [tensor.clone() for tensor in guarded]
        for _ in range(self.config.iterations):
            batch = self.joined(stream, self.retrieve(stream))  # line 8: X_m, Y_m
            self.show(batch)
            images = self.prepare(batch.x)
            # Lines 10 and 11; there are two models only with the two-model reference (`--reference`).
            logits = [self.forward(model, images, batch, direction) for direction, model in enumerate(self.replicas)]
            losses = [self.objective(model, output, batch) for model, output in zip(self.replicas, logits)]  # line 13
            self.update(torch.stack(losses).sum())  # line 14
        with torch.no_grad():
            for tensor, old in zip(guarded, before):
                tensor.copy_(torch.where(self.finite, tensor, old))
        for average in self.averages.values():
            average.update(self.finite)
        known = self.debias.kept() | {"logits": logits[0].detach()}
        self.remember(stream | {name: rows[: len(x)] for name, rows in known.items()})  # line 16
        self.seen |= torch.zeros_like(self.seen).index_fill(0, y, True) & self.finite
        return losses[0].detach()

    def forward(self, model: Backbone, images: Tensor, batch: Joined, direction: int) -> Tensor:
        """Run MultiLevelDropMask and DebiasForward (lines 10 and 11) on stream and memory rows; return their logits.

        `direction` is the place of the model in `replicas`.
        """
        joint = self.config.replay_forward == "joint" or len(images) == batch.stream
        sizes = [len(images)] if joint else [batch.stream, len(images) - batch.stream]
        outputs = []
        for part, rows, stream in zip(images.split(sizes), split_rows(batch.rows, sizes), (batch.stream, 0)):
            outputs.append(self.logits(model, part, rows, self.debias, direction, stream))
            if self.debias.droptop is not None and model is self.model and len(outputs) == 1:  # the stream's part
                self.trace = Trace(*(rows[: batch.stream] for rows in self.debias.droptop.last))
        return torch.cat(outputs)

    def logits(
        self,
        model: Backbone,
        images: Tensor,
        rows: Rows,
        debias: Family | None = None,
        direction: int = 0,
        stream: int | None = None,
    ) -> Tensor:
        """Run one forward pass, stem, debiasing, trunk, head; return the logits (rows, classes).

        Takes normalised images and what else is known of them: their labels where they are debiased. Without `debias`,
        as in prediction, the first map stays as it is. With two models, each trains on one direction: 0 decrement,
        1 increment. The first `stream` rows are the stream's.
        """
        if debias is not None and not debias.act_on("first_map"):
            debias = None
        fixed = direction if len(self.replicas) == 2 else None  # a single model tries the directions in turn
        if model.hooked:  # a model of somebody else's, in which hooks do the same
            if debias is None:
                return model(images)

            def change(first: Tensor, last: Callable[[], Tensor]) -> Tensor:
                return debias.first_map(first, View(of_rows(last), None, stream), rows["y"], fixed)

            return model.changed(images, change, debias.attention_pass)
        first = model.stem(images)
        given = self.given(model, first, rows)
        if debias is not None:
            view = View(
                last=lambda count=None: self.look_ahead(model, first, given, rows, count),
                logits=lambda changed: ahead(model, changed, *given),
                stream=stream,
                rows=rows,
            )
            changed = debias.first_map(first, view, rows["y"], fixed)  # DropTop: Eq. 4 to 6
        return model.head(model.trunk(first if debias is None else changed, *given))

    def look_ahead(
        self, model: Backbone, first: Tensor, given: tuple[Any, ...], rows: Rows, count: int | None
    ) -> Tensor:
        """Run the attention pass: return the last map of the first `count` rows, or of all; without gradient."""
        if count is not None:
            first = first[:count].detach()
            with torch.no_grad():
                given = self.given(model, first, {name: column[:count] for name, column in rows.items()})
        return last_map(model, first, *given, norm=self.debias.attention_pass or "batch")

    def probe(self) -> None:
        """Run AdjustDropIntensity (line 18, Eq. 7-8): record the loss of every class on the memory.

        The loss is that of every model in eval mode, on images that are neither masked nor augmented.
        """
        assert self.debias.droptop is not None
        intensity = self.debias.droptop.intensity
        rows, filled, losses = self.memory.whole(), self.memory.filled(), []
        if intensity.config.probe:
            slots = intensity.probed(filled, self.random["debias"])
            rows, filled = self.memory.read(slots), filled[slots]
        for model in self.replicas:
            with evaluating(model):
                logits = (self.classify(model, part) for part in split_rows(rows, PROBE_CHUNK))
                losses.append(intensity.mean_losses(logits, rows["y"].split(PROBE_CHUNK), filled))
        intensity.record(torch.stack(losses))

    # -- Its parts, in the order in which they run: what a method may replace ---------------------------------------

    def enter(self, task: int) -> None:
        """Hear the task of the next step, outside of it; for methods that care."""

    def arrive(self, x: Tensor, y: Tensor) -> Rows:
        """Return what is known of a stream batch, as columns that the memory can keep (`columns` describes those)."""
        return {"x": x, "y": y}

    def passes(self, rows: int) -> list[int]:
        """Return the rows of each forward pass that a step makes in training mode, for so many rows of the stream."""
        replayed = self.memory_batches * self.config.memory_batch
        return [rows + replayed] if self.config.replay_forward == "joint" else [rows, replayed]

    def guarded(self) -> list[Tensor]:
        """Return the tensors that `step` restores if the loss is not finite.

        With one iteration these exclude weights and optimiser, which `update` then leaves alone.
        """
        tensors = [*self.statistics, *self.debias.guarded(), *learner_state.method_tensors(self).values()]
        if self.config.iterations == 1:
            return tensors
        moments = [value for of_weight in self.optimizer.state.values() for value in of_weight.values()]
        return [*tensors, *self.weights.values(), *moments]

    def retrieve(self, stream: Rows) -> Rows:
        """Return `memory_batch` rows drawn at random: MemoryRetrieve. Stream rows stand in where it holds too few."""
        return self.memory.sample(self.config.memory_batch, self.random["memory"], fill=stream)

    def joined(self, stream: Rows, replayed: Rows) -> Joined:
        """Return the rows of the stream and those of the memory as one training batch."""
        rows = {name: torch.cat([column, replayed[name]]) for name, column in stream.items()}
        return Joined(rows["x"], rows["y"], len(stream["y"]), replayed, rows)

    def augmented(self, x: Tensor) -> Tensor:
        """Return images changed at random, as `--augment` says."""
        return augment(x, self.config.augment, self.random["augment"], self.config.crop_area)

    def show(self, batch: Joined) -> None:
        """Show a batch to the debiasers that look at images before they are augmented."""
        if self.debias.act_on("see"):
            self.debias.see(unit_range(batch.x), batch.y)

    def prepare(self, x: Tensor) -> Tensor:
        """Return images augmented, debiased and normalised, as the backbone takes them."""
        x = self.augmented(x)
        if self.debias.act_on("images"):
            x = self.debias.images(unit_range(x))
        return self.normalise(x)

    def normalise(self, x: Tensor) -> Tensor:
        """Return images normalised by the spec's mean and std, bytes scaled to [0, 1] first. Channels lie last."""
        return ((unit_range(x) - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def given(self, model: Backbone, first: Tensor, rows: Rows) -> tuple[Any, ...]:
        """Return what the trunk takes besides the first map, from that map unmasked and what is known of its rows."""
        return ()

    def objective(self, model: Backbone, logits: Tensor, batch: Joined) -> Tensor:
        """Return what one model minimises: `loss` of the logits as debiasers change them, and their penalties.

        A method may add what concerns the model.
        """
        loss = self.loss(self.debias.logits(logits), batch)
        if not (isinstance(loss, Tensor) and loss.numel() == 1 and loss.is_floating_point()):
            given = f"shape {tuple(loss.shape)} of {loss.dtype}" if isinstance(loss, Tensor) else a_kind(type(loss))
            place = getattr(sys.modules.get(type(self).__module__), "__file__", None) or type(self).__module__
            raise DroptopError(
                f"{place}: {type(self).__name__}.loss is to give one number, as a floating point tensor, not {given}"
            )
        return self.debias.penalised(loss, logits, batch.y)

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Return the cross-entropy over stream and memory rows alike."""
        return F.cross_entropy(logits, batch.y)

    def update(self, loss: Tensor) -> None:
        """Take one step of the optimiser; leave the weights as they were if the loss or a gradient is not finite."""
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
        """Shorten the gradients of one model's weights, whose length together is `norm`, if the method does so."""

    def remember(self, stream: Rows) -> None:
        """Write samples of the stream batch to the memory: MemoryUpdate, by reservoir sampling.

        The column "logits" has the answers of the training pass.
        """
        slots = reservoir_slots(self.memory, len(stream["y"]), self.finite, self.random["memory"])
        self.memory.write(slots, stream)

    def tick(self, task: int) -> bool:
        """Count a step of a task; return whether `probe` is due now, as it is every p steps (line 17)."""
        self.settled = False
        new_task = task != self.clock["task"]
        self.clock = {
            "step": self.clock["step"] + 1,
            "task": task,
            "task_step": 1 if new_task else self.clock["task_step"] + 1,
        }
        if self.debias.droptop is None or not self.debias.adapts:
            return False
        config = self.debias.droptop.config.intensity
        return self.clock["step" if config.p_counter == "global" else "task_step"] % config.period == 0

    # -- Predictions ---------------------------------------------------------------------------------------------

    @property
    def averages(self) -> dict[str, Average]:
        """Return the averaged weights that are kept, by name: those that predict, and those that a method adds."""
        return {} if self.average is None else {"average": self.average}

    @property
    def every_model(self) -> list[Backbone]:
        """Return the models that are trained, and those of averaged weights."""
        return [*self.replicas, *(average.model for average in self.averages.values())]

    @property
    def predictor(self) -> Backbone:
        """Return the model that predicts: that of the averaged weights where these are kept."""
        return self.model if self.average is None else self.average.model

    def predict(self, x: Tensor, *, plain: bool = False) -> Tensor:
        """Predict the classes of images; no state changes.

        Args:
            x: Images (B, channels, height, width), of the shape and dtype that the spec names.
            plain: Whether to predict by the last weights also where averaged ones are kept.

        Returns:
            Logits (B, classes); minus infinity for classes that have not been seen yet.

        Raises:
            BadBatch: If the images do not fit the spec.
        """
        self.check_images(x)
        if self.clock["step"] == 0:
            warnings.warn(f"{UNLEARNED}: all logits are minus infinity", stacklevel=2)
        self.settle()
        model = self.model if plain else self.predictor
        with evaluating(model):
            return self.classify(model, {"x": x.to(self.device)}).masked_fill(~self.seen, -torch.inf)

    def settle(self) -> None:
        """Call `refresh` if there was a step since the last time; on a GPU, outside of CUDA graphs."""
        if not self.settled:
            self.refresh()
            self.settled = True

    def refresh(self) -> None:
        """Compute what predictions need and steps do not, such as class means; no part of the state."""

    @property
    def independent(self) -> bool:
        """Return whether the prediction for an image is the same whatever other images are in the batch."""
        return True

    def classify(self, model: Backbone, rows: Rows) -> Tensor:
        """Return the logits of images that are neither masked nor augmented, over all classes."""
        return self.logits(model, self.normalise(rows["x"]), rows)

    # -- What is refused -----------------------------------------------------------------------------------------

    def check(self, x: Tensor, y: Tensor) -> None:
        """Raise BadBatch if this learner cannot learn from a batch."""
        learner_checks.check_batch(self.spec, x, y)
        self.check_rows(len(x))

    def check_rows(self, rows: int) -> None:
        """Raise BadBatch if a stream batch has too few rows for a training pass in this net."""
        passes = [*self.passes(rows), rows] if self.debias.keeps else self.passes(rows)  # the stream's rows alone
        if min(passes) < self.least_rows:
            raise BadBatch(
                f"a batch must hold {self.least_rows} images or more: in this net BatchNorm gets one value per image "
                "and channel, which alone it cannot normalise"
            )

    def check_images(self, x: Tensor) -> None:
        """Raise BadBatch if images do not fit the spec."""
        learner_checks.check_images(self.spec, x)

    def check_tasks(self, count: int) -> None:
        """Raise BadRequest if this method cannot learn from a stream of so many tasks."""
        require(self.tasks in (None, count), "tasks", f"{self.tasks} with this method", count)

    def check_maps(self) -> None:
        """Raise BadRequest if a debiaser or BatchNorm cannot work in this net; warn if fusion has nothing to work with.

        A last map of one cell makes fusion do nothing, and cannot give the scores alone.
        """
        require(
            min(self.passes(self.least_rows)) >= self.least_rows,
            "memory_batch",
            "2 samples or more in this net, where BatchNorm gets one value per image and channel",
            self.config.memory_batch,
        )
        for name, member in self.debias.members.items():
            if member.needs_logits and self.model.hooked:
                raise BadRequest(f"--debias {name} takes a net that droptop builds, not a model of somebody else's")
            if not self.takes(type(member)):
                does, method = "compares logits with labels alone", type(self).__name__
                which = f"{does}, not {method}" if self.has_logits else f"trains logits: {method} has none"
                raise BadRequest(f"--debias {name} takes a method that {which}")
        if self.debias.droptop is None or not self.debias.droptop.attention_pass:
            return
        with evaluating(self.model):
            last = self.model.features(torch.zeros(1, *self.spec.shape, device=self.device)).map
        check_last_map(self.debias.droptop.config, last.shape[-2:].numel(), self.model.finer)

    @classmethod
    def takes(cls, member: type[Debiaser]) -> bool:
        """Return whether a debiaser can act in this method; what a recipe names beside others is left out if not."""
        return cls.has_logits or not (member.needs_logits or member.acts_on("logits") or member.acts_on("penalty"))

    # -- Settings and state --------------------------------------------------------------------------------------

    @classmethod
    def presets(cls, stream: dict[str, Any]) -> dict[str, Any]:
        """Return the options that hold until the user sets others: the stream's win over the method's."""
        return cls.preset | stream

    def columns(self) -> Rows:
        """Describe what the memory keeps of a sample: an example row by column."""
        return {"x": torch.zeros(self.spec.shape, dtype=self.spec.dtype), "y": torch.zeros((), dtype=torch.int64)}

    def debias_columns(self) -> Rows:
        """Describe what the memory keeps of a sample for debiasers; raise BadRequest where that cannot be had."""
        if not self.debias.keeps:
            return {}
        require(self.memory_batches > 0, "memory_attention", "fresh with a method that replays nothing", "kept")
        if self.model.hooked:
            raise BadRequest("--memory-attention kept takes a net that droptop builds, not a model of one's own")
        with evaluating(self.model):
            first = self.model.stem(torch.zeros(1, *self.spec.shape, device=self.device))
        columns = self.debias.columns(first)
        taken = sorted(columns.keys() & {"logits", *self.columns()})
        if taken:
            raise BadRequest(f"a debiaser has the memory keep {', '.join(taken)}, which is a name of the method's own")
        return {name: row.to(self.device) for name, row in columns.items()}

    def make_optimizer(self, weights: list[nn.Parameter]) -> Fused:
        """Return the optimiser, of `droptop.optim`'s kind, with all of its state before the first step."""
        return SGD(weights, self.config.lr, self.config.momentum, self.config.weight_decay)

    def report(self) -> dict[str, Any]:
        """Give figures of the method for metrics.jsonl, at the end of each task."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on.

        Returns:
            The learner's tensors by name: not copies, except for small ones such as counts.
        """
        return learner_state.gather(self)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Copy a state into the learner, which then goes on exactly as the one it was taken from.

        Args:
            tensors: What `state_dict` gave.

        Raises:
            BadCheckpoint: If the state does not fit this learner.
        """
        learner_state.restore(self, tensors)
        self.settled = False


def unit_range(x: Tensor) -> Tensor:
    """Return images in float32, those of bytes on a scale from 0 to 1."""
    return x.float() / 255 if x.dtype == torch.uint8 else x.float()


def ahead(model: Backbone, first: Tensor, *given: Any) -> Tensor:
    """Return the logits of a first map, with gradient but without a trace in BatchNorm's statistics."""
    with untracked(model):
        return model.head(model.trunk(first, *given))
