"""Logit lens, plain and tuned: which words the residual stream spells after each layer.

softmax(head(norm(x_l))): the model's own last steps, from the final norm on, run on what leaves layer l instead of the
last layer (nostalgebraist 2020, "interpreting GPT: the logit lens"). After the last layer these are the probabilities
of the model itself. A lens shows what the head reads in a state, not what the layer "knows": later layers may turn the
stream into other directions (Belrose et al. 2023, "Eliciting Latent Predictions with the Tuned Lens").

The tuned lens puts an affine map of every depth before it, which is fitted on texts. With x what leaves a layer and y
what leaves the last, at the same token, x + (x − μ) A + b comes as near to y as it can over all tokens of the texts:
Σ ‖y − x − (x − μ) A − b‖² + N λ ‖A‖² is least at

    μ = mean x,   b = mean (y − x),   A = (S + λ I)⁻¹ C

with S the covariance of x and C that of x with y − x (both ÷ N): the linear shortcut of Din et al. 2023, "Jump to
Conclusions: Short-Cutting Transformers With Linear Transformations", §3. Belrose et al. 2023, §3, train the same map by
gradient descent toward the probabilities of the model; here it is solved, toward its last state, so that it takes
seconds and is the same every time. λ = tr S ÷ N: with few tokens the map stays near the plain lens with a shift
(A = 0), with many it is that of least squares. Behind the last layer there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tui_transformer.analysis.attentions import Report, prepared, silent
from tui_transformer.analysis.found import Found
from tui_transformer.analysis.measurable import at_least, positions_in
from tui_transformer.analysis.metrics import divergences, log_shares
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.edits import changed, of_sentence, widened
from tui_transformer.engine.parts import layer_outputs
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.targets import START
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.sampling import leading
from tui_transformer.records import dataclass, field


@dataclass(frozen=True)
class Depth:
    """A place on the residual stream: what enters the first layer (layer −1), or what leaves a layer."""

    layer: int
    step: str

    @property
    def title(self) -> str:
        """`embedding`, or `layer 3`."""
        return "embedding" if self.layer < 0 else f"layer {self.layer}"


@dataclass(frozen=True, eq=False)
class Spelled:
    """The most probable words at some tokens of one depth: IDs and probabilities, tokens × top, the largest first."""

    depth: Depth
    rows: range
    words: Host
    probabilities: Host


@dataclass(frozen=True, eq=False)
class Lens:
    """The last steps of a program in order, from `state`, which leaves the last layer, to the logits.

    It can be held at `depths`, in the order of the layers. `tuned` is the map that goes before, by layer; none for the
    plain lens.
    """

    depths: tuple[Depth, ...]
    steps: tuple[Step, ...]
    state: str
    tuned: Mapping[int, Affine] = field(default_factory=dict)

    @property
    def vocabulary(self) -> int:
        """How many words there are."""
        return self.steps[-1].axes[-1].size

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return self.steps[-1].axes[0].size

    def behind(self, layer: int | None) -> list[Depth]:
        """The depth behind a layer, −1 for what enters the first, or all; InputError where there is no such layer."""
        found = [depth for depth in self.depths if layer in (None, depth.layer)]
        if not found:
            last = self.depths[-1].layer
            raise InputError(f"there is no layer {layer}: layers are 0 to {last}, and −1 for the embedding")
        return found

    @np.errstate(all="ignore")
    def spell(
        self, trace: Trace, depth: Depth, rows: range, top: int = 1, *, item: int = 0, report: Report = silent
    ) -> Spelled:
        """The `top` words that the stream spells at some tokens of one of the `depths`; of equal ones, the first.

        `report` is told how far the work is; what it raises ends it.
        """
        height, top = max(1, trace.block // self.vocabulary), min(top, self.vocabulary)
        prepared(trace, depth.step, report)
        backend, xp, blocks = trace.backend, trace.backend.xp, []
        for part in (rows[start : start + height] for start in range(0, len(rows), height)):
            report(f"{depth.title} · token {part.start:,} of {self.tokens:,}")
            logits = self.logits(trace, depth, part, item)
            ranked = np.nan_to_num(backend.to_host(logits), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            words = xp.asarray(np.stack([leading(row, top) for row in ranked]))
            picked = xp.take_along_axis(logits, words, axis=-1)
            highest = picked[:, :1]
            blocks.append((words, xp.exp(picked - highest) / xp.exp(logits - highest).sum(axis=-1, keepdims=True)))
        ids, probabilities = (backend.to_host(xp.concatenate(parts)) for parts in zip(*blocks, strict=True))
        return Spelled(depth, rows, ids, probabilities)

    @np.errstate(all="ignore")
    def logits(self, trace: Trace, depth: Depth, rows: range, item: int = 0) -> Array:
        """Tokens × vocabulary, on the device: the last steps run on the stream at a depth, with the edits of them."""
        edits = [own for edit in trace.edits if (own := of_sentence(edit, item)) is not None]
        wide = rows  # a mean over the tokens needs all of them
        for step in self.steps:
            wide = widened(edits, step.name, (wide, range(step.shape[-1])))[0]
        width = trace.program.shape(depth.step)[-1]
        state = trace.backend.floats(trace.window(depth.step, (wide, range(width)), item))
        if depth.layer in self.tuned:
            state = self.tuned[depth.layer].of(trace.backend, state)
        values: dict[str, Array] = {self.state: state[None]}
        for step in self.steps:
            inputs = [values[name] if name in values else trace.array(name) for name in step.inputs]
            result = step.op.forward(trace.backend, *inputs)
            values[step.name] = changed(edits, step.name, trace.backend, result, (wide, range(step.shape[-1])))
        return values[self.steps[-1].name][0][rows.start - wide.start : rows.stop - wide.start]

    def divergences(self, trace: Trace, depth: Depth, rows: range) -> Host:
        """Σ p (ln p − ln q) at tokens, in nats: from what the model answers, p, to what is spelled there, q."""
        height, parts = max(1, trace.block // self.vocabulary), []
        for part in (rows[start : start + height] for start in range(0, len(rows), height)):
            answer, spelled = (
                log_shares(np.asarray(trace.backend.to_host(self.logits(trace, at, part)), np.float64))
                for at in (self.depths[-1], depth)
            )
            parts.append(np.maximum(divergences(answer, spelled), 0.0))
        return np.concatenate(parts)


def lens_of(program: Program, tuned: Mapping[int, Affine] | None = None) -> Lens:
    """The lens of a model, with maps the tuned one; InputError where there is no head that gives words, or no layer."""
    outputs = layer_outputs(program)
    if not program.logits or not outputs:
        raise InputError("this model has no output head: its stream spells no words")
    state = outputs[-1]
    after, needed, steps = program.downstream([state]), {program.logits}, list[Step]()
    for step in reversed(program.steps):
        if step.name in needed and step.name in after and step.name != state:
            needed.update(step.inputs)
            steps.append(step)
    return Lens(depths_of(program, stacks_of(program)[-1]), tuple(reversed(steps)), state, tuned or {})


def stacks_of(program: Program) -> tuple[str, ...]:
    """The stacks that have layers, in order."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in layer_outputs(program)))


