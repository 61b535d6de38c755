"""`diff`: a dump beside a model, or two traces step by step, and the first step where they part."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import typer

from tui_transformer.analysis.two_models import loss_of
from tui_transformer.cli.commands.diff import Request
from tui_transformer.cli.diagnosis import DIFFERENT, NOT_ALL, data, how_to, run_diagnosis, told
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit, full_shape, runs
from tui_transformer.cli.session import Inputs, open_session, reading_of
from tui_transformer.cli.terminal import check_terminal
from tui_transformer.diagnosis.dumps import is_dump_folder, open_dump
from tui_transformer.diagnosis.dumps.npz_reader import TraceFile, open_trace
from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.names import listed
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.gguf_file import is_gguf
from tui_transformer.model import Model
from tui_transformer.model.loading import built_in_name
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import batch_of
from tui_transformer.report.differences import TOLERANCE, Difference, compare_blocks
from tui_transformer.report.numbers import aligned, precise
from tui_transformer.report.text import place
from tui_transformer.text.display import visible

RUN = 1 << 20
"""Cells that are compared at a time."""


class Side(Protocol):
    """One of the two traces."""

    @property
    def names(self) -> tuple[str, ...]:
        """The steps in order."""

    def shape(self, name: str) -> Shape:
        """The shape of a step."""

    def cells(self, name: str) -> Iterator[Host]:
        """The values of a step in order, as runs of cells."""


@dataclass(frozen=True)
class Computed:
    """A trace that is computed for the comparison."""

    trace: Trace
    model: Model

    @property
    def names(self) -> tuple[str, ...]:
        """The steps in order."""
        return self.trace.names

    def shape(self, name: str) -> Shape:
        """The shape of a step."""
        return full_shape(self.trace, name)

    def cells(self, name: str) -> Iterator[Host]:
        """The values of a step in order, as runs of cells."""
        return runs(self.trace, name)


def run(request: Request) -> None:
    """Compare a dump with a model, or two traces; exit with 1 where a step differs, 3 where not all was compared.

    Raises:
        InputError: A file cannot be read, or no step is in both.
    """
    if request.how is not None:
        emit([how_to(request.how)])
        return
    if request.first is None:
        raise UsageError("name a dump: `tui-transformer diff DUMP MODEL`; --how says how to write one")
    tolerance = request.tolerance
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise UsageError(f"--tolerance {tolerance} is not a number from 0")
    places = [where for where in (request.first, request.second) if where]
    dumps = [where for where in places if not _is_model(where)]
    if request.open:
        _open(request, places, dumps)
    if len(dumps) == 1:
        code = run_diagnosis(_of_model(request, places, dumps[0]), Path(dumps[0]))
    elif request.matched:
        raise UsageError("--matched says what a dump was taken for: name one dump and a model")
    else:
        code = _traces(request, TOLERANCE if tolerance is None else tolerance)
    if code:
        raise typer.Exit(code)


def _open(request: Request, places: Sequence[str], dumps: Sequence[str]) -> NoReturn:
    """Explore the model with a dump beside it, on the tokens of the dump where no others are given."""
    if len(dumps) != 1:
        raise UsageError("--open shows a dump beside a model: name one of each")
    check_terminal()
    from tui_transformer.explorer.run import run as explore

    flags = _of_model(request, places, dumps[0])
    held = Inputs()
    if flags.text is None and flags.ids is None:
        dump = open_dump(Path(dumps[0]))
        ids = _row(dump.ids)
        held = Inputs(None if ids is None else (ids,), _row(dump.decoder_ids))
    code = explore(flags.options(), reading_of(flags, held), dump=dumps[0])
    raise typer.Exit(code)


def _row(ids: Host | None) -> tuple[int, ...] | None:
    if ids is not None and len(ids) > 1:
        raise InputError(f"the dump is of {len(ids)} sentences: the explorer shows one")
    return None if ids is None else tuple(ids[0].tolist())


def _of_model(request: Request, places: Sequence[str], dump: str) -> Request:
    """The options with the model that is compared, where it was named beside the dump."""
    model = next((where for where in places if where != dump), None)
    return request if model is None else dataclasses.replace(request, model=model)


def _traces(request: Request, tolerance: float) -> int:
    """Compare two traces step by step; the exit code."""
    a, b = _sides(request, request.first or "", request.second)
    differences = list(_differences(a, b, tolerance))
    loss = loss_of(a.trace, b.trace) if isinstance(a, Computed) and isinstance(b, Computed) else None
    if request.format == "json":
        whole = _as_json(differences, a, b) | ({} if loss is None else data(loss))
        emit([json.dumps(whole, ensure_ascii=False, indent=2) + "\n"])
    else:
        lost = told(loss, a.model) if loss is not None and isinstance(a, Computed) else ()
        emit(_report(differences, a, b, tolerance, lost))
    if any(difference.beyond for difference in differences):
        return DIFFERENT
    return NOT_ALL if _left(a, b) or _left(b, a) else 0


def _left(side: Side, other: Side) -> list[str]:
    return _rest(side, other) if isinstance(side, TraceFile) else []


def _as_json(differences: Sequence[Difference], a: Side, b: Side) -> dict[str, object]:
    """The keys that `Diagnosis.to_json` has, of two traces."""
    beyond = next((difference for difference in differences if difference.beyond), None)
    first = beyond and {
        "step": beyond.name,
        "theirs": beyond.name,
        "index": list(beyond.index),
        "difference": beyond.largest if math.isfinite(beyond.largest) else None,
        "relative": beyond.relative if math.isfinite(beyond.relative) else None,
        "noise": 0.0,
        "inputs_agree": True,
        "cause": None,
        "says": f"first difference: {_where(beyond)}",
    }
    rest = {"unmatched": _rest(a, b), "missing": _rest(b, a)}
    return {"compared": len(differences), **rest, "assumed": [], "first": first}


def _sides(flags: Flags, first: str, second: str | None) -> tuple[Side, Side]:
    """Files and computed traces; a file's token IDs are used where no input was given."""
    files = [open_trace(Path(where)) for where in (first, second) if where and not _is_model(where)]
    ids = next((held_by_file for file in files if (held_by_file := file.ids())), None)
    held = Inputs(
        None if ids is None else (ids,),
        next((held_by_file for file in files if (held_by_file := file.decoder_ids())), None),
        next((held_by_file for file in files if (held_by_file := file.mask())), None),
    )
    a = _side(flags, first, held)
    if isinstance(a, Computed) and second is not None and _is_model(second):
        return a, _other(flags, second, a)
    return a, _computed(flags, held) if second is None else _side(flags, second, held)


