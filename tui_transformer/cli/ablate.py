"""`ablate`: heads, layers, positions or neurons taken out: what each does to the answer, or what follows from some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_transformer.cli.options import Featured, LossTargets, Metric, Position, TableFormat, Tokens
from tui_transformer.cli.output import emit, emit_csv, emit_json
from tui_transformer.cli.session import open_session, unknown_words
from tui_transformer.cli.terminal import counted
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis.effects import Effect
    from tui_transformer.cli.metrics import Answer
    from tui_transformer.engine.backend import Host
    from tui_transformer.engine.targets import Target
    from tui_transformer.session.session import Session


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
        from tui_transformer.cli.metrics import Experiment, chosen, parse_positions
        from tui_transformer.engine.targets import parse

        if self.what and self.each:
            raise UsageError("give either WHAT or --each: one experiment, or a table of all")
        targets = [parse(text) for text in self.what or ()]
        session = open_session(self)
        positions = parse_positions(self.position, session.trace)
        if not targets:
            self._ranking(session, positions).emit(self.format)
            return
        program, means = session.trace.program, self._means(session, targets)
        edits = [edit for target in targets for edit in target.edits(program, mean=self.mean, means=means)]
        what = [f"{target} set to {self._set_to()}" for target in targets]
        Experiment.of(session, what, edits, positions, chosen(session, self)).emit(self.format)

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

    def _ranking(self, session: Session, positions: range | None) -> Ranking:
        from tui_transformer.analysis.effects import answer_positions, effects
        from tui_transformer.cli.metrics import answers, chosen, where
        from tui_transformer.engine.targets import every

        trace = session.trace
        targets = every(trace.program, self.each or "head")
        positions = answer_positions(trace, positions, folder=session.model.folder)
        metric, means = chosen(session, self), self._means(session, targets)
        measured = effects(trace, targets, mean=self.mean, means=means, positions=positions, metric=metric)
        ranked = sorted(counted(measured, targets), key=lambda pair: -pair[1].size)
        said = "" if metric is None else metric.said(session.labels.word)
        read = "every position" if metric is not None and metric.targets else where(session, positions)
        return Ranking(read, self._set_to(), said, list(answers(session, trace, positions)), ranked)


@dataclass(frozen=True)
class Ranking:
    """Targets with their effects, the largest first, and the answers before; the metric in words, "" for none."""

    where: str
    set_to: str
    metric: str
    answers: Sequence[Answer]
    effects: Sequence[tuple[Target, Effect]]

    def emit(self, form: str) -> None:
        """Write it in a format."""
        from tui_transformer.cli.metrics import effect_data

        if form == "text":
            emit(self._text())
        elif form == "json":
            data = {
                "mean": self.set_to != "0",
                "set to": self.set_to,
                **({"metric": self.metric} if self.metric else {}),
                "answers": [{"position": answer.position, "before": answer.data()} for answer in self.answers],
                "effects": [{"target": str(target), **effect_data(effect)} for target, effect in self.effects],
            }
            emit_json(data)
        else:
            names = tuple(effect_data(self.effects[0][1]))
            rows = ((str(target), *(getattr(effect, name) for name in names)) for target, effect in self.effects)
            emit_csv(("target", *names), rows)

    def _text(self) -> Iterator[str]:
        from tui_transformer.report.numbers import aligned

        yield f"each set to {self.set_to}, alone; the answer is read at {self.where}\n"
        if self.metric:
            effect = self.effects[0][1]
            yield f"{visible(self.metric)} {(effect.value or 0.0) - (effect.change or 0.0):.4g} as it is\n"
        elif len(self.answers) == 1:
            yield f"most likely: {' '.join(self.answers[0].said())}\n"
        yield "\n"
        yield from aligned([self._columns(), *(_row(target, effect) for target, effect in self.effects)])

    def _columns(self) -> tuple[str, ...]:
        if self.metric:
            return "ablated", visible(self.metric), "change"
        if not self.answers:
            return "ablated", "relative change"
        likely = self.answers[0].said()[0] if len(self.answers) == 1 else "most likely"
        return "ablated", f"change of ln p({likely})", "divergence (nats)"


def _row(target: Target, effect: Effect) -> tuple[str, ...]:
    if effect.relative is not None:
        return str(target), f"{effect.relative:.4g}"
    if effect.value is not None:
        return str(target), f"{effect.value:.4g}", f"{effect.change:+.4g}"
    return str(target), f"{effect.change:+.4g}", f"{effect.divergence:.4g}"
