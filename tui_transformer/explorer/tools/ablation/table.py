"""A table of effects: what is ablated, each alone, and how a line of the table is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.text import Text

from tui_transformer.analysis.effects import Effect
from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import KINDS, Target, every
from tui_transformer.session.answer_summary import signed_percent
from tui_transformer.session.session import Session
from tui_transformer.text.display import cells, fit

PLACED = ("position", "neuron")
"""Kinds of which only those of one place are listed."""

NUMBER = 11
NAME = 34
"""Columns of a number, and of a name at most."""

LEAST_BAR = 4

LARGEST_EXPONENT = 700.0

LEAST_DECIMAL = 0.0001
"""Smaller numbers are written with a power of ten."""


@dataclass(frozen=True)
class Scope:
    """Which targets a table lists: all of a kind, or those of one place."""

    kind: str
    place: str | None = None

    def targets(self, program: Program) -> tuple[Target, ...]:
        """The targets, in the order of the model."""
        return every(program, f"{self.kind}:{self.place}" if self.place else self.kind)

    @property
    def title(self) -> str:
        """`heads`, `positions entering encoder.1`."""
        word = "entering" if self.kind == "position" else "of"
        return f"{self.kind}s {word} {self.place}" if self.place else f"{self.kind}s"


def places(program: Program, kind: str) -> Sequence[str | None]:
    """The places among which one is chosen; one None where all are listed together, nothing where there are none."""
    steps_of = KINDS[kind].places(program)
    if kind not in PLACED:
        return (None,) if steps_of else ()
    backwards = reversed(list(steps_of.items()))
    first = {tuple(program.step(name).name for name in steps): place for place, steps in backwards}
    return tuple(place for place in steps_of if place in first.values())


def scopes(program: Program, stop: str = "") -> tuple[Scope, ...]:
    """One place of every kind that the model has: the first; of neurons those of the layer of a stop."""
    layer = program.by_name[stop].layer if stop in program.by_name else None
    placed = ((kind, places(program, kind)) for kind in KINDS)
    return tuple(Scope(kind, _place(kind, among, layer)) for kind, among in placed if among)


def _place(kind: str, among: Sequence[str | None], layer: str | None) -> str | None:
    here = (place for place in among if place and layer is not None and place.startswith(f"{layer}."))
    return next(here, among[0]) if kind == "neuron" else among[0]


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes the lines of a table, in columns that fit the names and the width.

    Attributes:
        single: The answer is read at one position, so that its probability changes by one factor.
        metric: A metric was chosen.
    """

    session: Session
    targets: Sequence[Target]
    single: bool = True
    metric: bool = False

    @cached_property
    def columns(self) -> tuple[tuple[str, Callable[[Effect], str]], ...]:
        """The measures that the model's kind of answer has, with their titles."""
        if not self.session.trace.program.logits:
            return (("relative", lambda effect: number(effect.size)),)
        if self.metric:
            return (
                ("metric", lambda effect: number(0.0 if effect.value is None else effect.value)),
                ("change", lambda effect: number(_change(effect), "+")),
            )
        return (
            ("Δ ln p", lambda effect: number(_change(effect), "+")),
            ("KL, nats", lambda effect: number(effect.size)),
            *((("Δp ÷ p", lambda effect: signed_percent(share(_change(effect)))),) if self.single else ()),
        )

    @cached_property
    def _name_width(self) -> int:
        return min(max(map(cells, map(self.name, self.targets)), default=0), NAME)

    @cached_property
    def _stacks(self) -> int:
        return len({target.place.split(".")[0] for target in self.targets})

    def name(self, target: Target) -> str:
        """`layer 0 · head 3`, with the stack where there are two; a position by its token."""
        if target.kind == "position":
            axis = self.session.trace.program.axes(KINDS["position"].steps(self._program, target.place)[0])[-2]
            label = self.session.labels.of(axis)(target.number or 0)
            return f"{target.number} {label}" if label != str(target.number) else f"position {target.number}"
        if target.kind == "neuron":
            return f"neuron {target.number}"
        stack, _, rest = target.place.partition(".")
        layer, _, sublayer = rest.partition(".")
        parts = [f"{stack} layer {layer}" if self._stacks > 1 else f"layer {layer}"]
        parts += ["cross"] if sublayer.startswith("cross") else []
        parts += [] if target.number is None else [f"head {target.number}"]
        return " · ".join(parts)

    @property
    def _program(self) -> Program:
        return self.session.trace.program

    def header(self, width: int) -> str:
        """The titles of the columns."""
        titles = "".join(f"{title:>{NUMBER}}" for title, _ in self.columns)
        bar = "  effect" if self._bar_width(width) >= LEAST_BAR else ""
        return fit(f" {fit('ablated', self._name_width)}{titles}{bar}", width)

    def line(self, target: Target, effect: Effect, largest: float, width: int, color: str) -> Text:
        """One target: its name, its numbers, and a bar as long as its share of the largest effect."""
        values = "".join(f"{written(effect):>{NUMBER}}" for _, written in self.columns)
        text = Text(f" {fit(self.name(target), self._name_width)}{values}", no_wrap=True)
        room = self._bar_width(width)
        if room >= LEAST_BAR:
            text.append("  ").append(bar(effect.size, largest, room), color)
        return text

    def _bar_width(self, width: int) -> int:
        return width - self._name_width - NUMBER * len(self.columns) - 5


def share(change: float) -> float:
    """A change of ln p as the relative change of p."""
    return math.expm1(min(change, LARGEST_EXPONENT))


def _change(effect: Effect) -> float:
    return 0.0 if effect.change is None else effect.change


def bar(size: float, largest: float, width: int) -> str:
    """A horizontal bar to half a column; nothing where there is no effect."""
    share = min(size / largest, 1.0) if largest > 0 and math.isfinite(size) else float(math.isinf(size))
    halves = round(share * 2 * width)
    if size > 0 and not halves:
        return "╸"
    return "━" * (halves // 2) + "╸" * (halves % 2)


def number(value: float, sign: str = "") -> str:
    """Four decimals, or one and a power of ten; `sign` "+" for a sign that is always there."""
    if not math.isfinite(value):
        return "?" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if abs(value) >= LEAST_DECIMAL or not value:
        return minus(f"{value:{sign}.4f}")
    return f"{sign * (value > 0)}{spoken(value, 2)}"
