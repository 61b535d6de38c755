"""Features as steps of a program: what a dictionary reads, encodes, writes and leaves, right where it is.

At a place AT, with x what is read there, and y what is to be given again (x itself, of a transcoder what a layer makes
of it):

- `AT.pre_activations`, z = x W_enc + b_enc (x − b_dec where the dictionary was trained so: `AT.centred`), and
  `AT.features`, f = σ(z);
- `AT.reconstruction`, ŷ = f W_dec + b_dec; with a skip connection + x W_skip;
- `AT.error`, e = y − ŷ.

Where the reconstruction goes on in the model's place, that is all. Else ŷ + e goes on, with the error that there is
before any feature is changed (Marks et al. 2024, "Sparse Feature Circuits", arXiv 2403.19647, §3.1): that is y, until
features are changed, and then it is y with what the change writes. So e is y − `AT.decoded`, the reconstruction of
`AT.encoded`, which are features that no change reaches; and `AT.output` is y + `AT.change`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tui_transformer.engine import ops
from tui_transformer.engine.axis import Axis, Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index, Working
from tui_transformer.engine.names import one
from tui_transformer.engine.program import FEATURE, Builder, Program, by_program, step_of_numbers
from tui_transformer.engine.weights import LARGE, Weights
from tui_transformer.errors import InputError
from tui_transformer.features.layer import ACTIVATIONS, NORMALISATIONS, Cells, Dictionary, Layer
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True, eq=False)
class PlacedFeatures:
    """A dictionary at its place in a model, or at those of its layers."""

    features: Dictionary
    spots: tuple[Spot, ...]
    replaces: bool

    def extended(self, program: Program) -> Program:
        """A program with the steps of the features; as it is where it does not compute what they read."""
        return _extended(program, self)

    def check(self, program: Program) -> None:
        """Refuse a model whose steps are of other widths; InputError says which."""
        for spot in self.spots:
            _checked(self.features, program, spot.reads, "reads")
            _checked(self.features, program, spot.writes, "writes")

    def beside(self, weights: Weights) -> Weights:
        """The weights of a model, and beside them those of the dictionary, which are read as they are needed."""
        cells = dict[str, Cells]()
        for number, (layer, spot) in enumerate(zip(self.features.layers, self.spots, strict=True)):
            for part, (name, across) in NAMES.items():
                if part in layer.parts:
                    cells[f"{spot.name}.{name}"] = partial(layer.weight, part, across=across)
            for place, written in enumerate(layer.writes, number + 1):
                cells[f"{self.spots[place].name}.{_from(number)}.weight"] = written.cells
        stored = StoredFeatures(cells)
        again = None if weights.again is None else partial(_again, weights.again, self)
        own = Weights(weights.backend, stored.whole, file=stored, large=min(LARGE, MOST_HELD), most=MOST_HELD)
        return weights.beside(own, cells, again)


def _again(load: Callable[[], Any], placed: PlacedFeatures) -> Any:
    loaded = load()
    return replace(loaded, weights=placed.beside(loaded.weights))


NAMES: Mapping[str, tuple[str, bool]] = {
    "encoder": ("pre_activations.weight", True),
    "encoder_bias": ("pre_activations.bias", False),
    "threshold": ("features.threshold", False),
    "gate_bias": ("features.gate_bias", False),
    "scale": ("features.scale", False),
    "magnitude_bias": ("features.magnitude_bias", False),
    "decoder": ("reconstruction.weight", False),
    "decoder_bias": ("reconstruction.bias", False),
    "skip": ("reconstruction.skipped.weight", True),
}
"""The weights of a dictionary by the steps that they are of, and whether they are turned for them."""

MOST_HELD = 1 << 28
"""Cells of a matrix that is held (1 GiB in float32); of a larger one products read what they need, each time."""


def _from(layer: int) -> str:
    return f"reconstruction.from_{layer}"


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """The weights of a dictionary, as those of a program are read from a file."""

    cells: Mapping[str, Cells]

    def whole(self, name: str, _: Shape) -> Host:
        """A weight, as floats."""
        return self.part(name, ...)

    def part(self, name: str, index: Any) -> Host:
        """Its cells at an index of slices; no others are read."""
        return self.cells[name](index)

    def explain(self, name: str, index: Index) -> tuple[str, Working] | None:
        """They are stored as floats."""
        del name, index
        return None


@by_program
def _extended(program: Program, placed: PlacedFeatures) -> Program:
    if any(spot.reads not in program.by_name or spot.writes not in program.by_name for spot in placed.spots):
        return program
    known = {**program.weights, **program.givens}
    build = Builder("", None, [], dict(program.aliases), dict(program.weights), dict(program.givens), known)
    adding, goes_on = _Adding(build, placed, program), dict[str, str]()
    for step in program.steps:
        build.steps.append(replace(step, inputs=tuple(goes_on.get(name, name) for name in step.inputs)))
        build.known[step.name] = step.axes
        for number, spot in enumerate(placed.spots):
            if spot.reads == step.name:
                adding.encode(number)
        for number, spot in enumerate(placed.spots):
            if spot.writes == step.name:
                goes_on[step.name] = adding.decode(number)
    return build.program()


@dataclass(frozen=True, eq=False)
class _Adding:
    """Adds the steps of one layer after the other to a program that is being built, from that without them."""

    build: Builder
    placed: PlacedFeatures
    program: Program

    def _at(self, number: int) -> tuple[Builder, Layer, Spot]:
        spot = self.placed.spots[number]
        return self.build.within(spot.name), self.placed.features.layers[number], spot

    def encode(self, number: int) -> None:
        """The features of a layer: n × d → n × features."""
        at, layer, spot = self._at(number)
        x = spot.reads
        width, count = self.build.known[x][-1], Axis(FEATURE, layer.count)
        if layer.normalise != "none":
            x = at("normalized", ops.ToSize(*NORMALISATIONS[layer.normalise]), x)
        if layer.centred:
            x = at("centred", ops.Subtract("x − b_dec"), x, at.weight(NAMES["decoder_bias"][0], width))
        weights = [at.weight(NAMES["encoder"][0], width, count)]
        if "encoder_bias" in layer.parts:
            weights.append(at.weight(NAMES["encoder_bias"][0], count))
        z = at("pre_activations", ops.Linear("x W_enc"), x, *weights)
        op, own = ACTIVATIONS[layer.activation]
        numbers = [at.weight(NAMES[part][0], count) for part in own]
        for name in ("features",) if self.placed.replaces else ("features", "encoded"):
            at(name, op(layer), z, *numbers)

    def decode(self, number: int) -> str:
        """The reconstruction and the error; gives what goes on."""
        at, _, spot = self._at(number)
        y = spot.writes
        if self.placed.replaces:
            written = self._written(number, "features", "reconstruction")
            at("error", ops.Subtract("y − reconstruction"), y, written)
            return written
        decoded = self._written(number, "encoded", "decoded")
        error = at("error", ops.Subtract("y − decoded"), y, decoded)
        written = self._written(number, "features", "reconstruction")
        change = at("change", ops.Changed(), written, error, y)
        added = (step for step in self.program.readers(y) if step.role == "residual")
        is_stream = self.program.step(y).role == "residual" or any(step.inputs[0] == y for step in added)
        return at("output", ops.Add("y + change"), y, change, role="residual" if is_stream else "")

    def _written(self, number: int, of: str, name: str) -> str:
        """What features write at a layer: those of the layer, and of a cross-layer transcoder those before it too."""
        at, layer, spot = self._at(number)
        out, inner = self.build.known[spot.writes][-1], at.within(name)
        weights = [at.weight(NAMES["decoder"][0], Axis(FEATURE, layer.count), out)]
        if "decoder_bias" in layer.parts:
            weights.append(at.weight(NAMES["decoder_bias"][0], out))
        more = number > 0 or layer.normalise != "none" or "skip" in layer.parts
        op = ops.Linear("f W_dec")
        y = inner("written", op, at.full(of), *weights) if more else at(name, op, at.full(of), *weights)
        if not more:
            return y
        parts = list[str]()
        for earlier in range(number):
            before, its_layer, _ = self._at(earlier)
            weight = at.weight(f"{_from(earlier)}.weight", Axis(FEATURE, its_layer.count), out)
            parts.append(inner(f"from_{earlier}", ops.Linear("f W_dec"), before.full(of), weight))
        if layer.normalise != "none":
            sized = ops.FromSize(*NORMALISATIONS[layer.normalise])
            if not parts and "skip" not in layer.parts:
                return at(name, sized, y, spot.reads)
            y = inner("restored", sized, y, spot.reads)
        if "skip" in layer.parts:
            weight = at.weight(NAMES["skip"][0], self.build.known[spot.reads][-1], out)
            parts.append(inner("skipped", ops.Linear("x W_skip"), spot.reads, weight))
        return at(name, ops.Add("f W_dec + …"), y, *parts) if parts else y


# Where a dictionary goes: the steps that it reads and writes, by their names or by those of hooks

LAYER = "{}"
"""In a name, where the number of a layer goes."""

HOOKS: Mapping[str, str] = {
    "hook_resid_pre": "{before}",
    "ln1.hook_normalized": "{layer}.self_attention.norm",
    "attn.hook_z": "{layer}.self_attention.concat",
    "hook_attn_out": "{layer}.self_attention.output",
    "hook_resid_mid": "{layer}.self_attention.residual",
    "ln2.hook_normalized": "{layer}.feed_forward.norm",
    "hook_mlp_in": "{layer}.self_attention.residual",
    "mlp.hook_in": "{layer}.feed_forward.norm",
    "mlp.hook_post": "{layer}.feed_forward.activation",
    "hook_mlp_out": "{layer}.feed_forward.output",
    "mlp.hook_out": "{layer}.feed_forward.output",
    "hook_resid_post": "{layer}.output",
}
"""Steps by the names that TransformerLens has for them, behind `blocks.8.`."""


@dataclass(frozen=True)
class Spot:
    """Where features of a layer are: `name` goes before the names of their steps.

    `reads` and `writes` are the own names of the steps that they are of.
    """

    name: str
    reads: str
    writes: str


def spots(features: Dictionary, program: Program, at: str | None, into: str | None) -> tuple[Spot, ...]:
    """Where every layer of a dictionary goes.

    Args:
        features: The dictionary.
        program: Of the model, for any sentence.
        at: The step that is read; None for that of the file's hook. With several layers, `{}` is their number.
        into: The step that is written; None for the same, or that of the file's other hook, or of a transcoder the
            output of the feed-forward layer that reads `at`.

    Raises:
        InputError: No such steps, steps of another width, or nothing says which they are.
    """
    if not features.is_cross:
        return (_spot(features, program, at, into),)
    for name in (at, *([] if into is None else [into])):
        if name is None or LAYER not in name:
            where = f"write {LAYER} for the number of the layer, as decoder.{LAYER}.feed_forward.norm"
            raise InputError(f"{features.path.name} reads {len(features.layers)} layers: {where}")
    numbers = map(str, range(len(features.layers)))
    named = ((text.replace(LAYER, number) if text else None for text in (at, into)) for number in numbers)
    return tuple(_spot(features, program, *each) for each in named)


def _spot(features: Dictionary, program: Program, at: str | None, into: str | None) -> Spot:
    name = one(program.names, at or _of_hook(features, program, features.hook))
    reads = _checked(features, program, name, "reads")
    if into is None and at is None and features.hook_out:
        into = _of_hook(features, program, features.hook_out)
    if into is None and features.transcodes:
        into = _fed_forward(features, program, reads)
    writes = _checked(features, program, into or name, "writes")
    if program.places[writes] < program.places[reads]:
        raise InputError(f"{into} is computed before {name}: features that read this cannot be written there")
    if program.step(reads).axes[0] != program.step(writes).axes[0]:
        raise InputError(f"{name} and {into} are of different tokens: name steps of one side")
    if f"{name}.features" in program.by_name:
        raise InputError(f"there are features at {name} already: take a model without them")
    return Spot(name, reads, writes)


def _checked(features: Dictionary, program: Program, name: str, does: str) -> str:
    """The own name of a step that a dictionary reads or writes; InputError where it is of another width."""
    step, decoder = step_of_numbers(program, name), features.layers[0].parts["decoder"]
    axes, width = step.axes, features.width if does == "reads" else decoder.shape[-1]
    if len(axes) != 2 or axes[-1].size != width:
        size = " × ".join(f"{axis.size} {axis.name}s" if axis.name == "head" else str(axis.size) for axis in axes)
        has = f"{axes[-1].size:,} numbers a token" if len(axes) == 2 else f"no row for each token, but {size}"
        wanted = [each.name for each in program.steps if len(each.axes) == 2 and each.axes[-1].size == width]
        hint = f": {wanted[0]}, for one, has" if wanted else ": it is of another model"
        raise InputError(f"{features.path.name} {does} {width:,} numbers a token, and {name} has {has}{hint}")
    return step.name


def _of_hook(features: Dictionary, program: Program, hook: str) -> str:
    if not hook:
        raise InputError(f"{features.path.name} does not say where it was trained: name the step, as decoder.8.output")
    match = re.fullmatch(r"blocks\.(\d+)\.(.+)", hook)
    stacks = [
        stack for stack in ("decoder", "encoder") if any(name.startswith(f"{stack}.0.") for name in program.names)
    ]
    if match is None or match[2] not in HOOKS or len(stacks) != 1:
        raise InputError(f"{features.path.name} was trained at {hook[:80]}: name the step that this is")
    number, stack = int(match[1]), stacks[0]
    before = f"{stack}.{number - 1}.output" if number else "embedding.output"
    name = HOOKS[match[2]].format(layer=f"{stack}.{number}", before=before)
    gated = name.replace(".activation", ".gated")
    name = gated if gated in program.by_name else name
    if name not in program.names:
        raise InputError(f"{features.path.name} was trained at {hook}, {name}, which this model does not have")
    return name


def _fed_forward(features: Dictionary, program: Program, reads: str) -> str:
    """What the feed-forward layer that reads a step gives."""
    sublayers = (step.sublayer for step in program.readers(reads))
    found = [name for name in sublayers if name.endswith("feed_forward") and f"{name}.output" in program.by_name]
    if not found:
        raise InputError(
            f"{features.path.name} is a transcoder, and no feed-forward layer reads {reads}: name the step that it "
            "writes, as decoder.8.feed_forward.output"
        )
    return f"{found[0]}.output"