def depths_of(program: Program, stack: str) -> tuple[Depth, ...]:
    """Of a stack, what enters the first layer, where there is such a step, and what leaves each."""
    # a decoder beside an encoder has an embedding of its own
    entrance = next((name for name in (f"{stack}.{START}", START) if name in program.names), None)
    first = [] if entrance is None else [Depth(-1, program.step(entrance).name)]
    layers = (name for name in layer_outputs(program) if name.startswith(f"{stack}."))
    return (*first, *(Depth(layer, name) for layer, name in enumerate(layers)))


def logit_lens(
    trace: Trace,
    top: int = 1,
    *,
    layer: int | None = None,
    item: int | None = None,
    tuned: Mapping[int, Affine] | None = None,
) -> Found[Spelled]:
    """The words that the stream spells at every token, what enters the first layer first, then behind each layer.

    Args:
        trace: The sentence.
        top: How many words of each token.
        layer: Only behind this one; −1 for what enters the first.
        item: Which sentence of a batch.
        tuned: What `fit_lens` gives: the map of every layer that goes before.

    Raises:
        InputError: The model has no head that gives words, or no such layer.
    """
    at_least(1, top=top)
    lens = lens_of(trace.program, tuned)
    depths, own = lens.behind(layer), item_of(trace, item)

    def cells(spelled: Spelled) -> Iterator[dict[str, Any]]:
        place = {"layer": spelled.depth.layer, "step": spelled.depth.step}
        for row in spelled.rows:
            for rank, (token, share) in enumerate(words_at(spelled, row), 1):
                word = trace.target_word(token)
                yield place | {"position": row, "rank": rank, "token": token, "word": word, "probability": share}

    return Found((lens.spell(trace, depth, range(lens.tokens), top, item=own) for depth in depths), cells)


def words_at(spelled: Spelled, row: int) -> Found[tuple[int, float]]:
    """The words of one token, counted from 0 or from the end: ID and probability, the most probable first."""
    at = positions_in(spelled.rows.stop, row).start - spelled.rows.start
    words = zip(spelled.words[at].tolist(), spelled.probabilities[at].tolist(), strict=True)
    return Found(list(words), lambda word: [{"token": word[0], "probability": word[1]}])


