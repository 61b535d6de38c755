"""What a dump holds besides steps: what went into the model, its weights, and settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Tensor, role_of
from tui_transformer.diagnosis.naming.phrases import is_setting, phrase_of
from tui_transformer.diagnosis.right import Right
from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Host

GRADIENT = "gradient/"
GIVENS = {
    "ids": "input.ids",
    "decoder ids": "decoder.input.ids",
    "segments": "input.segments",
    "mask": "input.visible",
    "decoder mask": "decoder.input.visible",
}
"""What an array is of the input, and the input."""

USED_WITH_LOSS = ("labels", "targets")


class Given(NamedTuple):
    """An array that is no step: what it is, what was taken for granted, and why it is not compared."""

    step: str = ""
    how: str = ""
    reason: str = ""


def given_of(tensor: Tensor, right: Right) -> Given | None:
    """What an array is besides a step; None where it is neither."""
    if not tensor.numbers:
        return Given(how="holds no numbers")
    if tensor.name.startswith(GRADIENT):
        return Given(reason="a gradient: only what the forward pass computes is compared")
    role = role_of(tensor)
    if tensor.heading is not None and not role:
        alone = tensor.values.array.size == 1
        return Given(how="a setting") if alone and is_setting(phrase_of(tensor.heading.text)) else None
    if not role or (role == "mask" and len(tensor.shape) > 1 and tensor.shape[-1] == tensor.shape[-2] > 1):
        return _square_mask(tensor, right) if role else None
    if role in USED_WITH_LOSS:
        return Given("loss" if "loss" in right.program.by_name else "", how="what a loss is taken of")
    return _input(tensor, role, right)


def _input(tensor: Tensor, role: str, right: Right) -> Given | None:
    """An input, which is that of the right values, or says why it is not."""
    theirs, name = tensor.values.array, GIVENS.get(role, "")
    known, ours = tensor.values.known, right.exact.givens.get(name)
    if known is not None and ours is not None and known.size == ours.size:
        theirs = np.where(known.reshape(ours.shape), theirs.reshape(ours.shape), ours)
    whole = theirs.size and np.isfinite(theirs).all() and bool((np.floor(theirs) == theirs).all())
    if not whole:
        return None if tensor.heading is not None else Given(reason="not the whole numbers that its name says")
    if role == "positions":
        right_ones = bool((theirs == np.arange(theirs.shape[-1])).all())
        return Given(how="0, 1, 2, …") if right_ones else Given(reason="positions other than 0, 1, 2, … are not read")
    if ours is None:
        same = (role in ("mask", "decoder mask") and bool(theirs.all())) or not theirs.any()
        return Given(how="has no effect") if same else Given(reason="the model reads no such input")
    if theirs.size == ours.size and bool((theirs.reshape(ours.shape) == ours).all()):
        return Given(name, how="the same")
    if role == "mask" and theirs.size == ours.size and bool((theirs.reshape(ours.shape) != ours).all()):
        return Given(name, how="the same, 1 where a token is hidden")
    return Given(reason="not what the model was given here")


def _square_mask(tensor: Tensor, right: Right) -> Given | None:
    """A mask of queries × keys, which hides what the right scores hide."""
    theirs = np.squeeze(tensor.values.array)
    for step in right.program.steps:
        if step.name.endswith(".masked") and len(step.axes) == 3 and shape_of(step.axes)[1:] == theirs.shape:
            hidden = np.isneginf(right.value(step.name)[0, 0])
            if any((cells == hidden).all() for cells in (theirs != 0, theirs == 0)):
                return Given("input.visible", how=f"hides what {step.name} hides")
    return Given(reason="hides other cells than the model's mask")


def weight_of(tensor: Tensor, steps: Iterable[str], right: Right) -> str:
    """The weight of one of these steps that an array holds; "" where it holds none."""
    theirs, program = np.squeeze(tensor.values.array), right.program
    for step in dict.fromkeys(steps):
        for name in (f"{step}.weight", f"{step}.bias"):
            if name not in program.weights or tensor.values.known is not None:
                continue
            ours = np.squeeze(right.exact.weights.get(name, program.shape(name)))
            if any(_same(theirs, each, tensor) for each in (ours, ours.T)):
                return name
    return ""


def _same(theirs: Host, ours: Host, tensor: Tensor) -> bool:
    """A whole weight, or the columns of a head."""
    close = 4.0 * tensor.values.precision.of(theirs) + 1e-7
    if theirs.shape == ours.shape:
        return bool((np.abs(theirs - ours) <= close).all())
    if theirs.ndim != 2 or ours.ndim != 2 or theirs.shape[0] != ours.shape[0] or ours.shape[1] % theirs.shape[1]:
        return False
    parts = np.split(ours, ours.shape[1] // theirs.shape[1], axis=1)
    return any(bool((np.abs(theirs - part) <= close).all()) for part in parts)
