"""Where the weights of a family are in its files, as a table: names of steps, and the tensors that hold them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass, field, replace

Take = Callable[[Host, Any], Host]
"""Takes a weight out of a tensor as it is stored, given the configuration: by slicing and turning alone."""


@dataclass(frozen=True)
class Grouped:
    """A take whose rows are counted on three axes (group, place in it, row), which are joined once they are read.

    Attributes:
        alone: Whether there is one group: then they are joined at once, as a view can say it.
    """

    take: Take
    alone: Callable[[Any], bool] = lambda _: False

    def __call__(self, tensor: Host, config: Any) -> Host:
        """A view of the tensor."""
        return self.take(tensor, config)


NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
ENDINGS: Mapping[str, tuple[str, ...]] = {"weight": (".weight", ".gamma"), "bias": (".bias", ".beta")}
"""Ends of tensors' names; old files call γ and β of a norm so."""

TABLE, HEAD = "embedding.tokens.weight", "output.logits.weight"
TABLES = frozenset({"tokens", "positions", "segments", "biased"})
"""Steps whose weight is a table and stored as it is used. Norms are, too; all else is a matrix."""


def as_it_is(tensor: Host) -> Host:
    """The tensor, stored in × out."""
    return tensor


@dataclass(frozen=True)
class Stored:
    """Where a weight of a program is in a checkpoint, and how it is made from the tensor there.

    Attributes:
        take: What the weight is of it, by slicing and turning alone: a view, as only what is taken is read.
        make: What is made of that once it is read, where a view cannot say it.
        plus: What is added to its numbers.
    """

    name: str
    take: Callable[[Host], Host] = as_it_is
    make: Callable[[Host], Host] = as_it_is
    plus: float = 0.0

    def numbers(self, made: Host) -> Host:
        """The numbers of the weight, from those that were read; worked out in float64 where they are not the same."""
        return made.astype("float64") + self.plus if self.plus else made


@dataclass(frozen=True)
class Part:
    """The tensor that holds a weight, and how it is taken from there.

    Attributes:
        tensors: The tensor's name without its ending, {} for every number; of several the first that a file has.
        take: What the weight is of the tensor as it is stored; None for all of it.
        turned: It is stored out × in; None where the table and the kind of step tell.
        stacked: The last number is no part of the name but the place on the tensor's first axis, as of an expert.
        whole: The name has no ending.
        plus: What is added to the stored numbers: 1 where γ − 1 is stored.
    """

    tensors: str | tuple[str, ...]
    take: Take | None = None
    turned: bool | None = None
    stacked: bool = False
    whole: bool = False
    plus: float = 0.0


ATTENTION_STEPS = ("norm", "query", "query_norm", "key", "key_norm", "value", "output", "output_norm")
FEED_FORWARD_STEPS: Mapping[str, str] = {
    "feed_norm": "norm",
    "router": "router",
    "hidden": "hidden",
    "gate": "gate",
    "down": "output",
    "feed_output_norm": "output_norm",
}
"""Short names of the steps of a feed-forward layer, which those of an attention do not have → their own."""


