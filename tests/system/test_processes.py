"""How workers are started, in programs of their own: the tests have a fork server already."""

import subprocess
import sys

from toys import environment

SAYS = """
import os, signal, sys
def say(pipe, environment):
    pipe.send((os.getppid(), "torch" in sys.modules, signal.getsignal(signal.SIGINT) is signal.SIG_IGN))
"""
PROGRAM = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from says import say
from droptop.system import processes
from droptop.system.signals import deaf

if sys.argv[2] == "ahead":
    processes.load_ahead()
for device, threads in (("cpu", 1), ("cpu", 2), ("cuda:0", 1)):
    context = processes.context_of(device, threads)
    ours, theirs = context.Pipe()
    with deaf(), processes.without_main():
        worker = context.Process(target=say, args=(theirs, dict(os.environ)), daemon=True)
        worker.start()
    parent, has_torch, is_deaf = ours.recv()
    worker.join()
    print(device, threads, context.get_start_method(), parent == os.getpid(), has_torch, is_deaf, worker.exitcode)
print("OMP_NUM_THREADS" in os.environ, "torch" in sys.modules)
"""


def started(tmp_path, how):
    (tmp_path / "says.py").write_text(SAYS)
    variables = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    words = [sys.executable, "-c", PROGRAM, tmp_path, how]
    done = subprocess.run(words, capture_output=True, text=True, env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_workers_of_a_command_come_from_a_server_that_has_loaded_torch(tmp_path):
    """One thread on a CPU: not the command's child, torch is there, Ctrl-C is the command's until it has a handler."""
    assert started(tmp_path, "ahead") == [
        "cpu 1 forkserver False True True 0",
        "cpu 2 spawn True False True 0",
        "cuda:0 1 spawn True False True 0",
        "False False",  # and the command itself is as it was
    ]


def test_workers_of_a_program_are_started_afresh(tmp_path):
    assert started(tmp_path, "afresh") == [
        "cpu 1 spawn True False True 0",
        "cpu 2 spawn True False True 0",
        "cuda:0 1 spawn True False True 0",
        "False False",
    ]
