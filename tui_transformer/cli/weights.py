"""`weights`: those of a model listed, and written to files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from tui_transformer.cli.options import Flags, TableFormat
from tui_transformer.cli.output import Row, Table, emit, note
from tui_transformer.cli.session import loaded
from tui_transformer.cli.terminal import counted
from tui_transformer.cli.typer_layer import option, option_name, required
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.model import Model

OF_A_TEXT = ("text", "text_pair", "ids", "mask", "decoder_text", "decoder_ids", "bracket", "pad_to", "cut")
"""Options that say what a model reads: its weights are the same."""


@dataclass(frozen=True, kw_only=True)
class List(Flags):
    """List every weight with its shape, type, bytes, and where its file has it.

    Example: tui-transformer weights list --model question
    """

    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.engine.axis import shape_text
        from tui_transformer.machine import readable
        from tui_transformer.report.weight_files import shapes_of

        model = _model(self)
        shapes, dtype = shapes_of(model), model.backend.dtype
        columns = ("name", "shape", "type", "bytes", "stored", "tensor")
        rows = [
            (name, shape, (str(dtype), math.prod(shape) * dtype.itemsize, *_stored(model, name)))
            for name, shape in shapes.items()
        ]
        if self.format == "json":
            data = [dict(zip(columns, (name, shape, *more), strict=True)) for name, shape, more in rows]
            emit([json.dumps(data, indent=1), "\n"])
            return
        total = sum(math.prod(shape) for shape in shapes.values())
        said = f"{len(rows)} weights, {total:,} numbers, {readable(total * dtype.itemsize)}"
        lines: list[Row] = [(name, shape_text(shape), *more) for name, shape, more in rows]
        Table(columns, lines, note=said).emit(self.format)


@dataclass(frozen=True, kw_only=True)
class Export(Flags):
    """Write the weights, one at a time, with their names and shapes.

    Example: tui-transformer weights export --model encoder --d-model 64 --format raw --out mine
    """

    out: Path = required(
        "A new folder with config.json and the vocabulary, which --model opens; or a file that ends in "
        ".safetensors or .npz, for the weights alone.",
        metavar="FOLDER|FILE",
    )
    format: Literal["safetensors", "npz", "raw", "csv"] | None = option(
        None,
        "raw: a file of bare numbers a weight and shapes.json; csv: a table a weight.  [default: what the "
        "file's name says, else safetensors]",
    )

    def run(self) -> None:
        from tui_transformer.machine import readable
        from tui_transformer.report.weight_files import FILES, arrays_of, export, shapes_of

        model = _model(self)
        form = self.format or FILES.get(self.out.suffix.lower(), "safetensors")
        shapes, dtype = shapes_of(model), model.backend.dtype
        export(model, self.out, form, counted(arrays_of(model), shapes))
        size = sum(math.prod(shape) for shape in shapes.values()) * dtype.itemsize
        opens = "" if self.out.suffix.lower() in FILES else f"; --model {self.out} opens it"
        note(f"wrote {self.out}: {len(shapes)} weights as {dtype}, {readable(size)}{opens}")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """List the weights of a model, or write them to files that open again.

    Names and shapes are those of the program: a step is x @ weight + bias. What a folder has to hold that a program of
    your own writes is in WEIGHTS.md.
    """

    commands: ClassVar[Mapping[str, type]] = {"list": List, "export": Export}


def _model(request: Flags) -> Model:
    for name in OF_A_TEXT:
        if getattr(request, name):
            raise UsageError(f"{option_name(name)}: weights are the same for every text: leave it out")
    return loaded(request.options())


def _stored(model: Model, name: str) -> tuple[str | None, str | None]:
    """How the model's file has a weight: as which type, and in which tensor; None of a model without a file."""
    from tui_transformer.model.checkpoint import StoredWeights

    file = model.weights.file
    if not isinstance(file, StoredWeights):
        return None, None
    place = file.places[name]
    return file.tensors.find(place.name).kind, place.name
