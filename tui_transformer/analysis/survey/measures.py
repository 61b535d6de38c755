"""The measures of a survey: those of queries (`analysis/measures.py`), and those that read a text as a whole.

- Effects of ablation: what the answer of the model loses without each head, as `tui-transformer ablate` shows it.
  `divergence` is the Kullback–Leibler divergence in nats from the answer before, `change` the change of ln p of the
  most likely token; a model without a vocabulary head has `relative`, ‖x' − x‖ ÷ ‖x‖ (Michel et al. 2019; see
  `effects.py`). Where a metric is asked for (`analysis/metrics.py`) it is how far that moves instead:
  `ablation:difference`; the loss without a token is that of the text itself, over all its tokens.
- Logit-lens depth: the smallest number of layers l such that after l, l + 1, … L layers the most probable word of
  softmax(head(norm(x))) is the same as after all L (nostalgebraist 2020; the last place where it changes: Geva et al.
  2022, "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space", §5). 0: the
  embedding already spells it; L: the last layer alone does. `lens:agreement` is the share of tokens at which the first
  choice behind a layer is the model's answer; layer −1 is the embedding.
- Activation extremes: of a neuron, what the second matrix of the feed-forward layer reads of it (the activation, gated
  where it is), as in lists of maximally activating examples (Geva et al. 2021, "Transformer Feed-Forward Layers Are
  Key-Value Memories", §3); of a head, ‖z_i‖₂ of its row of the context, weights × V. The number of a text is the mean
  over its tokens; the examples have the largest of one token.
- Features of a dictionary that the model has (`Model.with_features`): how strong each is, the mean over the tokens, and
  the texts in which it is strongest; `features:frequency` is the share of tokens at which it is active (Bricken et al.
  2023, "Towards Monosemanticity").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from tui_transformer.analysis.effects import answer_positions, counted_positions, effects
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.measures import (
    DISTANCE,
    EMBEDDING,
    FEATURE,
    HEAD,
    HEAD_MEASURES,
    KIND,
    MODEL,
    NEURON,
    WHOLE,
    Measure,
    Place,
    Reading,
    Text,
)
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.targets import KINDS, Target
from tui_transformer.errors import UsageError
from tui_transformer.model.targets import default_targets
from tui_transformer.records import replace

LENS_PART = "logit lens"
OWN = "metric"
"""The row of a metric that is a function of the caller's."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Names of measures, each once, in the order of the table; UsageError where there is no such measure."""
    for name in names:
        if name not in MEASURES:
            raise UsageError(f"no measure is called {name[:40]!r}: use {', '.join(MEASURES)}")
    return tuple(name for name in MEASURES if name in names)


def unit_of(row: str) -> str:
    """The unit of a row of results."""
    measure = MEASURES.get(row.partition(":")[0])
    return "" if measure is None or row in measure.without else measure.unit


def _ablated(text: Text, name: str, *, mean: bool) -> Iterator[Reading]:
    positions = answer_positions(text.trace, folder=text.model.folder)
    metric = None if isinstance(text.metric, tuple) else text.metric
    if isinstance(text.metric, tuple):
        targets: tuple[int, ...] = ()
        if text.metric == ("loss", ()):  # on the next tokens of the text, or on its tokens where these are predicted
            givens = text.trace.givens
            ids = givens.get("decoder.input.ids", givens["input.ids"])[0].tolist()
            targets = default_targets(text.trace.program, ids)
        if targets and set(targets) == {NOT_COUNTED}:
            return  # nothing follows a single token
        metric = Metric(*text.metric, targets)
    row = metric.name if isinstance(metric, Metric) else OWN
    fields = {"change": row} if metric else {field: field for field in ("divergence", "change", "relative")}
    for step in text.attentions:
        heads = (Target("head", step.name.rpartition(".")[0], head) for head in range(step.heads))
        measured = effects(text.trace, heads, mean=mean, positions=positions, metric=metric)
        of_heads = [effect for _, effect in measured]
        for field, row in fields.items():
            if getattr(of_heads[0], field) is not None:
                values = np.array([float(getattr(effect, field)) for effect in of_heads])
                at = np.full(len(values), positions[-1])
                yield Reading(Place(step.group, step.layer, f"{name}:{row}"), values, np.abs(values), at)


