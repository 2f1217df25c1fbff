"""CSV files with commas, semicolons or tabs, and errors that name the line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.data.sources import Frame
from hopefold.errors import BrokenFile, InvalidInput, MissingPackage

if TYPE_CHECKING:
    from numpy import ndarray

#: The largest block of pyarrow: column types are inferred from all rows of a block.
LARGEST_BLOCK = 2**31 - 1

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")

#: Text that a spreadsheet would interpret as a formula. An apostrophe is put before it. If it
#: starts with apostrophes already, one more is added, so that the conversion is reversible.
FORMULA = "'*[=+\\-@\t\r\n＝＋－＠]"

#: A number stored as text is harmless.
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"

#: Number of bytes of the header line from which the delimiter is detected.
LONGEST_LINE = 10_000_000

#: The name given to a first column without a name: row numbers or row names.
NAMELESS = "row"


def parse_csv(content: bytes, source: str, delimiter: str | None = None) -> Frame:
    """Return the columns of a CSV text, whose first line is the header."""
    if not content.strip():
        raise InvalidInput(f"{source} is empty: give a line of names and some rows.")
    delimiter = delimiter or _find_delimiter(content)
    if content.count(b'"') % 2:
        _check_quotes(content, source, delimiter)
    table = _parse(content, source, delimiter)
    if delimiter == ";" and _has_decimal_commas(table):
        table = _parse(content, source, delimiter, decimal_point=",")
    columns, ids = columns_of(without_marks(table, source), source)
    if not len(next(iter(columns.values()))):
        raise InvalidInput(f"{source} has a line of names and no rows: give some.")
    in_file = dict(zip(columns, table.column_names, strict=False))

    def written(name: str) -> ndarray:
        one = _parse(content, source, delimiter, text=in_file[name])
        texts: ndarray = without_marks(one, source).column(0).to_numpy()
        return np.array([text.strip() for text in texts], dtype=object)

    return Frame(source, columns, ids, written)


def with_marks(table: Any) -> Any:
    """Escape texts of a pyarrow table that a spreadsheet would interpret as formulas."""
    from pyarrow import compute  # type: ignore[import-untyped]

    def mark(column: Any) -> Any:
        formula = compute.match_substring_regex(column, f"^{FORMULA}")
        number = compute.match_substring_regex(column, f"^{NUMBER}$")
        marked = compute.binary_join_element_wise("'", column.cast("string"), "")
        return compute.if_else(compute.and_not(formula, number), marked, column.cast("string"))

    return _of_texts(table, mark)


def without_marks(table: Any, source: str) -> Any:
    """Undo `with_marks`."""
    from pyarrow import compute

    def unmark(column: Any) -> Any:
        return compute.replace_substring_regex(column, f"^'({FORMULA})", r"\1")

    try:
        return _of_texts(table, unmark)
    except UnicodeDecodeError as error:
        raise _no_utf8(source) from error


def _of_texts(table: Any, change: Callable[[Any], Any]) -> Any:
    """Return the table with a function applied to its texts and its names."""
    import pyarrow

    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if str(column.type) in ("string", "large_string"):
            table = table.set_column(place, name, change(column))
    names = pyarrow.array(table.column_names, pyarrow.string())
    return table.rename_columns(change(names).to_pylist())


def columns_of(table: Any, source: str) -> tuple[dict[str, ndarray], str | None]:
    """Return the columns of a pyarrow table as arrays; missing numbers are NaN, missing text None.

    A first column without a name holds the row names, as R and pandas write them; it gets a name.
    """
    try:
        names = [name.strip() for name in table.column_names]
    except UnicodeDecodeError as error:
        raise _no_utf8(source) from error
    if table.num_columns > 1 and not names[-1] and str(table.columns[-1].type) == "null":
        table, names = table.select(range(len(names) - 1)), names[:-1]  # trailing commas
    ids = NAMELESS if names and not names[0] and NAMELESS not in names else None
    if ids:
        names[0] = ids
    name, count = max(Counter(names).items(), key=itemgetter(1), default=("", 0))
    if "" in names:
        raise InvalidInput(f"column {names.index('') + 1} of {source} has no name: give one.")
    if count > 1:
        raise InvalidInput(f"{source} has {count} columns {name!r}: rename them.")
    if not names:
        raise InvalidInput(f"{source} has no columns.")
    arrays = {
        name: _array(name, column, source)
        for name, column in zip(names, table.columns, strict=True)
    }
    return arrays, ids


def _find_delimiter(content: bytes) -> str:
    beginning = content[:LONGEST_LINE].lstrip(b" \r\n").decode("utf-8", "replace")
    header = re.sub('"[^"]*"', "", beginning).split("\n", 1)[0]  # ignore quoted delimiters
    return max(",;\t", key=header.count)


def _parse(
    content: bytes,
    source: str,
    delimiter: str,
    *,
    decimal_point: str = ".",
    text: str | None = None,
) -> Any:
    """Return all columns with inferred types, or one of them as text."""
    try:
        import pyarrow
        from pyarrow import csv as arrow_csv
    except ImportError as error:
        raise MissingPackage(
            "CSV is read with pyarrow, which is not installed: pip install 'hopefold[cli]'."
        ) from error
    block = min(max(len(content) + 1, 2**16), LARGEST_BLOCK)
    try:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(content),
            # if threads are younger than torch's, exiting can abort the process
            arrow_csv.ReadOptions(block_size=block, use_threads=False),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                strings_can_be_null=text is None,
                decimal_point=decimal_point,
                column_types=None if text is None else {text: pyarrow.string()},
                include_columns=None if text is None else [text],
            ),
        )
    except UnicodeDecodeError as error:
        raise _no_utf8(source) from error
    except pyarrow.ArrowInvalid as error:
        raise _broken(content, source, delimiter, str(error)) from error


def _broken(content: bytes, source: str, delimiter: str, complaint: str) -> BrokenFile:
    """Return an error for the first line with more or fewer cells than the header."""
    records = csv.reader(
        io.StringIO(content.decode("utf-8", "replace"), newline=""), delimiter=delimiter
    )
    try:
        n_names, begins = len(next(records)), records.line_num + 1
        for record in records:
            if record and len(record) != n_names:
                cells = f"{len(record)} cell{'s' * (len(record) != 1)}"
                return BrokenFile(
                    f"line {begins} of {source} has {cells}, but the line of names has {n_names}: "
                    "correct that line."
                )
            begins = records.line_num + 1
    except (csv.Error, StopIteration):
        pass
    return BrokenFile(f"{source} cannot be read as CSV ({complaint.splitlines()[0]}).")


def _check_quotes(content: bytes, source: str, delimiter: str) -> None:
    """Raise an error for an unclosed quote, which would merge all lines after it into one cell."""
    lines = io.StringIO(content.decode("utf-8", "replace"), newline="")
    records, begins = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for _ in records:
            begins = records.line_num + 1
    except csv.Error as error:
        raise BrokenFile(
            f"line {begins} of {source} opens a quote that is not closed ({error}): correct it."
        ) from error


def _no_utf8(source: str) -> BrokenFile:
    return BrokenFile(f"{source} is not UTF-8 text: save it as CSV with the encoding UTF-8.")


def _has_decimal_commas(table: Any) -> bool:
    texts = (column.drop_null() for column in table.columns if str(column.type) == "string")
    return any(len(column) and DECIMAL_COMMA.fullmatch(str(column[0])) for column in texts)


def _array(name: str, column: Any, source: str) -> ndarray:
    kind = str(column.type)
    if kind.startswith("dictionary"):
        column = column.cast(column.type.value_type)
        kind = str(column.type)
    if kind in ("binary", "large_binary"):
        raise _no_utf8(source)
    if kind == "bool" and column.null_count:
        column = column.cast("uint8")
    if kind.startswith("decimal"):
        column = column.cast("float64")
    if kind == "null":
        return np.full(len(column), np.nan)
    if kind.startswith(("date", "time", "duration")):
        column = column.cast("string")
    if kind.startswith(("list", "struct", "map", "large_list", "fixed_size")):
        raise InvalidInput(
            f"column {name!r} of {source} contains a {kind} in each row: split it into columns, "
            "or leave it out."
        )
    values: ndarray = column.to_numpy()
    return values
