"""Names that people give the steps, and the steps that they stand for: by conventions, or in words of a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tui_transformer.diagnosis.naming import words
from tui_transformer.diagnosis.naming.conventions import (
    Convention,
    Stack,
    Table,
    Target,
    canonical,
    ggml,
    modules,
    orders,
    outputs,
    present,
    stacks,
    table_of,
    transformer_lens,
)
from tui_transformer.diagnosis.naming.words import spelled
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.model import Model
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.files import read_text

CONVENTIONS: Mapping[str, tuple[Convention, ...]] = {
    "auto": (canonical, outputs, modules, transformer_lens, ggml),
    "transformers": (canonical, outputs, modules),
    "transformerlens": (canonical, transformer_lens),
    "ggml": (canonical, ggml),
}
"""By `--names`; those first that say a name most exactly. With "auto" headings in words are read too."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DEEPEST = 6
"""Most words in front of the path of a module."""

LARGEST_MAP = 1 << 22


def names_for(model: Model, program: Program, convention: str = "auto", own: Mapping[str, str] | None = None) -> Names:
    """The names of a convention, for a program.

    Args:
        model: Whose tensors name the modules.
        program: The steps.
        convention: A key of `CONVENTIONS`.
        own: Names of the dump → steps.

    Raises:
        InputError: One of these is no step.
    """
    named = {name: Target(present(program, program.step(step).name)) for name, step in (own or {}).items()}
    headings = Headings(program, stacks(program)) if convention == "auto" else None
    tables = tuple(table_of(names(model, program)) for names in CONVENTIONS[convention])
    return Names(tables, named, headings, orders(model, program))


def read_map(path: Path) -> dict[str, str]:
    """Names of a dump → steps: a JSON object, or lines `name = step`.

    Raises:
        InputError: The file cannot be read, or has a line without `=`.
    """
    if path.suffix == ".json":
        raw = read_json(path, LARGEST_MAP)
        if not all(isinstance(step, str) for step in raw.values()):
            raise InputError(
                f'{path}: every name stands for one step: {{"my_scores": "encoder.0.self_attention.scores"}}'
            )
        return {str(name): str(step) for name, step in raw.items()}
    named = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        name, sign, step = text.partition("=")
        if not sign or not name.strip() or not step.strip():
            raise InputError(f"{path}: line {number} is not `name = step`")
        named[name.strip()] = step.strip()
    return named


@dataclass(frozen=True, eq=False)
class Names:
    """Finds the steps that a name of a dump stands for."""

    tables: tuple[Table, ...]
    own: Mapping[str, Target]
    headings: Headings | None
    orders: Mapping[str, Host] = field(default_factory=dict)

    @property
    def first(self) -> tuple[int, int]:
        """The numbers of the first layer and of the first head in headings."""
        return self.headings.first if self.headings else (0, 0)

    def counted_from(self, layer: int, head: int) -> Names:
        """The same names where headings count layers and heads from other numbers."""
        return replace(self, headings=replace(self.headings, first=(layer, head))) if self.headings else self

    def find(self, name: str, *, spoken: bool = False) -> tuple[Target, ...]:
        """The targets of a name; none if it names no step.

        Args:
            name: As it is in the dump.
            spoken: It is a heading in words, in which layers may be counted from 1.
        """
        return tuple(
            replace(each, order=self.orders[each.steps[0]]) if each.steps and each.steps[0] in self.orders else each
            for each in self._find(name, spoken=spoken)
        )

    def _find(self, name: str, *, spoken: bool) -> tuple[Target, ...]:
        if name in self.own:
            return (self.own[name],)
        parts = spelled(name).split(".")
        keys = [".".join(parts), ".".join(_without_ends(parts))]
        tables = () if spoken and any(self.first) else self.tables
        if exact := _known(tables, keys) or (
            _known((self.headings,), [*keys, words.plain(name)]) if self.headings else ()
        ):
            return exact
        return () if spoken and " " in name else _known(tables, _without_beginnings(parts))

    def numbers(self, name: str) -> tuple[int | None, int | None]:
        """The layer and the head that a name says in words, as it counts them."""
        key = spelled(name)
        if self.headings is None or name in self.own or _known(self.tables, [key]):
            return None, None
        layer, head = LAYER_NUMBER.search(key), HEAD_NUMBER.search(key)
        return int(layer[1]) if layer else None, int(head[1]) if head else None


