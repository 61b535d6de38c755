"""Activation extremes: the texts and tokens on which a neuron or a head is strongest.

Of a neuron: what the second matrix of the feed-forward layer reads of it (the activation, gated where it is), as in
lists of maximally activating examples (Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories", §3).
Of a head: ‖z_i‖₂ of its row of the context, weights × V. The number of a text is the mean over its tokens; the examples
have the largest of one token.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.analysis.survey.measures.measure import Measure
from tui_transformer.analysis.survey.reading import HEAD, NEURON, Place, Reading, Text
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.targets import KINDS


def _neurons(text: Text) -> Iterator[Reading]:
    for sublayer, (step,) in KINDS["neuron"].places(text.trace.program).items():
        place = _place(sublayer, "neurons", NEURON)
        if text.covers(place.layer):
            values, tokens = _of_real_tokens(text, step)
            yield Reading.of_tokens(place, values.T, tokens)


def _context(text: Text) -> Iterator[Reading]:
    for sublayer, (step,) in KINDS["head"].places(text.trace.program).items():
        place = _place(sublayer, "context", HEAD)
        if text.covers(place.layer):
            values, tokens = _of_real_tokens(text, step)
            norms = np.sqrt(np.square(values, dtype=np.float64).sum(axis=-1))
            yield Reading.of_tokens(place, norms, tokens)


def _of_real_tokens(text: Text, step: str) -> tuple[Host, Host]:
    """The values of a step at the tokens that are no padding, and these tokens."""
    tokens = np.flatnonzero(real_tokens(text.trace, text.trace.program.axes(step)[-2]))
    return text.trace[step][..., tokens, :], tokens


def _place(sublayer: str, measure: str, unit: str) -> Place:
    """`decoder.3.feed_forward` as a place."""
    stack, layer, *kind = sublayer.split(".")
    return Place(f"{stack} {'.'.join(kind).replace('_', '-')}", int(layer), measure, unit)


ACTIVATION = (
    Measure("neurons", "activation of every neuron, and where it is largest", "", _neurons),
    Measure("context", "norm of what every head reads (its row of the context), and where it is largest", "", _context),
)
