"""Count what the tests marked `faults` did to the program, and say it at the end, under pytest-xdist too.

def test_kills(fault_counts):
    fault_counts.add("kills", 20)
"""

from collections import Counter

import pytest

PLACE = "fault_counts"  # in what a worker of pytest-xdist hands over


class FaultCounts:
    """Hold how often each kind of harm was done; a test adds to it once it has seen that nothing was lost."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def add(self, kind: str, n: int = 1) -> None:
        """Add to a kind, such as "kills"."""
        self.counts[kind] += n


COUNTS = pytest.StashKey[FaultCounts]()


def pytest_configure(config):
    config.stash[COUNTS] = FaultCounts()


@pytest.fixture(scope="session")
def fault_counts(pytestconfig):
    """Return the counts of this session."""
    return pytestconfig.stash[COUNTS]


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[PLACE] = dict(session.config.stash[COUNTS].counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash[COUNTS].counts.update(getattr(node, "workeroutput", {}).get(PLACE, {}))


def pytest_terminal_summary(terminalreporter, config):
    if counts := config.stash[COUNTS].counts:
        terminalreporter.section("harm done, and nothing lost")
        for kind, count in sorted(counts.items()):
            terminalreporter.line(f"{count:7,} {kind}")
