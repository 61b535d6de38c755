"""A program: the forward pass as a list of named steps, without a single number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from tui_transformer.engine.axis import Axes, Axis, Region, Shape, shape_of, shape_text, slices
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.names import ending, one
from tui_transformer.engine.ops import Op
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field, replace

Grain = Literal["operation", "sublayer", "layer"]
Role = Literal["", "norm", "residual"]
PROBABILITIES = "output.probabilities"
LABEL = "label"
"""The axis of the labels of a classifier."""
FEATURE = "feature"
"""The axis of the features of a dictionary."""
LONG = frozenset({"vocabulary", FEATURE})
"""Axes that are longer than the vectors that they are made from."""
ACTIVE = frozenset({"features", "encoded"})
"""Last parts of the names of steps that are nearly all 0: of the features of a dictionary few are active."""


@dataclass(frozen=True)
class Step:
    """One line of the textbook: a name, an op, the names of what it reads, and the axes of its result.

    Attributes:
        role: "residual" where what the sublayers say is added to the residual stream, which is its first input; "norm"
            where a layer or a stack normalises the stream; "" for all else.
    """

    name: str
    op: Op
    inputs: tuple[str, ...]
    axes: Axes
    role: Role = ""

    @cached_property
    def shape(self) -> Shape:
        """The result's shape, without a batch axis."""
        return shape_of(self.axes)

    @cached_property
    def sublayer(self) -> str:
        """The dotted name without its last part, as `encoder.0.self_attention`."""
        return self.name.rpartition(".")[0] or self.name

    @cached_property
    def layer(self) -> str:
        """The layer, as `encoder.0`; for steps outside the stacks the same as the sublayer."""
        parts = self.name.split(".")
        return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else self.sublayer

    @cached_property
    def square(self) -> bool:
        """Whether the array grows with queries × keys."""
        return {"query", "key"} <= {axis.name for axis in self.axes}

    @cached_property
    def windowed(self) -> bool:
        """Whether the array may be too large to be made whole: queries × keys, tokens × vocabulary or features."""
        return self.square or any(axis.name in LONG for axis in self.axes)

    @cached_property
    def mostly_zero(self) -> bool:
        """Whether it is kept as the cells that are not 0."""
        return any(axis.name == FEATURE for axis in self.axes) and self.name.rpartition(".")[2] in ACTIVE

    def group(self, grain: Grain) -> str:
        """The layer, sublayer or step that the step belongs to at a grain."""
        return {"operation": self.name, "sublayer": self.sublayer, "layer": self.layer}[grain]


