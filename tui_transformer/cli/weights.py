"""`weights`: those of a model listed, and written to files."""

from __future__ import annotations

import json
import math

from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import Table, emit, note
from tui_transformer.cli.output import written as table
from tui_transformer.cli.parsing import written
from tui_transformer.cli.progress import counted
from tui_transformer.cli.session import loaded
from tui_transformer.cli.weights_options import ExportRequest, ListRequest
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.parts import readable
from tui_transformer.errors import UsageError
from tui_transformer.model import Model
from tui_transformer.model.checkpoint import StoredWeights
from tui_transformer.report.weight_files import FILES, arrays_of, export, shapes_of

COLUMNS = ("name", "shape", "type", "bytes", "stored", "tensor")
OF_A_TEXT = ("text", "text_pair", "ids", "mask", "decoder_text", "decoder_ids", "bracket", "pad_to", "cut")
"""Options that say what a model reads: its weights are the same."""


def show_list(request: ListRequest) -> None:
    """Print a line a weight, in the order of the data.

    Raises:
        InputError: The model cannot be opened.
    """
    model = _model(request)
    shapes, size = shapes_of(model), model.backend.dtype.itemsize
    rows = [
        (name, shape, str(model.backend.dtype), math.prod(shape) * size, *_stored(model, name))
        for name, shape in shapes.items()
    ]
    if request.format == "json":
        emit([json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=1), "\n"])
        return
    total = sum(math.prod(shape) for shape in shapes.values())
    said = f"{len(rows)} weights, {total:,} numbers, {readable(total * size)}"
    lines = [(name, shape_text(shape), kind, count, *stored) for name, shape, kind, count, *stored in rows]
    emit(table(Table(COLUMNS, lines, note=said), request.format))


def write(request: ExportRequest) -> None:
    """Write the weights, and say where they are.

    Raises:
        InputError: They cannot be written, or the folder is there already.
    """
    model = _model(request)
    form = request.format or FILES.get(request.out.suffix.lower(), "safetensors")
    shapes = shapes_of(model)
    export(model, request.out, form, counted(arrays_of(model), shapes))
    size = sum(math.prod(shape) for shape in shapes.values()) * model.backend.dtype.itemsize
    opens = "" if request.out.suffix.lower() in FILES else f"; --model {request.out} opens it"
    note(f"wrote {request.out}: {len(shapes)} weights as {model.backend.dtype}, {readable(size)}{opens}")


def _model(request: Flags) -> Model:
    for name in OF_A_TEXT:
        if getattr(request, name):
            raise UsageError(f"{written(name)}: weights are the same for every text: leave it out")
    return loaded(request.options())


def _stored(model: Model, name: str) -> tuple[str | None, str | None]:
    """How the model's file has a weight: as which type, and in which tensor; None of a model without a file."""
    file = model.weights.file
    if not isinstance(file, StoredWeights):
        return None, None
    place = file.places[name]
    return file.tensors.find(place.name).kind, place.name