def layer_parts(ours: str, stored: str, /, **parts: str | Part) -> dict[str, str | Part]:
    """The parts of a layer: the short name of each step, and its tensor behind the name that the layer has in files."""
    steps = {name: f"{ours}.self_attention.{name}" for name in ATTENTION_STEPS}
    steps |= {name: f"{ours}.feed_forward.{step}" for name, step in FEED_FORWARD_STEPS.items()}
    placed: dict[str, str | Part] = {}
    for name, part in parts.items():
        if isinstance(part, str):
            placed[steps[name]] = f"{stored}.{part}"
        else:
            tensors = (part.tensors,) if isinstance(part.tensors, str) else part.tensors
            placed[steps[name]] = replace(part, tensors=tuple(f"{stored}.{tensor}" for tensor in tensors))
    return placed


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Where weights are in the files of a family (in one format of files).

    Attributes:
        parts: Step, or `step.weight` and `step.bias` where they differ ({} for a number) → the tensor, by its name or
            as a `Part`.
        prefix: In front of most names; some files leave it out.
        prefixes: What files have instead.
        in_out: Matrices are stored in × out.
    """

    parts: Mapping[str, str | Part] = field(default_factory=dict)
    prefix: str = ""
    prefixes: tuple[str, ...] = ("",)
    in_out: bool = False

    def stored(self, config: Any, name: str, names: frozenset[str]) -> Stored:
        """Where a weight is in a file that holds these names; under its own name where the table does not have it."""
        part = self.part(name)
        if part is None:
            return Stored(name)
        step, _, kind = name.rpartition(".")
        last = step.rstrip(".0123456789").rpartition(".")[2]  # heads may have norms of their own, by number
        is_matrix = kind != "bias" and last not in TABLES and not last.endswith("norm")
        turned = is_matrix and (not self.in_out if part.turned is None else part.turned)  # stored out × in
        grouped = isinstance(part.take, Grouped)
        later = isinstance(part.take, Grouped) and not part.take.alone(config)

        def join(groups: Host) -> Host:
            rows = groups.reshape(-1, *groups.shape[3:]) if grouped else groups
            return rows.T if turned else rows

        def take(tensor: Host) -> Host:
            if part.stacked:
                tensor = tensor[int(NUMBER.findall(name)[-1])]
            if part.take is not None:
                tensor = part.take(tensor, config)
            return tensor if later else join(tensor)

        tensor = self.table(config, names) if name == TABLE else self.tensor(name, names)
        plain = part.take is None and not part.stacked and not turned
        return Stored(tensor, as_it_is if plain else take, join if later else as_it_is, part.plus)

    def part(self, name: str) -> Part | None:
        """The tensor that holds a weight, and how it is taken from there."""
        step, _, kind = name.rpartition(".")
        pattern = NUMBER.sub("{}", step)
        part = self.parts.get(f"{pattern}.{kind}", self.parts.get(pattern))
        return Part(part) if isinstance(part, str) else part

    def tensor(self, name: str, names: frozenset[str]) -> str:
        """The tensor of a weight: of all that it may be called the first that a file has; the first where none is."""
        spellings = self.spellings(name, names)
        return next((each for each in spellings if each in names), spellings[0])

    def spellings(self, name: str, names: frozenset[str]) -> Sequence[str]:
        """All that the tensor of a weight may be called, the likeliest in this file first."""
        part = self.part(name)
        if part is None:
            return (name,)
        endings = ("",) if part.whole else ENDINGS[name.rpartition(".")[2]]
        tensors = (part.tensors,) if isinstance(part.tensors, str) else part.tensors
        bases = [base for tensor in tensors for base in self._prefixed(tensor.format(*NUMBER.findall(name)), names)]
        return [base + ending for base in bases for ending in endings]

    def has(self, name: str, names: frozenset[str]) -> bool:
        """Whether a file has a weight, under its own name or the family's."""
        return name in names or self.tensor(name, names) in names

    def table(self, config: Any, names: frozenset[str]) -> str:
        """The tensor of the embedding; that of the logits where both are tied and a file has only this one."""
        own, head = self.tensor(TABLE, names), self.tensor(HEAD, names)
        return head if getattr(config, "tied", False) and own not in names and head in names else own

    def own_head(self, config: Any, names: frozenset[str]) -> bool:
        """Whether a file has a matrix for the logits that is not the embedding table."""
        return HEAD in names or (self.has(HEAD, names) and self.table(config, names) != self.tensor(HEAD, names))

    def _prefixed(self, tensor: str, names: frozenset[str]) -> Sequence[str]:
        if not self.prefix or not tensor.startswith(self.prefix):
            return (tensor,)
        others = [other + tensor.removeprefix(self.prefix) for other in self.prefixes]
        return [tensor, *others] if _begins(self.prefix, names) else [*others, tensor]


@functools.lru_cache(maxsize=64)
def _begins(prefix: str, names: frozenset[str]) -> bool:
    return any(name.startswith(prefix) for name in names)


# What a weight is of a fused tensor


def cut(place: int, sizes: Callable[[Any], Sequence[int]], axis: int = 0) -> Take:
    """One of several weights side by side on an axis, by their sizes."""

    def take(tensor: Host, config: Any) -> Host:
        spans = tuple(sizes(config))
        if tensor.shape[axis] != sum(spans):
            raise ValueError("not the sum of the sizes")
        index = [slice(None)] * tensor.ndim
        index[axis] = slice(sum(spans[:place]), sum(spans[: place + 1]))
        return tensor[tuple(index)]

    return take


def in_turn(first: int, axis: int) -> Take:
    """One of two weights whose parts stand in turn on an axis."""
    return lambda tensor, _: tensor.swapaxes(0, axis)[first::2].swapaxes(0, axis)


QUERY_KEY_VALUE = ("query", "key", "value")


def side_by_side(
    tensor: str, sizes: Callable[[Any], Sequence[int]], names: tuple[str, ...] = QUERY_KEY_VALUE, axis: int = 0
) -> dict[str, Part]:
    """The weights of these names, which a tensor holds one after the other."""
    return {name: Part(tensor, cut(place, sizes, axis)) for place, name in enumerate(names)}


def of_every_group(place: int) -> Take:
    """Query (0), key (1) or value (2): every group has the rows of its query heads, of its key and of its value.

    Where every head has a key of its own, these are q, k, v of head 0, then of head 1, and on.
    """

    def take(tensor: Host, config: Any) -> Host:
        inside = config.num_attention_heads // config.kv_heads
        rows = tensor.reshape(config.kv_heads, inside + 2, -1, *tensor.shape[1:])
        return rows[:, (slice(0, inside), slice(inside, inside + 1), slice(inside + 1, None))[place]]

    return Grouped(take, alone=lambda config: config.kv_heads == 1)


def halves_of_pairs(width: Callable[[Any], int]) -> Take:
    """Rows of every head with columns that turn together side by side, as rows with the two halves one after the other.

    Scores are the same where both query and key are ordered so (Su et al. 2021 have pairs, most checkpoints halves).
    """

    def take(tensor: Host, config: Any) -> Host:
        return tensor.reshape(-1, width(config) // 2, 2, *tensor.shape[1:]).swapaxes(1, 2)

    return Grouped(take)
