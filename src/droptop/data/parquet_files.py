"""How large the tables in Parquet files become, which is known before they are read.

A column may name one value of a megabyte a million times: two kilobytes of file, a terabyte of memory. Such columns are
read here as numbers of values and each value once, which takes no more memory than the file says it has.
"""

from pathlib import Path
from typing import Any

from droptop.errors import BadRequest

ROOM = 1 << 30  # bytes that any file may become
GROWTH = 20  # times its size that a larger one may: photographs hardly shrink, and names of classes fit in ROOM
WIDEST = 16  # bytes of a number


def check_folder(folder: Path) -> None:
    """Raise BadRequest for the Parquet files in a folder, hidden ones left out, that would fill the memory."""
    for path in sorted(folder.rglob("*.parquet")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            check_file(path)


def check_file(path: Path) -> None:
    """Raise BadRequest for a file whose tables take much more memory than its size, or that is no Parquet file."""
    import pyarrow
    from pyarrow import parquet

    size, most = path.stat().st_size, max(ROOM, GROWTH * path.stat().st_size)
    try:
        file, total = parquet.ParquetFile(path), 0
        for group in range(file.metadata.num_row_groups):
            columns = [file.metadata.row_group(group).column(place) for place in range(file.metadata.num_columns)]
            total += sum(column.total_uncompressed_size for column in columns)
            for place, column in enumerate(columns):
                if total <= most:
                    total += bytes_of(path, group, column, file.metadata.schema.column(place).length, most)
            if total > most:
                raise BadRequest(f"{path} becomes more than {most:,} bytes when it is read, from {size:,}")
    except pyarrow.ArrowException as error:
        raise BadRequest(f"{path} is no Parquet file, or a damaged one: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror or ' '.join(str(error).split())}") from None


def bytes_of(path: Path, group: int, column: Any, width: int, most: int) -> int:
    """Return how many bytes the values of a column take in a group of rows; at most so many, of small ones.

    `column` is pyarrow's metadata of the column there, `width` the bytes of a value where all have the same number.
    """
    if column.physical_type != "BYTE_ARRAY":
        return int(column.num_values * max(width, WIDEST))
    if column.num_values * column.total_uncompressed_size <= most:  # also if each were the longest one
        return 0
    from pyarrow import parquet

    name = column.path_in_schema
    rows = parquet.ParquetFile(path, read_dictionary=[name]).read_row_group(group, columns=[name], use_threads=False)
    return sum(length_of(chunk) for values in rows.columns for chunk in values.chunks)


def length_of(values: Any) -> int:
    """Return how many bytes the values of an array take, each as often as it is named."""
    import pyarrow
    from pyarrow import compute

    while pyarrow.types.is_nested(values.type):
        (values,) = values.flatten() if pyarrow.types.is_struct(values.type) else [values.flatten()]
    if isinstance(values, pyarrow.DictionaryArray):
        lengths = compute.take(compute.binary_length(values.dictionary), values.indices)
    else:
        lengths = compute.binary_length(values)
    return compute.sum(lengths.cast(pyarrow.int64())).as_py() or 0
