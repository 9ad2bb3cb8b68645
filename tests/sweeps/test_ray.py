"""A real Ray cluster of several nodes on this machine: one is killed in the middle, one is added, nothing is lost."""

import os
import signal

import pytest

from droptop.sweeps.local import local
from droptop.sweeps.on_ray import on_ray
from droptop.sweeps.sweep import sweep

from studies import CELLS, Silent, digests, write_study

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = pytest.mark.ray


def test_a_node_dies_and_another_joins(tmp_path, capsys):
    from ray.cluster_utils import Cluster

    study = write_study(tmp_path / "study.toml", seeds=20)  # two configurations: 40 cells
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = cluster.add_node(num_cpus=1)

    class Meddler(Silent):
        """Kills a node once some cells are done, and adds one later."""

        def done(self, job):
            super().done(job)
            if len(self.cells) == 8:
                for processes in doomed.all_processes.values():
                    for info in processes:
                        os.kill(info.process.pid, signal.SIGKILL)
            if len(self.cells) == 16:
                cluster.add_node(num_cpus=1)

    watcher = Meddler()
    try:
        counts = sweep(study, tmp_path / "ray", on_ray(cluster.address, 1, 0), watcher)
    finally:
        cluster.shutdown()
    assert counts == {"done": 40, "waiting": 0, "failed": 0}
    assert sorted(watcher.cells) == sorted(set(watcher.cells))  # once each
    assert len(watcher.cells) == 2 * 20
    sweep(study, tmp_path / "local", local, Silent())
    assert digests(tmp_path / "ray") == digests(tmp_path / "local")
    assert len(digests(tmp_path / "ray")) == 80
    with capsys.disabled():
        print(f"\n40 cells on {CELLS}: one node killed after 8, one added after 16; all done once, byte-equal to local")
