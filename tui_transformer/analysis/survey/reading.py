"""Measures of one text: a number of every head, neuron or layer, and the token on which it is strongest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

WHOLE = -2
"""The layer of what is measured of the model as a whole."""

EMBEDDING = -1
"""The layer of what enters layer 0."""

HEAD, NEURON, MODEL = "head", "neuron", "model"


@dataclass(frozen=True, order=True)
class Place:
    """The part of the model that a measure is of.

    Attributes:
        part: `decoder self-attention`, `encoder feed-forward` …; "" for the model as a whole.
        layer: From 0; `EMBEDDING` or `WHOLE`.
        measure: Its name, as `induction` or `distance:1`.
        unit: What there is a number of: `HEAD`, `NEURON` or `MODEL`.
    """

    part: str
    layer: int
    measure: str
    unit: str = HEAD


@dataclass(frozen=True, eq=False)
class Reading:
    """A measure in one text.

    Attributes:
        place: What is measured.
        values: Of every unit, the number of the text; NaN where it has none.
        strongest: Of every unit, the largest number of a token.
        positions: The token that has it.
    """

    place: Place
    values: Host
    strongest: Host
    positions: Host

    @classmethod
    def of_tokens(cls, place: Place, values: Host, tokens: Host) -> Reading:
        """From a number for every token (units × tokens, NaN where it has none): the mean, and the largest."""
        there = ~np.isnan(values)
        total, count = np.where(there, values, 0.0).sum(axis=1, dtype=np.float64), there.sum(axis=1)
        mean = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
        if not values.shape[1]:
            return cls(place, mean, mean, np.zeros(len(mean), np.int64))
        at = np.where(there, values, -np.inf).argmax(axis=1)
        largest = np.take_along_axis(values, at[:, None], axis=1)[:, 0].astype(np.float64)
        return cls(place, mean, largest, np.asarray(tokens)[at])


@dataclass(frozen=True, eq=False)
class Text:
    """One text as a model reads it.

    Attributes:
        model: The model.
        trace: Its values for the text.
        layers: The layers that are looked at; None for all.
        metric: By which ablations are measured, and its tokens; None for the usual one.
    """

    model: Model
    trace: Trace
    layers: frozenset[int] | None = None
    metric: tuple[str, tuple[int, ...]] | None = None

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The attention steps of those layers."""
        return tuple(each for each in attentions(self.trace.program) if self.covers(each.layer))

    def covers(self, layer: int) -> bool:
        """Whether a layer is looked at."""
        return self.layers is None or layer in self.layers