@dataclass(frozen=True, eq=False)
class Affine:
    """The map of one depth: mean μ (d), matrix A (d × d) and shift b (d), fitted on so many tokens."""

    mean: Host
    matrix: Host
    shift: Host
    tokens: int

    def __repr__(self) -> str:
        return f"<Affine of {len(self.mean)} columns, fitted on {self.tokens:,} tokens>"

    def of(self, backend: Backend, x: Array) -> Array:
        """The map of rows, … × d, on the device; InputError where it was fitted for vectors of another size."""
        self.check(x.shape[-1])
        mean, matrix, shift = (backend.floats(part) for part in (self.mean, self.matrix, self.shift))
        return x + (x - mean) @ matrix + shift

    def turned(self, vectors: Host) -> Host:
        """Parts of a vector of the stream behind the map, whose constants are left out: v + v A."""
        self.check(vectors.shape[-1])
        return np.asarray(vectors + vectors @ self.matrix)

    def check(self, columns: int) -> None:
        """Raise InputError where it was fitted for vectors of another size."""
        if columns != len(self.mean):
            raise InputError(f"the lens was fitted for vectors of {len(self.mean)} columns, and these have {columns}")


LARGEST = 1 << 31
"""Bytes that all sums may take."""


def fit_lens(
    traces: Iterable[Trace], layers: Collection[int] | None = None, report: Report = silent
) -> dict[int, Affine]:
    """The maps of every depth but the last, by layer (−1 is what enters the first), for `logit_lens` and `head_lens`.

    Args:
        traces: Of texts, one at a time; none is held longer than it takes. Padding is left out.
        layers: Only these; what enters the first is −1.
        report: Told how far the work is; what it raises ends it.

    Raises:
        InputError: There is no trace or no such layer, the model has no head that gives words, or the sums of all
            layers take too much memory.
    """
    if isinstance(traces, Trace):
        raise UsageError("a lens is fitted on a list of traces: fit_lens([trace, …])")
    sums: dict[int, Host] | None = None
    for number, trace in enumerate(traces, 1):
        report(f"lens · text {number:,}")
        lens = lens_of(trace.program)
        if sums is None:
            for layer in sorted(layers or ()):
                lens.behind(layer)
            wanted = [depth.layer for depth in lens.depths[:-1] if layers is None or depth.layer in layers]
            size = trace.program.shape(lens.state)[-1]
            taken = 16 * size * size * len(wanted)
            if taken > LARGEST:
                raise InputError(
                    f"a lens of {len(wanted)} layers of width {size:,} takes {taken / 2**30:.1f} GiB: name fewer layers"
                )
            sums = {layer: np.zeros((1 + size, 1 + 2 * size)) for layer in wanted}
        for item in range(trace.batch):
            _add(sums, lens, trace, item)
    if sums is None:
        raise InputError("there is no sentence to fit a lens on")
    maps = {}
    for layer, each in sums.items():
        report(f"lens · layer {layer}")
        maps[layer] = _fitted(each)
    return maps


def _add(sums: dict[int, Host], lens: Lens, trace: Trace, item: int) -> None:
    """Sums over tokens of each depth: those of (1, x) ᵀ (1, x, y − x)."""
    real = real_tokens(trace, trace.program.axes(lens.state)[0], item)

    def rows(name: str) -> Host:
        return np.concatenate([np.asarray(part, np.float64) for _, part in trace.blocks(name, item=item)])[real]

    last = rows(lens.state)
    for layer, name in {depth.layer: depth.step for depth in lens.depths if depth.layer in sums}.items():
        if len(sums[layer]) != 1 + last.shape[1]:
            raise InputError("the traces are of different models: their streams have different widths")
        x = rows(name)
        read = np.column_stack([np.ones(len(x)), x])
        sums[layer] += read.T @ np.column_stack([read, last - x])


def _fitted(sums: Host) -> Affine:
    tokens, size = int(sums[0, 0]), len(sums) - 1
    _, mean, shift = np.split(sums[0] / tokens, [1, 1 + size])
    _, squares, products = np.split(sums[1:] / tokens, [1, 1 + size], axis=1)
    spread = squares - np.outer(mean, mean)
    ridge = float(np.trace(spread)) / tokens
    if not np.isfinite(ridge):
        raise InputError("the stream overflows: no lens can be fitted to it; try float64")
    matrix: Host = np.zeros_like(spread)
    if ridge > 0:
        matrix = np.linalg.solve(spread + ridge * np.eye(size), products - np.outer(mean, shift))
    return Affine(mean, matrix, shift, tokens)