def _other(flags: Flags, where: str, one: Computed) -> Computed:
    """The second of two models, on the tokens of the first: a file of the same model may have no vocabulary.

    Raises:
        InputError: It cuts the sentence otherwise, so that nothing can be compared.
    """
    flags = dataclasses.replace(flags, model=where)
    if flags.text is None or one.trace.batch != 1 or flags.text_pair is not None:
        return _computed(flags, Inputs())
    ids = tuple(int(each) for each in np.ravel(one.trace["tokens"]))
    options = flags.options()
    other = options.load()
    if other.tokenizer is not None:
        (own,) = batch_of(
            other, [other.encode(flags.sentence or "", cut=flags.cut)], options.framing, cut=flags.cut
        ).ids
        if own != ids:
            told = f"{where} cuts the sentence into {len(own)} other tokens"
            raise InputError(f"{told} than the first model's {len(ids)}")
    plain = dataclasses.replace(flags, text=None, ids=",".join(map(str, ids)), bracket=False, pad_to=None)
    return _computed(plain, Inputs())


def _computed(flags: Flags, held: Inputs) -> Computed:
    session = open_session(flags, held)
    return Computed(session.trace, session.model)


def _is_model(where: str) -> bool:
    """A name, a GGUF file, or a folder with a configuration; any other path that exists is a dump."""
    path = Path(where)
    try:
        there, folder = path.exists(), path.is_dir()
    except OSError:  # a name that no file can have
        return False
    if folder:
        return not is_dump_folder(path)
    if there and is_gguf(path):
        return True
    return built_in_name(where) is not None or (not there and not path.suffix and find_model(where) is not None)


