"""The order of a stream: which sample arrives when, and under which label.

Classes in tasks, samples that are kept back, long tails, blurred borders between tasks, and noisy labels. Each function
draws from its own generator, so that one option does not change what another decides. With all options off, a stream is
its classes in tasks, shuffled.
"""

import torch
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.rng import generator
from droptop.types import Tasks

# -- Classes ----------------------------------------------------------------------------------------------------------


def class_labels(text: str, classes: tuple[str, ...], option: str) -> tuple[int, ...]:
    """Return the labels of classes listed by name or label, as in dog,cat or 5,3; refuse unknown and repeated ones."""
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
    """Return the classes of each task; the options are those of `StreamConfig`."""
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


def rows_by(numbers: Tensor, least: int = 0) -> tuple[Tensor, ...]:
    """Return the rows of every number from 0, in their order; for `least` numbers, also where the last have no row."""
    return numbers.argsort(stable=True).split(numbers.bincount(minlength=least).tolist())


def rows_of_tasks(y: Tensor, tasks: Tasks, classes: int) -> tuple[Tensor, ...]:
    """Return the rows of each task, in their order."""
    task_of = torch.full((classes,), len(tasks))  # classes of no task come last
    for task, labels in enumerate(tasks):
        task_of[list(labels)] = task
    return rows_by(task_of[y], len(tasks))[: len(tasks)]


def held_out(y: Tensor, percent: float) -> Tensor:
    """Return which rows are kept back (N): a percentage of every class, at least one row of each; none for 0.

    They are the same for every seed; otherwise, options chosen by them would be chosen by samples that another seed
    learned from.
    """
    held = torch.zeros(len(y), dtype=torch.bool)
    if percent:
        for label, rows in enumerate(rows_by(y)):
            if not len(rows):
                continue
            shuffled = torch.randperm(len(rows), generator=generator(0, "hold out", label))
            held[rows[shuffled[: max(1, round(len(rows) * percent / 100))]]] = True
    return held


def long_tailed(y: Tensor, tasks: Tasks, ratio: float, seed: int) -> Tensor:
    """Return which rows stay (N) so that classes become unequally frequent, as in Long-Tailed CIFAR (Cao et al., 2019).

    The seed ranks the C classes; the class at rank c, from 0, keeps n * ratio^(-c / (C - 1)) of its n rows, at random.
    """
    kept = torch.ones(len(y), dtype=torch.bool)
    classes = sorted(label for task in tasks for label in task)
    by_class = rows_by(y, classes[-1] + 1)
    places = torch.randperm(len(classes), generator=generator(seed, "imbalance")).tolist()
    for label, place in zip(classes, places):
        rows = by_class[label]
        share = ratio ** (-place / max(len(classes) - 1, 1))
        keep = max(1, int(len(rows) * share + 1e-6))  # 1e-6: 4900 / 7 is 700, whatever floating point says
        shuffled = torch.randperm(len(rows), generator=generator(seed, "imbalance", label))
        kept[rows[shuffled[keep:]]] = False
    return kept


def blurred(order: list[Tensor], percent: float, seed: int) -> list[Tensor]:
    """Swap a percentage of the rows of each task with rows of other tasks, at random; return the new order.

    A row that is drawn to move always leaves its task. A task longer than all others together moves only as many rows
    as the others move.
    """
    random = generator(seed, "blurry")
    counts = [round(len(rows) * percent / 100) for rows in order]
    counts = [min(count, sum(counts) - count) for count in counts]
    places = [torch.randperm(len(rows), generator=random)[:count] for rows, count in zip(order, counts)]
    rows = torch.cat([rows[place] for rows, place in zip(order, places)])
    task = torch.arange(len(order)).repeat_interleave(torch.tensor(counts))
    source = torch.randperm(len(rows), generator=random)  # whose row each place receives
    for number in range(len(order)):
        stayed = ((task == number) & (task[source] == number)).nonzero()[:, 0]
        others = ((task != number) & (task[source] != number)).nonzero()[:, 0]  # enough: no task has over half
        other = others[torch.randperm(len(others), generator=random)[: len(stayed)]]
        source[stayed], source[other] = source[other], source[stayed]
    received = rows[source].split(counts)
    return [rows.index_copy(0, place, new) for rows, place, new in zip(order, places, received)]


def noisy_labels(y: Tensor, order: list[Tensor], tasks: Tasks, percent: float, seed: int) -> Tensor:
    """Return the labels (N) with a percentage of each task's rows changed to another class of the task, at random.

    The new class is one of the same task: drawn among all classes, labels would name classes before they arrive.
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
