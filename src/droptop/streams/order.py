"""What arrives when, and under which label: classes in tasks, what is kept back, long tails, blurred borders, noisy
labels.

Every function draws from a generator of its own, named by the seed and by what it decides. Switching one option on
leaves what the others decide as it was; with all of them off a stream is its classes in tasks, shuffled.
"""

import torch
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.rng import generator
from droptop.types import Tasks

# -- Classes ----------------------------------------------------------------------------------------------------------


def class_labels(text: str, classes: tuple[str, ...], option: str) -> tuple[int, ...]:
    """The labels of classes given as a list of names or labels, such as dog,cat or 5,3."""
    known = {name: label for label, name in enumerate(classes)}
    if not any(name.isdigit() for name in classes):  # where classes are named by numbers, a number is a name
        known |= {str(label): label for label in range(len(classes))}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        listed = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
        require(name in known, option, f"classes by name or label ({listed})", name or "an empty name")
    labels = tuple(known[name] for name in names)
    for label in labels:
        require(labels.count(label) == 1, option, "every class once", f"{classes[label]} twice")
    return labels


def split_classes(classes: tuple[str, ...], tasks: int, class_order: str, split: str | None, seed: int) -> Tasks:
    """The classes of each task; see the options of these names in `StreamConfig`."""
    if split is not None:
        class_labels(split.replace("/", ","), classes, "split")  # no class twice, not in two tasks either
        return tuple(class_labels(task, classes, "split") for task in split.split("/"))
    if class_order == "natural":
        order = tuple(range(len(classes)))
    elif class_order == "random":
        order = tuple(torch.randperm(len(classes), generator=generator(seed, "classes")).tolist())
    else:
        order = class_labels(class_order, classes, "class_order")
        if missing := [name for label, name in enumerate(classes) if label not in order]:
            raise BadRequest(f"--class-order takes natural, random or all classes; {missing[0]} is missing")
    require(tasks == 0 or len(classes) % tasks == 0, "tasks", f"0 or a divisor of the {len(classes)} classes", tasks)
    size = len(classes) // tasks if tasks else 2
    return tuple(order[start : start + size] for start in range(0, len(classes), size))


# -- Samples ----------------------------------------------------------------------------------------------------------


def held_out(y: Tensor, percent: float) -> Tensor:
    """N: is this row kept back? So many percent of every class, at least one row; the same ones whatever the seed, so
    that nothing that is chosen by them was learned by another seed."""
    held = torch.zeros(len(y), dtype=torch.bool)
    if percent:
        for label in y.unique().tolist():
            rows = (y == label).nonzero()[:, 0]
            shuffled = torch.randperm(len(rows), generator=generator(0, "hold out", label))
            held[rows[shuffled[: max(1, round(len(rows) * percent / 100))]]] = True
    return held


def long_tailed(y: Tensor, tasks: Tasks, ratio: float, seed: int) -> Tensor:
    """N: is this row kept? The class that the seed puts at place c of C keeps n * ratio^(-c / (C - 1)) of its n rows,
    at random, as in Long-Tailed CIFAR (Cao et al., 2019)."""
    kept = torch.ones(len(y), dtype=torch.bool)
    classes = sorted(label for task in tasks for label in task)
    by_class = y.argsort(stable=True).split(y.bincount(minlength=classes[-1] + 1).tolist())
    places = torch.randperm(len(classes), generator=generator(seed, "imbalance")).tolist()
    for label, place in zip(classes, places):
        rows = by_class[label]
        share = ratio ** (-place / max(len(classes) - 1, 1))
        keep = max(1, int(len(rows) * share + 1e-6))  # 1e-6: 4900 / 7 is 700, whatever floating point says
        shuffled = torch.randperm(len(rows), generator=generator(seed, "imbalance", label))
        kept[rows[shuffled[keep:]]] = False
    return kept


def blurred(order: list[Tensor], percent: float, seed: int) -> list[Tensor]:
    """The rows of each task after `percent` of them have swapped places with rows of other tasks, at random.

    A row that is to move never stays in its task. A task longer than all others together moves only as many rows as
    those have to swap.
    """
    random = generator(seed, "blurry")
    counts = [round(len(rows) * percent / 100) for rows in order]
    counts = [min(count, sum(counts) - count) for count in counts]
    places = [torch.randperm(len(rows), generator=random)[:count] for rows, count in zip(order, counts)]
    rows = torch.cat([rows[place] for rows, place in zip(order, places)])
    task = torch.arange(len(order)).repeat_interleave(torch.tensor(counts))
    source = torch.randperm(len(rows), generator=random)  # whose row each place receives
    for own in range(len(order)):
        stayed = ((task == own) & (task[source] == own)).nonzero()[:, 0]
        free = ((task != own) & (task[source] != own)).nonzero()[:, 0]  # as many or more: no task has over half
        other = free[torch.randperm(len(free), generator=random)[: len(stayed)]]
        source[stayed], source[other] = source[other], source[stayed]
    received = rows[source].split(counts)
    return [rows.index_copy(0, place, new) for rows, place, new in zip(order, places, received)]


def noisy_labels(y: Tensor, order: list[Tensor], tasks: Tasks, percent: float, seed: int) -> Tensor:
    """N: the labels, of which `percent` of each task's rows have become another class of that task, any of them alike.

    Another class of the same task: over all classes, labels would name classes long before these arrive.
    """
    labels = y.clone()
    for task, (rows, classes) in enumerate(zip(order, tasks)):
        random = generator(seed, "label noise", task)
        shuffled = torch.randperm(len(rows), generator=random)
        wrong = rows[shuffled[: round(len(rows) * percent / 100)]] if len(classes) > 1 else rows[:0]
        place = (y[wrong][:, None] == torch.tensor(classes)).int().argmax(1)
        shift = torch.randint(1, max(len(classes), 2), place.shape, generator=random)
        labels[wrong] = torch.tensor(classes)[(place + shift) % len(classes)]
    return labels
