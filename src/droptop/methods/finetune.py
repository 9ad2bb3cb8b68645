"""The two bounds of every table: nothing is remembered, or nothing needs to be.

Without a memory there is no loss to adapt the intensity by: with DropTop, kappa' stays at kappa_0.
Cost of a step: half of ER's, which replays as many samples as it sees.
"""

from droptop.learner import Learner
from droptop.memory import Rows


class Finetune(Learner):
    """The lower bound: trains on the stream alone and forgets."""

    def retrieve(self, stream: Rows) -> Rows:
        return {name: rows[:0] for name, rows in stream.items()}

    def remember(self, stream: Rows) -> None:
        pass


class Joint(Finetune):
    """The upper bound: one pass over all classes shuffled together, so that there is nothing to forget. With one task,
    its A_last is what compares with that of others."""

    preset = {"tasks": 1}
    tasks = 1
