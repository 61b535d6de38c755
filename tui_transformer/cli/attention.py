"""Heads: what they look at, measured, linked, rolled out; `circuits`, what their weights do; the load of experts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Edited, HideFirst, HideSpecial, Layer, Of, TableFormat
from tui_transformer.cli.output import Row, Table, by_size, emit_view
from tui_transformer.cli.session import open_session
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.cli.typer_layer import flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.analysis.attentions import Attention
    from tui_transformer.analysis.circuits import Circuit, Reads
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
        from tui_transformer.analysis.head_measures import layer_measures, left_out
        from tui_transformer.analysis.measures import HEAD_MEASURES
        from tui_transformer.analysis.tokens import Hidden

        measures = tuple(measure.name for measure in HEAD_MEASURES)
        if self.sort not in (None, *measures):
            raise UsageError(f"--sort {(self.sort or '')[:40]!r} is no measure: use {', '.join(measures)}")
        session = open_session(self)
        hidden = Hidden(self.hide_special, self.hide_first)
        steps = _steps(session, self.of, self.layer)
        reader = Reader(session.model.vocabulary, hidden)
        layers = [layer_measures(session.trace, step, reader) for step in steps]
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
            else f"{first.real:,} quer{'y' if first.real == 1 else 'ies'}"
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
        from tui_transformer.analysis.rollout import links_of, strongest
        from tui_transformer.analysis.tokens import Hidden

        session = open_session(self)
        steps = _steps(session, self.of, self.layer)
        heads = steps[0].heads
        if self.head is not None and not 0 <= self.head < heads:
            raise InputError(f"there is no head {self.head}: heads are 0 to {heads - 1}")
        hidden = Hidden(self.hide_special, self.hide_first)
        reader = Reader(session.model.vocabulary, hidden)
        of_steps = (links_of(session.trace, step, reader, self.top, self.head, itself=self.itself) for step in steps)
        by_name = {step.name: step for step in steps}
        rows: list[Row] = []
        for link in strongest(chain.from_iterable(of_steps), self.top):
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
            chosen: list[Row] = []
            for layer, load in loads:
                label = session.labels.of(session.trace.program.axes(load.step)[0])
                for token in load.real.nonzero()[0].tolist():
                    experts = enumerate(load.of_token(token), 1)
                    chosen += [(str(layer), token, label(token), rank, *each) for rank, each in experts]
            Table(("layer", "token", "of", "rank", "expert", "share"), chosen, 4).emit(self.format)
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


# What weights do by themselves


@dataclass(frozen=True, kw_only=True)
class Circuits(Edited):
    """List what the weights of every head do by themselves: OV and QK, their norms, singular values, copying score.

    No sentence is needed: the matrices W_Q, W_K, W_V and W_O of a head are looked at, and with --matrix shown. With
    --compose, how much of what a head reads is what an earlier head writes.

    Example: tui-transformer circuits --model copy --sort copying
    """

    layer: Layer = None
    sort: Literal["copying", "ov", "qk"] | None = option(None, "By the copying score or a norm.")
    values: Literal["ov", "qk"] | None = option(None, "Singular values and eigenvalues of it, a row each.")
    matrix: Literal["ov", "qk", "q", "k", "v", "o"] | None = option(
        None, "One matrix of a head, by default of layer 0 and head 0, in full."
    )
    head: int | None = option(None, "With --matrix: which head, from 0.", min=0)
    of: Of = None
    compose: Literal["Q", "K", "V"] | None = option(
        None, "Scores of every head with every earlier one: into its queries, keys, values."
    )
    top: int | None = option(None, "So many of the largest scores alone.", min=1)
    format: Literal["text", "json", "csv", "svg"] = option("text", "How to write it; svg with --compose or --matrix.")

    def run(self) -> None:
        if self.compose is not None:
            self._composed(self.compose)
        elif self.matrix is not None:
            self._matrix(self.matrix)
        else:
            self._heads()

    def _heads(self) -> None:
        """A line a head, or a line a singular value."""
        import numpy as np

        from tui_transformer.analysis.circuits import circuits, words_of

        if self.head is not None or self.of is not None:
            raise UsageError("--head and --of are of --matrix")
        if self.format == "svg" or self.top is not None:
            raise UsageError("--top and svg are of --compose, svg of --matrix too")
        trace = open_session(self).trace
        found = circuits(trace, self.layer)
        if self.values is not None:
            names = ("attention", "layer", "head", "rank", "singular value", "eigenvalue", "imaginary part")
            Table(names, [row for each in found for row in _values(each, self.values)], 4).emit(self.format)
            return
        words = words_of(trace)
        rows: list[Row] = []
        for each in found:
            ov, qk = (np.sqrt((values**2).sum()) for values in (each.ov_values, each.qk_values))
            sizes = (ov, each.ov_values[0], qk, each.qk_values[0])
            rows.append((*_place(each), words.copying(each), *map(float, sizes)))
        columns = ("attention", "layer", "head", "copying", "ov", "ov largest", "qk", "qk largest")
        if self.sort is not None:
            at = columns.index(self.sort)
            rows.sort(key=lambda row: by_size(row[at]))
        note = "Frobenius norms and largest singular values of W_V W_O and W_Q W_Kᵀ"
        note += " · copying: Σ λ ÷ Σ |λ| of W_E W_V W_O W_U"
        Table(columns, rows, 4, note).emit(self.format)

    def _composed(self, into: Reads) -> None:
        """A line a pair, the largest score first, or a heat map."""
        from tui_transformer.analysis.circuits import chance, circuits, compositions

        if any(each is not None for each in (self.values, self.sort, self.layer, self.matrix, self.head, self.of)):
            left = "--layer, --head, --of, --sort, --values and --matrix"
            raise UsageError(f"--compose takes every head, by its score: leave {left} out")
        heads = list(circuits(open_session(self).trace))
        with cleared():
            paths = sorted(compositions(heads, into, show), key=lambda path: -path.score)
        if self.format == "svg":
            from tui_transformer.views.step_view import composition_view

            emit_view(composition_view(heads, paths, into), "svg")
            return
        rows: list[Row] = [(*_place(path.source), *_place(path.target), path.score) for path in paths[: self.top]]
        note = f"{into}-composition of {len(paths)} pairs; by chance about {chance(heads[0]):.4f} (1 ÷ √d)"
        columns = ("from", "from layer", "from head", "to", "to layer", "to head", "score")
        Table(columns, rows, 4, note).emit(self.format)

    def _matrix(self, which: str) -> None:
        from tui_transformer.analysis.attentions import chosen_group
        from tui_transformer.analysis.circuits import circuits
        from tui_transformer.views.step_view import circuit_view

        if self.values is not None or self.sort is not None or self.top is not None:
            raise UsageError("--matrix is of one head: leave --sort, --values and --top out")
        trace = open_session(self).trace
        group = chosen_group(trace.program, self.of)
        heads = [each for each in circuits(trace, self.layer or 0) if each.attention.group == group]
        if not heads:
            raise InputError(f"layer {self.layer or 0} has no {group} with matrices")
        at = self.head or 0
        if at >= len(heads):
            raise InputError(f"there is no head {at}: heads are 0 to {len(heads) - 1}")
        emit_view(circuit_view(heads[at], which.upper()), self.format)


def _values(circuit: Circuit, which: str) -> Iterator[Row]:
    singular = circuit.ov_values if which == "ov" else circuit.qk_values
    eigen = circuit.ov_eigenvalues if which == "ov" else circuit.qk_eigenvalues
    eigen = eigen[(-abs(eigen)).argsort(kind="stable")]
    for rank, (one, other) in enumerate(zip(singular, eigen, strict=True), 1):
        yield (*_place(circuit), rank, float(one), float(other.real), float(other.imag))


def _place(circuit: Circuit) -> Row:
    return circuit.attention.group, circuit.attention.layer, circuit.head
