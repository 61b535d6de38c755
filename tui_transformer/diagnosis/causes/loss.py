"""The loss of the wrong targets: labels that are shifted once too often, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, changing, with_op
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working
from tui_transformer.engine.gradient import NOT_COUNTED, cross_entropy
from tui_transformer.engine.ops import Op
from tui_transformer.engine.ops.base import Gradients

LOSS, LABELS = "loss", "input.labels"
SAYS = {
    0: "when labels are not shifted: the logits of position i predict token i + 1",
    1: "when labels are shifted: they are there already, so compare the logits of position i with label i",
    2: "when labels are shifted twice: the logits of position i predict token i + 1",
    -1: "when labels are shifted the other way: the logits of position i predict token i + 1",
}


@dataclass(frozen=True)
class CrossEntropy(Op):
    """Mean of −log softmax(logits)[label], the logits of position i with the label of position i + `shift`.

    Inputs: logits (n × v), labels (n); negative labels are not counted.
    """

    integer: ClassVar[bool] = False
    shift: int = 0

    @property
    def formula(self) -> str:
        """The mean over the counted positions."""
        return "mean −log softmax(logits)[label]"

    def axes(self, *inputs: Axes) -> Axes:
        """A single number."""
        del inputs
        return ()

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One number for the whole batch."""
        del out
        logits, labels = inputs
        length, shift = logits.shape[1], self.shift
        logits = logits[:, max(0, -shift) : length - max(0, shift)]
        labels = labels[:, max(0, shift) : length - max(0, -shift)]
        targets = np.where(labels < 0, NOT_COUNTED, labels)
        if not logits.shape[1] or (targets == NOT_COUNTED).all():
            return np.full(1, np.nan)
        return np.full(1, cross_entropy(backend, logits, targets)[0].mean)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """Not used here."""
        raise NotImplementedError

    def explain(self, index: Index, *sources: Source) -> Working:
        """Not used here."""
        raise NotImplementedError


def shifted_wrongly(segment: Segment) -> Iterator[Cause]:
    """The loss with labels shifted otherwise."""
    for step in segment.steps:
        if isinstance(step.op, CrossEntropy):
            for shift, says in SAYS.items():
                if shift != step.op.shift:
                    yield Cause("label-shift", changing([with_op(step, CrossEntropy(shift))]), says)
