"""Experts: how many a token chooses, and what their shares add up to (Shazeer et al. 2017, §2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, changing, groups, instead, with_op
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import ExpertWeights

AMONG = "when shares are those of a softmax over all experts: make those of the chosen add up to 1"
OVER_ALL = "when the shares of the chosen add up to 1: take them from a softmax over all experts"


def routed_wrongly(segment: Segment) -> Iterator[Cause]:
    """Shares over all experts or the chosen, more or fewer of them, the smallest instead of the largest."""
    steps = [step for step in segment.steps if isinstance(step.op, ExpertWeights)]
    for group in groups(steps):
        ops = [step.op for step in group if isinstance(step.op, ExpertWeights)]
        chosen, among, count = ops[0].chosen, ops[0].among_chosen, group[0].shape[-1]
        other = changing(
            with_op(step, replace(op, among_chosen=not among)) for step, op in zip(group, ops, strict=True)
        )
        yield Cause("experts-shares", other, AMONG if among else OVER_ALL)
        for number in (each for each in (count, chosen - 1, chosen + 1) if 0 < each <= count and each != chosen):
            change = changing(with_op(step, replace(op, chosen=number)) for step, op in zip(group, ops, strict=True))
            yield Cause("experts-count", change, f"with {number} experts a token: this model chooses {chosen}")
        for shares in (_of_smallest, _turned_over):
            smallest = changing(instead(step, shares(op)) for step, op in zip(group, ops, strict=True))
            yield Cause("experts-smallest", smallest, "with the smallest logits of the router: choose the largest")


def _of_smallest(op: ExpertWeights) -> Function:
    """The shares of those with the smallest logits."""

    def function(logits: Array) -> Array:
        taken = np.zeros_like(logits)
        np.put_along_axis(taken, np.argsort(logits, axis=-1)[..., : op.chosen], 1.0, axis=-1)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return powers * taken / (powers * taken if op.among_chosen else powers).sum(axis=-1, keepdims=True)

    return function


def _turned_over(op: ExpertWeights) -> Function:
    return lambda logits: op.forward(CPU, np.negative(logits))
