"""Calls as people write them, for mypy: it accepts the right ones and refuses the wrong ones.

`make check` runs it. Where mypy no longer refuses a wrong call, it reports the comment behind that call as unused.
"""

from pathlib import Path
from typing import Any

from torch import nn

import droptop


def right(model: nn.Module, spec: droptop.Spec) -> None:
    droptop.run("fashion", "er", "none", out="runs/er", seeds=3, lr=1, width=None, root=Path("data"))
    droptop.compare("folder:mine", debias=["droptop", "robust"], out=Path("runs"), gamma=2.5, image_size=96, probe=64)
    droptop.compare(method="l2p", out="runs/l2p", weights="random", chosen=3, precision="bf16", log=droptop.Tracker)
    droptop.configure("fashion-colour", correlation=0.9, colours="red,green", threads=2)
    stream = droptop.make_stream("fashion-sticker", seed=1, correlation=0.9, limit=64, root=None)
    learner = droptop.make_learner("aser", stream, "mixstyle", neighbours=5, share=0.25, device="cuda")
    learner.predict(stream.tests["clean"][learner.seen].x)
    droptop.make_learner("er", spec, model=model, first="stem", last="body", memory=200)
    droptop.attach(model, "stem", "body", 10, gamma=5.0, period=3).remove()
    droptop.load_learner("runs/er", seed=1, device="cpu")
    droptop.resume("runs/er", seeds=5)
    own: dict[str, Any] = {"zeal": 0.5, "intensity.alpha": 0.9}  # options of a file of one's own, or by their path
    droptop.run(method="mine.py", out="runs/mine", **own)


def wrong(model: nn.Module, stream: droptop.Stream) -> None:
    droptop.run(out="runs", sedes=3)  # type: ignore[call-arg]
    droptop.run(out="runs", seeds="three")  # type: ignore[arg-type]
    droptop.run(seeds=3)  # type: ignore[call-arg]
    droptop.compare(out="runs", gama=2.5)  # type: ignore[call-arg]
    droptop.compare(out="runs", precision="fp8")  # type: ignore[arg-type]
    droptop.configure(learning_rate=0.1)  # type: ignore[call-arg]
    droptop.make_stream("fashion-sticker", lr=0.1)  # type: ignore[call-arg]
    droptop.make_learner("er", stream, memry=200)  # type: ignore[call-arg]
    droptop.make_learner("er", stream, tasks=3)  # type: ignore[call-arg]
    droptop.attach(model, "stem", "body", 10, memory=200)  # type: ignore[call-arg]
    droptop.load_learner("runs", sed=1)  # type: ignore[call-arg]
