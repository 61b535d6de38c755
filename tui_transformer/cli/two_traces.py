"""Two traces, of files or computed, step by step; of two models their layers, heads and answers, too."""

from __future__ import annotations

import dataclasses
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.analysis.two_models import Loss, loss_of
from tui_transformer.cli.diagnosis import DIFFERENT, NOT_ALL
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit, emit_json, full_shape, jsonable, runs
from tui_transformer.cli.session import open_session
from tui_transformer.diagnosis.dumps import Dump, is_dump_folder, open_dump
from tui_transformer.diagnosis.dumps.dump import stored_values
from tui_transformer.diagnosis.dumps.npz_reader import MASKS, TraceFile, open_trace
from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.names import listed
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.files import is_file
from tui_transformer.gguf_file import is_gguf
from tui_transformer.model import Model
from tui_transformer.model.loading import built_in_name
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import Reading, batch_of
from tui_transformer.records import dataclass
from tui_transformer.report.differences import TOLERANCE, Difference, compare_blocks
from tui_transformer.report.numbers import aligned, precise
from tui_transformer.report.text import finite, place
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

RUN = 1 << 20
"""Cells that are compared at a time."""

SHOWN = 10
"""Heads that a table shows, those that lose most."""


@dataclass(frozen=True)
class Computed:
    """A trace that is computed for the comparison, read as a file is."""

    trace: Trace
    model: Model

    @property
    def names(self) -> tuple[str, ...]:
        return self.trace.names

    def shape(self, name: str) -> Shape:
        return full_shape(self.trace, name)

    def cells(self, name: str) -> Iterator[Host]:
        return runs(self.trace, name)


@dataclass(frozen=True)
class Tensors:
    """The arrays of a safetensors file, read as a trace."""

    dump: Dump

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.dump.tensors if name not in MASKS)

    def shape(self, name: str) -> Shape:
        return self.dump.tensors[name].shape

    def cells(self, name: str) -> Iterator[Host]:
        yield self.dump.tensors[name].read().array.reshape(-1)


Side = TraceFile | Tensors | Computed


def compare(flags: Flags, first: str, second: str | None, tolerance: float | None, form: str) -> int:
    """Write how two traces differ; the exit code."""
    tolerance = TOLERANCE if tolerance is None else tolerance
    a, b = _sides(flags, first, second)
    # in the order of the program where one side is computed, else of the first file
    ordered, other = (b, a) if isinstance(a, TraceFile) and isinstance(b, Computed) else (a, b)
    known = frozenset(other.names)
    both = [name for name in ordered.names if name in known]
    if not both:
        raise InputError(f"no step is in both: the first has {listed(a.names)}")
    differences = [compared(name, a, b, tolerance) for name in both]
    wrong = next((each for each in differences if each.beyond), None)
    only = [name for name in a.names if name not in {*b.names}], [name for name in b.names if name not in {*a.names}]
    left = sum(len(names) for side, names in zip((a, b), only, strict=True) if not isinstance(side, Computed))
    loss = loss_of(a.trace, b.trace) if isinstance(a, Computed) and isinstance(b, Computed) else None
    if form == "json":
        rest = {"unmatched": only[0], "missing": only[1], "assumed": [], "first": _first_as_json(wrong)}
        whole = {"compared": len(differences), **rest}
        emit_json(whole | ({} if loss is None else _loss_as_json(loss)), 2)
    else:
        emit(aligned([("step", "shape", "largest", "relative", ""), *map(_line, differences)]))
        for title, names in zip(("only in the first", "only in the second"), only, strict=True):
            emit([f"{title}: {visible(listed(names))}\n"] if names else [])
        if loss is not None and isinstance(a, Computed):
            emit(_loss_as_text(loss, a.model))
        emit([_verdict(wrong, differences, tolerance, left) + "\n"])
    if wrong is not None:
        return DIFFERENT
    return NOT_ALL if left else 0


def _sides(flags: Flags, first: str, second: str | None) -> tuple[Side, Side]:
    """Two files, or two computed traces."""
    if second is None:
        return _computed(dataclasses.replace(flags, model=first)), _computed(flags)
    if not is_model(first):
        return _file(first), _file(second)
    a = _computed(dataclasses.replace(flags, model=first))
    return a, _other(dataclasses.replace(flags, model=second), second, a)


def _file(where: str) -> TraceFile | Tensors:
    path = Path(where)
    if path.suffix.lower() == ".safetensors":
        return Tensors(open_dump(path))
    if path.is_dir() or (is_file(path) and path.suffix.lower() != ".npz" and not zipfile.is_zipfile(path)):
        raise InputError(f"{shown_path(path)}: two dumps are compared as .npz or .safetensors: name it beside a model")
    return open_trace(path)


def is_model(where: str) -> bool:
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


