"""DropTop, the slow way: Eq. 4 to 8 of the paper, cell by cell and class by class, with scipy's t-test."""

import math
import warnings
from collections.abc import Callable

import scipy.stats
import torch
from torch import Tensor

from droptop.debias import DropTopConfig


class SlowDropTop:
    """The drop mask, and the intensities of all groups: a group is a class, or all of them."""

    def __init__(self, config: DropTopConfig, classes: int, random: torch.Generator) -> None:
        self.config, self.intensity, self.random = config, config.intensity, random
        groups = classes if self.intensity.per == "class" else 1
        start = {"top": config.gamma, "random": 0.0}.get(config.drop, min(config.kappa_0, config.gamma))
        self.kappa = [start] * groups
        self.candidates = [self.around(start) for _ in range(groups)]  # decrement, increment
        self.direction = 0  # that is tried now
        # By direction and group: loss at the start of the block, and the latest loss reductions.
        self.losses: list[dict[int, float]] = [{}, {}]
        self.histories: list[list[list[float]]] = [[[] for _ in range(groups)] for _ in range(2)]
        self.traces: list[tuple[Tensor, Tensor]] = []  # attention and mask, by forward pass of the last iteration
        self.decisions = {"decrease": 0, "increase": 0, "neither": 0}

    @property
    def adapts(self) -> bool:
        return self.config.drop == "adaptive"

    def group(self, label: int) -> int:
        return label if self.intensity.per == "class" else 0

    # -- Eq. 4 to 6 ----------------------------------------------------------------------------------------------

    def mask(self, first: Tensor, last: Callable[[], Tensor], labels: list[int], direction: int | None) -> Tensor:
        """Return the drop mask (B, h, w): 1 where a cell is kept."""
        samples, _, height, width = first.shape
        maps = None if self.config.drop == "random" else last()
        uniform = torch.rand(samples, generator=self.random).tolist()
        noise = torch.rand(samples, height, width, generator=self.random)
        attention, masks = [], []
        for sample, label in enumerate(labels):
            scores = torch.zeros(height, width) if maps is None else self.scores(first[sample], maps[sample])
            top = self.cells(self.percent(label, direction), height * width, uniform[sample])
            total = self.cells(self.config.gamma, height * width, uniform[sample])
            attention.append(scores)
            masks.append(self.mask_of(scores.flatten(), noise[sample].flatten(), top, total).view(height, width))
        self.traces.append((torch.stack(attention), torch.stack(masks)))
        return torch.stack(masks)

    def scores(self, first: Tensor, last: Tensor) -> Tensor:
        """Eq. 4: where both maps have the same channels, multiply and average; else average, and then multiply."""
        _, height, width = first.shape
        if self.config.attention == "last":
            return enlarged(last.mean(0), height, width)
        if len(first) == len(last):
            products = [one * enlarged(other, height, width) for one, other in zip(first, last)]
            return sum(products) / len(products)
        return first.mean(0) * enlarged(last.mean(0), height, width)

    def percent(self, label: int, direction: int | None) -> float:
        """How much of the map of this class to drop by attention."""
        group = self.group(label)
        if not self.adapts:
            return self.kappa[group]
        return self.candidates[group][self.direction if direction is None else direction]

    def cells(self, percent: float, cells: int, uniform: float) -> int:
        """Round up or down by chance, so that the mean is right."""
        return math.floor(percent * cells / 100 + (uniform if self.config.rounding == "stochastic" else 0.5))

    def mask_of(self, attention: Tensor, noise: Tensor, top: int, total: int) -> Tensor:
        """Eq. 5: drop the top cells by attention, and others of the highest noise until `total` are dropped."""
        score, chance = attention.tolist(), noise.tolist()
        by_attention = sorted(range(len(score)), key=lambda cell: (-score[cell], cell))
        mask = torch.ones(len(score))
        for rank, cell in enumerate(by_attention[:top], 1):
            mask[cell] = rank / top if self.config.mask == "soft" else 0
        others = sorted(by_attention[top:], key=lambda cell: -chance[cell])
        for cell in others[: max(0, total - top)]:
            mask[cell] = 0
        return mask

    # -- Eq. 7 and 8 ---------------------------------------------------------------------------------------------

    def around(self, kappa: float) -> list[float]:
        alpha, gamma = self.intensity.alpha, self.config.gamma
        return [min(kappa * alpha, gamma), min(kappa / alpha, gamma)]

    def record(self, losses: list[dict[int, float]]) -> None:
        """End a block: note by how much the loss of each group fell in it, turn round, and decide.

        With two nets, one per direction, each has losses of its own.
        """
        for direction in (0, 1):
            now, before = losses[min(direction, len(losses) - 1)], self.losses[direction]
            if direction == self.direction:
                for group in now.keys() & before.keys():
                    history = self.histories[direction][group]
                    history.append(before[group] - now[group])
                    del history[: -self.intensity.history]
            self.losses[direction] = now
        self.direction = 1 - self.direction
        for group in range(len(self.kappa)):
            if all(len(self.histories[d][group]) == self.intensity.history for d in (0, 1)):
                self.decide(group)

    def decide(self, group: int) -> None:
        """Ask Student's t-test whether the decrement lowers the loss more, or the increment does."""
        falls, rises = (self.histories[direction][group] for direction in (0, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of histories without variance, which decide nothing
            p = scipy.stats.ttest_ind(falls, rises, alternative="greater").pvalue
        down, up = self.candidates[group]
        alpha, gamma, small = self.intensity.alpha, self.config.gamma, self.intensity.significance
        if p <= small:
            self.kappa[group], onwards = down, [down * alpha, down]
        elif p >= 1 - small:
            self.kappa[group] = up
            onwards = [up, min(up / alpha, gamma)] if up < gamma else [gamma * alpha, gamma]  # nothing is above gamma
        else:
            onwards = [down, up]
        self.decisions["decrease" if p <= small else "increase" if p >= 1 - small else "neither"] += 1
        self.candidates[group] = onwards if self.intensity.shift == "algorithm2" else self.around(self.kappa[group])
        self.histories[0][group], self.histories[1][group] = [], []


def enlarged(small: Tensor, height: int, width: int) -> Tensor:
    """Resize a map bilinearly: a cell has the mean of the four nearest centres, weighted by how near they are."""
    cells = small.tolist()
    return torch.tensor(
        [
            [
                sum(
                    of_row * of_column * cells[row][column]
                    for row, of_row in neighbours(i, height, len(cells))
                    for column, of_column in neighbours(j, width, len(cells[0]))
                )
                for j in range(width)
            ]
            for i in range(height)
        ]
    )


def neighbours(place: int, size: int, small: int) -> list[tuple[int, float]]:
    """Return the two nearest places of a smaller grid along one side, with their weights."""
    centre = min(max((place + 0.5) * small / size - 0.5, 0), small - 1)
    low = math.floor(centre)
    return [(low, 1 - (centre - low)), (min(low + 1, small - 1), centre - low)]
