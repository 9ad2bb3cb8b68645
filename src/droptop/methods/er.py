"""ER: experience replay (Rolnick et al., 2019). Reservoir memory, random retrieval, one cross-entropy over both.

Cost of a step: one forward-backward over stream and memory batch. This is what every other method is measured by.
"""

from droptop.learner import Learner


class ER(Learner):
    """The learner as it is."""
