"""A cross-attention whose keys and values are not of the encoder's output (Vaswani et al. 2017, §3.2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui_transformer.diagnosis.causes.cause import Cause, changing, groups, instead, last
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.ops import Mask, Project
from tui_transformer.engine.program import Program, Step

NAME = "cross-source"
MOST = 12
"""So many steps of the encoder are tried in place of its output, the last ones first."""


def read_from_elsewhere(segment: Segment) -> Iterator[Cause]:
    """Keys and values of the decoder itself, or of an earlier step of the encoder."""
    crossing = (step for step in segment.steps if step.sublayer.endswith("cross_attention"))
    steps = [step for step in crossing if isinstance(step.op, Project)]
    for group in groups([step for step in steps if last(step.name) in ("key", "value")]):
        own = [_from(step, segment.program.step(f"{step.sublayer}.query").inputs[0]) for step in group]
        says = "when keys and values are of the decoder itself: they are of the encoder's output"
        yield Cause(NAME, changing((*own, *_unmasked(segment, group))), says)
        for name in _earlier(segment.program, group[0].inputs[0]):
            says = f"when keys and values are of {name}: they are of {group[0].inputs[0]}, the encoder's output"
            yield Cause(NAME, changing(_from(step, name) for step in group), says)


def _from(step: Step, name: str) -> Step:
    return replace(step, inputs=(name, *step.inputs[1:]))


def _unmasked(segment: Segment, group: Sequence[Step]) -> Iterator[Step]:
    """The masks of the padding of the encoder, which has no part in it then."""
    sublayers = {step.sublayer for step in group}
    for step in segment.steps:
        if isinstance(step.op, Mask) and step.sublayer in sublayers:
            yield instead(step, lambda scores, *_: scores)


def _earlier(program: Program, memory: str) -> list[str]:
    before = program.steps[: program.places[memory]]
    axes = program.step(memory).axes
    return [step.name for step in reversed(before) if step.axes == axes][:MOST]
