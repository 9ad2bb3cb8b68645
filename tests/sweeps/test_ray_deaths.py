"""A worker, a raylet and the head of a Ray cluster on this machine are killed in turn; no cell is lost or altered."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from droptop.sweeps.local import local
from droptop.sweeps.on_ray import on_ray
from droptop.sweeps.sweep import sweep

from studies import Silent, digests, write_study
from toys import command, environment

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = pytest.mark.ray


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    started.add_node(num_cpus=1)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    place = tmp_path_factory.mktemp("local")
    sweep(write_study(place / "study.toml", seeds=6), place / "out", local, Silent())
    return digests(place / "out")


def processes(name):
    """Return the processes of this machine whose title begins with a name."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_bytes().startswith(name.encode()):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def of_node(node, kind):
    """Return the processes of one kind that a node of the cluster has."""
    return [info.process.pid for info in node.all_processes.get(kind, [])]


class Killer(Silent):
    """Kill what is named once some cells are done."""

    def __init__(self, victims):
        super().__init__()
        self.victims, self.killed = victims, 0

    def done(self, job):
        super().done(job)
        deadline = time.monotonic() + 5
        while len(self.cells) == 3 and not self.killed and time.monotonic() < deadline:
            for process in self.victims()[:1]:
                os.kill(process, signal.SIGKILL)
                self.killed += 1
            time.sleep(0.05)


@pytest.mark.parametrize("kind", ["worker", "raylet"])
def test_a_worker_or_a_raylet_is_killed(tmp_path, cluster, undisturbed, fault_counts, kind):
    node = cluster.list_all_nodes()[1]
    killer = Killer({"worker": lambda: processes("ray::run_pack"), "raylet": lambda: of_node(node, "raylet")}[kind])
    study = write_study(tmp_path / "study.toml", seeds=6)
    counts = sweep(study, tmp_path / "out", on_ray(cluster.address, 1, 0), killer)
    assert killer.killed == 1
    assert counts == {"done": 12, "waiting": 0, "failed": 0}
    assert sorted(killer.cells) == sorted(set(killer.cells))  # once each
    assert digests(tmp_path / "out") == undisturbed
    fault_counts.add(f"kill -9 of a Ray {kind}")


def test_the_head_is_killed(tmp_path, cluster, undisturbed, fault_counts):
    """Nobody can go on without it: Ray ends the sweep with a line of its own, and the next one does what is missing."""
    study, out = write_study(tmp_path / "study.toml", seeds=6), tmp_path / "out"
    running = subprocess.Popen(
        command("sweep", study, "--out", out, "--engine", "ray", "--address", cluster.address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"},  # else a minute
    )
    deadline = time.monotonic() + 120
    while not any(out.glob("runs/*/seed-*/result.json")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for process in of_node(cluster.head_node, "gcs_server"):
        os.kill(process, signal.SIGKILL)
    _, said = running.communicate(timeout=180)
    assert running.returncode == 1, said
    assert "Traceback" not in said
    assert "GCS may have been killed" in said.splitlines()[-1], said
    assert sweep(None, out, local, Silent())["done"] == 12
    assert digests(out) == undisturbed
    fault_counts.add("kill -9 of a Ray head")
