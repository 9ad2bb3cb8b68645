"""A learner as tensors by name: everything that its next step depends on, and nothing else."""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from droptop.errors import BadCheckpoint

if TYPE_CHECKING:
    from droptop.learner import Learner

BASE = {"mean", "std", "seen", "frozen", "finite"}  # of every learner: constants, and what `gather` names itself


def digest(weights: Iterable[Tensor]) -> Tensor | None:
    """Return the SHA-256 of frozen weights, which stands for them in a state; None where there are none."""
    total, frozen = hashlib.sha256(), list(weights)
    for weight in frozen:
        total.update(weight.detach().cpu().contiguous().numpy())  # type: ignore[arg-type]
    return torch.frombuffer(bytearray(total.digest()), dtype=torch.uint8) if frozen else None


def method_tensors(learner: "Learner") -> dict[str, Tensor]:
    """Return the tensors that a method keeps as attributes of its own, except those whose names begin with _."""
    return {
        name: value
        for name, value in vars(learner).items()
        if isinstance(value, Tensor) and name not in BASE and not name.startswith("_")
    }


def gather(learner: "Learner") -> dict[str, Tensor]:
    """Return the state of a learner: its tensors themselves by name, with copies of clock and generator states."""
    frozen = {name for name, _ in learner.models.named_parameters()} - learner.weights.keys()
    state = {name: value for name, value in learner.models.state_dict().items() if name not in frozen}
    state |= {"seen": learner.seen} if learner.frozen is None else {"seen": learner.seen, "frozen": learner.frozen}
    for name, weight in learner.weights.items():
        state |= {f"optimizer.{name}.{key}": value for key, value in learner.optimizer.state[weight].items()}
    state |= {f"memory.{name}": rows for name, rows in learner.memory.state_dict().items()}
    state |= {f"debias.{name}": value for name, value in learner.debias.state_dict().items()}
    for kind, average in learner.averages.items():
        state |= {f"{kind}.{name}": value for name, value in average.state_dict().items()}
    state |= {f"own.{name}": value for name, value in method_tensors(learner).items()}
    state |= {f"random.{name}": random.get_state() for name, random in learner.random.items()}
    return state | {f"clock.{name}": torch.tensor(count) for name, count in learner.clock.items()}


def of_this_version(name: str) -> str:
    """Return the name that a tensor has now: before 0.3, DropTop was the only debiaser and had none of its own."""
    return name.replace("debias.intensity.", "debias.droptop.intensity.", 1)


def restore(learner: "Learner", state: dict[str, Tensor]) -> None:
    """Copy a state into a learner; raise BadCheckpoint if it does not fit.

    The learner's tensors stay at their addresses, so that CUDA graphs captured before remain valid.
    """
    now = gather(learner)
    state = {of_this_version(name): value for name, value in state.items()}
    if wrong := sorted(now.keys() ^ state.keys()) or [n for n in now if now[n].shape != state[n].shape]:
        raise BadCheckpoint(f"this state is of another learner: {', '.join(wrong[:5])}")
    if learner.frozen is not None and not torch.equal(learner.frozen, state["frozen"]):
        raise BadCheckpoint("this state is of a learner whose frozen weights are others")
    with torch.no_grad():
        for name, value in now.items():
            value.copy_(state[name])
    for name, random in learner.random.items():
        random.set_state(state[f"random.{name}"])
    learner.clock = {name: int(state[f"clock.{name}"]) for name in learner.clock}