def _side(flags: Flags, where: str, held: Inputs) -> Side:
    if _is_model(where):
        return _computed(dataclasses.replace(flags, model=where), held)
    return open_trace(Path(where))


def _differences(a: Side, b: Side, tolerance: float) -> Iterator[Difference]:
    """Every step that both have, in the order of the program where one side is computed, else of the first file."""
    ordered, other = (b, a) if isinstance(a, TraceFile) and isinstance(b, Computed) else (a, b)
    known = frozenset(other.names)
    names = [name for name in ordered.names if name in known]
    if not names:
        raise InputError(f"no step is in both: the first has {listed(a.names)}")
    return (compared(name, a, b, tolerance) for name in names)


def compared(name: str, a: Side, b: Side, tolerance: float, run: int = RUN) -> Difference:
    """Difference of one step, a run of cells at a time; a batch axis of 1 that only one side has is left out."""
    first, second = a.shape(name), b.shape(name)
    shapes = _without_batch(first, len(second)), _without_batch(second, len(first))
    if shapes[0] != shapes[1]:
        return Difference(name, shapes, beyond=True)
    difference = compare_blocks(name, (math.prod(first),), together(a.cells(name), b.cells(name), run), tolerance)
    index = tuple(int(i) for i in np.unravel_index(difference.index[0], shapes[0])) if difference.index else ()
    return dataclasses.replace(difference, shapes=shapes, index=index)


def _without_batch(shape: Shape, axes: int) -> Shape:
    return shape[1:] if len(shape) == axes + 1 and shape[0] == 1 else shape


def together(first: Iterator[Host], second: Iterator[Host], run: int = RUN) -> Iterator[tuple[Region, Host, Host]]:
    """Runs of the same cells of both, at most so long, each with its place."""
    start, none = 0, np.empty(0)
    one, other = none, none
    while True:
        one, other = (part if part.size else next(rest, none) for part, rest in ((one, first), (other, second)))
        size = min(one.size, other.size, run)
        if not size:
            return
        yield (range(start, start + size),), one[:size], other[:size]
        start, one, other = start + size, one[size:], other[size:]


# The report


def _report(
    differences: Sequence[Difference], a: Side, b: Side, tolerance: float, lost: Iterable[str]
) -> Iterator[str]:
    yield from aligned([("step", "shape", "largest", "relative", ""), *map(_line, differences)])
    for title, names in (("only in the first", _rest(a, b)), ("only in the second", _rest(b, a))):
        if names:
            yield f"{title}: {visible(listed(names))}\n"
    yield from lost
    yield _verdict(differences, tolerance, len(_left(a, b)) + len(_left(b, a))) + "\n"


def _rest(side: Side, other: Side) -> list[str]:
    known = frozenset(other.names)
    return [name for name in side.names if name not in known]


def _line(difference: Difference) -> tuple[str, str, str, str, str]:
    name, shape = visible(difference.name), difference.shape_text
    if not difference.comparable:
        return name, shape, "", "", "shapes differ"
    verdict = "differs" if difference.beyond else ""
    return name, shape, f"{difference.largest:.2e}", f"{difference.relative:.2e}", verdict


def _verdict(differences: Sequence[Difference], tolerance: float, rest: int) -> str:
    first = next((difference for difference in differences if difference.beyond), None)
    if first is None:
        said = f"the {len(differences)} steps that were compared agree within {tolerance:g}"
        return f"not all compared: {said}; {rest} more are only in one" if rest else f"same: {said}"
    count = sum(difference.beyond for difference in differences)
    differ = f"{count} of {len(differences)} steps differ by more than {tolerance:g}"
    return f"first difference: {visible(_where(first))}; {differ}"


def _where(first: Difference) -> str:
    if not first.comparable:
        return f"{first.name} is {first.shape_text}"
    one, other = map(precise, first.values)
    return f"{place(first.name, first.index)} is {one} and {other}"
