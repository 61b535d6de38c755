"""A batch of texts measured: a pure function of the model, the texts and what is asked, whose results can be added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.features import places_of_features
from tui_transformer.analysis.head_measures import query_numbers
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.measures import Place, Reading, Text
from tui_transformer.analysis.metrics import AnyMetric, Metric, MetricName, metric_from
from tui_transformer.analysis.statistics import row_sample
from tui_transformer.analysis.survey.measures import ABLATION, MEASURES, USUAL
from tui_transformer.analysis.survey.sums import Counts, Examples, Moments, Source, Sums, first_words, starts_of
from tui_transformer.engine.parts import DEFAULT_BUDGET
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.records import dataclass, replace
from tui_transformer.text.encoding import MAX_CHARACTERS
from tui_transformer.text.known_words import LONGEST

LENGTH = 512
TOP = 5
WITHOUT_HEADS = ("lens", "neurons", "features")
"""Measures that are not of attention heads."""

NO_VOCABULARY = "has no vocabulary to read texts with: name one with --vocab"


@dataclass(frozen=True)
class Asked:
    """The measures that are taken of every text, by name.

    Only `layers` are looked at, None for all; `top` of the strongest examples are kept of every unit. Texts are cut to
    `length` tokens, or to what the model reads, and so many bytes of one text's values are kept while it is read.
    Ablations are measured by the `metric`, or that of a name and its tokens; None for the usual one.
    """

    measures: tuple[str, ...] = USUAL
    layers: frozenset[int] | None = None
    top: int = TOP
    length: int = LENGTH
    budget: int = DEFAULT_BUDGET
    metric: tuple[MetricName, tuple[int, ...]] | AnyMetric | None = None


@dataclass(frozen=True)
class Item:
    """A text, its number in the whole survey, and where it is from: a file and a line."""

    number: int
    source: Source


def survey(model: Model, batch: Sequence[Item], asked: Asked) -> Sums:
    """The sums of a batch. Every text is read alone, so the batch it is in changes nothing.

    InputError where the model lacks what is measured, as a vocabulary, heads or logits.
    """
    if model.tokenizer is None:
        raise InputError(f"{model.name} {NO_VOCABULARY}")
    counts, read, sources = Counts(), dict[int, list[Reading]](), dict[int, Source]()
    most = min(asked.length, model.config.max_length)
    for item in batch:
        encoding = model.tokenizer.encode(item.source.text[:MAX_CHARACTERS], max_tokens=most, cut=True)
        tokens = encoding.tokens
        if not tokens:
            counts += Counts(left_out=1)
            continue
        unknown = tuple((item.number, at, token.text[:LONGEST]) for at, token in enumerate(tokens) if token.unknown)
        counts += Counts(1, len(tokens), 0, int(encoding.cut > 0), len(unknown), first_words(unknown))
        trace = model.trace(ids=encoding.ids, segments=encoding.segments, budget=asked.budget)
        read[item.number] = list(readings(Text(model, trace, asked.layers, asked.metric), asked.measures))
        text = encoding.text[: max(token.end for token in tokens)] if encoding.cut else encoding.text
        sources[item.number] = replace(item.source, text=text)
    return _together(counts, read, sources, asked.top)


def check_asked(model: Model, asked: Asked) -> None:
    """Raise InputError where a model lacks what is asked, before any text is read."""
    if model.tokenizer is None:
        raise InputError(f"{model.name} {NO_VOCABULARY}")
    program = model.program(2)
    if not attentions(program) and any(name not in WITHOUT_HEADS for name in asked.measures):
        raise InputError(f"{model.name} has no attention whose heads could be measured: use {', '.join(WITHOUT_HEADS)}")
    if "features" in asked.measures and not places_of_features(program):
        raise InputError(f"{model.name} has no features: name a dictionary with --features")
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
        if not program.logits:
            raise InputError("the model has no logits of words: metrics are of these")


def readings(text: Text, names: Sequence[str]) -> Iterator[Reading]:
    """Everything that is measured in one text; attention weights are read once for all measures of queries."""
    chosen = [MEASURES[name] for name in names]
    of_queries = [measure for measure in chosen if measure.columns]
    reader, trace = Reader(text.model.vocabulary), text.trace
    for step in reversed(text.attentions) if of_queries else ():  # the last first: the others are there then
        trace.prepare(step.name)
        queries = np.flatnonzero(reader.counted(trace, step))
        blocks = reader.rows(trace, step, row_sample(queries.tolist(), 1, len(queries)))
        for name, values in query_numbers(blocks, of_queries)[1].items():
            yield Reading.of_tokens(Place(step.group, step.layer, name), values, queries)
    for measure in chosen:
        if measure.readings:
            yield from measure.readings(text)


def _together(counts: Counts, read: dict[int, list[Reading]], sources: dict[int, Source], top: int) -> Sums:
    """The sums of what was read in each text."""
    places = tuple(sorted({each.place: len(each.values) for of_text in read.values() for each in of_text}.items()))
    starts = starts_of(places)
    shape = len(read), sum(size for _, size in places)
    values, strongest = np.full(shape, np.nan), np.full(shape, np.nan)
    positions = np.zeros(shape, np.int64)
    for at, of_text in enumerate(read.values()):
        for each in of_text:
            part = slice(starts[each.place], starts[each.place] + len(each.values))
            values[at, part], strongest[at, part], positions[at, part] = each.values, each.strongest, each.positions
    examples = Examples.of(strongest.T, np.array(list(read), np.int64), positions.T, top)
    return Sums(counts, places, Moments.of(values), examples, sources).pruned()
