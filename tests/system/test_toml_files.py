"""TOML there and back, and what cannot be read."""

import string
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droptop import BadRequest
from droptop.system.toml_files import leaves, read_tables, toml_line, toml_text

names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=6)
values = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.booleans(), st.text(max_size=20))


@given(st.dictionaries(names, values, max_size=4), st.dictionaries(names, values, min_size=1, max_size=4))
def test_options_come_back_by_path(top, below):
    options = {f"a{name}": value for name, value in top.items()}
    options |= {f"net.{name}": value for name, value in below.items()}
    options |= {f"net.deep.{name}": value for name, value in below.items()}
    if "deep" in below:  # which cannot be a value and a table
        del options["net.deep"]
    assert leaves(tomllib.loads(toml_text(options))) == options


def test_a_table_per_section():
    text = toml_text({"seeds": 2, "droptop.gamma": 5.0, "droptop.intensity.period": 3, "net.width": 4})
    assert tomllib.loads(text) == {
        "seeds": 2,
        "droptop": {"gamma": 5.0, "intensity": {"period": 3}},
        "net": {"width": 4},
    }
    assert "[droptop.intensity]\nperiod = 3\n" in text


@given(st.lists(values, max_size=4), names)
def test_a_line_holds_one_option(value, name):
    assert tomllib.loads(toml_line(name, value)) == {name: value}


def test_files_are_read_as_tables_or_by_path(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('data = "fashion"\nintensity.reference = true\n[learner]\nlr = 0.2\n', "utf-8")
    assert read_tables(path) == {"data": "fashion", "intensity": {"reference": True}, "learner": {"lr": 0.2}}
    assert leaves(read_tables(path)) == {"data": "fashion", "intensity.reference": True, "learner.lr": 0.2}


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a = ", " is not TOML: "), (b"a = '\xff'", " is not TOML: "), (None, " is not there"), ("folder", " cannot be")],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, content, says):
    path = tmp_path / "c.toml"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(BadRequest) as error:
        read_tables(path)
    assert str(error.value).startswith(f"{path}{says}")
