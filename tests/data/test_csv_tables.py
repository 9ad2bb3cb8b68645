import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droptop import BadRequest
from droptop.data.csv_tables import read_table

CELL = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Z"], blacklist_characters="\ufeff"), max_size=5)


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "list.csv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@given(rows=st.lists(st.tuples(CELL, CELL).filter(any), min_size=1, max_size=5), separator=st.sampled_from(",;\t"))
def test_reads_what_the_csv_module_writes(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("csv") / "list.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([("a b", "c"), *rows])
    assert read_table(path).columns == {"a b": tuple(row[0] for row in rows), "c": tuple(row[1] for row in rows)}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_spreadsheets_write_byte_order_marks(write, encoding, end):
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    table = read_table(write((mark + end.join(["path,label", "é.png,Bär", ""])).encode(encoding)))
    assert table.columns == {"path": ("é.png",), "label": ("Bär",)}


def test_lines_are_those_of_the_file(write):
    table = read_table(write('path,label\n\n a.png ,"cat, ""big"""\n , \n"b\nb.png",dog\n'))
    assert table.columns == {"path": ("a.png", "b\nb.png"), "label": ('cat, "big"', "dog")}
    assert table.lines == (3, 6)
    assert table.line(0).endswith("list.csv, line 3")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is empty: its first line names columns"),
        ("\n\n", "is empty"),
        ("path,label\n", "has no rows below its first line, path,label"),
        ("path,label,path\na,b,c\n", "names every column, each another, not path, label, path"),
        ("path,\na,b\n", "names every column, each another"),
        ("path,label\na,b\nc\n", "line 3, has 1 cells, and the first line 2"),
        ('path,label\na,"b\n', "line 2: "),
        (
            "path,label\na,Bär\n".encode("latin-1"),
            r"line 2, is not text in UTF-8 \(byte 0xe4\): save the file as UTF-8",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0", "is not text in UTF-8"),
        (b"\xff\xfea", "is not text"),
    ],
)
def test_what_is_no_table_is_refused(write, data, words):
    with pytest.raises(BadRequest, match=words) as error:
        read_table(write(data))
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_refused(tmp_path):
    for path, words in ((tmp_path / "nowhere.csv", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(BadRequest, match=words):
            read_table(path)
