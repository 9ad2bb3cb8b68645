"""What whole batches leave out of a task is said at the start."""

import pytest

import droptop
from droptop import make_stream
from droptop.cli import main
from droptop.runs.whole_batches import fitting_batch, left_out_note

from studies import write_study

SMALL = ["--seeds", "1", "--width", "4", "--maps", "0"]
SAYS = "fashion: 28 of 60 images per task are left out by batches of 32"


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_images_that_are_never_learned_from_are_told_once(command, tmp_path, capsys):
    if command == "sweep":
        study = write_study(tmp_path / "study.toml", limit=60, method=["finetune", "er"], debias="none", seeds=1)
        args = ["sweep", str(study), "--out", str(tmp_path / "out")]
    else:
        args = [command, "--data", "fashion", "--limit", "60", *SMALL, "--out", str(tmp_path / "out")]
    assert main(args) == 0
    said = capsys.readouterr()
    assert (said.out + said.err).count(SAYS) == 1
    assert "--batch 12 or --no-drop-last" in (said.out + said.err)


def test_little_that_is_left_out_is_not_worth_a_word():
    assert left_out_note(make_stream("fashion", limit=100)) == []  # 4 of 100
    assert left_out_note(make_stream("fashion", limit=103)) == [  # 7 of 103, by hand: 103 = 5 * 20 + 3
        "fashion: 7 of 103 images per task are left out by batches of 32; all but a few are learned from with "
        "--batch 20 or --no-drop-last"
    ]
    assert left_out_note(make_stream("fashion", limit=60, drop_last=False)) == []
    (note,) = left_out_note(make_stream("fashion", limit=60, split="bag/shirt,coat,dress", batch=32, imbalance=1.5))
    assert "28 of 60" in note


def test_the_batch_that_is_named_leaves_little_of_any_task():
    for sizes in ([60], [61, 300], [33, 47, 95], [1000]):
        for batch in (32, 64, 300):
            smaller = fitting_batch(sizes, batch)
            fits = [
                size
                for size in range(2, batch)
                if all(count // size >= 5 and count - count // size * size <= count / 20 for count in sizes)
            ]
            assert smaller == max(fits, default=None)
    assert fitting_batch([7], 4) is None


def test_a_stream_counts_what_it_leaves_out():
    """Against the batches themselves."""
    for batch, drop_last in ((32, True), (32, False), (20, True)):
        stream = make_stream("fashion", limit=70, batch=batch, drop_last=drop_last)
        seen = sum(len(x) for x, *_ in stream)
        assert sum(map(stream.left_out, range(5))) == sum(map(len, stream.order)) - seen
        assert droptop.Stream.left_out(stream, 0) == (0 if not drop_last else 70 % batch)
