"""The measures of a survey: those of queries (`analysis/measures.py`), and those that read a text as a whole.

A batch of texts is measured by a pure function of the model, the texts and what is asked, whose results can be added.

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

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.effects import answer_positions, counted_positions, effects
from tui_transformer.analysis.features import places_of_features
from tui_transformer.analysis.head_measures import query_numbers
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.measurable import logits_of
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
from tui_transformer.analysis.metrics import AnyMetric, Metric, MetricName, metric_from
from tui_transformer.analysis.nodes import layer_in
from tui_transformer.analysis.statistics import row_norms, row_sample
from tui_transformer.analysis.survey.sums import Counts, Examples, Moments, Source, Sums, first_words, starts_of
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.targets import KINDS, Target
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.targets import default_targets
from tui_transformer.records import dataclass, replace
from tui_transformer.text.encoding import MAX_CHARACTERS, Encoding
from tui_transformer.text.known_words import LONGEST

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
    metric = text.metric
    if isinstance(metric, tuple):
        targets: tuple[int, ...] = ()
        if metric == ("loss", ()):  # on the next tokens of the text, or on its tokens where these are predicted
            givens = text.trace.givens
            ids = givens.get("decoder.input.ids", givens["input.ids"])[0].tolist()
            targets = default_targets(text.trace.program, ids)
        if targets and set(targets) == {NOT_COUNTED}:
            return  # nothing follows a single token
        metric = Metric(*metric, targets)
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
            norms = values.T if unit == NEURON else row_norms(values)
            yield Reading.of_tokens(place, norms, tokens)


def _features(text: Text) -> Iterator[Reading]:
    """How strong every feature is at the tokens that are no padding, and at how many it is active."""
    for at, (step,) in KINDS[FEATURE].places(text.trace.program).items():
        number = layer_in(at)
        layer = EMBEDDING if number is None else number
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


# A batch of texts

LENGTH = 512
TOP = 5
WITHOUT_HEADS = ("lens", "neurons", "features")
"""Measures that are not of attention heads."""

NO_VOCABULARY = "has no vocabulary to read texts with: name one with --vocab (vocabulary=)"


@dataclass(frozen=True)
class Asked:
    """The measures that are taken of every text, by name.

    Only `layers` are looked at, None for all; `top` of the strongest examples are kept of every unit. Texts are cut to
    `length` tokens, or to what the model reads. Ablations are measured by the `metric`, or that of a name and its
    tokens; None for the usual one.
    """

    measures: tuple[str, ...] = USUAL
    layers: frozenset[int] | None = None
    top: int = TOP
    length: int = LENGTH
    metric: tuple[MetricName, tuple[int, ...]] | AnyMetric | None = None


@dataclass(frozen=True)
class Item:
    """A text, its number in the whole survey, and where it is from: a file and a line."""

    number: int
    source: Source


def encoded(model: Model, text: str, length: int) -> Encoding:
    """The tokens of a text, cut to so many and to what the model reads; InputError where it has no vocabulary."""
    if model.tokenizer is None:
        raise InputError(f"{model.name} {NO_VOCABULARY}")
    most = min(length, model.config.max_length)
    return model.tokenizer.encode(text[:MAX_CHARACTERS], max_tokens=most, cut=True)


def survey(model: Model, batch: Sequence[Item], asked: Asked) -> Sums:
    """The sums of a batch. Every text is read alone, so the batch it is in changes nothing.

    InputError where the model lacks what is measured, as a vocabulary, heads or logits.
    """
    counts, read, sources = Counts(), dict[int, list[Reading]](), dict[int, Source]()
    for item in batch:
        encoding = encoded(model, item.source.text, asked.length)
        tokens = encoding.tokens
        if not tokens:
            counts += Counts(left_out=1)
            continue
        unknown = tuple((item.number, at, token.text[:LONGEST]) for at, token in enumerate(tokens) if token.unknown)
        counts += Counts(1, len(tokens), 0, int(encoding.cut > 0), len(unknown), first_words(unknown))
        trace = model.trace(ids=encoding.ids, segments=encoding.segments)
        read[item.number] = list(readings(Text(model, trace, asked.layers, asked.metric), asked.measures))
        text = encoding.text[: max(token.end for token in tokens)] if encoding.cut else encoding.text
        sources[item.number] = replace(item.source, text=text)
    places = tuple(sorted({each.place: len(each.values) for of_text in read.values() for each in of_text}.items()))
    starts = starts_of(places)
    shape = len(read), sum(size for _, size in places)
    values, strongest = np.full(shape, np.nan), np.full(shape, np.nan)
    positions = np.zeros(shape, np.int64)
    for at, of_text in enumerate(read.values()):
        for each in of_text:
            part = slice(starts[each.place], starts[each.place] + len(each.values))
            values[at, part], strongest[at, part], positions[at, part] = each.values, each.strongest, each.positions
    examples = Examples.of(strongest.T, np.array(list(read), np.int64), positions.T, asked.top)
    return Sums(counts, places, Moments.of(values), examples, sources).pruned()


def check_asked(model: Model, asked: Asked) -> None:
    """Raise InputError where a model lacks what is asked, before any text is read."""
    if model.tokenizer is None:
        raise InputError(f"{model.name} {NO_VOCABULARY}")
    program = model.program(2)
    if not attentions(program) and any(name not in WITHOUT_HEADS for name in asked.measures):
        raise InputError(f"{model.name} has no attention whose heads could be measured: use {', '.join(WITHOUT_HEADS)}")
    if "features" in asked.measures and not places_of_features(program):
        raise InputError(f"{model.name} has no features: name a dictionary with --features (with_features)")
    numbers = (step.layer.rpartition(".")[2] for step in program.steps)
    last = max(int(number) for number in numbers if number.isdigit())
    missing = sorted(layer for layer in asked.layers or () if layer > last)
    if missing:
        raise InputError(f"there is no layer {missing[0]}: layers are 0 to {last}")
    if "lens" in asked.measures:
        lens_of(program)
    if asked.metric is not None:
        if not {measure.name for measure in ABLATION} & set(asked.measures):
            raise UsageError("a metric is what ablation is measured by: name ablation or ablation-mean too")
        if not isinstance(asked.metric, tuple):
            if metric_from(asked.metric).reads_any:
                return
        elif asked.metric != ("loss", ()):
            Metric(*asked.metric)
        logits_of(program)


def readings(text: Text, names: Sequence[str]) -> Iterator[Reading]:
    """Everything that is measured in one text; attention weights are read once for all measures of queries."""
    measures = [MEASURES[name] for name in names]
    of_queries = [measure for measure in measures if measure.columns]
    reader, trace = Reader(text.model.vocabulary), text.trace
    for step in reversed(text.attentions) if of_queries else ():  # the last first: the others are there then
        trace.prepare(step.name)
        queries = np.flatnonzero(reader.counted(trace, step))
        blocks = reader.rows(trace, step, row_sample(queries.tolist(), 1, len(queries)))
        for name, values in query_numbers(blocks, of_queries)[1].items():
            yield Reading.of_tokens(Place(step.group, step.layer, name), values, queries)
    for measure in measures:
        if measure.readings:
            yield from measure.readings(text)
