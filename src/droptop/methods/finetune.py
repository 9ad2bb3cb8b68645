"""Lower and upper bound: training without a memory, and training on all classes at once.

Without a memory there is no loss by which intensities could adapt: with DropTop, kappa' stays at kappa_0.
Cost of a step: half of ER's, which replays as many samples as it sees.
"""

from droptop.learner import Learner
from droptop.memory import Rows


class Finetune(Learner):
    """The lower bound: trains on the stream alone, and forgets."""

    memory_batches = 0

    def passes(self, rows: int) -> list[int]:
        return [rows]

    def retrieve(self, stream: Rows) -> Rows:
        """Replay nothing."""
        return {name: rows[:0] for name, rows in stream.items()}

    def remember(self, stream: Rows) -> None:
        """Keep nothing."""


class Joint(Finetune):
    """The upper bound: one pass over all classes shuffled into one task, so that nothing is forgotten.

    Compare its A_last with that of others.
    """

    preset = {"tasks": 1}
    tasks = 1
