"""Breaking a model on purpose: one thing computed otherwise, to see what it was good for.

`BREAKS` is the table of them; each is a change of the program, made of operations that explain their cells as all do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tui_transformer.diagnosis.causes.attention import score_scales, tiled
from tui_transformer.diagnosis.causes.cause import altered, passing_on, with_op
from tui_transformer.diagnosis.causes.norms import sublayers
from tui_transformer.diagnosis.causes.ops import AddedTimes, DownColumns, MaskAround, NaiveSoftmax, Times
from tui_transformer.diagnosis.causes.positions import paired_otherwise
from tui_transformer.engine import ops
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.norms import Norm
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.targets import KINDS, every, parse
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.files import read_toml
from tui_transformer.records import dataclass, replace

Make = Callable[[Trace, float, str], Iterable[Step]]
"""The steps in the place of those of their names, by a number and a place where the break has such; new names are
computed before what reads them."""

WRITTEN = re.compile(r"\s*(?P<name>[^\s:=]+)(?::(?P<place>[^\s=]+))?(?:(?:\s*=\s*|\s+)(?P<number>\S+))?\s*")

A_HEAD = "a head"

SAME = 1e-6
"""Numbers that differ by no more are one."""

EXACTLY = 6
"""Digits with which a number is written, to be read again."""


@dataclass(frozen=True)
class Slider:
    """The numbers that a break may have.

    Attributes:
        low: The least.
        high: The largest.
        right: With this one nothing is broken.
        usual: That of the switch.
        step: From one to the next: what is added, or where they are `geometric`, by what they are multiplied.
    """

    low: float
    high: float
    right: float
    usual: float
    step: float = 0.05
    geometric: bool = False

    @property
    def stops(self) -> tuple[float, ...]:
        """The numbers that it stops at, in order."""
        if self.geometric:
            count = math.ceil(math.log(self.high / self.low, self.step) - SAME)
            each = [self.low * self.step**at for at in range(count)]
        else:
            each = [self.low + self.step * at for at in range(math.ceil((self.high - self.low) / self.step - SAME))]
        each += [self.high, self.right, self.usual]
        return tuple(sorted({rounded(number) for number in each}))

    def between(self, one: float, other: float) -> float:
        """The number in the middle of two."""
        return math.sqrt(one * other) if self.geometric else (one + other) / 2

    def distance(self, number: float) -> float:
        """How far a number is from the right one: its difference, or the logarithm of its share."""
        return abs(math.log(number / self.right)) if self.geometric else abs(number - self.right)


def rounded(number: float) -> float:
    """A number as it is written and read again."""
    return float(f"{number:.{EXACTLY}g}")


@dataclass(frozen=True)
class Break:
    """Something that is computed otherwise on purpose.

    Attributes:
        name: Its public name, as `no-scale`.
        title: What is done.
        lesson: What to look for: what it was good for.
        absent: What is said of a model in which there is nothing of the kind.
        make: The steps that take the place of others; none where there is nothing to break.
        slider: The numbers that it may have, None in a trace that it does not fit; None where it never has one.
        number: What is done with a number, with {number}, and {place} where it has a place; "" where it has none.
    """

    name: str
    title: str
    lesson: str
    absent: str
    make: Make
    slider: Callable[[Trace], Slider | None] | None = None
    number: str = ""


@dataclass(frozen=True)
class Broken:
    """A break as it is made: with which number, and where.

    Attributes:
        kind: What is broken.
        number: None for that of the switch.
        place: The head, as `encoder.0.self_attention:2`; "" for the first, and where the break has no place.
    """

    kind: Break
    number: float | None = None
    place: str = ""

    @classmethod
    def read(cls, text: str) -> Broken:
        """As `str` writes it: `no-scale`, `no-scale=0.31`, `head:encoder.0.self_attention:2=0.5`.

        Raises:
            InputError: There is no such break, or it has no such number.
        """
        match = WRITTEN.fullmatch(text)
        kind = next((each for each in BREAKS if match is not None and each.name == match["name"]), None)
        if match is None or kind is None:
            raise InputError(f"{text[:40]!r} is none of {', '.join(each.name for each in BREAKS)}")
        place, written = match["place"] or "", match["number"]
        if place and "{place}" not in kind.number:
            raise InputError(f"{kind.name} is broken everywhere: it takes no place, such as {place[:40]!r}")
        if written is None:
            return cls(kind, None, place)
        if kind.slider is None:
            raise InputError(f"{kind.name} is broken or not: it takes no number, such as {written[:20]!r}")
        try:
            number = float(written.replace(",", "."))
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf or (not number and kind.name in POSITIVE):
            least = "above 0" if kind.name in POSITIVE else "from 0"
            raise InputError(f"{kind.name} takes a number {least}, and not {written[:20]!r}")
        return cls(kind, rounded(number), place)

    def __str__(self) -> str:
        place = f":{self.place}" if self.place else ""
        number = "" if self.number is None else f"={self.number:.{EXACTLY}g}"
        return f"{self.kind.name}{place}{number}"

    @property
    def title(self) -> str:
        """What is done: `without ÷ √d_k`, `scores ÷ √d_k × 0.31`."""
        if self.number is None:
            return self.kind.title.replace(A_HEAD, head_title(self.place))
        return self.kind.number.format(number=spoken(self.number, 4), place=head_title(self.place))

    def steps(self, trace: Trace) -> tuple[Step, ...]:
        """The steps that take the place of others in a trace."""
        slider = None if self.kind.slider is None or self.number is not None else self.kind.slider(trace)
        usual = 0.0 if slider is None else slider.usual
        number = usual if self.number is None else self.number
        return tuple(self.kind.make(trace, number, self.place))

    def slider(self, trace: Trace) -> Slider | None:
        """The numbers that it may have; None where it has none, or there is nothing to break."""
        return None if self.kind.slider is None or not self.steps(trace) else self.kind.slider(trace)

    def at(self, number: float, slider: Slider) -> Broken:
        """The same with another number of its slider."""
        number = rounded(number)
        return replace(self, number=None if number == rounded(slider.usual) else number)


def head_title(place: str) -> str:
    """`head 2 of encoder.0`, with the kind of attention where that is no self-attention; `a head` for the first."""
    attention, _, number = place.rpartition(":")
    layer, _, kind = attention.rpartition(".")
    cross = "" if kind == "self_attention" else f" {kind.removesuffix('_attention')}"
    return f"head {number} of {layer}{cross}" if attention else A_HEAD


def broken(trace: Trace, names: Sequence[str]) -> Trace:
    """A trace of the same inputs in which these things are computed otherwise, one after the other.

    Raises:
        InputError: There is no such break.
    """
    order = {each.name: place for place, each in enumerate(BREAKS)}
    for each in sorted(map(Broken.read, names), key=lambda one: order[one.kind.name]):
        program, steps = trace.program, {step.name: step for step in each.steps(trace)}
        new = {name: step for name, step in steps.items() if name not in program.by_name}
        ordered: list[Step] = []
        for old in program.steps:
            step = steps.get(old.name, old)
            ordered += [new.pop(name) for name in step.inputs if name in new]  # right before what reads them first
            ordered.append(step)
        program = Program(tuple(ordered), program.aliases, program.weights, program.givens)
        trace = replace(trace, program=program, edits=(), base=None, _held={})
    return trace


def fitting(trace: Trace) -> tuple[Break, ...]:
    """The breaks that a model can have."""
    return tuple(each for each in BREAKS if Broken(each).steps(trace))


# What is broken


def _scales(trace: Trace) -> list[tuple[Step, ops.Scale]]:
    """The steps that divide scores by another number than 1."""
    steps = score_scales(trace.program, trace.program.steps)
    return [(step, step.op) for step in steps if isinstance(step.op, ops.Scale) and step.op.factor not in (0, 1)]


def _scaled(trace: Trace, number: float, _: str) -> Iterator[Step]:
    for step, op in _scales(trace):
        undivided = math.isclose(op.factor * number, 1.0, rel_tol=1e-5)
        said = "(not divided)" if undivided else f"{op.expression} × {number:.4g}"
        yield with_op(step, ops.Scale(1.0 if undivided else op.factor * number, said))


def _of_scale(trace: Trace) -> Slider | None:
    """× 0 makes all scores equal, × √d_k leaves them as they are before the division."""
    undivided = next((1 / op.factor for _, op in _scales(trace)), 0.0)
    if not undivided:
        return None
    high = max(4.0, float(math.ceil(undivided)))
    return Slider(0.0, high, 1.0, undivided, high / 40)


def _positions(trace: Trace, number: float, _: str) -> Iterator[Step]:
    for step in trace.program.steps:
        op = step.op
        if step.name.rpartition(".")[2] == "positions":
            yield with_op(step, Times(op, number))
        elif isinstance(op, ops.Rotate):
            turned = altered(step, frequencies=tuple(each * number for each in op.frequencies))
            yield turned if number else passing_on(step, "not turned")
        elif isinstance(op, ops.RelativeBias | ops.DistanceBias | ops.Disentangle):
            yield with_op(step, AddedTimes(op, number)) if number else passing_on(step, "nothing added", "score")


def _head(trace: Trace, number: float, place: str) -> Iterator[Step]:
    program, heads = trace.program, KINDS["head"].places(trace.program)
    if not heads and not place:
        return
    target = parse(f"head:{place}") if place else every(program)[0]
    steps = [program.by_name[name] for name in target.steps(program)] if target.place in heads else []
    if any((target.number or 0) >= step.shape[0] for step in steps) or not steps:
        raise InputError(f"there is no {head_title(place)} in this model")
    yield from (with_op(step, Times(step.op, number, target.number)) for step in steps)


def _weighed(part: int, within: str, trace: Trace, number: float, _: str) -> Iterator[Step]:
    """Sums of the residual stream and of what a sublayer says, of which one has a factor; new steps multiply it."""
    for step in trace.program.steps:
        if step.role == "residual" and isinstance(step.op, ops.Add) and step.sublayer.endswith(within):
            source = step.inputs[part]
            name = f"{step.name}_{'stream' if part == 0 else 'sublayer'}"
            yield Step(name, ops.Scale(number, f"· {number:.4g}", "x"), (source,), step.axes)
            inputs = (*step.inputs[:part], name, *step.inputs[part + 1 :])
            yield replace(step, inputs=inputs)


def _norms(trace: Trace) -> list[tuple[Step, float]]:
    steps = ((step, step.op) for step in trace.program.steps)
    return [(step, op.epsilon) for step, op in steps if isinstance(op, Norm | ops.NormOfSum) and op.epsilon > 0]


def _masks(trace: Trace) -> Iterator[tuple[Step, ops.Mask]]:
    """The masks that hide something."""
    for step in trace.program.steps:
        if isinstance(step.op, ops.Mask):
            padded = step.inputs[3] in trace.givens and not bool(trace.givens[step.inputs[3]].all())
            if step.op.causal or step.op.window is not None or padded:
                yield step, step.op


def _tiled(trace: Trace, *_: object) -> Iterator[Step]:
    for step in trace.program.steps:
        op = step.op.of if isinstance(step.op, Times) else step.op  # of a head that is multiplied by a number
        if isinstance(op, ops.Scores | ops.Context) and 1 < op.share < step.shape[0]:
            read = tiled(with_op(step, op))
            yield read if op is step.op else altered(step, of=read.op)


def _softmaxes(trace: Trace) -> Iterator[Step]:
    return (step for step in trace.program.steps if isinstance(step.op, ops.Softmax) and step.square)


MAKES: Mapping[str, Make] = {
    "no-scale": _scaled,
    "no-positions": _positions,
    "no-mask": lambda trace, *_: (passing_on(step, "no mask", "score") for step, _ in _masks(trace)),
    "mask-around": lambda trace, *_: (with_op(step, MaskAround(op.causal, op.window)) for step, op in _masks(trace)),
    "causal-mask": lambda trace, *_: (
        altered(step, causal=True)
        for step in trace.program.steps
        if isinstance(step.op, ops.Mask) and not step.op.causal and "cross_attention" not in step.name
    ),
    "head": _head,
    "no-feed-forward": partial(_weighed, 1, "feed_forward"),
    "no-residual": partial(_weighed, 0, ""),
    "norm-place": lambda trace, *_: (
        step for each in sorted(sublayers(trace.program), key=lambda each: not each.is_after) for step in each.moved()
    ),
    "norm-epsilon": lambda trace, number, _: (altered(step, epsilon=number) for step, _ in _norms(trace)),
    "rotary-interleaved": lambda trace, *_: (
        paired_otherwise(step) for step in trace.program.steps if isinstance(step.op, ops.Rotate) and step.op.half > 1
    ),
    "keys-tiled": _tiled,
    "softmax-axis": lambda trace, *_: (with_op(step, DownColumns()) for step in _softmaxes(trace)),
    "naive-softmax": lambda trace, *_: (with_op(step, NaiveSoftmax()) for step in _softmaxes(trace)),
    "temperature": lambda trace, number, _: (
        with_op(step, Times(step.op, 1 / number)) for step in trace.program.steps if step.name == trace.program.logits
    ),
}
SLIDERS: Mapping[str, Callable[[Trace], Slider | None]] = {
    "no-scale": _of_scale,
    "no-positions": lambda _: Slider(0.0, 2.0, 1.0, 0.0),
    "head": lambda _: Slider(0.0, 1.0, 1.0, 0.0),
    "no-feed-forward": lambda _: Slider(0.0, 2.0, 1.0, 0.0),
    "no-residual": lambda _: Slider(0.0, 2.0, 1.0, 0.0),
    "norm-epsilon": lambda trace: (
        Slider(least, 100.0, least, 1.0, math.sqrt(10), geometric=True)
        if (least := min((epsilon for _, epsilon in _norms(trace)), default=0.0))
        else None
    ),
    "temperature": lambda _: Slider(0.1, 4.0, 1.0, 2.0, 0.1),
}
"""The numbers of those that have one."""

POSITIVE = frozenset({"norm-epsilon", "temperature"})
"""Those that something is divided by, or whose logarithm is taken."""

BREAKS = tuple(
    Break(name, **words, make=MAKES[name], slider=SLIDERS.get(name))
    for name, words in read_toml(Path(__file__).with_name("breaking.toml"), 1 << 20).items()
)
"""In the order in which they are offered, and made where several are."""
