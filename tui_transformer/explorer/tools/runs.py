"""What is shown of a training run: its log, an example that is looked at, what the model makes of others, one head."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import following
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.files import expanded, is_file, meant, open_text
from tui_transformer.generation.rules import Ids
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.text import TextStream
from tui_transformer.generation.writing import Writer
from tui_transformer.learning.data import Data
from tui_transformer.learning.log import LOGS
from tui_transformer.learning.loop import Trainer
from tui_transformer.learning.run import runs_in
from tui_transformer.learning.tasks import Row
from tui_transformer.model import Model
from tui_transformer.model.options import PLAIN
from tui_transformer.records import dataclass, replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import Labels, Place
from tui_transformer.views.view import Axis, Scale, Tile, View, window_of

# Where runs are


RUNS = Path("runs")
"""Where runs are put that nobody named another folder for."""


def path_of(text: str) -> Path:
    """A path as a person writes it, whole."""
    return expanded(text.strip()).absolute()


def runs_here() -> list[str]:
    """The runs of the usual folder that have checkpoints, the one that was saved last first."""
    return [str(RUNS / path.name) for path in runs_in(meant(RUNS))]


# The log of a run: what is broken in it is left out, as a run goes on, and is looked at, without


LONGEST_LINE = 1 << 16
"""Characters of a line, at most."""

LAST = 1 << 53
"""No step is later: below it floats hold every whole number."""


def logged(folder: Path) -> Iterator[Mapping[str, float]]:
    """The lines of a run's log by column, numbers only, each with its step; nothing where there is none."""
    path = next((folder / name for name in LOGS if is_file(folder / name)), None)
    if path is None:
        return
    with suppress(InputError, OSError, UnicodeDecodeError, csv.Error), open_text(path) as file:
        lines = iter(lambda: file.readline(LONGEST_LINE), "")
        rows = csv.DictReader(lines) if path.suffix == ".csv" else _objects(lines)
        for row in rows:
            numbers = {}
            for name, value in row.items():
                with suppress(TypeError, ValueError, OverflowError):
                    numbers[str(name)] = float(value)
            step = numbers.get("step", math.nan)
            if 0 <= step < LAST and step.is_integer():
                yield numbers


