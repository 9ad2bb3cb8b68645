"""Every code block of the documentation, run in order, a page in a folder of its own.

python   is executed; blocks of a page share their names. With title="FILE" it is written there instead
toml     is written to the file that its title names
sh       is run by bash
text     is there to be read
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from droptop import Diverged, make_learner
from droptop.debias import find
from droptop.runs import checkpoint
from droptop.system import user_files

from toys import CLASSES, FLOAT_SPEC, SMALL, SPEC, differences, feed, snapshot, toy_batches

PAGES = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))
DEBIASER_PAGE = Path(__file__).parent.parent / "docs" / "add-a-debiaser.md"
BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [found.groups() for found in BLOCK.finditer(page.read_text())]


def test_every_block_is_of_a_kind_that_is_checked():
    for page in PAGES:
        assert page.read_text().count("\n```") == 2 * len(blocks(page)), page
        for kind, title, _ in blocks(page):
            assert kind in ("python", "sh", "text") or (kind == "toml" and title), (page, kind)


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(kind != "text" for kind, *_ in blocks(page))], ids=lambda page: page.stem
)
def test_runs_as_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    names = {"__name__": "__main__"}
    for kind, title, text in blocks(page):
        if title:
            Path(title).write_text(text)
        elif kind == "python":
            exec(compile(text, str(page), "exec"), names)
        elif kind == "sh":
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)


# -- The debiaser of add-a-debiaser.md --------------------------------------------------------------------------------


@pytest.fixture
def hide(tmp_path):
    """The file that the page shows."""
    ((name, text),) = [(title, text) for _, title, text in blocks(DEBIASER_PAGE) if title]
    (tmp_path / name).write_text(text)
    user_files.named(str(tmp_path / name))
    return str(tmp_path / name)


def learner(debias, spec=SPEC, **options):
    return make_learner("er", spec, debias, **SMALL | options)


def test_hides_tiles_in_the_mean_gray_of_the_images_so_far(hide):
    kind = find(hide)
    images = [torch.rand(200, 3, 7, 9), torch.rand(200, 3, 7, 9) / 2]
    debiaser = kind(kind.config_type(share=0.3, tiles=2), CLASSES, torch.Generator().manual_seed(0))
    for grays, x in ((images[:1], images[0]), (images, images[1])):
        changed, gray = debiaser.images(x), torch.cat(grays).mean()
        hidden = (changed != x).all(1)
        assert torch.allclose(changed, torch.where(hidden[:, None], gray, x))
        for rows in (slice(0, 4), slice(4, 7)):
            for columns in (slice(0, 5), slice(5, 9)):
                tile = hidden[:, rows, columns].flatten(1)
                assert torch.equal(tile.any(1), tile.all(1))
                assert 0.2 < tile.any(1).float().mean() < 0.4


def test_resumes_exactly_and_by_its_seed(hide, tmp_path):
    batches = toy_batches(8)
    straight = feed(learner(hide), batches[:5])
    checkpoint.write(tmp_path, checkpoint.step_name(5), straight.state_dict(), {})
    resumed = learner(hide, seed=1)  # another seed: nothing of it may be left
    resumed.load_state_dict(checkpoint.read(tmp_path / f"{checkpoint.step_name(5)}.json")[0])
    states = [feed(each, batches[5:]).state_dict() for each in (straight, resumed)]
    states += [feed(learner(hide, seed=seed), batches).state_dict() for seed in (0, 1)]
    assert float(states[0]["debias.hide.batches"]) == 8
    assert differences(states[0], states[1]) == []
    assert differences(states[0], states[2]) == []
    assert differences(states[0], states[3]) != []


def test_nothing_hidden_is_no_debiasing(hide):
    batches = toy_batches(8)
    plain, nothing, some = (
        feed(learner(debias, **options), batches).state_dict()
        for debias, options in (("none", {}), (hide, {"share": 0.0}), (hide, {}))
    )
    shared = plain.keys() - {"random.debias"}
    assert nothing.keys() - shared == {"random.debias", "debias.hide.batches", "debias.hide.gray"}
    assert differences({name: plain[name] for name in shared}, {name: nothing[name] for name in shared}) == []
    assert not torch.equal(plain["model.fc.weight"], some["model.fc.weight"])


def test_a_loss_that_is_not_finite_leaves_its_buffers_alone(hide):
    hiding = feed(learner(hide, FLOAT_SPEC), toy_batches(3, spec=FLOAT_SPEC))
    before = snapshot(hiding)
    x, y, _ = toy_batches(1, spec=FLOAT_SPEC)[0]
    with pytest.raises(Diverged):
        hiding.observe(x * 3e38, y)
    assert [name for name in differences(before, hiding.state_dict()) if not name.startswith("random.")] == []
