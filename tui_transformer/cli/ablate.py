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
