"""The results of a survey as rows: one for every layer, head and measure, and one for every example."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist
from typing import Any

from tui_transformer.analysis.measures import FEATURE, HEAD, NEURON, WHOLE, Place
from tui_transformer.analysis.survey.measures import MEASURES, unit_of
from tui_transformer.analysis.survey.sums import NONE, Sums, starts_of
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.text.encoding import Token


@dataclass(frozen=True)
class Origin:
    """The model of a survey as it was named, to be loaded again.

    With its vocabulary, where another than its own was named; the seed of random weights, None for the usual one and
    where the weights were read; and "float32" or "float64".
    """

    model: str
    vocab: str = ""
    seed: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True)
class Row:
    """A measure of a head, a neuron, a feature, a layer or the whole model, over so many (`count`) texts that have it.

    `part`: `decoder self-attention`, `encoder feed-forward`, `logit lens` …, of features the step that is read;
    `layer`: from 0, −1 for the embedding, None for the whole model; `head`, `neuron` and `feature`: from 0, None where
    there is none; `measure`: `induction`, `distance:1`, `ablation:divergence` …; `unit`: "bits", "nats", "layers", "".

    Of the texts' numbers there are the mean, the ends of its 95 % confidence interval (None for fewer than two texts),
    and the standard deviation. The model is as in `Origin`.
    """

    model: str
    part: str
    layer: int | None
    head: int | None
    neuron: int | None
    measure: str
    unit: str
    mean: float | None
    low: float | None
    high: float | None
    deviation: float | None
    count: int
    vocab: str = ""
    seed: int | None = None
    dtype: str = "float32"
    feature: int | None = None


BEFORE, AFTER = 40, 30
"""Characters of a text around a token that is marked in it."""


@dataclass(frozen=True)
class Example:
    """A text in which something is strong: the strongest has rank 1.

    `value`: the largest number of one token there, for an effect of ablation its size; `position`: that token, from 0;
    lines count from 1; the text is there as far as it was read. The model is as in `Origin`. `marked`: the token in its
    text, `… the «cat» sat`; "" where it stands for none of it.
    """

    model: str
    part: str
    layer: int | None
    head: int | None
    neuron: int | None
    measure: str
    rank: int
    value: float
    file: str
    line: int
    position: int
    text: str
    vocab: str = ""
    seed: int | None = None
    dtype: str = "float32"
    feature: int | None = None
    marked: str = ""


def rows(sums: Sums, of: Origin) -> Iterator[Row]:
    """A row for every unit of every measure; measures that no text has have none."""
    for column, where in _units(sums):
        count = int(sums.moments.count[column])
        if count:
            mean, deviation, unit = sums.moments.mean(column), sums.moments.deviation(column), unit_of(where["measure"])
            half = half_width(deviation, count)
            low, high, spread = (None if math.isnan(each) else each for each in (mean - half, mean + half, deviation))
            yield Row(**vars(of), **where, unit=unit, mean=mean, low=low, high=high, deviation=spread, count=count)


def examples(sums: Sums, of: Origin, model: Model | None = None) -> Iterator[Example]:
    """The strongest texts of every unit, the strongest first; a model marks their tokens."""
    strongest, spans = sums.examples, dict[int, tuple[Token, ...]]()

    def marked_in(text: int, position: int) -> str:
        if model is None or model.tokenizer is None:
            return ""
        if text not in spans:
            spans[text] = model.tokenizer.encode(sums.sources[text].text, cut=True).tokens
        tokens = spans[text]
        return marked(sums.sources[text].text, tokens[position]) if position < len(tokens) else ""

    for column, where in _units(sums):
        for rank, text in enumerate(strongest.texts[column].tolist()):
            if text != NONE:
                value, position = float(strongest.values[column, rank]), int(strongest.positions[column, rank])
                place, mark = {**vars(of), **where, **vars(sums.sources[text])}, marked_in(text, position)
                yield Example(**place, rank=rank + 1, value=value, position=position, marked=mark)


def marked(text: str, token: Token) -> str:
    """A token between « and », with some of the text around it; "" for one that stands for none of it."""
    inside = text[token.start : token.end]
    word = inside.strip() or inside
    if not word:
        return ""
    start = token.start + inside.index(word)
    before, after = text[:start], text[start + len(word) :]
    if len(before) > BEFORE:  # whole words alone, where there are some
        before = f"… {before[-BEFORE:].partition(' ')[2] or before[-BEFORE:]}"
    if len(after) > AFTER:
        after = f"{after[:AFTER].rpartition(' ')[0] or after[:AFTER]} …"
    return " ".join(f"{before}«{word}»{after}".split())


def columns(kind: type[Row] | type[Example]) -> tuple[str, ...]:
    """The names of the columns."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _units(sums: Sums) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every unit: its column in the sums, and where it is, as a row has it; in the order of measures."""

    def order(place: Place) -> tuple[str, int, int, int, str]:
        name, _, group = place.measure.partition(":")
        number = re.match(r"-?[0-9]+", group)
        return place.part, place.layer, list(MEASURES).index(name), int(number[0]) if number else 0, group

    starts = starts_of(sums.places)
    for place, size in sorted(sums.places, key=lambda each: order(each[0])):
        layer = None if place.layer == WHOLE else place.layer
        for number in range(size):
            where = {unit: number if place.unit == unit else None for unit in (HEAD, NEURON, FEATURE)}
            yield starts[place] + number, {"part": place.part, "layer": layer, "measure": place.measure, **where}


LEVEL = 0.95
MANY = 400
"""Degrees of freedom from which the expansion around the normal distribution is exact to eight digits."""


def half_width(deviation: float, count: int) -> float:
    """Half of the interval; NaN for fewer than two numbers."""
    return student(count - 1) * deviation / math.sqrt(count) if count > 1 else math.nan


@cache
def student(freedom: int) -> float:
    """The t that |T| exceeds with probability 1 − `LEVEL`."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    if freedom >= MANY:  # Abramowitz & Stegun 1964, 26.7.5
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, 64.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """The probability that |T| is at most t (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = total = 0.0
    if freedom > 1:
        term = total = cosine if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
