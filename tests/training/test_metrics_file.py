"""metrics.jsonl as it grows, is cut back and is recognised."""

import hashlib
import json

import pytest

from droptop.training.metrics_file import MetricsFile, matches


def test_a_mark_is_the_length_and_hash_of_what_was_written(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    for step in (1, 2):
        file.append({"step": step})
    mark = file.mark()
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'
    assert mark == {"bytes": 24, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    file.append({"step": 3})
    file.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]
    assert matches(path, mark)  # a file that has grown since still begins so


def test_a_file_goes_on_from_a_mark_as_if_it_had_never_stopped(tmp_path):
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    file = MetricsFile(one)
    file.append({"step": 1})
    mark = file.mark()
    file.append({"step": 2, "loss": 0.5})
    file.close()
    again, straight = MetricsFile(one, mark["bytes"]), MetricsFile(other)
    straight.append({"step": 1})
    for each in (again, straight):
        each.append({"step": 2})
    assert again.mark() == straight.mark()
    again.close(), straight.close()
    assert one.read_bytes() == other.read_bytes()  # without what came after the mark


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text('{"step": 9}\n')])
def test_another_file_is_not_taken_for_the_marked_one(tmp_path, damage):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    file.append({"step": 1})
    mark = file.mark()
    file.close()
    assert matches(path, mark)
    damage(path)
    assert not matches(path, mark)
