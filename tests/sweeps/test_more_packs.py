"""A driver that decides what to run by what is done: every engine asks it for more while there is room."""

from types import SimpleNamespace

from droptop.runs.config import configure
from droptop.sweeps.on_ray import _work
from droptop.sweeps.sweep import Driver
from droptop.training.observer import Job

CONFIG = configure("fashion", "er", "none")


class OneAfterAnother(Driver):
    """Five jobs, of which `at_once` are in flight at most."""

    def __init__(self, tmp_path, at_once):
        self.at_once, self.in_flight, self.most, self.finished = at_once, 0, 0, []
        self.left = [Job(CONFIG, tmp_path / str(number), number) for number in range(5)]

    def more(self):
        if self.in_flight == self.at_once or not self.left:
            return []
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        return [[self.left.pop(0)]]

    def done(self, job):
        self.in_flight -= 1
        self.finished.append(job.seed)


class Cluster:
    """What the engine needs of Ray: tasks that are done by the time that one waits for them."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, cpus):
        self.cpus, self.waited_for = cpus, []

    def remote(self, function):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda pack: object()))

    def cluster_resources(self):
        return {"CPU": self.cpus}

    def wait(self, references, **_):
        self.waited_for.append(len(references))
        return references[:1], references[1:]

    def get(self, reference):
        return None, []


def test_ray_is_given_as_many_as_it_has_room_for(tmp_path):
    wide, cluster = OneAfterAnother(tmp_path, 4), Cluster(3)
    _work(cluster, [], wide, 1.0, 0.0)
    assert (sorted(wide.finished), wide.most, max(cluster.waited_for)) == ([0, 1, 2, 3, 4], 3, 3)
    single = OneAfterAnother(tmp_path, 1)
    _work(Cluster(3), [], single, 1.0, 0.0)
    assert (single.finished, single.most) == ([0, 1, 2, 3, 4], 1)
