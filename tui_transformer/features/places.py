"""Where a dictionary goes in a model: the steps that it reads and writes, by their names or by those of hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tui_transformer.engine.names import one
from tui_transformer.engine.program import Program, step_of_numbers
from tui_transformer.errors import InputError
from tui_transformer.features.layer import Dictionary
from tui_transformer.records import dataclass

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
    name = _full(program, at or _of_hook(features, program, features.hook))
    reads = step_of_numbers(program, name).name
    _check(features, program, name, reads, features.width, "reads")
    if into is None and at is None and features.hook_out:
        into = _of_hook(features, program, features.hook_out)
    if into is None and features.transcodes:
        into = _fed_forward(features, program, reads)
    writes = step_of_numbers(program, into or name).name
    _check(features, program, into or name, writes, features.layers[0].parts["decoder"].shape[-1], "writes")
    if program.places[writes] < program.places[reads]:
        raise InputError(f"{into} is computed before {name}: features that read this cannot be written there")
    if program.step(reads).axes[0] != program.step(writes).axes[0]:
        raise InputError(f"{name} and {into} are of different tokens: name steps of one side")
    if f"{name}.features" in program.by_name:
        raise InputError(f"there are features at {name} already: take a model without them")
    return Spot(name, reads, writes)


def check_widths(features: Dictionary, program: Program, spot: Spot) -> None:
    """Refuse steps that are not there, or that have other widths than a dictionary.

    Raises:
        InputError: They are.
    """
    out = features.layers[0].parts["decoder"].shape[-1]
    for own, width, does in ((spot.reads, features.width, "reads"), (spot.writes, out, "writes")):
        _check(features, program, own, program.step(own).name, width, does)


def _full(program: Program, name: str) -> str:
    """The whole name of a step, or the alias, that is meant."""
    return name if name in program.names else one(program.names, name)


def _check(features: Dictionary, program: Program, name: str, own: str, width: int, does: str) -> None:
    axes = program.step(own).axes
    if len(axes) != 2 or axes[-1].size != width:
        size = " × ".join(f"{axis.size} {axis.name}s" if axis.name == "head" else str(axis.size) for axis in axes)
        has = f"{axes[-1].size:,} numbers a token" if len(axes) == 2 else f"no row for each token, but {size}"
        wanted = [each.name for each in program.steps if len(each.axes) == 2 and each.axes[-1].size == width]
        hint = f": {wanted[0]}, for one, has" if wanted else ": it is of another model"
        raise InputError(f"{features.path.name} {does} {width:,} numbers a token, and {name} has {has}{hint}")


def _of_hook(features: Dictionary, program: Program, hook: str) -> str:
    """The step of a hook that a file names."""
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
