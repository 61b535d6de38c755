"""Toward words: `attribute`, what every part writes or token adds; `lens`, what the stream or a head spells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Edited, Featured, LossTargets, Metric, Position, TableFormat
from tui_transformer.cli.output import Row, Table
from tui_transformer.cli.session import open_session, unknown_words
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.cli.typer_layer import flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis import logit_lens
    from tui_transformer.analysis.input_attribution import InputAttribution
    from tui_transformer.engine.backend import Host
    from tui_transformer.session.session import Session

    Maps = Mapping[int, logit_lens.Affine]

    """A fitted map for every layer."""


INPUT = "embedding.output"
POINTS = 64


@dataclass(frozen=True, kw_only=True)
class Attribute(Featured):
    """Say what every head, layer and embedding writes toward a logit, or every token by gradients toward any metric.

    By terms (the default): the norms are frozen as they are in the forward pass; the terms sum to the logit, or to the
    difference of two. By gradient: gradient × input, or integrated gradients, whose sum is the metric less that of the
    baseline; the remainder is said.

    Example: tui-transformer attribute --model story --tokens Mira,the --by integrated
    """

    tokens: str | None = option(
        None,
        "A word or ID, by default the likeliest; of two, the difference of their logits. May be given again.",
        several=True,
        metavar="WORD[,WORD]",
    )
    by: Literal["terms", "gradient", "integrated"] = option(
        "terms", "Terms of the logit, gradient × input of every token, or integrated gradients."
    )
    metric: Metric = None
    targets: LossTargets = None
    of: str = option(INPUT, "By gradient: the input, a step with a row for each token.", metavar="STEP")
    baseline: str = option("0", "Integrated from 0, the mean of the rows, or those of a word.", metavar="0|mean|WORD")
    points: int = option(POINTS, "Of the integration.", min=1, max=10_000)
    position: Position = None
    neurons: bool = flag("Every neuron apart.")
    top: int | None = option(None, "So many of the largest terms alone.", min=1)
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.cli.metrics import positions_of

        if self.by == "terms" and self.of != INPUT:
            raise UsageError("--of is of --by gradient and integrated: terms are of the last residual stream")
        if self.by != "integrated" and (self.baseline, self.points) != ("0", POINTS):
            raise UsageError("--baseline and --points are of --by integrated")
        session = open_session(self)
        if self.by == "terms" and (self.metric is not None or self.targets is not None):
            raise UsageError("--metric and --targets are of --by gradient and integrated: terms are of a logit")
        if self.by != "terms" and self.neurons:
            raise UsageError("--neurons are terms: leave --by out")
        if not session.trace.program.logits:
            raise InputError("the model has no logits of words: attribution reads these")
        positions = positions_of(session, self.position)
        table = self._terms(session, positions) if self.by == "terms" else self._inputs(session, positions)
        table.emit(self.format)

    def _terms(self, session: Session, positions: range) -> Table:
        """A line a term, and the logit that they sum to."""
        from tui_transformer.analysis.attribution import attribute
        from tui_transformer.cli.metrics import token_ids

        if len(positions) > 1:
            raise UsageError("attribution reads one position: name it with --position")
        tokens = token_ids(session.model, self.tokens)
        if len(tokens) > 2:
            raise UsageError("--tokens takes a word, or two for the difference of their logits")
        tokens = tokens or (_likeliest(session, positions),)
        found = attribute(session.trace, *tokens, position=positions[0], neurons=self.neurons)
        rows: list[Row] = [(term.name, term.kind, term.number, term.value) for term in found.terms]
        word, other = (None if each is None else session.labels.word(each) for each in found.tokens)
        of = f"logit of {word}" if other is None else f"logit of {word} less that of {other}"
        note = f"{of} at position {found.position}: {found.logit:.4f} · {len(found.terms)} terms, norms frozen"
        note += f" · remainder {found.remainder:.1e}"
        return Table(("term", "kind", "number", "value"), self._largest(rows), 4, note)

    def _inputs(self, session: Session, positions: range) -> Table:
        """A line a token, and what they sum to."""
        from tui_transformer.analysis import input_attribution, metrics
        from tui_transformer.analysis.expert_load import expert_steps
        from tui_transformer.cli.metrics import chosen, said_of

        trace = session.trace
        metric = chosen(session, self) or metrics.Metric("logit", (_likeliest(session, positions),))
        found: InputAttribution
        if self.by == "gradient":
            found = input_attribution.gradient_times_input(trace, metric, positions, self.of)
        else:
            baseline = self._baseline(session)
            found = input_attribution.integrated_gradients(
                trace, metric, positions, self.of, baseline=baseline, points=self.points, report=show
            )
        label = session.labels.of(trace.program.axes(found.step)[-2])
        rows: list[Row] = [(row, label(row), float(value)) for row, value in enumerate(found.rows)]
        said, total = said_of(session, metric, positions), float(found.cells.sum())
        if found.baseline is None:
            note = f"{said}: {found.value:.4f} · input {found.step} · sum {total:.4f}, to first order"
            return Table(("position", "token", "gradient × input"), self._largest(rows), 4, note)
        note = f"{said}: {found.value:.4f}, of the baseline {found.baseline:.4f} · input {found.step}"
        note += f" · sum {total:.4f} · remainder {found.remainder:.1e}"
        if expert_steps(trace.program):
            note += " · with the jumps where a token goes to another expert, which no gradient sees"
        return Table(("position", "token", "integrated gradient"), self._largest(rows), 4, note)

    def _largest(self, rows: list[Row]) -> list[Row]:
        """The rows whose last value is the largest, where so many are asked for."""
        return rows if self.top is None else sorted(rows, key=lambda row: -abs(float(row[-1] or 0)))[: self.top]

    def _baseline(self, session: Session) -> float | Host:
        """0, the mean of the rows of the input, or the rows that a word has at every position."""
        import numpy as np

        from tui_transformer.analysis.input_attribution import mean_of_tokens
        from tui_transformer.analysis.tokens import WRITTEN
        from tui_transformer.cli.metrics import token_id, token_ids

        if self.baseline == "0":
            return 0.0
        trace = session.trace
        own = trace.program.step(self.of)
        if self.baseline == "mean":
            return mean_of_tokens(trace, own.name)
        ids, mask = (trace.givens[name][0].tolist() for name in ("input.ids", "input.visible"))
        written = trace.givens.get("decoder.input.ids")
        decoder_ids = None if written is None else written[0].tolist()
        if decoder_ids is not None and own.axes[0].sequence == WRITTEN:
            decoder_ids = [*token_ids(session.model, self.baseline)] * len(decoder_ids)
        else:
            word = token_id(session.model.vocabulary, session.model.config.vocab_size, self.baseline)
            ids, mask = [word] * len(ids), [1] * len(ids)
        other = session.model.trace(ids=ids, mask=mask, decoder_ids=decoder_ids)
        return np.asarray(other[own.name], np.float64)


def _likeliest(session: Session, positions: range) -> int:
    name = session.trace.program.logits
    width = session.trace.program.shape(name)[-1]
    return int(session.trace.window(name, (positions[:1], range(width)))[0].argmax())


# What is spelled


@dataclass(frozen=True, kw_only=True)
class Lens(Edited):
    """Show the logit lens: which words the residual stream spells after each layer, or every head raises.

    With --tuned FILE an affine map of each layer is fitted on the lines of a text file (tuned lens), and both are
    shown.

    Example: tui-transformer lens --model story --token 3 --top 3
    """

    layer: int | None = option(None, "Only this layer; -1 is what enters the first one.", min=-1)
    token: int | None = option(None, "Only this token, from 0.", min=0)
    by_head: bool = flag("What every head alone raises at the token, the norms frozen.")
    less_mean: bool = flag("By head: less what it writes on average over the tokens.")
    tuned: Path | None = option(None, "Beside it the tuned lens, fitted on the lines of a text file.", metavar="FILE")
    top: int = option(1, "How many words of each.", min=1)
    format: TableFormat = "text"

    def run(self) -> None:
        session = open_session(self)
        if self.less_mean and not self.by_head:
            raise UsageError("--less-mean is of --by-head")
        (self._of_heads(session) if self.by_head else self._of_layers(session)).emit(self.format)

    def _of_layers(self, session: Session) -> Table:
        from tui_transformer.analysis.logit_lens import lens_of

        lens = lens_of(session.trace.program)
        if self.token is not None and self.token >= lens.tokens:
            raise InputError(f"there is no token {self.token}: tokens are 0 to {lens.tokens - 1}")
        tokens = range(lens.tokens) if self.token is None else range(self.token, self.token + 1)
        depths = lens.behind(self.layer)
        columns: tuple[str, ...] = ("layer", "token", "of", "rank", "id", "word", "probability")
        note = f"what leaves each layer, through {' → '.join(step.name for step in lens.steps)}"
        if self.tuned is None:
            plain = [row for depth in depths for row in self._words(session, lens, depth, tokens)]
            return Table(columns, plain, 4, note)
        maps = self._fitted(session, self.tuned)
        lenses = lens, lens_of(session.trace.program, maps)
        rows: list[Row] = []
        for depth in depths:
            far = [each.divergences(session.trace, depth, tokens) for each in lenses]
            for one, other in zip(*(self._words(session, each, depth, tokens) for each in lenses), strict=True):
                at = int(one[1] or 0) - tokens.start
                rows.append((*one, *other[4:], *(float(each[at]) for each in far)))
        columns += ("tuned id", "tuned word", "tuned probability", "divergence", "tuned divergence")
        note += f" · {_said(session, self.tuned, lenses[1].tuned)} · divergences from the model's answer in nats"
        return Table(columns, rows, 4, note)

    def _words(self, session: Session, lens: logit_lens.Lens, depth: logit_lens.Depth, tokens: range) -> Iterator[Row]:
        from tui_transformer.analysis.logit_lens import words_at

        spelled = lens.spell(session.trace, depth, tokens, self.top)
        label = session.labels.of(lens.steps[-1].axes[0])
        layer = "embedding" if depth.layer < 0 else str(depth.layer)
        for token in tokens:
            for rank, (word, probability) in enumerate(words_at(spelled, token), 1):
                place = None if math.isnan(probability) else rank
                yield layer, token, label(token), place, word, session.labels.word(word), probability

    def _of_heads(self, session: Session) -> Table:
        """A line a word of every head, at one token: by default where the model answers."""
        from tui_transformer.analysis.effects import answer_positions
        from tui_transformer.analysis.head_lens import head_lens, writing_attentions
        from tui_transformer.cli.metrics import where

        trace = session.trace
        writing_attentions(trace.program)
        row = answer_positions(trace, folder=session.model.folder).start if self.token is None else self.token
        maps = None if self.tuned is None else self._fitted(session, self.tuned)
        writes = [
            list(head_lens(trace, row, layer=self.layer, less_mean=self.less_mean, tuned=each))
            for each in ([None] if maps is None else [None, maps])
        ]
        rows: list[Row] = []
        for of_head in zip(*writes, strict=True):
            first, words = of_head[0], [each.highest(self.top) for each in of_head]
            place = first.attention.group, first.attention.layer, first.head
            for rank, pairs in enumerate(zip(*words, strict=True), 1):
                cells = (cell for word, raised in pairs for cell in (word, session.labels.word(word), raised))
                rows.append((*place, rank, *cells))
        columns: tuple[str, ...] = ("attention", "layer", "head", "rank", "id", "word", "logit")
        of = "what every head writes" + (", less its mean over the tokens," if self.less_mean else "")
        note = f"{of} at {where(session, range(row, row + 1))}, norms frozen; logits less their mean over all words"
        if self.tuned is not None and maps is not None:
            columns += ("tuned id", "tuned word", "tuned logit")
            note += f" · {_said(session, self.tuned, maps)}"
        return Table(columns, rows, 4, note)

    def _fitted(self, session: Session, path: Path) -> Maps:
        from tui_transformer.analysis.logit_lens import fit_lens
        from tui_transformer.model.options import texts_of, traced

        model = session.model
        with cleared(), unknown_words(model, visible(str(path))) as listen:
            traces = traced(model, texts_of(path), listen)
            return fit_lens(traces, None if self.layer is None else [self.layer], show)


def _said(session: Session, path: Path, maps: Maps) -> str:
    if not maps:
        return "tuned: no map after the last layer"
    tokens = next(each.tokens for each in maps.values())
    from tui_transformer.session.edit_format import left_out

    return f"tuned: affine maps fitted on {tokens:,} tokens of {visible(str(path))}{left_out(session)}"
