"""Interventions: `ablate`, heads, layers, positions or neurons taken out; `patch`, the values of another sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Featured, LossTargets, Metric, Position, TableFormat, Tokens, parse_ids, steps
from tui_transformer.cli.output import Row, Table, emit, emit_csv, emit_json, emit_view
from tui_transformer.cli.session import edits_of, open_session, read, unknown_words
from tui_transformer.cli.terminal import cleared, counted, show
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis import metrics, patching
    from tui_transformer.analysis.effects import Effect
    from tui_transformer.cli.metrics import Answer
    from tui_transformer.engine.backend import Host
    from tui_transformer.engine.targets import Target
    from tui_transformer.engine.trace import Trace
    from tui_transformer.session.session import Session
    from tui_transformer.views.view import View


@dataclass(frozen=True, kw_only=True)
class Ablate(Featured):
    """Take out heads, layers, positions or neurons: what each does to the answer, or what changes without some.

    Without WHAT every head is ablated alone, and the table is sorted by the effect on the output, or on a metric.

    Example: tui-transformer ablate --model story --tokens Mira,the
    """

    what: list[str] | None = argument(
        "head:SUBLAYER:NUMBER, layer:LAYER, position:NUMBER, position:LAYER:NUMBER or neuron:SUBLAYER:NUMBER.",
        default=None,
        metavar="[WHAT]…",
    )
    each: str | None = option(
        None, "Without WHAT: head (the default), layer, position, neuron:SUBLAYER.", metavar="KIND"
    )
    mean: bool = flag("Set to the mean over the positions instead of 0.")
    mean_of: Path | None = option(None, "Set to the mean over the tokens of all lines of a text file.", metavar="FILE")
    metric: Metric = None
    tokens: Tokens = None
    targets: LossTargets = None
    position: Position = None
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.cli.metrics import emit_experiment
        from tui_transformer.engine.targets import parse

        if self.what and self.each:
            raise UsageError("give either WHAT or --each: one experiment, or a table of all")
        targets = [parse(text) for text in self.what or ()]
        session = open_session(self)
        if not targets:
            self._rank(session)
            return
        program, means = session.trace.program, self._means(session, targets)
        edits = [edit for target in targets for edit in target.edits(program, mean=self.mean, means=means)]
        what = [f"{target} set to {self._set_to()}" for target in targets]
        emit_experiment(session, what, edits, self, self.format)

    def _set_to(self) -> str:
        if self.mean_of is not None:
            return f"its mean over {visible(str(self.mean_of))}"
        return "its mean over the positions" if self.mean else "0"

    def _means(self, session: Session, targets: Sequence[Target]) -> Mapping[str, Host] | None:
        if self.mean_of is None:
            return None
        if self.mean:
            raise UsageError("give either --mean or --mean-of: over the positions, or over a file")
        from tui_transformer.session.edit_values import of_texts

        program = session.trace.program
        names = dict.fromkeys(name for target in targets for name in target.steps(program))
        with unknown_words(session.model, visible(str(self.mean_of))) as listen:
            return of_texts(session.model, self.mean_of, list(names), listen)

    def _rank(self, session: Session) -> None:
        """Write every target with the effect of ablating it alone, the largest first."""
        from tui_transformer.analysis.effects import answer_step, by_size, effects
        from tui_transformer.cli.metrics import answers, chosen, effect_data, positions_of, where
        from tui_transformer.engine.targets import every

        trace = session.trace
        targets = every(trace.program, self.each or "head")
        positions = positions_of(session, self.position)
        metric, means = chosen(session, self), self._means(session, targets)
        measured = effects(trace, targets, mean=self.mean, means=means, positions=positions, metric=metric)
        ranked = sorted(counted(measured, targets), key=lambda pair: by_size(pair[1]))
        if self.format == "csv":
            names = tuple(effect_data(ranked[0][1]))
            rows = ((str(target), *(getattr(effect, name) for name in names)) for target, effect in ranked)
            emit_csv(("target", *names), rows)
            return
        said = "" if metric is None else metric.said(session.labels.word)
        likely = list(answers(session, trace, positions))
        if self.format == "text":
            read = "every position" if metric is not None and metric.targets else where(session, positions)
            read = f"{'the answer' if likely or said else answer_step(trace)} is read at {read}"
            emit([f"each set to {self._set_to()}, alone; {read}\n"])
            emit(_ranking(ranked, said, likely))
            return
        data = {
            "mean": self._set_to() != "0",
            "set to": self._set_to(),
            **({"metric": said} if said else {}),
            "answers": [{"position": answer.position, "before": answer.data()} for answer in likely],
            "effects": [{"target": str(target), **effect_data(effect)} for target, effect in ranked],
        }
        emit_json(data)


def _ranking(ranked: Sequence[tuple[Target, Effect]], metric: str, answers: Sequence[Answer]) -> Iterator[str]:
    """Targets with their effects, and the answer, or the metric that was chosen ("" for none), before."""
    from tui_transformer.report.numbers import aligned

    columns: tuple[str, ...] = ("ablated", "relative change")
    if metric:
        effect = ranked[0][1]
        yield f"{visible(metric)} {(effect.value or 0.0) - (effect.change or 0.0):.4g} as it is\n"
        columns = "ablated", visible(metric), "change"
    elif answers:
        likely = "most likely"
        if len(answers) == 1:
            likely, share = answers[0].said()
            yield f"most likely: {likely} {share}\n"
        columns = "ablated", f"change of ln p({likely})", "divergence (nats)"
    yield "\n"
    yield from aligned([columns, *(_row(target, effect) for target, effect in ranked)])


def _row(target: Target, effect: Effect) -> tuple[str, ...]:
    if effect.relative is not None:
        return str(target), f"{effect.relative:.4g}"
    if effect.value is not None:
        return str(target), f"{effect.value:.4g}", f"{effect.change:+.4g}"
    return str(target), f"{effect.change:+.4g}", f"{effect.divergence:.4g}"


# Values of another sentence


@dataclass(frozen=True, kw_only=True)
class Patch(Featured):
    """Give a step the values that it has for another sentence, and show what changes; with --each, a table of all
    places; with --senders or --receivers, of paths.

    A path is patched alone: a receiver has what it becomes where a sender has the other sentence's values and reaches
    it through the residual stream, with all other heads and feed-forward layers as they are.

    Example: tui-transformer patch weights --ids 6,7,8 --from-ids 9,7,8
    """

    step: str | None = argument("A step; not of a table.", default=None, metavar="STEP", autocompletion=steps)
    each: Literal["position", "head", "layer"] | None = option(
        None, "Every position behind every layer, every head, or every layer, each patched alone."
    )
    of: str | None = option(
        None, "With --each: encoder, decoder or cross; by default the last that there is.", metavar="KIND"
    )
    senders: str | None = option(
        None,
        "Of paths: embedding, head, feed_forward, of one place or one head; A+B are patched together. By default all. "
        "May be given again.",
        several=True,
        metavar="KIND[:PLACE[:HEAD]],…",
    )
    receivers: str | None = option(
        None,
        "Of paths: query, key, value, feed_forward or logits, in the same way; by default logits. May be given again.",
        several=True,
        metavar="KIND[:PLACE[:HEAD]],…",
    )
    by: Literal["both", "patching", "gradient"] = option(
        "both", "Of paths: patched, estimated by gradient × difference, which is quick, or both, side by side."
    )
    top: int | None = option(None, "Of paths: so many of the largest changes alone.", min=1)
    metric: Metric = None
    tokens: Tokens = None
    targets: LossTargets = None
    from_text: str | None = option(None, "The sentence that the values come from.", metavar="SENTENCE")
    from_ids: str | None = option(None, "Its token IDs instead; may be given again.", several=True, metavar="4,5,6")
    rows: str | None = option(None, "Only these rows; may be given again.", several=True, metavar="3,5")
    head: str | None = option(None, "Only these heads; may be given again.", several=True, metavar="0,2")
    position: Position = None
    format: Literal["text", "json", "csv", "svg"] = option("text", "How to write it; svg of tables alone.")

    def run(self) -> None:
        if (self.from_text is None) == (self.from_ids is None):
            raise UsageError("give either --from-text or --from-ids: the sentence that the values come from")
        of_paths = self.senders is not None or self.receivers is not None
        if not of_paths and (self.by != "both" or self.top is not None):
            raise UsageError("--by and --top are of paths: name --senders or --receivers")
        if of_paths and (self.each, self.of, self.step, self.rows, self.head) != (None,) * 5:
            raise UsageError("--senders and --receivers name paths: leave out STEP, --each, --of, --rows and --head")
        session = open_session(self)
        if of_paths:
            self._paths(session, self._other(session))
            return
        if self.each is not None:
            self._table(session, self._other(session), self.each)
            return
        if self.of is not None:
            raise UsageError("--of is of --each: name the step itself")
        if self.step is None:
            raise UsageError("name a step, or a table with --each position, head or layer, or of paths with --senders")
        if self.format == "svg":
            raise UsageError("svg is a format of tables: use text, json or csv")
        self._step(session, self.step)

    def _step(self, session: Session, step: str) -> None:
        from tui_transformer.cli.metrics import emit_experiment
        from tui_transformer.engine import edits
        from tui_transformer.engine.names import find

        trace = session.trace
        names = find((*trace.program.names, *trace.program.weights), step)
        if len(names) > 1:
            raise UsageError(f"{len(names)} steps match {step!r}: write the whole name of one")
        other = self._other(session)
        patches = [
            edits.Patch.between(trace, other, names[0], rows, heads)
            for rows in _runs(self.rows, "--rows")
            for heads in _runs(self.head, "--head")
        ]
        parts = (("rows", self.rows), ("heads", self.head))
        part = "".join(f", {name} {given}" for name, given in parts if given is not None)
        what = [f"{names[0]}{part} from {self.from_text or self.from_ids}"]
        emit_experiment(session, what, patches, self, self.format)

    def _other(self, session: Session) -> Trace:
        """The other sentence, framed, paired and masked alike, with the same edits and what a decoder has written."""
        from tui_transformer.model.options import Reading
        from tui_transformer.session.open_session import session_of

        ids = None if self.from_ids is None else parse_ids(self.from_ids, "--from-ids")
        pair = None if self.from_text is None else session.pair
        reading = Reading(self.from_text, ids, pair=pair, decoder_ids=session.decoder_ids)
        reading = replace(reading, decoder_text=session.decoder_text or None)
        other = session_of(session.model, reading, self.options())
        mask = self.token_mask()
        if mask is not None and len(mask) == len(other.encoding.ids):  # that of other tokens says nothing of these
            other = replace(other, mask=mask)
        if self.from_text is not None:
            read(other.model, other.encoding, "the other sentence", other.framed.length(0))
        return other.base.edited(edits_of(self, other.model, other.base.program))

    def _table(self, session: Session, other: Trace, each: patching.PlaceKind) -> None:
        """Every place patched alone, and the metric with it."""
        from tui_transformer.analysis import metrics
        from tui_transformer.analysis.patching import sweep, table_of
        from tui_transformer.cli.metrics import chosen, positions_of, said_of

        if self.step is not None or self.rows is not None or self.head is not None:
            raise UsageError("--each names the places itself: leave out STEP, --rows and --head")
        trace = session.trace
        table = table_of(trace.program, each, self.of or "")
        metric = chosen(session, self) or metrics.Metric("divergence")
        positions = positions_of(session, self.position)
        names = (f"{place.step} {place.column}" for place in table.places)
        effects = list(counted(sweep(trace, other, table, metric, positions), names))
        own, others = (metric.measure(of, trace, positions) for of in (trace, other))
        if self.format == "svg":
            emit_view(_view(session, table, effects, metric), "svg")
            return
        note = f"{said_of(session, metric, positions)}: {own:.4g} as it is, {others:.4g} of the other sentence"
        columns = ("step", "layer", table.columns, "token", metric.name, "share of the way")
        way, rows = others - own, list[Row]()
        for patched in effects:
            step, column = patched.place.step, patched.place.column
            token = _label(session, table, step, column) if table.columns == "position" else None
            share = (patched.value - own) / way if way else math.nan
            rows.append((step, _layer(patched.place.row), column, token, patched.value, share))
        Table(columns, rows, 4, note).emit(self.format)

    def _paths(self, session: Session, other: Trace) -> None:
        """Every path patched alone, and the estimate of it."""
        from tui_transformer.analysis.nodes import SENDERS
        from tui_transformer.analysis.paths import DIVERGENCE, paths
        from tui_transformer.cli.metrics import chosen, positions_of, said_of

        trace, metric = session.trace, chosen(session, self) or DIVERGENCE
        positions = positions_of(session, self.position)
        senders, receivers = _nodes(self.senders) or tuple(SENDERS), _nodes(self.receivers) or "logits"
        ways = (self.by,) if self.by != "both" else ("patching", *(("gradient",) if metric != DIVERGENCE else ()))
        measured = partial(paths, trace, other, senders, receivers, metric, positions=positions, report=show)
        with cleared():
            found = [measured(by=by) for by in ways]
        if self.format == "svg":
            from tui_transformer.views.step_view import path_view

            first = found[0]
            view = path_view(first.senders, first.receivers, first.changes, first.by, metric.name)
            emit_view(view, "svg")
            return
        changes = zip(*([row["change"] for row in each.rows()] for each in found), strict=True)
        rows: list[Row] = [
            (row["sender"], row["receiver"], *own, row["share"])
            for row, own in zip(found[0].rows(), changes, strict=True)
        ]
        if self.top is not None:
            rows = sorted(rows, key=lambda row: -abs(float(row[2] or 0)))[: self.top]
        parts = (
            f"{said_of(session, metric, positions)}: {found[0].own:.4g} as it is",
            f"{found[0].other:.4g} of the other sentence",
            *(["no estimate: it is from the sentence itself, where its gradient is 0"] if metric == DIVERGENCE else []),
        )
        of_way = {"patching": "change", "gradient": "estimate"}
        columns = ("sender", "receiver", *(of_way[each.by] for each in found), "share of the way")
        Table(columns, rows, 4, ", ".join(parts)).emit(self.format)


def _nodes(text: str | None) -> list[str | list[str]]:
    """Names with commas between them; those with a plus between them are patched together."""
    names = [] if text is None else [name.split("+") for name in text.split(",")]
    return [name[0].strip() if len(name) == 1 else [each.strip() for each in name] for name in names]


def _runs(text: str | None, option: str) -> Sequence[range | None]:
    """Numbers as runs of neighbours; one None where all are meant."""
    if text is None:
        return (None,)
    if not re.fullmatch(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*", text):
        raise UsageError(f"{option}: {text[:40]!r} are no numbers from 0: write them as 3 or 3,5")
    numbers = sorted(set(map(int, text.split(","))))
    starts = [number for number in numbers if number - 1 not in numbers]
    stops = [number + 1 for number in numbers if number + 1 not in numbers]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _layer(row: int) -> str:
    return "embedding" if row < 0 else str(row)


def _label(session: Session, table: patching.Table, step: str, column: int) -> str:
    if table.columns != "position":
        return str(column)
    return session.labels.of(session.trace.program.axes(step)[-2])(column)


def _view(
    session: Session, table: patching.Table, effects: Sequence[patching.Measured], metric: metrics.Metric
) -> View:
    """Layers × positions or heads, as a heat map."""
    import numpy as np

    from tui_transformer.views.view import Axis, View, window_of

    rows = sorted({each.place.row for each in effects})
    columns = range(1 + max(each.place.column for each in effects))
    values = np.full((len(rows), len(columns)), np.nan)
    for each in effects:
        values[rows.index(each.place.row), each.place.column] = each.value
    step = effects[-1].place.step
    return View(
        f"patch each {table.columns}",
        f"{metric.name} with each {table.columns} patched",
        Axis(table.rows, len(rows), lambda i: _layer(rows[i])),
        Axis(table.columns, len(columns), lambda i: _label(session, table, step, i)),
        "diverging" if np.nanmin(values) < 0 else "sequential",
        window_of(values),
    )
