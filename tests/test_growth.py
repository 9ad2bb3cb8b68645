"""What grows with memory, classes and cells grows no faster than they do: elements and opened files are counted."""

import sys
from itertools import pairwise

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from droptop import Spec, make_learner
from droptop.cli import main
from droptop.methods import METHODS, aser
from droptop.sweeps.sweep import sweep

from growth_cases import Pretended
from studies import Silent, write_study
from toys import ON_VIT

REPLAY = [name for name in METHODS if name not in (*ON_VIT, "finetune", "joint")]


class Largest(TorchDispatchMode):
    """Note how many elements the largest tensor has that is made; views and what is changed in place are not."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        outputs = function(*args, **(kwargs or {}))
        given = {leaf.untyped_storage().data_ptr() for leaf in tensors((args, kwargs))}
        made = [leaf for leaf in tensors(outputs) if leaf.untyped_storage().data_ptr() not in given]
        self.elements = max([self.elements, *(leaf.numel() for leaf in made)])
        return outputs


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def full(method, memory, classes=4, debias="none", **options):
    """A learner whose memory is full of noise."""
    names = tuple(f"class {label}" for label in range(classes))
    small = {"width": 1, "memory_batch": 4, "augment": "none", "memory": memory} | options
    learner = make_learner(method, Spec((3, 8, 8), names), debias, 0, **small)
    x, y = batch(memory, classes)
    spare = {name: rows.clone() for name, rows in learner.memory.whole().items()}
    learner.memory.write(torch.arange(memory), spare | {"x": x, "y": y})
    learner.memory.seen.fill_(memory)
    return learner


def batch(count, classes=4):
    return torch.randint(0, 256, (count, 3, 8, 8), dtype=torch.uint8), torch.arange(count) % classes


def most(work, *given):
    """The elements of the largest tensor that is made by some work."""
    with Largest() as largest:
        work(*given)
    return largest.elements


@pytest.mark.parametrize("method", REPLAY)
def test_no_tensor_of_a_step_grows_faster_than_the_memory(method):
    few, many = (most(full(method, memory).step, *batch(4)) for memory in (1000, 4000))
    assert many <= 4 * few


@pytest.mark.parametrize("method", REPLAY)
def test_no_tensor_of_a_step_grows_faster_than_the_classes(method, monkeypatch):
    monkeypatch.setattr(aser, "AT_ONCE", 16)
    few, many = (most(full(method, 1000, classes).step, *batch(4, classes)) for classes in (100, 400))
    assert many <= 4 * few


def test_no_tensor_of_a_write_grows_faster_than_the_batch():
    memory = full("er", 10).memory
    few, many = (
        most(memory.write, torch.zeros(count, dtype=torch.int64), dict(zip("xy", batch(count))))
        for count in (1000, 4000)
    )
    assert many <= 4 * few


@pytest.mark.filterwarnings("ignore:the last map is 1 x 1")
@pytest.mark.parametrize("method", ["er", "derpp", "scr"])
def test_a_probe_copies_no_memory(method):
    few, many = (full(method, memory, debias="droptop") for memory in (1000, 4000))
    assert most(many.probe) <= max(most(few.probe), many.memory.capacity)


def test_class_means_copy_no_memory():
    assert most(full("scr", 4000).refresh) <= max(most(full("scr", 1000).refresh), 4000)


def test_values_by_parts_of_the_judges_are_those_by_all(monkeypatch):
    random = torch.Generator().manual_seed(0)
    features, candidates = (torch.randn(count, 5, generator=random) for count in (23, 17))
    labels, of_candidates = (torch.randint(0, 3, (count,), generator=random) for count in (23, 17))
    counted, known = (torch.rand(count, generator=random) < 0.8 for count in (23, 17))
    given = (features, labels, counted, candidates, of_candidates, known, 3)
    whole = aser.mean_value(*given)
    values = aser.knn_shapley(features, labels, candidates, of_candidates, known, 3)
    torch.testing.assert_close(whole, values[counted].mean(0))
    for at_once in (1, 5, 22):
        monkeypatch.setattr(aser, "AT_ONCE", at_once)
        torch.testing.assert_close(aser.mean_value(*given), whole)


# -- Cells ------------------------------------------------------------------------------------------------------------

OPENED = []
sys.addaudithook(
    lambda event, given: OPENED.append(given[0]) if event in ("open", "os.listdir", "os.scandir") else None
)


def opened(work, *given):
    """How many files were opened and folders listed by some work."""
    OPENED.clear()
    work(*given)
    return len(OPENED)


@pytest.mark.parametrize("command", [["status"], ["results"], ["sweep", "--out"]])
@pytest.mark.parametrize("fails", [False, True])
def test_commands_read_every_cell_as_often_whatever_the_number_of_cells(tmp_path, command, fails, capsys):
    if fails and command != ["status"]:
        pytest.skip("cells that failed have no results, and are tried again")
    counts = []
    for seeds in (2, 4, 6, 8):
        study, out = write_study(tmp_path / f"{seeds}.toml", seeds=seeds), tmp_path / str(seeds)
        sweep(study, out, Pretended(fails), Silent())
        counts.append(opened(main, [*command, str(out)]))
    steps = [after - before for before, after in pairwise(counts[1:])]  # the first one loads modules
    assert steps[0] == steps[1] > 0
