"""Charts of gradients: their norms by layer, by weight and along the residual stream, as bars on a log scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from tui_transformer.analysis.norms import Norms, group_of, layer_norms, stream_norms, weight_norms
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.views.charts import BarChart

GradientKind = Literal["gradient norms by layer", "gradient norms by weight", "gradient norms along the stream"]
MOST_BARS = 40


def gradient_chart(kind: GradientKind, program: Program, gradients: Mapping[str, Host], name: str) -> BarChart:
    """The norms of a kind; the bar that the step or weight `name` belongs to is marked."""
    title, norms, marked = _KINDS[kind]
    return _bars(title, norms(program, gradients), marked(program, name))


def _bars(title: str, norms: Norms, marked: str) -> BarChart:
    """Bars around the marked one, where there are more than fit."""
    names = list(norms)
    at = names.index(marked) if marked in names else None
    start = max(0, min((at or 0) - MOST_BARS // 2, len(names) - MOST_BARS))
    part = names[start : start + MOST_BARS]
    more = "" if len(part) == len(names) else f", {start + 1} to {start + len(part)} of {len(names)}"
    return BarChart(
        title=f"{title}{more} · log scale",
        labels=tuple(map(_short, part)),
        values=tuple(norms[name] for name in part),
        marked=None if at is None else at - start,
        logarithmic=True,
    )


def _short(name: str) -> str:
    """The end of a name, as long as it tells the bars apart: `0.self_attention.query.weight` → `0 query.weight`."""
    parts = name.split(".")
    if len(parts) < 3:
        return name
    number = next((part for part in parts if part.isdigit()), "")
    return f"{number} {'.'.join(parts[-2:])}".strip()


def _of_weight(program: Program, name: str) -> str:
    if name in program.weights:
        return name
    return next((source for source in program.step(name).inputs if source in program.weights), "")


def _of_layer(program: Program, name: str) -> str:
    return group_of(name if name in program.weights else f"{program.step(name).name}.weight")


Maker = Callable[[Program, Mapping[str, Host]], Norms]
_KINDS: dict[GradientKind, tuple[str, Maker, Callable[[Program, str], str]]] = {
    "gradient norms by layer": ("Norm of ∂loss/∂weights by layer", layer_norms, _of_layer),
    "gradient norms by weight": ("Norm of ∂loss/∂weight", weight_norms, _of_weight),
    "gradient norms along the stream": (
        "Norm of ∂loss/∂x along the residual stream",
        stream_norms,
        lambda program, name: program.aliases.get(name, name),
    ),
}
GRADIENT_KINDS: tuple[GradientKind, ...] = tuple(_KINDS)
