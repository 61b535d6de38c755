"""Edits as they are written: a step or weight changed, in one line such as `0.output[:, 3] += 2*vector.npy`.

The place is as in NumPy: heads (where the step has them), rows, columns; a number, `2:5`, or `:` for all; what is left
out at the end is all. The operations are =, +=, -=, *= and /=. The value is a sum of terms, each with a factor where it
has one:

- a number;
- a file of an array: `vector.npy`, `arrays.npz:name`, `arrays.safetensors:name`;
- `'a text'`: the mean of the step over the tokens of the text, as it is without edits; the difference of two such is a
  direction to steer in;
- `mean(FILE)`: the mean of the step over the tokens of all lines of a text file;
- `direction(SOME, OTHERS)`: the mean of the step at the last token of some texts less that of others, each a text in
  quotes or a file of lines; with `, mean` or a number behind them at all tokens, or at that one.

`= mean` alone sets every column to its mean over the positions, as it is without edits, and `-= along(VALUE)` takes out
the component along a vector.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import OPEN, Add, Project, Scale, Set
from tui_transformer.engine.edits import KINDS, Ablate, Change, Edit, Patch
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.engine.program import Program, array_of_numbers
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.options import Listen, ignore
from tui_transformer.records import dataclass
from tui_transformer.session.edit_values import EXAMPLES, Term, terms_of
from tui_transformer.session.session import Session
from tui_transformer.session.steering import Steer
from tui_transformer.text.display import visible

EDIT = re.compile(r"\s*(?P<name>[^\s\[\]=+*/-]+)\s*(?:\[(?P<place>[^\]]*)\])?\s*(?P<op>[-+*/]?=)\s*(?P<value>.+?)\s*")
HERE = re.compile(r"\s*[-+*/]?=")
"""The beginning of an edit that names no step: that of a cell which is known."""
ALONG = re.compile(r"along\((.+)\)")
"""A value of whose direction the component is meant."""
MOST_CELLS = 1 << 22
"""Numbers of an array that a step is changed by, where the step of a text that grows may become larger than it is."""


@dataclass(frozen=True, eq=False)
class Written:
    """An edit that was read, and whose step and cells are there.

    Attributes:
        place: Set to 0 where it will be changed.
        operation: As in `_OPERATIONS`.
        terms: Whose sum is the value; none for the mean over the positions.
        shape: Of the whole step or weight.
    """

    place: Set
    operation: str
    terms: tuple[Term, ...]
    shape: Shape

    @property
    def runs(self) -> bool:
        """Whether the model has to read something for it."""
        return any(term.number is None for term in self.terms)

    def change(self, model: Model, listen: Listen = ignore, report: Report = silent) -> Change:
        """The edit itself.

        Args:
            model: Computes the means of texts.
            listen: Told of every text that is read.
            report: Told how far a direction between texts is; what it raises ends it.

        Raises:
            InputError: A text cannot be read.
        """
        place = self.place
        if not self.terms:
            return Ablate(place.name, place.region, mean=True)
        values = [self._cut(term.value(model, listen, report)) for term in self.terms]
        if self.operation in ("+=", "-=") and any(np.ndim(each) for each in values):
            return self._steer(values)
        pairs = zip(self.terms, values, strict=True)
        value = sum((term.factor * each for term, each in pairs), np.zeros(()))
        if self.operation == "/=" and not np.all(value):
            raise UsageError(f"{place.name} cannot be divided by 0")
        return _OPERATIONS[self.operation](place.name, value, *place.parts)

    def _steer(self, values: Sequence[Host]) -> Steer:
        """The sum as a direction, so many times as its first term says."""
        factors = [-term.factor if self.operation == "-=" else term.factor for term in self.terms]
        strength = factors[0]
        shares = [factor / strength if strength else factor or math.copysign(1.0, factor) for factor in factors]
        direction = sum((share * each for share, each in zip(shares, values, strict=True)), np.zeros(()))
        terms = tuple(zip(shares, (term.what for term in self.terms), strict=True))
        name, parts = self.place.name, self.place.parts
        return Steer(name, strength * direction, *parts, strength=strength, direction=direction, terms=terms)

    def _cut(self, values: Host) -> Host:
        """Of values for all heads and columns, those of the ones that are named."""
        heads, _, columns = self.place.parts
        if np.ndim(values) == 3 and heads is not None and np.shape(values)[0] == self.shape[0]:
            values = values[heads.start : heads.stop]
        if np.ndim(values) and columns is not None and np.shape(values)[-1] == self.shape[-1]:
            values = values[..., columns.start : columns.stop]
        return values


def changes(model: Model, program: Program, texts: Sequence[str] | None, listen: Listen = ignore) -> tuple[Change, ...]:
    """The edits that were given, in order.

    Args:
        model: Computes the means of texts.
        program: Says which axes a step has; its length matters only for a mean over the positions.
        texts: As they were written.
        listen: Told of every text that is read.

    Raises:
        InputError: One cannot be read, or names no step.
    """
    return tuple(written(program, text).change(model, listen) for text in texts or ())


def written(program: Program, text: str, here: tuple[str, Index] | None = None) -> Written:
    """An edit read, without the values that only the model knows.

    Args:
        program: Says which axes a step has.
        text: As it was written.
        here: The step and the cell that are meant where none is named.

    Raises:
        InputError: It cannot be read, or names no step or cell that is there.
    """
    if here is not None and HERE.match(text):
        text = f"{here[0]}[{','.join(map(str, here[1]))}] {text}"
    match = EDIT.fullmatch(text)
    if match is None:
        raise UsageError(f"{visible(text[:60])!r} is no edit: {EXAMPLES}")
    name, shape = array_of_numbers(program, match["name"])
    heads, rows, columns = _place(name, shape, match["place"])
    if columns is not None and columns.stop == OPEN and program.axes(name)[-1].name != "key":
        columns = range(columns.start, shape[-1])
    place = Set(name, 0.0, heads, rows, columns)
    mean = match["value"] == "mean"
    if mean and match["op"] != "=":
        raise UsageError(f"{name} can be set to its mean with =, and not {match['op']}")
    along = ALONG.fullmatch(match["value"])
    if along is not None and match["op"] != "-=":
        raise UsageError(f"{name}: what lies along a vector can be taken out with -=, and not {match['op']}")
    value, operation = (match["value"], match["op"]) if along is None else (along[1], OUT)
    terms = () if mean else tuple(terms_of(name, value, max(MOST_CELLS, math.prod(shape))))
    return Written(place.placed(program, {}) if mean else place, operation, terms, shape)


OUT = "-= along"

_OPERATIONS: dict[str, Callable[..., Change]] = {
    "=": Set,
    "+=": Add,
    "-=": lambda name, values, *place: Add(name, -values, *place),
    "*=": Scale,
    OUT: Project,
    "/=": lambda name, values, *place: Scale(name, 1 / values, *place),
}


def _place(name: str, shape: Shape, text: str | None) -> list[range | None]:
    """Heads, rows and columns; None for all of them, or where there are none."""
    kinds, pieces = KINDS[-len(shape) :], [] if text is None else text.split(",")
    if len(pieces) > len(kinds):
        axes = ", ".join(f"{kind}s" for kind in kinds)
        raise UsageError(f"{name} has {axes}: [{visible(text or '')}] names more")
    parts = [_part(name, kind, piece, size) for kind, piece, size in zip(kinds, pieces, shape, strict=False)]
    return [None] * (3 - len(kinds)) + parts + [None] * (len(kinds) - len(parts))


def _part(name: str, kind: str, text: str, size: int) -> range | None:
    match = re.fullmatch(r"\s*(?:([0-9]{1,9})|([0-9]{0,9})\s*:\s*([0-9]{0,9}))\s*", text)
    if match is None:
        raise UsageError(f"{visible(text[:40])!r} is no {kind} of {name}: write 3, 2:5 or :")
    if match[1] is not None:
        return range(int(match[1]), int(match[1]) + 1)
    if not match[2] and not match[3]:
        return None
    return range(int(match[2] or 0), int(match[3]) if match[3] else size if kind == "head" else OPEN)


def read_number(text: str, dtype: np.dtype[Any]) -> float:
    """A number as a person writes it, finite in the model's precision."""
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError as error:
        raise InputError(f"{text!r} is not a number") from error
    if not abs(value) <= float(np.finfo(dtype).max):
        raise InputError(f"{text!r} does not fit into {dtype}: the cell has to stay finite")
    return value


