"""A folder of each kind, made once: a comparison, a study of the same cells, and a run that stopped on the way."""

import json
import os
import shutil

import pytest

from droptop.runs.config import configure
from droptop.runs.requests import begin
from droptop.sweeps.grid import folder_name
from droptop.system.files import write_atomic
from droptop.training.seed_run import Interrupted, SeedRun

from pictures import EVIL, write_tree
from plans import plan
from toys import QUICK, made_once

OPTIONS = {"limit": 96, "width": 4, "memory": 40, "split": "0,1/2,3", "seeds": 2, "checkpoint_seconds": 1000.0}


def train(config, run, seeds):
    for seed in seeds:
        SeedRun(config, run, seed, lambda progress: None)()


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    def make(out):
        config = configure("fashion-sticker", **OPTIONS | QUICK)
        asked = plan(config, "compare")
        begin(asked, out)
        for run, arm in asked.folders(out).items():
            train(arm, run, arm.seeds)
        return ""

    return made_once(tmp_path_factory, "comparison", make)[0]


@pytest.fixture(scope="session")
def study(comparison, tmp_path_factory):
    """The comparison's cells, and another seed that has not begun."""
    out = tmp_path_factory.mktemp("study")
    options = OPTIONS | QUICK | {"seeds": 3}
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    (out / "study.toml").write_text("\n".join([*lines, 'data = "fashion-sticker"', 'debias = ["none", "droptop"]']))
    for debias in ("none", "droptop"):
        own = {name: value for name, value in options.items() if debias != "none" or name not in QUICK}
        config = configure("fashion-sticker", debias=debias, **own)
        run = out / "runs" / folder_name(config)
        shutil.copytree(comparison / debias, run)
        write_atomic(run / "config.toml", plan(config).toml().encode())
    return out


@pytest.fixture(scope="session")
def stopped(tmp_path_factory):
    """A run on a folder of images, whose first seed stopped in its second task."""
    place = tmp_path_factory.mktemp("images")
    parts = {"train": {EVIL: 16, "b&b": 16, "c": 16, "d": 16}, "test": {EVIL: 4, "b&b": 4, "c": 4, "d": 4}}
    write_tree(place / "tree", parts, size=(16, 16))
    out, kept = place / "out", os.environ.get("DROPTOP_CACHE")
    os.environ["DROPTOP_CACHE"] = str(place / "cache")
    try:
        config = configure(f"folder:{place / 'tree'}", image_size=16, stem="3x3", width=4, memory=20, batch=8, seeds=2)
        begin(plan(config), out)
        left = iter(range(5))
        with pytest.raises(Interrupted):
            SeedRun(config, out, 0, lambda progress: None, stop=lambda: next(left, None) is None)()
    finally:
        os.environ.pop("DROPTOP_CACHE") if kept is None else os.environ.update(DROPTOP_CACHE=kept)
    return out