@dataclass(frozen=True, eq=False)
class Program:
    """Steps in order of computation, other names for some of them, and the weights and inputs that they read.

    Attributes:
        steps: In order; a step reads only steps before it.
        aliases: Another name → the step that it stands for (`encoder.0.output`).
        weights: Name → axes of every weight.
        givens: Name → axes of every input from outside.

    Raises:
        ValueError: Two steps, or a step and an alias, have one name.
    """

    steps: tuple[Step, ...]
    aliases: Mapping[str, str]
    weights: Mapping[str, Axes]
    givens: Mapping[str, Axes]

    def __post_init__(self) -> None:
        counts = Counter((*(step.name for step in self.steps), *self.aliases))
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"several steps are called {', '.join(twice)}")

    @cached_property
    def by_name(self) -> Mapping[str, Step]:
        """Steps by their own names."""
        return {step.name: step for step in self.steps}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every step and alias, an alias right after the step that it stands for."""
        others: dict[str, list[str]] = {}
        for alias, name in self.aliases.items():
            others.setdefault(name, []).append(alias)
        return tuple(name for step in self.steps for name in (step.name, *others.get(step.name, ())))

    @cached_property
    def logits(self) -> str:
        """The step that the loss and the probabilities of words read; "" where there is none.

        That is `output.logits`, or `output.capped` where logits are capped.
        """
        probabilities = self.by_name.get(PROBABILITIES)
        return "" if probabilities is None or probabilities.axes[-1].name == LABEL else probabilities.inputs[0]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of every step in the order."""
        return {step.name: i for i, step in enumerate(self.steps)}

    def step(self, name: str) -> Step:
        """The step of this name or alias, or of the only one that ends so.

        Raises:
            InputError: No such step, or several.
        """
        step = self.by_name.get(self.aliases.get(name, name))
        return self.by_name[self.aliases.get(own := one(self.names, name), own)] if step is None else step

    def named(self, name: str) -> str:
        """The own name of a step, weight or input, whose whole name, alias or end (of a single one) this is.

        Raises:
            InputError: Nothing is called so, or several are.
        """
        own = self.aliases.get(name, name)
        if own in self.by_name or own in self.weights or own in self.givens:
            return own
        whole = one((*self.names, *self.weights), name)
        return self.aliases.get(whole, whole)

    def knows(self, name: object) -> bool:
        """Whether `named` knows what is meant."""
        if not isinstance(name, str):
            return False
        own, names = self.aliases.get(name, name), (*self.names, *self.weights)
        return own in names or own in self.givens or len(ending(names, name)) == 1

    def axes(self, name: str) -> Axes:
        """The axes of a step, weight or input."""
        for table in (self.weights, self.givens):
            if name in table:
                return table[name]
        return self.step(name).axes

    def shape(self, name: str) -> Shape:
        """The shape of a step, weight or input."""
        step = self.by_name.get(name)
        return shape_of(self.axes(name)) if step is None else step.shape

    def place(self, name: str, region: Region) -> tuple[slice, ...]:
        """Where a region is in a whole array: behind the batch axis, which weights do not have."""
        return slices(region)[1:] if name in self.weights else slices(region)

    def downstream(self, names: Iterable[str]) -> frozenset[str]:
        """The names themselves and every step that depends on one of them."""
        reached = set(names)
        for step in self.steps:
            if not reached.isdisjoint(step.inputs):
                reached.add(step.name)
        return frozenset(reached)

    def readers(self, name: str) -> tuple[Step, ...]:
        """The steps that read a step, weight or input."""
        return tuple(step for step in self.steps if name in step.inputs)

    def flops(self, step: Step) -> int:
        """Floating-point operations of one step for one sentence."""
        return step.op.flops(*(self.axes(name) for name in step.inputs))

    def weight_count(self) -> int:
        """How many numbers the weights hold."""
        return sum(math.prod(shape_of(axes)) for axes in self.weights.values())

    def step_cells(self, steps: Iterable[Step] | None = None) -> int:
        """How many numbers the given steps (by default all) hold for one sentence."""
        count = 0
        for step in self.steps if steps is None else steps:
            cells = math.prod(step.shape)
            count += round(cells * step.op.density(*map(self.axes, step.inputs))) if step.op.sparse else cells
        return count


@dataclass(eq=False)
class Builder:
    """Collects steps while a model is described; nothing is computed.

    Calling it adds a step inside the current scope and gives back the step's name:
    `scores = build("scores", Scores(), query, key)`. Weights may be those of another scope, the `source`.
    """

    scope: str = ""
    source: str | None = None
    steps: list[Step] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    weights: dict[str, Axes] = field(default_factory=dict)
    givens: dict[str, Axes] = field(default_factory=dict)
    known: dict[str, Axes] = field(default_factory=dict)

    def __call__(self, name: str, op: Op, *inputs: str, role: Role = "") -> str:
        """Add the step `name` of the current scope."""
        full = self.full(name)
        axes = op.axes(*(self.known[source] for source in inputs))
        self.steps.append(Step(full, op, inputs, axes, role))
        self.known[full] = axes
        return full

    def full(self, name: str) -> str:
        """The name with the current scope in front."""
        return _inside(self.scope, name)

    def within(self, scope: str, source: str | None = None) -> Builder:
        """The same builder, adding in an inner scope; its weights are those of `source` there, where one is given."""
        own = self.scope if self.source is None else self.source
        weights = None if self.source is None and source is None else _inside(own, scope if source is None else source)
        return replace(self, scope=self.full(scope), source=weights)

    def weight(self, name: str, *axes: Axis) -> str:
        """Declare a weight `name` of the current scope (once, though several steps may read it)."""
        return self._declare(self.weights, _inside(self.scope if self.source is None else self.source, name), axes)

    def shared_weight(self, name: str, *axes: Axis) -> str:
        """Declare a weight by its whole name, whatever the scope: two embeddings may read one table."""
        return self._declare(self.weights, name, axes)

    def given(self, name: str, *axes: Axis) -> str:
        """Declare an input from outside."""
        return self._declare(self.givens, name, axes)

    def alias(self, name: str, step: str) -> None:
        """Give a step another name, inside the current scope."""
        self.aliases[self.full(name)] = step

    def _declare(self, table: dict[str, Axes], name: str, axes: Axes) -> str:
        table[name] = self.known[name] = axes
        return name

    def program(self) -> Program:
        """The finished program."""
        return Program(tuple(self.steps), self.aliases, self.weights, self.givens)


