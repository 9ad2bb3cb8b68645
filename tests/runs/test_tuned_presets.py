"""`--preset tuned`: options for a method on a stream, where somebody has tuned them."""

import pytest

from droptop.errors import BadRequest
from droptop.runs import tuned_presets
from droptop.runs.config import configure, has
from droptop.runs.plan import Plan
from droptop.runs.requests import load
from droptop.runs.tuned_presets import PRESETS, TunedPreset

from plans import parsed


def test_it_stands_for_what_was_found_and_what_is_set_wins(monkeypatch, tmp_path):
    found = TunedPreset({"lr": 0.2, "momentum": 0.9}, "docs/evidence/tuned.md")
    monkeypatch.setattr(tuned_presets, "PRESETS", {("er", "fashion"): found})
    config = parsed("--data", "fashion", "--debias", "droptop", "--preset", "tuned", "--momentum", "0.5")
    assert (config.learner.lr, config.learner.momentum) == (0.2, 0.5)
    assert configure("fashion", preset="paper") == configure("fashion")
    assert configure("fashion", preset="tuned", momentum=0.5) == config
    (tmp_path / "config.toml").write_text(Plan("run", {"": config}).toml())
    assert list(load(tmp_path).arms.values()) == [config]
    with pytest.raises(BadRequest) as refused:
        configure("fashion", "derpp", preset="tuned")
    said = "--preset tuned takes a method and a stream that were tuned (er on fashion), not derpp on fashion: `droptop"
    assert str(refused.value).startswith(said)


def test_every_entry_is_one_of_a_known_method_and_stream():
    for (method, data), found in PRESETS.items():
        config = configure(data, method, **({"weights": "random"} if method in ("l2p", "dualprompt") else {}))
        assert all(has(config, name) for name in found.options)
        assert found.page.startswith("docs/evidence/")