# Edits in words, and as they are written, to be made again; breaks by their names

SIGNS: Mapping[type, tuple[str, str]] = {Set: ("→", "="), Add: ("+", "+="), Scale: ("×", "*=")}
"""Signs of an edit with one value: in words, and as it is written."""


@dataclass(frozen=True)
class FromSentence(Patch):
    """Values that a step has in another sentence.

    Attributes:
        sentence: The other sentence.
    """

    sentence: str = ""

    @property
    def how(self) -> str:
        """From that sentence."""
        return f"patched from “{self.sentence}”"


def words(change: Change, program: Program) -> str:
    """`encoder.0.self_attention head 3 → 0`."""
    if isinstance(change, Edit):
        return f"{change.name}[{', '.join(map(str, change.index))}] → {spoken(change.value, 6)}"
    change = change.placed(program, {})  # its cells may be those of another sentence
    shape = program.shape(change.name)
    kinds = zip(KINDS[-len(shape) :], change.region, shape, strict=True)
    part = " ".join(
        f"{kind} {part.start}" if len(part) == 1 else f"{kind}s {part.start}–{part.stop - 1}"
        for kind, part, size in kinds
        if len(part) < size
    )
    if isinstance(change, Ablate):
        value = "→ mean" if change.mean else "→ 0"
    elif isinstance(change, Steer):
        value = change.said
    elif isinstance(change, Set | Add | Scale) and np.ndim(change.values) == 0:
        value = f"{SIGNS[type(change)][0]} {minus(f'{change.values:g}')}"
    else:
        value = change.how.removeprefix("patched ") if isinstance(change, FromSentence) else change.how
    # a head is taken out of the context; it is called after the attention alone
    name = change.name.removesuffix(".context") if part.startswith(KINDS[0]) else change.name
    return " ".join(filter(None, (name, part, value)))