def _other(flags: Flags, where: str, one: Computed) -> Computed:
    """The second of two models, on the tokens of the first: a file of the same model may have no vocabulary.

    Raises:
        InputError: It cuts the sentence otherwise, so that nothing can be compared.
    """
    if flags.text is None or one.trace.batch != 1 or flags.text_pair is not None:
        return _computed(flags)
    ids = tuple(int(each) for each in np.ravel(one.trace["tokens"]))
    options = flags.options()
    other = options.load()
    if other.tokenizer is not None:
        encoding = other.encode(flags.sentence or "", cut=flags.cut)
        (own,) = batch_of(other, [encoding], options.framing, cut=flags.cut).ids
        if own != ids:
            raise InputError(
                f"{where} cuts the sentence into {len(own)} other tokens than the first model's {len(ids)}"
            )
    plain = dataclasses.replace(flags, text=None, ids=",".join(map(str, ids)), bracket=False, pad_to=None)
    return _computed(plain)


def _computed(flags: Flags) -> Computed:
    session = open_session(flags, Reading())
    return Computed(session.trace, session.model)


def compared(name: str, a: Side, b: Side, tolerance: float, run: int = RUN) -> Difference:
    """Difference of one step, a run of cells at a time; a batch axis of 1 that only one side has is left out."""
    first, second = a.shape(name), b.shape(name)
    shapes = _without_batch(first, len(second)), _without_batch(second, len(first))
    if shapes[0] != shapes[1]:
        return Difference(name, shapes, beyond=True)
    difference = compare_blocks(name, (math.prod(first),), together(_floats(a, name), _floats(b, name), run), tolerance)
    index = tuple(int(i) for i in np.unravel_index(difference.index[0], shapes[0])) if difference.index else ()
    return dataclasses.replace(difference, shapes=shapes, index=index)


def _floats(side: Side, name: str) -> Iterator[Host]:
    """The values of a step; bf16, of which NumPy has bytes alone, as float32."""
    return (stored_values(cells).array for cells in side.cells(name))


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


def _line(difference: Difference) -> tuple[str, str, str, str, str]:
    name, shape = visible(difference.name), difference.shape_text
    if not difference.comparable:
        return name, shape, "", "", "shapes differ"
    verdict = "differs" if difference.beyond else ""
    return name, shape, f"{difference.largest:.2e}", f"{difference.relative:.2e}", verdict


def _verdict(first: Difference | None, differences: Sequence[Difference], tolerance: float, rest: int) -> str:
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


def _first_as_json(first: Difference | None) -> dict[str, object] | None:
    """The first wrong step, under the keys that `Diagnosis.to_json` has."""
    if first is None:
        return None
    return {
        "step": first.name,
        "theirs": first.name,
        "index": list(first.index),
        "difference": finite(first.largest),
        "relative": finite(first.relative),
        "noise": 0.0,
        "inputs_agree": True,
        "cause": None,
        "says": f"first difference: {_where(first)}",
    }


def _loss_as_text(loss: Loss, model: Model) -> Iterator[str]:
    """Layers, heads and answers of two models in words and tables."""
    if loss.layers:
        yield "\nwhat leaves a layer: error ‖a − b‖ ÷ ‖a‖, and cosine of both\n"
        rows = [(each.name, f"{each.error:.3g}", f"{each.cosine:.6f}") for each in loss.layers]
        yield from aligned([("layer", "error", "cosine"), *rows])
    if loss.heads:
        yield f"\nheads that lose most, of {len(loss.heads)}: error of the context, divergence of the weights in nats\n"
        rows = [
            (f"{each.attention} head {each.head}", f"{each.error:.3g}", f"{each.divergence:.3g}")
            for each in loss.heads[:SHOWN]
        ]
        yield from aligned([("head", "error", "divergence"), *rows])
    if loss.logits is not None:
        logits = loss.logits
        position, most = logits.worst
        one, other = (model.target_label(token) for token in logits.likeliest)
        yield f"\nlogits: divergence {logits.divergence:.3g} nats, at most {most:.3g} at position {position}; "
        yield f"the same token is most likely at {logits.agreeing} of {logits.positions} positions; "
        yield (
            f"after the last it is {one} in both\n\n" if one == other else f"after the last it is {one} and {other}\n\n"
        )


def _loss_as_json(loss: Loss) -> dict[str, Any]:
    """The same for JSON; what is infinite is null."""
    answers = None
    if loss.logits is not None:
        worst = jsonable(dict(zip(("position", "divergence"), loss.logits.worst, strict=True)))
        answers = jsonable(vars(loss.logits)) | {"worst": worst}
    layers, heads = ([jsonable(vars(each)) for each in some] for some in (loss.layers, loss.heads))
    return {"layers": layers, "heads": heads, "logits": answers}
