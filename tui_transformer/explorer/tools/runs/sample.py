"""One example of a run's validation part, and what the model makes of others: attention and outputs while it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.engine.axis import Axis as ArrayAxis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.generation.rules import Ids
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.text import TextStream
from tui_transformer.generation.writing import Writer
from tui_transformer.learning.data import Data
from tui_transformer.learning.tasks import Row
from tui_transformer.model import Model
from tui_transformer.views.step_view import Labels
from tui_transformer.views.view import Axis, View, window_of

LONGEST = 24
"""Tokens of an example whose attention is shown; of a longer one the first ones."""

EXAMPLES = 12
"""Examples that outputs are made of, one after the other."""

GIVEN, WRITTEN = 12, 30
"""Tokens of a text that is written on from, and tokens that are written."""


@dataclass(frozen=True)
class Sample:
    """Token IDs of an example; `decoder_ids` where a decoder reads beside an encoder."""

    ids: Ids
    decoder_ids: Ids | None = None

    def labels(self, model: Model) -> Labels:
        """Its tokens as words."""
        own = tuple(map(model.word_label, self.ids))
        target = (
            {} if self.decoder_ids is None else {"decoder tokens": tuple(map(model.target_label, self.decoder_ids))}
        )
        return Labels({"tokens": own} | target)


@dataclass(frozen=True, eq=False)
class Heads:
    """The attention of every head on a sample after so many steps."""

    step: int
    sample: Sample
    weights: Mapping[str, Host]
    attentions: tuple[Attention, ...]
    labels: Labels

    def view(self, attention: Attention, head: int) -> View:
        """A head as a matrix of queries × keys."""
        window = window_of(self.weights[attention.name][head])
        rows, columns = self._axis(attention.queries), self._axis(attention.keys)
        return View(
            attention.name, attention.name, rows, columns, "sequential", window, head=head, heads=attention.heads
        )

    def _axis(self, axis: ArrayAxis) -> Axis:
        return Axis(axis.name, axis.size, self.labels.of(axis), axis.sequence)


def heads_of(model: Model, sample: Sample, step: int) -> Heads:
    """Run a sample through a model, and take the attention of all its heads."""
    decoder: Any = sample.decoder_ids
    trace = model.trace(ids=sample.ids, decoder_ids=decoder)
    steps = attentions(trace.program)
    arrays = trace.arrays([each.name for each in steps])
    weights = {each.name: np.array(model.backend.to_host(array)[0]) for each, array in zip(steps, arrays, strict=True)}
    return Heads(step, sample, weights, steps, sample.labels(model))


@dataclass(frozen=True)
class Output:
    """A model's answer to an example after so many steps; `right` is None where nothing says what is."""

    step: int
    given: str
    made: str
    expected: str
    right: bool | None


@dataclass(frozen=True, eq=False)
class Examples:
    """Some examples of the validation part, or of the training's where there is none."""

    data: Data

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The examples, without padding."""
        learned, held_out = self.data.parts
        places = held_out if len(held_out) else learned
        random = np.random.default_rng(self.data.settings.seed)
        chosen = (self.data.rows[int(place)] for place in places)
        return tuple(self.data.task.draw(row, random, self.data.vocabulary) for row in islice(chosen, EXAMPLES))

    @cached_property
    def sample(self) -> Sample:
        """The first that is short enough to be seen whole; else the beginning of the first."""
        row = next((row for row in self.rows if row.ids.size <= LONGEST), self.rows[0])
        decoder = None if row.decoder_ids is None else _whole(row.decoder_ids[:LONGEST])
        return Sample(_whole(row.ids[:LONGEST]), decoder)

    def outputs(self, model: Model, step: Callable[[], int]) -> Iterator[Output]:
        """The model's answers to one example after another, without end; each is made when it is asked for."""
        make = _MAKERS.get(self.data.task.name, _written_on)
        while True:
            for row in self.rows:
                yield make(model, row, step())


def _whole(ids: Host) -> Ids:
    return tuple(map(int, ids))


def _text(model: Model, ids: Ids) -> str:
    stream = TextStream(model)
    return "".join([*(stream.add(token) for token in ids), stream.end()]).strip()


def _words(model: Model, ids: Ids) -> str:
    return " ".join(map(model.word_label, ids))


def _written_on(model: Model, row: Row, step: int) -> Output:
    prompt = _whole(row.ids[: min(GIVEN, max(model.config.max_length - 1, 1))])
    made = written(model, prompt, (), WRITTEN)
    return Output(step, _text(model, prompt), _text(model, made), "", None)


def _translated(model: Model, row: Row, step: int) -> Output:
    """Output for a source: the text that is written for it, and the right one."""
    assert row.decoder_ids is not None  # noqa: S101 - pairs have two sequences
    right = _whole(row.decoder_ids[1:])
    made = written(model, (), _whole(row.ids), len(right) + 2)
    given, got, expected = (_text(model, ids) for ids in (_whole(row.ids), made, right))
    return Output(step, given, got, expected, made == right)


def written(model: Model, prompt: Ids, source: Ids, count: int) -> Ids:
    """The tokens that are most likely one after the other, up to the end word."""
    writer = Writer(model, Settings(greedy=True, max_new_tokens=count), source=source)
    *_, last = writer.run(writer.begin(prompt))
    return tuple(token for token in last.written if token not in writer.rules.stop_ids)


def _classified(model: Model, row: Row, step: int) -> Output:
    (made,), (right,) = _predicted(model, row)
    return Output(step, _text(model, _whole(row.ids)), model.word_label(made), model.word_label(right), made == right)


def _guessed(model: Model, row: Row, step: int) -> Output:
    made, right = _predicted(model, row)
    return Output(step, _words(model, _whole(row.ids)), _words(model, made), _words(model, right), made == right)


def _predicted(model: Model, row: Row) -> tuple[Ids, Ids]:
    """The most likely ID at every place that has a target, and the targets."""
    counted = np.flatnonzero(row.targets != NOT_COUNTED)
    trace = model.trace(ids=_whole(row.ids), budget=0)
    logits = trace.array(trace.program.logits)
    best = np.asarray(model.backend.to_host(logits))[0].argmax(axis=-1)
    return _whole(best[counted]), _whole(row.targets[counted])


_MAKERS: Mapping[str, Callable[[Model, Row, int], Output]] = {
    "pairs": _translated,
    "classify": _classified,
    "masked-word": _guessed,
}
