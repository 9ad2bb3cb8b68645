"""Complaints: collected, each said once, with a hint at what was meant."""

from pathlib import Path

import pytest

from droptop import errors
from droptop.errors import BadRequest, Damaged, all_refusals, meant, refuse, require, typed, wrong


def test_nothing_to_refuse_raises_nothing():
    refuse([])


def test_one_refusal_is_raised_as_it_is():
    error = BadRequest("a is damaged")
    with pytest.raises(BadRequest) as raised:
        refuse([error])
    assert raised.value is error
    again = BadRequest("a is damaged")
    with pytest.raises(BadRequest) as raised:
        refuse([error, again])  # the same file, looked at twice
    assert not isinstance(raised.value, Damaged)


def test_several_refusals_are_raised_as_one_line_with_every_reason_once():
    with pytest.raises(Damaged) as raised:
        refuse([BadRequest("a"), Damaged(["b", "a"]), BadRequest("c")])
    assert raised.value.reasons == ["a", "b", "c"]
    assert str(raised.value) == "a; and 2 more files like it"
    assert str(Damaged(["a", "b"])) == "a; and 1 more file like it"


def test_all_refusals_goes_on_after_a_bad_file_and_raises_at_the_end():
    tried = []

    def try_all():
        with all_refusals() as trying:
            for name in "abcd":
                with trying():
                    tried.append(name)
                    refuse([BadRequest(f"{name} is damaged")] if name in "bd" else [])

    with pytest.raises(Damaged) as raised:
        try_all()
    assert tried == [*"abcd"]
    assert raised.value.reasons == ["b is damaged", "d is damaged"]


def test_all_refusals_lets_other_errors_through():
    with pytest.raises(OSError, match="the disk"), all_refusals() as trying, trying():
        raise OSError("the disk")


def test_meant_names_the_closest_known_name_or_nothing():
    known = ["gamma", "kappa-0", "seeds"]
    assert meant("gama", known, "--") == "; did you mean --gamma?"
    assert meant("weather", known) == ""
    assert meant("seeds", iter(known)) == "; did you mean seeds?"


def test_require_names_option_wish_and_value():
    require(True, "memory_batch", "a number from 1", 0)
    with pytest.raises(BadRequest) as raised:
        require(False, "memory_batch", "a number from 1", 0)
    assert str(raised.value) == "--memory-batch takes a number from 1, not 0"


def test_commands_are_quoted_as_a_shell_needs_it():
    assert typed("resume", Path("runs/my run")) == "`droptop resume 'runs/my run'`"


def test_a_step_went_wrong_by_its_loss_or_by_its_gradient():
    assert wrong(float("nan")) == "loss is nan"
    assert wrong(2.34567) == "gradient of the loss, 2.35, is not finite"


def test_only_a_worker_that_died_is_worth_the_same_command_again():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DroptopError)]
    assert [kind for kind in kinds if kind.resumable] == [errors.WorkerDied, errors.DiedAtOnce]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "this machine has not the memory for it"),
        (RuntimeError("can't allocate memory: 8 bytes\nmore"), ".* for it: can't allocate memory: 8 bytes"),
    ],
)
def test_a_lack_of_memory_is_told_in_a_line(error, says):
    with pytest.raises(errors.WorkerDied, match=f"^{says}$"), errors.telling_no_memory():
        raise error
    with pytest.raises(RuntimeError, match="else"), errors.telling_no_memory():
        raise RuntimeError("something else")
