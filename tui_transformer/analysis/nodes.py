"""Nodes of paths: what writes into the residual stream, what reads it, and the steps that lead straight across.

Senders are the embeddings, the heads (their rows of the context, weights × V) and the feed-forward layers (what they
add to the stream); receivers the queries, keys and values of heads, what feed-forward layers read, and the logits. The
names are those of ablations, `head:decoder.0.self_attention:3`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from tui_transformer.engine.axis import Region, whole
from tui_transformer.engine.names import one
from tui_transformer.engine.program import PROBABILITIES, Program, Step
from tui_transformer.engine.targets import is_context
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, replace

Names = str | Iterable[str | Iterable[str]]
"""Nodes as they are named: a kind (each of it alone), one, or several of them; names in a list are patched together."""

Places = Mapping[str, tuple[str, ...]]
"""Where a kind of node is: attention, feed-forward layer or stack → the own names of its steps."""


@dataclass(frozen=True)
class Part:
    """A head, or the whole of some steps: `kind:place:number`, without a number where it has none."""

    kind: str
    place: str
    steps: tuple[str, ...]
    number: int | None = None

    def __str__(self) -> str:
        return ":".join(filter(None, (self.kind, self.place, "" if self.number is None else str(self.number))))

    @property
    def heads(self) -> range | None:
        """The head as a range; None for all of the steps."""
        return None if self.number is None else range(self.number, self.number + 1)

    def region(self, program: Program, step: str) -> Region:
        """Its cells of one of its steps."""
        everything = whole(program.shape(step))
        return everything if self.heads is None else (self.heads, *everything[1:])


@dataclass(frozen=True)
class Node:
    """An end of paths: a part, or several that are patched together."""

    name: str
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def steps(self) -> frozenset[str]:
        """The steps of its parts."""
        return frozenset(chain.from_iterable(part.steps for part in self.parts))

    @property
    def layer(self) -> int | None:
        """The layer of its parts, −1 of an embedding; None where it is of several, or of none."""
        layers = {-1 if part.kind == "embedding" else layer_in(part.place) for part in self.parts}
        return layers.pop() if len(layers) == 1 else None

    @property
    def head(self) -> int | None:
        """The number of its only head."""
        return self.parts[0].number if len(self.parts) == 1 else None


def layer_in(place: str) -> int | None:
    """The number of the layer that a place is in; None outside of the layers."""
    number = place.split(".")[1:2]
    return int(number[0]) if number and number[0].isdigit() else None


def nodes(program: Program, names: Names, kinds: Mapping[str, Callable[[Program], Places]]) -> tuple[Node, ...]:
    """The nodes of `SENDERS` or `RECEIVERS` that are meant, each once, in the order of their names.

    Raises:
        UsageError: No such kind of node, or an empty list.
        InputError: The model has no such place or head, or none of what is named.
    """
    if not any(step.role == "residual" for step in program.steps):
        raise InputError("the model has no residual stream: there are no paths")
    found: dict[Node, None] = {}
    for each in [names] if isinstance(names, str) else names:
        if isinstance(each, str):
            found |= dict.fromkeys(Node(str(part), (part,)) for part in _parts(program, each, kinds))
            continue
        together = tuple(dict.fromkeys(part for name in each for part in _parts(program, name, kinds)))
        found |= dict.fromkeys([Node(" + ".join(each), together)] if together else [])
    if not found:
        raise InputError(f"the model has no {names if isinstance(names, str) else 'such nodes'}: there are no paths")
    return tuple(found)


def _parts(program: Program, name: str, kinds: Mapping[str, Callable[[Program], Places]]) -> list[Part]:
    """The parts of a name: of a kind, of a place, or one."""
    kind, *rest = (each.strip() for each in name.split(":"))
    if kind not in kinds or len(rest) > 2:
        such = "head" if "head" in kinds else "query"
        hint = f"write {such} or {such}:decoder.0.self_attention:3"
        raise UsageError(f"{name[:80]!r} is none of {', '.join(kinds)}: {hint}")
    places = kinds[kind](program)
    wanted = [one(tuple(places), rest[0])] if rest and places else list(places)
    every = [Part(kind, place, places[place]) for place in wanted]
    if kind in OF_HEADS:
        every = [replace(part, number=i) for part in every for i in range(program.shape(part.steps[0])[0])]
    if len(rest) < 2:
        return every
    chosen = [part for part in every if str(part.number) == rest[1]]
    if not chosen:
        raise InputError(f"{every[0].place} has no {kind} {rest[1][:20]!r}: use 0 to {len(every) - 1}")
    return chosen


# Where the nodes are


def _of_attentions(part: str) -> Callable[[Program], Places]:
    return lambda program: {
        step.sublayer: (f"{step.sublayer}.{part}",)
        for step in program.steps
        if is_context(step) and f"{step.sublayer}.{part}" in program.by_name
    }


HEADS = _of_attentions("context")


def _embeddings(program: Program) -> Places:
    """Stack → what enters its first layer."""
    first: dict[str, tuple[str, ...]] = {}
    for step in program.steps:
        stack, number, *_ = (*step.name.split("."), "")
        if step.role == "residual" and number.isdigit():
            first.setdefault(stack, (program.step(step.inputs[0]).name,))
    return first


def _said(program: Program) -> Places:
    """Feed-forward layer → what it adds to the residual stream."""
    found: dict[str, tuple[str, ...]] = {}
    for step in program.steps:
        for name in step.inputs[1:] if step.role == "residual" else ():
            own = program.step(name).name
            sublayer = ".".join(own.split(".")[:3])
            if sublayer.endswith(".feed_forward"):
                found[sublayer] = (own,)
    return found


def _read_by(program: Program, place: str, said: str) -> tuple[str, ...]:
    """The norm of a feed-forward layer where that is in front, or else the steps that read the stream."""
    before = program.steps[: program.places[said] + 1]
    own = {step.name: step for step in before if not step.role and step.name.startswith(f"{place}.")}
    outside = program.by_name.keys() - own.keys()
    readers = {name: outside.intersection(step.inputs) for name, step in own.items()}
    sources = [program.by_name[name] for name in frozenset(chain.from_iterable(readers.values()))]
    if [(step.role, step.sublayer) for step in sources] == [("norm", place)]:
        return (sources[0].name,)
    return tuple(name for name, read in readers.items() if read)


def _logits(program: Program) -> Places:
    """What the shares of words or labels are made from, or the last step."""
    shares = program.by_name.get(PROBABILITIES)
    return {"": (program.steps[-1].name if shares is None else shares.inputs[0],)}


SENDERS: Mapping[str, Callable[[Program], Places]] = {"embedding": _embeddings, "head": HEADS, "feed_forward": _said}
RECEIVERS: Mapping[str, Callable[[Program], Places]] = {
    **{part: _of_attentions(part) for part in ("query", "key", "value")},
    "feed_forward": lambda program: {
        place: _read_by(program, place, said) for place, (said,) in _said(program).items()
    },
    "logits": _logits,
}
OF_HEADS = frozenset({"head", "query", "key", "value"})
"""The kinds whose numbers count heads: of keys and values those that there are, which query heads may share."""


# Straight across


def straight(program: Program, sources: Iterable[str], targets: Iterable[str]) -> Program:
    """The steps from some senders' to receivers' that pass no other sender; what else they read is given.

    That is the residual stream with its norms, and the matrices right before and after it.
    """
    sources, wanted = frozenset(sources), set(targets)
    closed = sources | {name for places in SENDERS.values() for steps in places(program).values() for name in steps}
    reached, steps = set(sources), list[Step]()
    for step in program.steps:
        if step.name not in closed and not reached.isdisjoint(step.inputs):
            reached.add(step.name)
            steps.append(step)
    kept: list[Step] = []
    for step in reversed(steps):
        if step.name in wanted:
            kept.insert(0, step)
            wanted.update(step.inputs)
    made = {step.name for step in kept}
    read = dict.fromkeys(name for step in kept for name in step.inputs if name not in made)
    weights = {name: axes for name, axes in program.weights.items() if name in read}
    givens = {name: program.axes(name) for name in read if name not in weights}
    return Program(tuple(kept), {}, weights, givens)