def _known(tables: Sequence[Table | Headings], keys: Sequence[str]) -> tuple[Target, ...]:
    for key in filter(None, dict.fromkeys(keys)):
        for table in tables:
            if targets := tuple(target for target in table.get(key) or () if target.steps):
                return targets
    return ()


def _without_ends(parts: Sequence[str]) -> Sequence[str]:
    while len(parts) > 1 and parts[-1] in words.BEHIND:
        parts = parts[:-1]
    return parts


def _without_beginnings(parts: Sequence[str]) -> list[str]:
    """A name without its first word, without its first two, and so on."""
    keys: list[str] = []
    trimmed = _without_ends(parts)
    for start in range(1, min(len(parts) - 1, DEEPEST)):
        if parts[start - 1] in ("encoder", "decoder"):
            break
        if "".join(parts[:start]).strip(LETTERS) and not "".join(parts[start:]).strip(LETTERS):
            break  # the number of the layer is in front: without it the rest would be of any layer
        keys += (".".join(parts[start:]), ".".join(trimmed[start:]))
    return keys


# Headings that people print above a matrix: "Attention scores, head 0:", "Layer 1 after softmax", "l1_relu", "Q"

LAYER_NUMBER = re.compile(
    r"\b(?:(?:encoder|decoder|enc|dec|transformer)\.)?(?:layers?|blocks?|l|h|enc|dec|encoder|decoder)\.(\d+)\b"
)
BETWEEN = re.compile(r"[xh]\.(\d+)")
"""Rows between layers: x0, h1."""

HEAD_NUMBER = re.compile(r"\bheads?\.(\d+)\b")