def _spelled(text: Text) -> Iterator[Reading]:
    lens, positions = lens_of(text.trace.program), counted_positions(text.trace)
    tokens = np.asarray(positions)
    words = np.stack([lens.spell(text.trace, depth, positions).words[:, 0] for depth in lens.depths])
    same = words == words[-1]  # depths × tokens
    stays = np.logical_and.accumulate(same[::-1])[::-1]
    depth = (~stays).sum(axis=0)[None].astype(np.float64)
    yield Reading.of_tokens(Place(LENS_PART, WHOLE, "lens:depth", MODEL), depth, tokens)
    for at, place in enumerate(lens.depths):
        if text.covers(place.layer):
            share = same[at][None].astype(np.float64)
            yield Reading.of_tokens(Place(LENS_PART, place.layer, "lens:agreement", MODEL), share, tokens)


def _activations(text: Text, measure: str, unit: str) -> Iterator[Reading]:
    """Of every neuron its activation, of every head the norm of its context, at the tokens that are no padding."""
    for sublayer, (step,) in KINDS[unit].places(text.trace.program).items():
        stack, layer, *kind = sublayer.split(".")
        place = Place(f"{stack} {'.'.join(kind).replace('_', '-')}", int(layer), measure, unit)
        if text.covers(place.layer):
            tokens = np.flatnonzero(real_tokens(text.trace, text.trace.program.axes(step)[-2]))
            values = text.trace[step][..., tokens, :]
            norms = values.T if unit == NEURON else np.sqrt(np.square(values, dtype=np.float64).sum(axis=-1))
            yield Reading.of_tokens(place, norms, tokens)


def _features(text: Text) -> Iterator[Reading]:
    """How strong every feature is at the tokens that are no padding, and at how many it is active."""
    for at, (step,) in KINDS[FEATURE].places(text.trace.program).items():
        number = at.split(".")[1:2]
        layer = int(number[0]) if number and number[0].isdigit() else EMBEDDING
        if text.covers(layer):
            tokens = np.flatnonzero(real_tokens(text.trace, text.trace.program.axes(step)[-2]))
            values = text.trace[step][tokens].T
            found = Reading.of_tokens(Place(at, layer, "features", FEATURE), values, tokens)
            yield replace(found, strongest=np.where(values.any(axis=1), found.strongest, np.nan))
            share = (values != 0).mean(axis=1, dtype=np.float64)
            none = np.full(len(share), np.nan)
            yield Reading(Place(at, layer, "features:frequency", FEATURE), share, none, found.positions)


_PLAIN = tuple(
    f"{name}:{row}" for name in ("ablation", "ablation-mean") for row in ("relative", "logit", "difference", OWN)
)
ABLATION = tuple(
    Measure(name, title, "nats", readings=partial(_ablated, name=name, mean=mean), without=_PLAIN)
    for name, title, mean in (
        ("ablation", "effect on the answer of setting the head to 0", False),
        ("ablation-mean", "the same, set to its mean over the positions", True),
    )
)
LENS = Measure(
    "lens",
    "layers after which the logit lens's first choice stays the answer",
    "layers",
    readings=_spelled,
    without=("lens:agreement",),
)
ACTIVATION = tuple(
    Measure(name, f"{what}, and where it is largest", readings=partial(_activations, measure=name, unit=unit))
    for name, what, unit in (
        ("neurons", "activation of every neuron", NEURON),
        ("context", "norm of what every head reads (its row of the context)", HEAD),
    )
)
FEATURES = Measure("features", "activation of every feature, and where it is largest", readings=_features)

MEASURES: Mapping[str, Measure] = {
    measure.name: measure for measure in (*HEAD_MEASURES, DISTANCE, KIND, *ABLATION, LENS, *ACTIVATION, FEATURES)
}
"""By name, in the order of help."""

USUAL = tuple(measure.name for measure in HEAD_MEASURES)
"""Measures that are made where none is named."""
