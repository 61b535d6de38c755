"""`attribute`: what every head, layer and embedding writes toward a logit, or every input token adds to a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Featured, LossTargets, Metric, Position, TableFormat
from tui_transformer.cli.output import Row, Table
from tui_transformer.cli.session import open_session
from tui_transformer.cli.terminal import show
from tui_transformer.cli.typer_layer import flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.analysis.input_attribution import InputAttribution
    from tui_transformer.engine.backend import Host
    from tui_transformer.session.session import Session

JUMPS = "with the jumps where a token goes to another expert, which no gradient sees"
"""Said of the remainder where a model has experts."""


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
    of: str = option("embedding.output", "By gradient: the input, a step with a row for each token.", metavar="STEP")
    baseline: str = option("0", "Integrated from 0, the mean of the rows, or those of a word.", metavar="0|mean|WORD")
    points: int = option(64, "Of the integration.", min=1, max=10_000)
    position: Position = None
    neurons: bool = flag("Every neuron apart.")
    top: int | None = option(None, "So many of the largest terms alone.", min=1)
    format: TableFormat = "text"

    def run(self) -> None:
        session = open_session(self)
        table = self._terms(session) if self.by == "terms" else self._inputs(session)
        table.emit(self.format)

    def _terms(self, session: Session) -> Table:
        """A line a term, and the logit that they sum to."""
        from tui_transformer.analysis.attribution import attribute
        from tui_transformer.cli.metrics import positions_of, token_ids
        from tui_transformer.engine.gradient import LOGITS

        if self.metric is not None or self.targets is not None:
            raise UsageError("--metric and --targets are of --by gradient and integrated: terms are of a logit")
        if LOGITS not in session.trace.program.by_name:
            raise InputError("the model has no logits of words: attribution reads these")
        positions = positions_of(session, self.position)
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
        parts = (
            f"{of} at position {found.position}: {found.logit:.4f}",
            f"{len(found.terms)} terms, norms frozen",
            f"remainder {found.remainder:.1e}",
        )
        return Table(("term", "kind", "number", "value"), self._largest(rows), 4, " · ".join(parts))

    def _inputs(self, session: Session) -> Table:
        """A line a token, and what they sum to."""
        from tui_transformer.analysis import input_attribution, metrics
        from tui_transformer.analysis.expert_load import expert_steps
        from tui_transformer.cli.metrics import chosen, positions_of, said_of

        if self.neurons:
            raise UsageError("--neurons are terms: leave --by out")
        trace = session.trace
        if not trace.program.logits:
            raise InputError("the model has no logits of words: attribution reads these")
        positions = positions_of(session, self.position)
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
        parts = (
            f"{said}: {found.value:.4f}, of the baseline {found.baseline:.4f}",
            f"input {found.step}",
            f"sum {total:.4f}",
            f"remainder {found.remainder:.1e}",
            *([JUMPS] if expert_steps(trace.program) else []),
        )
        return Table(("position", "token", "integrated gradient"), self._largest(rows), 4, " · ".join(parts))

    def _largest(self, rows: list[Row]) -> list[Row]:
        """The rows whose last value is the largest, where so many are asked for."""
        return rows if self.top is None else sorted(rows, key=lambda row: -abs(float(row[-1] or 0)))[: self.top]

    def _baseline(self, session: Session) -> float | Host:
        """0, the mean of the rows of the input, or the rows that a word has at every position."""
        import numpy as np

        from tui_transformer.cli.metrics import read_id

        if self.baseline == "0":
            return 0.0
        trace = session.trace
        own = trace.program.step(self.of).name
        if self.baseline == "mean":
            rows: Host = np.asarray(trace[own], np.float64).reshape(-1, trace.program.shape(own)[-1]).mean(axis=0)
            return rows
        ids = [read_id(session.model, self.baseline)] * trace.givens["input.ids"].shape[1]
        written = trace.givens.get("decoder.input.ids")
        decoder_ids = None if written is None else written.tolist()
        other = session.model.trace(ids=ids, mask=[1] * len(ids), decoder_ids=decoder_ids)
        return np.asarray(other[own], np.float64)


def _likeliest(session: Session, positions: range) -> int:
    name = session.trace.program.logits
    width = session.trace.program.shape(name)[-1]
    return int(session.trace.window(name, (positions[:1], range(width)))[0].argmax())
