"""Numbers as files: `trace`, every step of a forward pass and its gradients; `weights`, those of a model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from tui_transformer.cli.options import Edited, Flags, Metric, Position, TableFormat, Targets, Tokens
from tui_transformer.cli.output import Row, Table, check_ending, emit, full_shape, note, runs
from tui_transformer.cli.session import loaded, open_session, trace_of_all
from tui_transformer.cli.terminal import counted
from tui_transformer.cli.typer_layer import flag, option, option_name, required
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import readable
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.engine.backend import Host
    from tui_transformer.engine.gradient import Gradients
    from tui_transformer.engine.trace import Trace as Forward
    from tui_transformer.model import Model
    from tui_transformer.report.export import Blocks


GRADIENT = "gradient/"


@dataclass(frozen=True, kw_only=True)
class Trace(Edited):
    """Write every step of a forward pass to an npz file, under its name; its gradient as gradient/<name>.

    Example: tui-transformer trace --out run.npz --steps "*.weights,output.*"
    """

    out: Path = required("The file to write; .safetensors too.", metavar="FILE.npz")
    steps: str | None = option(
        None, "Only the steps that match one of these; may be given again.", several=True, metavar="GLOB,…"
    )
    targets: Targets = None
    metric: Metric = None
    tokens: Tokens = None
    position: Position = None
    gradients: bool = flag("Gradients too, of every step and weight: of the cross-entropy, or a metric.")

    def run(self) -> None:
        import numpy as np

        from tui_transformer.engine.edits import VISIBLE
        from tui_transformer.engine.export import ENDINGS, write_arrays
        from tui_transformer.files import writing
        from tui_transformer.report.export import Blocks, write_npz

        check_ending(self.out, "a trace", ENDINGS)
        self._check_gradients()
        session = open_session(self)
        trace = trace_of_all(session)
        computed = None
        if self.gradients:
            from tui_transformer.cli.metrics import gradients_of_chosen

            computed, _ = gradients_of_chosen(session, trace, self)
        arrays = dict(_arrays(trace, computed))
        names = list(arrays) if self.steps is None else _matching(list(arrays), self.steps)
        written: dict[str, Host | Blocks] = {name: arrays[name] for name in names}
        visible = trace.givens.get(VISIBLE)
        if "tokens" in names and visible is not None and not visible.all():
            written = {"padding": visible if len(visible) > 1 else visible[0], **written}
        if self.out.suffix.lower() == ".safetensors":  # such a file is written at once
            whole = {
                name: np.concatenate(list(each.cells)).reshape(each.shape) if isinstance(each, Blocks) else each
                for name, each in written.items()
            }
            write_arrays(self.out, whole)
        else:
            with writing(self.out) as file:
                write_npz(file, written.items())
        count = sum(name.startswith(GRADIENT) for name in names)
        said = f"{len(names) - count} steps" + (f", {count} gradients" if count else "")
        note(f"wrote {self.out}: {said}, {readable(self.out.stat().st_size)}")

    def _check_gradients(self) -> None:
        scalar = self.targets is not None or self.metric is not None or self.tokens is not None
        if self.gradients and not scalar:
            raise UsageError(
                "--gradients needs --targets: one token ID a position, as 7,9,-1 (-1 = not counted), "
                "--tokens or --metric"
            )
        if scalar and not self.gradients:
            raise UsageError(
                "--targets, --tokens and --metric are what gradients are computed from: give --gradients too"
            )


def _arrays(trace: Forward, computed: Gradients | None) -> Iterator[tuple[str, Host | Blocks]]:
    """Every key of the file, and its array; those of steps are computed when they are written."""
    from tui_transformer.report.export import Blocks

    yield from ((name, Blocks(full_shape(trace, name), runs(trace, name))) for name in trace.names)
    if computed is not None:
        aliases, values = trace.program.aliases, computed.values
        for name in (*trace.names, *trace.program.weights):
            if aliases.get(name, name) in values:
                yield f"{GRADIENT}{name}", values[aliases.get(name, name)]


def _matching(names: list[str], steps: str) -> list[str]:
    """The keys that one of the patterns between commas matches; InputError where one matches none."""
    patterns = [pattern.strip() for pattern in steps.split(",") if pattern.strip()] or [steps.strip()]
    wanted: set[str] = set()
    for pattern in patterns:  # one for a step is one for its gradient too
        matched = {name for name in names for key in (name, name.removeprefix(GRADIENT)) if fnmatchcase(key, pattern)}
        if not matched:
            from tui_transformer.engine.names import missing

            raise InputError(missing(names, pattern))
        wanted |= matched
    return [name for name in names if name in wanted]


# Those of weights


@dataclass(frozen=True, kw_only=True)
class List(Flags):
    """List every weight with its shape, type, bytes, and where its file has it.

    Example: tui-transformer weights list --model question
    """

    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.engine.axis import shape_text
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
        from tui_transformer.report.weight_files import FILES, arrays_of, export, shapes_of

        if not self.out.is_dir():
            check_ending(self.out, "a file of weights", FILES)
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
    for name in ("text", "text_pair", "ids", "mask", "decoder_text", "decoder_ids", "bracket", "pad_to", "cut"):
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