def active(edits: Sequence[Change], program: Program) -> str:
    """All edits in a few words: the one, or how many and the last of them; "" for none."""
    if not edits:
        return ""
    last = words(edits[-1], program)
    return last if len(edits) == 1 else f"{len(edits)} edits, last {last}"


def as_written(change: Change, program: Program) -> str | None:
    """`encoder.0.self_attention.context[2] = 0`; None where it holds more than can be written in a line."""
    if isinstance(change, Edit):
        return f"{change.name}[{', '.join(map(str, change.index))}] = {change.value!r}"
    change = change.placed(program, {})  # its cells may be those of another sentence
    cells = [
        ":" if len(part) == size else str(part.start) if len(part) == 1 else f"{part.start}:{part.stop}"
        for part, size in zip(change.region, program.shape(change.name), strict=True)
    ]
    place = change.name if set(cells) == {":"} else f"{change.name}[{', '.join(cells)}]"
    if isinstance(change, Ablate):
        return f"{place} = {'mean' if change.mean else 0}"
    if isinstance(change, Steer):
        return f"{place} {change.written}"
    if isinstance(change, Set | Add | Scale) and np.ndim(change.values) == 0:
        return f"{place} {SIGNS[type(change)][1]} {float(np.asarray(change.values))!r}"
    return None


def kept(session: Session) -> list[str | None]:
    """The edits of a session as they are written; None for those that cannot be."""
    return [as_written(change, session.base.program) for change in session.edits]


def broken(session: Session) -> str:
    """The breaks in a few words: the one, or how many; "" for none."""
    titles = break_titles(session.breaks)
    if not titles:
        return ""
    return f"broken: {titles[0]}" if len(titles) == 1 else f"{len(titles)} broken"


def left_out(session: Session) -> str:
    """What a model does not have that is read without the session's changes: " without the edits", "" for nothing."""
    parts = " and ".join(filter(None, ("the edits" * bool(session.edits), "the breaks" * bool(session.breaks))))
    return f" without {parts}" if parts else ""


def break_titles(names: Collection[str]) -> list[str]:
    """What these breaks do, in their order; InputError where one is none."""
    if not names:
        return []
    from tui_transformer.diagnosis.breaking import Broken

    return [Broken.read(each).title for each in names]
