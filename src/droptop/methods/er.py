"""ER: experience replay (Rolnick et al., 2019). Reservoir memory, random retrieval, one cross-entropy over both.

Cost of a step: one forward-backward over stream and memory batch. The costs of the other methods are relative to it.
"""

from droptop.learner import Learner


class ER(Learner):
    """`Learner` without any difference."""