@dataclass(frozen=True, eq=False)
class Headings:
    """Finds the step of a heading: the layer and the head by their numbers, the step by the words around them."""

    program: Program
    stacks: Sequence[Stack]
    first: tuple[int, int] = (0, 0)
    """The numbers of the first layer and of the first head."""

    def get(self, key: str, /) -> tuple[Target, ...] | None:
        """The step of a heading in the spelling of `spelled`; the first layer where it says none."""
        layer, head_said = LAYER_NUMBER.search(key), HEAD_NUMBER.search(key)
        head = int(head_said[1]) - self.first[1] if head_said else None
        said = _words(key)
        stack = next((each for each in self.stacks if each.name in said), next(iter(self.stacks), None))
        if stack is None:
            return None
        if between := BETWEEN.fullmatch(key):  # people count the rows that enter a layer, or those that leave it
            number = int(between[1])
            steps = present(self.program, stack.before(number), f"{stack.name}.{number}.output")
            return (Target(steps),) if steps else None
        of_layer = int(layer[1]) - self.first[0] if layer else None
        if of_layer is not None and of_layer < 0:
            return None
        behind = _words(key[layer.end() :] if layer else "")
        around = _words(LAYER_NUMBER.sub("", key, count=1))
        for said in (around, behind) if behind else (around,):
            bare = [word for word in said if word not in ("encoder", "decoder")]
            whole = of_layer is None and len(bare) < len(said) and bare in (["output"], ["out"], [])
            if whole or said == ["memory"]:
                steps = present(self.program, f"{stack.name}.norm", stack.before(stack.layers))
            else:
                steps = self._steps(stack, of_layer, bare or said)
            if head is not None:
                axes = {step: self.program.by_name[step].axes for step in steps}
                steps = tuple(step for step in steps if len(axes[step]) != 3 or 0 <= head < axes[step][0].size)
            if steps:
                return (Target(steps, head=head),)
        return None

    def _steps(self, stack: Stack, number: int | None, said: Sequence[str]) -> tuple[str, ...]:
        """The steps that words stand for; without another, a number behind them is that of the layer."""
        kept = said[: said.index("before")] if "before" in said[1:] else said
        steps = present(self.program, *self._named(stack, number, kept))
        if number is not None or len(said) < 2 or not said[-1].isdigit():
            return steps
        return tuple(dict.fromkeys((*steps, *self._steps(stack, int(said[-1]), said[:-1]))))

    def _named(self, stack: Stack, number: int | None, said: Sequence[str]) -> Iterator[str]:
        """Full names of the steps that words may stand for."""
        layer = f"{stack.name}.{number or 0}."
        loud = [word for word in said if word not in words.SILENT]
        if not loud and number is not None:
            yield f"{layer}output"
        for spoken in dict.fromkeys((tuple(said), tuple(loud))):
            yield from (f"{layer}{step}" for step in self._of_layer(stack, spoken, numbered=number is not None))
            if number is None:
                phrase = " ".join(spoken)
                with_positions = not words.POSITIONS.isdisjoint(spoken) and not words.ADDED.isdisjoint(spoken)
                outside = words.OUTSIDE.get(phrase) or (("output",) if with_positions else ())
                yield from (f"{stack.embedding}embedding.{step}" for step in outside)
                yield from words.END.get(phrase, ())
                if phrase in words.LAST_NORM:
                    yield f"{stack.name}.norm"

    def _of_layer(self, stack: Stack, said: tuple[str, ...], *, numbered: bool) -> Iterator[str]:
        """Steps of a layer, without its name."""
        phrase = " ".join(said)
        sublayer = "self_attention" if words.OF_CROSS.isdisjoint(said) else "cross_attention"
        rest = [word for word in said if word not in words.OF_CROSS]
        attention = [word for word in rest if word not in words.OF_ATTENTION]
        feed = [word for word in rest if word not in words.OF_HIDDEN]
        if numbered:
            yield from words.LAYER.get(phrase, ())
        if phrase in words.NORM:  # after a sublayer, by its number
            place, _, part = words.NORM[phrase].partition(".")
            yield from (f"{each}.{part}" for each in self._sublayers[stack.name][int(place) : int(place) + 1])
        if len(feed) < len(rest):
            named = words.FEED_FORWARD.get(" ".join(feed), ()) if feed else ("output",)
            is_gated = f"{stack.name}.0.feed_forward.gate" in self.program.by_name
            gated = words.GATED.get(" ".join(feed), ()) if is_gated else ()
            yield from (f"feed_forward.{step}" for step in (*gated, *named, *_after_sublayer(feed)))
            return
        if phrase not in words.OF_FEED_FORWARD:
            yield from (f"feed_forward.{step}" for step in words.FEED_FORWARD.get(phrase, ()))
        for spoken in (attention if len(attention) < len(rest) else [], rest):
            steps = words.ATTENTION.get(" ".join(spoken), ())
            if not steps:  # what is beside q, k and v may say that they are products
                bare = words.ATTENTION.get(" ".join(word for word in spoken if word not in words.OF_PROJECTIONS), ())
                steps = bare if bare in (("query",), ("key",), ("value",)) else ()
            yield from (f"{sublayer}.{step}" for step in steps)
        if len(attention) < len(rest):
            yield from (f"{sublayer}.{step}" for step in _after_sublayer(attention))
        if rest and not attention:
            yield from (f"{sublayer}.{step}" for step in ("weights", "output", "context", "concat"))

    @cached_property
    def _sublayers(self) -> Mapping[str, Sequence[str]]:
        """The sublayers of the first layer of each stack, in order."""
        by_stack = {}
        for stack in self.stacks:
            inside = (step.sublayer for step in self.program.steps if step.layer == f"{stack.name}.0")
            by_stack[stack.name] = list(dict.fromkeys(each.rpartition(".")[2] for each in inside))
        return by_stack


def _after_sublayer(said: Sequence[str]) -> tuple[str, ...]:
    place, _, part = words.NORM.get(" ".join(said), "").partition(".")
    return (part,) if place == "0" else ()


def _words(key: str) -> list[str]:
    """The words of a heading without the number of a head; abbreviations written out."""
    return [words.ABBREVIATED.get(word, word) for word in HEAD_NUMBER.sub("", key).split(".") if word]


__all__ = ["CONVENTIONS", "Names", "Target", "names_for", "read_map"]
