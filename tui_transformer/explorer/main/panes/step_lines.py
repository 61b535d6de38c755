"""The list of steps as lines: steps of the layer in view, other layers closed to one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.by_program import by_program
from tui_transformer.engine.ops import Parameter
from tui_transformer.engine.program import Program
from tui_transformer.guide.texts import step_text


@dataclass(frozen=True)
class StepLine:
    """One line: the stop that it leads to, its words, how deep it is indented, and whether it heads a group.

    A heading leads to the last stop of its group; `first` is the first one.
    """

    stop: str
    title: str
    detail: str = ""
    depth: int = 0
    heading: bool = False
    closed: bool = False
    first: str = ""


def step_lines(program: Program, stops: Sequence[str], current: str) -> tuple[StepLine, ...]:
    """Lines for all stops. Layers that the current stop is not in are closed, where there are several."""
    return _lines(program, tuple(stops), _layer(program, current))


@by_program
def _lines(program: Program, stops: tuple[str, ...], current: str) -> tuple[StepLine, ...]:
    lines: list[StepLine] = []
    for layer, members in groupby(stops, lambda stop: _layer(program, stop)):
        lines += _layer_lines(program, layer, list(members), is_open=layer == current or not _closable(layer))
    return tuple(lines)


def _layer_lines(program: Program, layer: str, stops: list[str], *, is_open: bool) -> Iterator[StepLine]:
    if not _closable(layer):
        for stop in stops:
            yield StepLine(stop, _label(stop), shape_text(program.step(stop).shape) if stop in program.by_name else "")
        return
    title = f"{step_text(layer).label} {layer.rpartition('.')[2]}"
    yield StepLine(stops[-1], title, heading=True, closed=not is_open, first=stops[0])
    if not is_open:
        return
    for sublayer, members in groupby(stops, lambda stop: program.step(stop).sublayer):
        inside = list(members)
        yield StepLine(inside[-1], _sublayer_title(sublayer), depth=1, heading=True, first=inside[0])
        for stop in inside:
            yield StepLine(stop, step_text(stop).title, formula_text(program, stop), depth=2)


def _sublayer_title(sublayer: str) -> str:
    """Its text; an expert has its number."""
    number = sublayer.rpartition(".")[2]
    return step_text(sublayer).label + f" {number}" * number.isdigit()


def _label(stop: str) -> str:
    """Name of a stop outside the layers; one of the decoder alone says so."""
    label = step_text(stop).label
    return f"Decoder {label[:1].lower()}{label[1:]}" if stop.startswith("decoder.") else label


def formula_text(program: Program, stop: str) -> str:
    """The formula in a few characters: the guide's, unless the step is given."""
    op = program.step(stop).op
    return op.formula if isinstance(op, Parameter) else step_text(stop).short or op.formula


def _closable(layer: str) -> bool:
    """Layers of a stack (`encoder.0`) can be closed; embedding and output are always open."""
    return layer.rpartition(".")[2].isdigit()


def _layer(program: Program, stop: str) -> str:
    if stop not in program.by_name:
        return stop.rpartition(".")[0] and _layer_of_weight(stop)
    return program.step(stop).layer


def _layer_of_weight(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0]
