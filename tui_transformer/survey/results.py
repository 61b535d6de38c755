"""The results of a survey: from Python in one call, and as files of CSV, Parquet or JSON, written and read again.

`survey.csv` holds a row for every layer, head and measure; the strongest examples are in `survey.examples.csv` beside
it. Parquet is the same; a JSON file holds both, as `rows` and `examples`.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from tui_transformer.analysis.found import Found
from tui_transformer.analysis.measurable import at_least
from tui_transformer.analysis.metrics import AnyMetric, MetricName
from tui_transformer.analysis.survey.measures import LENGTH, TOP, USUAL, Asked, Item, check_asked, chosen, survey
from tui_transformer.analysis.survey.sums import Source, Sums
from tui_transformer.analysis.survey.table import Example, Origin, Row, columns, examples, rows
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import check_regular, is_file, is_folder, read_json, write_whole
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.survey.work import batches
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

Kind = TypeVar("Kind", Row, Example)
LARGEST, LARGEST_JSON, MOST_LINES = 1 << 28, 1 << 26, 1 << 21
"""Bytes of a file that are read, and lines of a table of Parquet, which takes few bytes for many: read, they need some
gigabyte."""

JSON, PARQUET = ".json", ".parquet"
FORMATS = (".csv", JSON, PARQUET)
FEWER = "survey fewer layers or measures at once"


@dataclass(frozen=True)
class Results:
    """The rows of a survey and its examples, each a table: `rows()` and `examples()` are flat dictionaries."""

    rows: Found[Row]
    examples: Found[Example]

    @classmethod
    def of(cls, rows: Iterable[Row], examples: Iterable[Example] = ()) -> Results:
        """The tables of rows and examples."""
        return cls(Found(list(rows), lambda row: [vars(row)]), Found(list(examples), lambda each: [vars(each)]))


def measure_texts(
    model: Model,
    texts: Iterable[str],
    measures: Sequence[str] = USUAL,
    *,
    layers: Collection[int] | None = None,
    top: int = TOP,
    length: int = LENGTH,
    metric: MetricName | AnyMetric | None = None,
    tokens: Sequence[int] = (),
) -> Results:
    """Measures over texts, in this process: a row for every layer, head and measure, and the strongest examples.

    Args:
        model: The model.
        texts: Read one after the other; any number of them.
        measures: Names, as `--measure` of `tui-transformer survey` takes them.
        layers: The layers that are looked at; None for all.
        top: How many examples are kept of every head.
        length: Longer texts are cut to so many tokens.
        metric: By which ablations are measured: its name, or any function of a trace; the loss without a token is on
            the tokens of every text.
        tokens: Token IDs that a metric that is named is about.

    Raises:
        InputError: There is no such measure or layer, or the model lacks what is measured.
    """
    for listed, what in ((texts, "texts"), (measures, "measures")):
        if isinstance(listed, str):
            raise UsageError(f"{what} are a list: [{visible(listed[:40])!r}]")
    if tokens and not isinstance(metric, str):
        raise UsageError("tokens are of a metric that is named")
    at_least(0, top=top)
    at_least(1, length=length)
    by = (metric, tuple(tokens)) if isinstance(metric, str) else metric
    asked = Asked(chosen(measures), None if layers is None else frozenset(layers), top, length, metric=by)
    check_asked(model, asked)
    sums = Sums.nothing(top)
    items = (Item(number, Source("", number + 1, text)) for number, text in enumerate(texts))
    for batch in batches(items):
        sums += survey(model, batch, asked)
    of = Origin(model.name, seed=model.seed, dtype=model.backend.dtype.name)
    return Results.of(rows(sums, of), examples(sums, of, model))


# Files


def check_out(out: Path) -> None:
    """Raise InputError where results cannot be written so: before anything is computed."""
    if out.suffix not in FORMATS:
        raise UsageError(f"--out {out}: name it with the ending {', '.join(FORMATS)}")
    if out.suffix == PARQUET and importlib.util.find_spec("pyarrow") is None:
        raise InputError("Parquet needs pyarrow: pip install 'tui-transformer[parquet]', or name a .csv or .json file")
    if is_folder(out) or not is_folder(out.resolve().parent):
        raise InputError(f"{shown_path(out)}: name a file in a folder that is there")


def write_results(out: Path, results: Results) -> tuple[Path, ...]:
    """Write the results, each file whole or not at all; the files."""
    if out.suffix == JSON:
        data = {name: list(map(dataclasses.asdict, getattr(results, name))) for name in ("rows", "examples")}
        files = [(out, (json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode())]
    else:
        write, beside = TABLES[out.suffix][0], examples_path(out)
        wanted = results.examples or beside.exists()  # none are left of a survey before
        first = [(beside, write(Example, results.examples))] if wanted else []
        files = [*first, (out, write(Row, results.rows))]  # the rows last: with them the results are there
    for path, content in files:
        write_whole(path, content)
    return tuple(path for path, _ in files)


def read_results(path: Path) -> Results:
    """The results in a file, and the examples beside it where there are any.

    InputError where it is not that of a survey.
    """
    check_regular(path)
    if path.suffix not in FORMATS:
        raise InputError(f"{shown_path(path)}: the result of a survey ends with {', '.join(FORMATS)}")
    largest = LARGEST_JSON if path.suffix == JSON else LARGEST
    for each in (path, examples_path(path)):
        if is_file(each) and each.stat().st_size > largest:
            raise InputError(f"{shown_path(each)}: larger than {largest:,} bytes: {FEWER}")
    if path.suffix == PARQUET:
        check_out(path)
    try:
        if path.suffix == JSON:
            data = read_json(path, LARGEST_JSON)
            made = [_made(Row, line) for line in data["rows"]], [_made(Example, line) for line in data["examples"]]
        else:
            read, beside = TABLES[path.suffix][1], examples_path(path)
            made = read(path, Row), read(beside, Example) if beside.is_file() else []
    except (ValueError, LookupError, TypeError, OSError, ArithmeticError, RuntimeError, csv.Error) as error:
        raise InputError(f"{shown_path(path)}: not the result of `tui-transformer survey`") from error
    if not made[0]:
        raise InputError(f"{shown_path(path)}: there is no row in it")
    return Results.of(*made)


def examples_path(out: Path) -> Path:
    """Where the examples are, beside a table of rows."""
    return out.with_name(f"{out.stem}.examples{out.suffix}")


# Tables, each in a file of its own


def _csv(kind: type[Any], lines: Sequence[Any]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns(kind))
    writer.writerows(dataclasses.astuple(line) for line in lines)
    return buffer.getvalue().encode("utf-8", "surrogatepass")


def _read_csv(path: Path, kind: type[Kind]) -> list[Kind]:
    csv.field_size_limit(LARGEST)
    with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
        return [_made(kind, line) for line in csv.DictReader(file)]


def _made(kind: type[Kind], line: Mapping[str, Any]) -> Kind:
    """A line from its cells, which are text or values; what is empty is none, and what has a default may be missing."""
    hints, usual = get_type_hints(kind), {each.name: each.default for each in dataclasses.fields(kind)}
    there = (name for name in columns(kind) if name in line or usual[name] is dataclasses.MISSING)
    return kind(**{name: _value(hints[name], line[name]) for name in there})


def _value(hint: Any, given: Any) -> Any:
    kind = _kind(hint)
    if given is None or (given == "" and kind is not str):
        if hint is kind:
            raise ValueError("a value is missing")
        return None
    if isinstance(given, bool) or not isinstance(given, _MAY_BE[kind]):
        raise TypeError(f"a {type(given).__name__} stands for a {kind.__name__}")
    value = kind(given)
    if kind is not str and not abs(value) <= sys.float_info.max:
        raise ValueError("a number is not finite")
    return value


_MAY_BE: Mapping[type, tuple[type, ...]] = {str: (str,), int: (str, int), float: (str, int, float)}
"""Types of a cell that give a value of a type; in CSV all are text."""


def _kind(hint: Any) -> type:
    among = (hint, *getattr(hint, "__args__", ()))
    return next(kind for kind in (str, int, float) if kind in among)


def _parquet(kind: type[Any], lines: Sequence[Any]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    hints = get_type_hints(kind)
    fields = [pyarrow.field(name, types[_kind(hints[name])]) for name in columns(kind)]
    arrays = [pyarrow.array([getattr(line, each.name) for line in lines], each.type) for each in fields]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields)), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _read_parquet(path: Path, kind: type[Kind]) -> list[Kind]:
    import pyarrow.parquet

    if pyarrow.parquet.read_metadata(path).num_rows > MOST_LINES:
        raise InputError(f"{shown_path(path)}: more than {MOST_LINES:,} lines: {FEWER}")
    return [_made(kind, line) for line in pyarrow.parquet.read_table(path).to_pylist()]


TABLES: Mapping[str, tuple[Callable[[type[Any], Sequence[Any]], bytes], Callable[[Path, type[Any]], list[Any]]]] = {
    ".csv": (_csv, _read_csv),
    PARQUET: (_parquet, _read_parquet),
}
"""How tables are written and read, by the ending of the file."""