def _inside(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def starts(program: Program, grain: Grain) -> Iterator[int]:
    """The places where a new group of the grain begins."""
    previous = None
    for place, step in enumerate(program.steps):
        group = step.group(grain)
        if group != previous:
            yield place
        previous = group


Given = ParamSpec("Given")
Result = TypeVar("Result")


def by_program(
    function: Callable[Concatenate[Program, Given], Result],
) -> Callable[Concatenate[Program, Given], Result]:
    """A function of a program, and of what can be a key, that keeps its results; they must not refer to the program.

    A cache of a fixed number of results would keep the programs of sentences that nobody looks at any more.
    """
    kept: WeakKeyDictionary[Program, dict[object, Result]] = WeakKeyDictionary()

    @wraps(function)
    def known(program: Program, /, *given: Given.args, **named: Given.kwargs) -> Result:
        results = kept.setdefault(program, {})
        key = given, tuple(named.items())
        if key not in results:
            results[key] = function(program, *given, **named)
        return results[key]

    return known


def check_index(program: Program, name: str, index: Index) -> None:
    """Refuse a cell that a step, weight or input does not have."""
    shape = program.shape(name)
    if not isinstance(index, Sequence):
        raise UsageError(f"a cell of {name} has an index for every axis, as {tuple(0 for _ in shape)}")
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=True)):
        raise InputError(f"{name} has no cell [{', '.join(map(str, index))}]: it is {shape_text(shape)}")


def array_of_numbers(program: Program, name: str) -> tuple[str, Shape]:
    """The own name and the shape of a step of numbers or of a weight.

    Raises:
        InputError: There is none, or it holds whole numbers.
    """
    own = program.named(name)
    if own in program.givens:
        raise InputError(f"{own} is an input: change a step or a weight")
    return (own, program.shape(own)) if own in program.weights else (own, step_of_numbers(program, own).shape)


def checked_region(program: Program, name: str, region: Region) -> str:
    """The own name of a step of numbers, or of a weight, that has this region."""
    own, shape = array_of_numbers(program, name)
    if not isinstance(region, Sequence) or not all(isinstance(part, range) for part in region):
        raise UsageError(f"a region of {own} is a range for every axis; Set({name!r}, 0.0, rows=3) names one alone")
    fits = len(region) == len(shape) and all(
        0 <= part.start < part.stop <= size and part.step == 1 for part, size in zip(region, shape, strict=True)
    )
    if not fits:
        parts = ", ".join(f"{part.start}–{part.stop - 1}" for part in region)
        raise InputError(f"{own} has no region [{parts}]: it is {shape_text(shape)}")
    return own


def step_of_numbers(program: Program, name: str) -> Step:
    """The step of this name; one that holds whole numbers is refused."""
    step = program.step(name)
    if step.op.integer:
        raise InputError(f"{step.name} holds whole numbers: change the sentence instead")
    return step