def _objects(lines: Iterator[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        with suppress(ValueError, RecursionError):  # the last line of a run that was killed may be cut
            row = json.loads(line)  # a line that is not JSON is left out, not said
            if isinstance(row, dict):
                yield row


# An example, and the attention of all heads on it


LONGEST = 24
"""Tokens of an example whose attention is shown; of a longer one the first ones."""

WEIGHT = Scale("sequential", 0.0, 1.0)


@dataclass(frozen=True)
class Sample:
    """Token IDs of an example; `decoder_ids` where a decoder reads beside an encoder."""

    ids: Ids
    decoder_ids: Ids | None = None


@dataclass(frozen=True, eq=False)
class Heads:
    """The attention of every head on a sample after so many steps."""

    step: int
    sample: Sample
    weights: Mapping[str, Host]
    attentions: tuple[Attention, ...]
    labels: Labels

    def draw(self, pane: MatrixPane, attention: Attention, head: int) -> None:
        """Show a head, large."""
        values, name, axes = self.weights[attention.name][head], attention.name, (attention.queries, attention.keys)
        rows, columns = (Axis(axis.name, axis.size, self.labels.of(axis), axis.sequence) for axis in axes)
        view = View(name, name, rows, columns, "sequential", window_of(values), head=head, heads=attention.heads)
        pane.show_matrix(view, WEIGHT, Tile(0, 0, values), Place(), note="rows queries, columns keys")


def heads_of(model: Model, sample: Sample, step: int) -> Heads:
    """Run a sample through a model, and take the attention of all its heads."""
    decoder: Any = sample.decoder_ids
    trace = model.trace(ids=sample.ids, decoder_ids=decoder)
    steps = attentions(trace.program)
    arrays = trace.arrays([each.name for each in steps])
    weights = {each.name: np.array(model.backend.to_host(array)[0]) for each, array in zip(steps, arrays, strict=True)}
    words = {"tokens": tuple(map(model.word_label, sample.ids))}
    if sample.decoder_ids is not None:
        words["decoder tokens"] = tuple(map(model.target_label, sample.decoder_ids))
    return Heads(step, sample, weights, steps, Labels(words))


CROSS = "cross_attention"

Turned = Literal["head", "layer", "kind"]


@dataclass(frozen=True)
class HeadSelection:
    """The head that is looked at; group "" is the cross-attention where there is one, else the first kind."""

    group: str = ""
    layer: int = 0
    head: int = 0

    def of(self, known: Sequence[Attention]) -> tuple[Attention, int]:
        """The attention and the head of it, as far as there are as many."""
        layers = self._layers(known)
        attention = layers[self.layer % len(layers)]
        return attention, self.head % attention.heads

    def turned(self, known: Sequence[Attention], what: Turned, by: int) -> HeadSelection:
        """So many heads, layers or kinds of attention further; a kind begins at its first layer."""
        if what == "head":
            attention, head = self.of(known)
            return replace(self, head=(head + by) % attention.heads)
        layers = self._layers(known)
        if what == "layer":
            return replace(self, layer=(self.layer + by) % len(layers))
        groups = list(dict.fromkeys(each.group for each in known))
        return HeadSelection(following(groups, layers[0].group, by), 0, self.head)

    def _layers(self, known: Sequence[Attention]) -> list[Attention]:
        wanted = [each.group for each in known if each.group == self.group]
        group = next(iter(wanted), next((each.group for each in known if each.kind == CROSS), known[0].group))
        return [each for each in known if each.group == group]


def session_of(session: Session, model: Model, sample: Sample) -> Session:
    """The session to explore, with this model on the sample.

    Raises:
        InputError: The model cannot read it.
    """
    alone = replace(session, framing=PLAIN, batch=(), item=0, pair=None, mask=None, breaks=(), edits=())
    alone = replace(alone, targets=None, measure=None, overlay=NOTHING)
    ids, decoder_ids = sample.ids, sample.decoder_ids
    changed = replace(alone, model=model, text="", ids=ids, decoder_text="", decoder_ids=decoder_ids)
    _ = changed.trace
    return changed


def show_in(port: Port, session: Session, heads: Heads | None, selection: HeadSelection) -> None:
    """Explore a session at a head; undo comes back to what was explored before."""
    at = None
    if heads is not None and heads.attentions:
        attention, head = selection.of(heads.attentions)
        at = Position(attention.name, Place(head))
    port.change(session, at)


# What a model makes of examples


GIVEN, WRITTEN = 12, 30
"""Tokens of a text that is written on from, and tokens that are written."""


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
        learned, held_out = self.data.parts
        places = held_out if len(held_out) else learned
        random = np.random.default_rng(self.data.settings.seed)
        chosen = (self.data.rows[int(place)] for place in places)
        return tuple(self.data.task.draw(row, random, self.data.vocabulary) for row in islice(chosen, 12))

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


def written(model: Model, prompt: Ids, source: Ids, count: int) -> Ids:
    """The tokens that are most likely one after the other, up to the end word."""
    writer = Writer(model, Settings(greedy=True, max_new_tokens=count), source=source)
    *_, last = writer.run(writer.begin(prompt))
    return tuple(token for token in last.written if token not in writer.rules.stop_ids)


def _whole(ids: Host) -> Ids:
    return tuple(map(int, ids))


def _text(model: Model, ids: Ids) -> str:
    stream = TextStream(model)
    return "".join([*(stream.add(token) for token in ids), stream.end()]).strip()


def _written_on(model: Model, row: Row, step: int) -> Output:
    prompt = _whole(row.ids[: min(GIVEN, max(model.config.max_length - 1, 1))])
    made = written(model, prompt, (), WRITTEN)
    return Output(step, _text(model, prompt), _text(model, made), "", None)


def _translated(model: Model, row: Row, step: int) -> Output:
    assert row.decoder_ids is not None  # noqa: S101 - pairs have two sequences
    right = _whole(row.decoder_ids[1:])
    made = written(model, (), _whole(row.ids), len(right) + 2)
    given, got, expected = (_text(model, ids) for ids in (_whole(row.ids), made, right))
    return Output(step, given, got, expected, made == right)


def _predicted(model: Model, row: Row, step: int, *, in_words: bool) -> Output:
    """The most likely word at every place that has a target, and the targets; what was read as text or in words."""
    counted = np.flatnonzero(row.targets != NOT_COUNTED)
    trace = model.trace(ids=_whole(row.ids), budget=0)
    best = np.asarray(model.backend.to_host(trace.array(trace.program.logits)))[0].argmax(axis=-1)
    read, made, right = _whole(row.ids), _whole(best[counted]), _whole(row.targets[counted])
    given, got, expected = (" ".join(map(model.word_label, ids)) for ids in (read, made, right))
    return Output(step, given if in_words else _text(model, read), got, expected, made == right)


_MAKERS: Mapping[str, Callable[[Model, Row, int], Output]] = {
    "pairs": _translated,
    "classify": partial(_predicted, in_words=False),
    "masked-word": partial(_predicted, in_words=True),
}


# Both, while a model learns


class Snapshots:
    """The attention of the heads and outputs for examples, the newest first, each in turn when there is time for it."""

    def __init__(self, trainer: Trainer) -> None:
        self.examples = Examples(trainer.data)
        self.heads: Heads | None = None
        self.outputs: tuple[Output, ...] = ()
        self._trainer, self._spent, self._earned = trainer, 0.0, 0.0
        self._made = self.examples.outputs(trainer.model, lambda: trainer.step)
        self._turn = cycle((self._take_heads, self._take_output))

    def after(self, seconds: float) -> None:
        """Make one, if the time that was spent on training allows it."""
        self._earned += 0.01 * seconds  # of the time of training, what snapshots may take
        if self._spent <= self._earned:
            started = time.perf_counter()
            next(self._turn)()
            self._spent += time.perf_counter() - started

    def now(self) -> None:
        """Make both of the model as it is, if it has changed since."""
        if self.heads is None or self.heads.step != self._trainer.step:
            self._take_heads()
        if not self.outputs or self.outputs[0].step != self._trainer.step:
            self._take_output()

    def _take_heads(self) -> None:
        self.heads = heads_of(self._trainer.model, self.examples.sample, self._trainer.step)

    def _take_output(self) -> None:
        self.outputs = (next(self._made), *self.outputs)[:60]
