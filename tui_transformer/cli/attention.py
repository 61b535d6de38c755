"""Attention: measures of every head, the largest weights, rollout, and what the experts of a mixture got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Edited, HideFirst, HideSpecial, Layer, Of, TableFormat
from tui_transformer.cli.output import Row, Table, by_size, emit_view
from tui_transformer.cli.session import open_session
from tui_transformer.cli.typer_layer import flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.analysis.attentions import Attention
    from tui_transformer.analysis.expert_load import ExpertLoad
    from tui_transformer.engine.program import Step
    from tui_transformer.session.session import Session


@dataclass(frozen=True, kw_only=True)
class Heads(Edited):
    """Measure every head: entropy, and attention to the previous token, the first, itself and separators.

    A measure is the mean over the real tokens; – where a head has none.

    Example: tui-transformer heads --model copy --sort induction
    """

    of: Of = None
    layer: Layer = None
    sort: str | None = option(None, "entropy, previous, first, itself, separators or induction.", metavar="MEASURE")
    reverse: bool = flag("The lowest first, or the last layer first.")
    hide_special: HideSpecial = False
    hide_first: HideFirst = False
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.attentions import Reader
        from tui_transformer.analysis.head_measures import head_measures, left_out
        from tui_transformer.analysis.measures import HEAD_MEASURES
        from tui_transformer.analysis.tokens import Hidden

        measures = tuple(measure.name for measure in HEAD_MEASURES)
        if self.sort not in (None, *measures):
            raise UsageError(f"--sort {(self.sort or '')[:40]!r} is no measure: use {', '.join(measures)}")
        session = open_session(self)
        hidden = Hidden(self.hide_special, self.hide_first)
        steps = _steps(session, self.of, self.layer)
        layers = list(head_measures(session.trace, steps, Reader(session.model.vocabulary, hidden)))
        rows: list[Row] = [
            (each.attention.layer, head, *(each.values[measure][head] for measure in measures))
            for each in layers
            for head in range(each.attention.heads)
        ]
        if self.sort is not None:
            at, sign = 2 + measures.index(self.sort), 1 if self.reverse else -1
            rows.sort(key=lambda row: by_size(row[at], sign))
        elif self.reverse:
            rows.reverse()
        first = layers[0]
        which = (
            f"{first.queries:,} of {first.real:,} queries, evenly spaced"
            if first.sampled
            else f"{first.real:,} queries"
        )
        entropy = f"entropy in bits{left_out(first)}, the rest shares of attention"
        note = " · ".join(filter(None, (first.attention.group, f"mean over {which}", entropy, hidden.text)))
        Table(("layer", "head", *measures), rows, note=note).emit(self.format)


@dataclass(frozen=True, kw_only=True)
class Links(Edited):
    """List the largest attention weights: which token looks at which, in which head.

    Example: tui-transformer links --model copy --head 1 --top 5
    """

    of: Of = None
    layer: Layer = None
    head: int | None = option(None, "Only this head, from 0.")
    top: int = option(20, "How many.", min=1)
    itself: bool = flag("With links from a token to itself, or without.", default=True)
    hide_special: HideSpecial = False
    hide_first: HideFirst = False
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.attentions import Reader
        from tui_transformer.analysis.rollout import Wanted, links
        from tui_transformer.analysis.tokens import Hidden

        session = open_session(self)
        steps = _steps(session, self.of, self.layer)
        heads = steps[0].heads
        if self.head is not None and not 0 <= self.head < heads:
            raise InputError(f"there is no head {self.head}: heads are 0 to {heads - 1}")
        hidden = Hidden(self.hide_special, self.hide_first)
        reader = Reader(session.model.vocabulary, hidden)
        *_, strongest = links(session.trace, steps, reader, Wanted(self.top, self.head, self.itself))
        by_name = {step.name: step for step in steps}
        rows: list[Row] = []
        for link in strongest:
            who = session.labels.of(by_name[link.step].queries)(link.query)
            whom = session.labels.of(by_name[link.step].keys)(link.key)
            rows.append((link.weight, link.layer, link.head, link.query, who, link.key, whom, link.step))
        columns = ("weight", "layer", "head", "query", "from", "key", "to", "step")
        Table(columns, rows, 4, " · ".join(filter(None, (steps[0].group, hidden.text)))).emit(self.format)


def _steps(session: Session, of: str | None, layer: int | None) -> Sequence[Attention]:
    from tui_transformer.analysis.attentions import attentions, chosen_group, in_layer

    program = session.trace.program
    return in_layer(attentions(program, chosen_group(program, of)), layer)


@dataclass(frozen=True, kw_only=True)
class Rollout(Edited):
    """Show attention rollout: how much of each input token has reached each token after a layer.

    Example: tui-transformer rollout --model copy --layer 1
    """

    of: Of = None
    layer: int | None = option(None, "Up to this layer; by default the last.")
    everything: bool = flag("Everything, however wide.", "--all")
    format: Literal["text", "json", "csv", "svg"] = option("text", "How to write it.")

    def run(self) -> None:
        from tui_transformer.analysis import rollout
        from tui_transformer.analysis.attentions import Reader, in_layer
        from tui_transformer.views.step_view import rollout_view

        session = open_session(self)
        steps = _steps(session, f"{self.of or ''} self-attention", None)
        step = in_layer(steps, steps[-1].layer if self.layer is None else self.layer)[0]
        rolled = rollout.Rollout(session.trace, tuple(steps), Reader(session.model.vocabulary)).after(step.layer)
        emit_view(rollout_view(step, rolled, session.labels), self.format, everything=self.everything)


@dataclass(frozen=True, kw_only=True)
class Experts(Edited):
    """List how many tokens each expert of a mixture got, layer by layer; or which experts every token chose.

    Example: tui-transformer experts --model mixtral --who
    """

    layer: Layer = None
    who: bool = flag("A line for every token and expert that it chose.")
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.expert_load import expert_load

        session = open_session(self)
        loads = [(layer, expert_load(session.trace, step)) for layer, step in self._steps(session)]
        if self.who:
            columns = ("layer", "token", "of", "rank", "expert", "share")
            Table(columns, list(_choices(session, loads)), 4).emit(self.format)
            return
        rows: list[Row] = [
            (str(layer), str(expert), tokens, load.even, share)
            for layer, load in loads
            for expert, (tokens, share) in enumerate(zip(load.tokens, load.mean_shares, strict=True))
        ]
        note = "tokens = how many real tokens chose it; mean share = over those"
        Table(("layer", "expert", "tokens", "even", "mean share"), rows, 4, note).emit(self.format)

    def _steps(self, session: Session) -> Sequence[tuple[int, Step]]:
        """The shares of the experts with the numbers of their layers."""
        from tui_transformer.analysis.expert_load import expert_steps

        numbered = [(int(step.layer.rpartition(".")[2]), step) for step in expert_steps(session.trace.program)]
        if not numbered:
            raise InputError(f"{session.model.name} has no experts: its feed-forward layers are read by all tokens")
        chosen = [(number, step) for number, step in numbered if self.layer in (None, number)]
        if not chosen:
            have = ", ".join(str(number) for number, _ in numbered)
            raise InputError(f"layer {self.layer} has no experts: {have} have")
        return chosen


def _choices(session: Session, loads: Sequence[tuple[int, ExpertLoad]]) -> Iterator[Row]:
    for layer, load in loads:
        label = session.labels.of(session.trace.program.axes(load.step)[0])
        for token in load.real.nonzero()[0].tolist():
            for rank, (expert, share) in enumerate(load.of_token(token), 1):
                yield str(layer), token, label(token), rank, expert, share
