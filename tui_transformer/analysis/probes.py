"""Probes: what can be read linearly from a step, with scores on texts that nothing was fitted to.

With rows x (N × d, their mean taken away), and λ = penalty × the mean variance of a column:

- `ridge`: least Σ ‖y − xW − b‖² ÷ N + λ ‖W‖², W = (xᵀx ÷ N + λ I)⁻¹ xᵀy ÷ N (Hoerl & Kennard 1970). Numbers y score by
  R² = 1 − Σ (y − ŷ)² ÷ Σ (y − ȳ)² with ȳ of the texts that were fitted to; of classes y is 1 or −1 for each, and the
  largest is the answer.
- `logistic`: least −Σ ln softmax(xW + b)_y ÷ N + λ ‖W‖² ÷ 2, of two classes as a single column, by Newton's method with
  conjugate gradients (Alain & Bengio 2016, "Understanding intermediate layers using linear classifier probes"; the
  method: Nocedal & Wright 2006, §7.1).
- `difference`: W = mean of the second class − mean of the first, b in the middle between them (Marks & Tegmark 2023,
  "The Geometry of Truth", §5: mass-mean probing).

A text is held out or fitted to as a whole, the same ones in every layer: neighbouring tokens know of each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.directions import Direction
from tui_transformer.analysis.found import found
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import Project
from tui_transformer.engine.parts import check_memory
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field

ProbeKind = Literal["ridge", "logistic", "difference"]
Which = int | Literal["mean", "every"]
Label = Any
"""A class, as a word or a number, or of a regression a number; None where a text or row is left out."""

BLOCK = 4096
"""Rows that are read together."""

STEPS, TURNS, TOLERANCE = 100, 250, 1e-8
"""Of Newton's method: how many at most, turns of conjugate gradients in each, and the slope at which it ends."""

LAYER = re.compile(r"\.(\d+)\.")


class Rows(Protocol):
    """Rows of a step over texts: of each its text and position. As `Recorded` has them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows first."""

    @property
    def text(self) -> Host:
        """Of every row, which text."""

    @property
    def position(self) -> Host:
        """Of every row, which token of it."""

    def __getitem__(self, at: Any) -> Host: ...


@dataclass(frozen=True, eq=False)
class Probe:
    """What was fitted to the rows of one step, and how well it reads texts that it was not fitted to.

    Attributes:
        step: The step.
        kind: "ridge", "logistic" or "difference".
        position: The token of every text, "mean" over all or "every" one.
        classes: In order; () of numbers.
        weights: Columns × outputs: one for two classes (toward the second) and for numbers, else one for each class.
        bias: Of every output.
        fitted: Rows that it was fitted to.
        held: Rows that it was not.
        own: Score of those fitted to: the share that is right, or R² of numbers.
        score: The same of those held out.
        chance: That of the most frequent class, or 0: what a probe that reads nothing would score there.
    """

    step: str
    kind: str
    position: Which
    classes: tuple[Label, ...]
    weights: Host = field(repr=False)
    bias: Host = field(repr=False)
    fitted: int
    held: int
    own: float
    score: float
    chance: float
    shape: tuple[int, ...] = field(repr=False)

    @property
    def layer(self) -> int | None:
        """The layer that its step is in; None for the embedding and what is behind the layers."""
        match = LAYER.search(f".{self.step}")
        return int(match[1]) if match else None

    def values(self, rows: Host) -> Host:
        """Outputs of rows: rows × outputs. Above 0 means the second of two classes."""
        x = np.asarray(rows, np.float64).reshape(len(rows), -1)
        return np.asarray(x @ self.weights + self.bias)

    def predict(self, rows: Host) -> list[Label]:
        """The class, or the number, of each row."""
        values = self.values(rows)
        return [self.classes[at] for at in _answers(values)] if self.classes else values[:, 0].tolist()

    @property
    def direction(self) -> Direction:
        """Where it reads, toward the second class or larger numbers: of length 1, but the difference of means as it is.

        UsageError where there are more classes than two: see `directions`.
        """
        if self.weights.shape[1] > 1:
            raise UsageError(f"{len(self.classes)} classes have a direction each: directions")
        return self.directions[0]

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The same of every output."""
        lengths = np.linalg.norm(self.weights, axis=0)
        scale = 1.0 if self.kind == "difference" else np.where(lengths > 0, lengths, 1.0)
        heads = (*self.shape[:-1], 1, self.shape[-1]) if len(self.shape) > 1 else self.shape
        return tuple(Direction(self.step, column.reshape(heads)) for column in (self.weights / scale).T)

    def remove(self) -> list[Any]:
        """The edits that take out all that it reads: one direction, or of several classes all that their rows span.

        Of a step with heads that is done in each alone, as one is projected without the others.
        """
        edits: list[Any] = []
        for head, weights in enumerate(self.weights.reshape(-1, self.shape[-1], self.weights.shape[1])):
            basis, sizes, _ = np.linalg.svd(weights, full_matrices=False)
            kept = basis[:, sizes > sizes[0] * 1e-12].T
            edits += [Project(self.step, each, heads=head if len(self.shape) > 1 else None) for each in kept]
        return edits


def _cells(probe: Probe) -> Iterator[dict[str, Any]]:
    names = ("step", "layer", "kind", "position", "fitted", "held", "own", "score", "chance")
    yield {name: getattr(probe, name) for name in names} | {"classes": len(probe.classes)}


@found(_cells)
def probe(
    data: Mapping[str, Rows],
    labels: Sequence[Label] | Host,
    *,
    kind: ProbeKind = "logistic",
    position: Which | Sequence[Which] = "mean",
    held_out: float = 0.25,
    penalty: float = 0.01,
    seed: int = 0,
    report: Report = silent,
) -> Iterator[Probe]:
    """A probe of every step, one after the other, and of every position where several are asked for.

    Args:
        data: Rows of steps over texts: what `record` gives, or some of it.
        labels: One for each text, or for every row: classes, or of `ridge` numbers. None leaves a text or row out.
        kind: How it is fitted.
        position: "mean": the mean over the tokens of a text; "every": each token is a row; a number: that token, from
            0 or from the end; or several of these.
        held_out: The share of the texts that nothing is fitted to; of classes that texts have, this share of each.
        penalty: λ beside the mean variance of a column.
        seed: Of the choice of these texts.
        report: Told how far it is; what it raises ends it.

    Raises:
        InputError: There are not as many labels as texts or rows, fewer than two classes, or no text to hold out.
    """
    if kind not in FITS:
        raise UsageError(f"no probe is called {kind!r}: use {', '.join(FITS)}")
    if not 0 < held_out < 1 or not 0 < penalty < np.inf:
        raise UsageError("held_out is a share between 0 and 1, and penalty is more than 0, and finite")
    several = [position] if isinstance(position, int | np.integer | str) else list(position)
    several = [int(each) if isinstance(each, np.integer) else each for each in several]
    wrong = [each for each in several if not isinstance(each, int) and each not in ("mean", "every")]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is no position: use 'mean', 'every' or a number")
    given = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    for name, rows in data.items():
        for each in several:
            yield _probe(name, rows, given, kind, each, held_out, seed, penalty, report)


def _held_out(texts: Host, labels: Sequence[Label], share: float, seed: int, *, of_classes: bool) -> Host:
    """Numbers of texts that are held out; where each has one class, that share of the texts of every class."""
    rng = np.random.default_rng(seed)
    groups: dict[Label, list[int]] = {}
    of_text: dict[int, set[Label]] = {}
    for text, label in zip(texts.tolist(), labels, strict=True):
        of_text.setdefault(text, set()).add(label if of_classes else 0)
    one_each = all(len(each) == 1 for each in of_text.values())
    for text, own in of_text.items():
        groups.setdefault(next(iter(own)) if one_each else 0, []).append(text)
    chosen: list[int] = []
    for _, group in sorted(groups.items(), key=lambda each: str(each[0])):
        chosen += rng.permutation(group)[: round(share * len(group))].tolist()
    return np.array(chosen or [next(iter(of_text), 0)], np.int64)


def _probe(
    name: str,
    rows: Rows,
    labels: list[Label],
    kind: ProbeKind,
    position: Which,
    share: float,
    seed: int,
    penalty: float,
    report: Report,
) -> Probe:
    def tell(what: str) -> None:
        report(f"probe · {name} · {position} · {what}")

    tell("reading")
    at, text, own = _chosen(name, rows, labels, position)
    if not len(own):
        raise InputError(f"{name}: no text has a label and a token at {position}")
    numeric = kind == "ridge" and all(
        isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in own
    )
    classes = () if numeric else tuple(sorted(set(own), key=lambda each: (str(type(each)), each)))
    if not numeric and len(classes) < 2:
        raise InputError(f"{name}: every label is {str(classes[0])[:40]!r}: a probe tells two classes or more apart")
    held = np.isin(text, _held_out(text, own, share, seed, of_classes=not numeric))
    y = np.array(own, np.float64) if numeric else np.array([classes.index(each) for each in own])
    if held.all() or (not numeric and len(set(y[~held])) < len(classes)):
        raise InputError(f"{name}: too few texts: of every class there has to be one that is fitted to")
    check_memory(3 * 8 * len(own) * int(np.prod(rows.shape[1:])), f"{name}: its rows take", "use fewer texts")
    x = _values(rows, at, text, position)
    if not np.isfinite(x).all():
        raise InputError(f"{name} holds NaN or infinity: no probe can be fitted to it; leave it out, or try float64")
    fit = _Fit(x[~held], y[~held], len(classes), penalty, tell)
    weights, bias = FITS[kind](fit)
    values = x @ weights + bias
    chance = 0.0 if numeric else float(np.mean(y[held] == np.bincount(y[~held]).argmax()))
    own_score, score = (_score(values[part], y[part], y[~held].mean(), numeric=numeric) for part in (~held, held))
    counts = int((~held).sum()), int(held.sum())
    return Probe(name, kind, position, classes, weights, bias, *counts, own_score, score, chance, tuple(rows.shape[1:]))


def _chosen(name: str, rows: Rows, labels: list[Label], position: Which) -> tuple[Host, Host, list[Label]]:
    """Rows that are read (for a mean, all of texts with a label), and of what is fitted the texts and labels."""
    text = rows.text
    count = max(int(text.max(initial=-1)) + 1, getattr(rows, "given", 0))  # the last ones may have no rows
    of_rows = len(labels) == rows.shape[0] and (len(labels) != count or position == "every")
    if not of_rows and len(labels) != count:
        raise InputError(f"{len(labels)} labels are neither for {count} texts nor for {rows.shape[0]} rows of {name}")
    if of_rows and position == "mean":
        raise UsageError("labels of rows have no mean over a text: position='every', or a number")
    each = np.array([label is not None for label in labels], np.bool_)
    wanted = each if of_rows else each[text]
    if isinstance(position, int):
        ends = np.bincount(text, minlength=count)[text]
        wanted = wanted & (rows.position == (position if position >= 0 else ends + position))
    at = np.flatnonzero(wanted)
    texts = np.unique(text[at]) if position == "mean" else text[at]
    own = [labels[i] for i in (at if of_rows else texts).tolist()]
    if any(isinstance(each, float | np.floating) and not np.isfinite(each) for each in own):
        raise InputError("a label is NaN or infinity: give None where a text or row has none")
    return at, texts, own


def _values(rows: Rows, at: Host, texts: Host, position: Which) -> Host:
    """What is fitted: rows × columns, float64; heads stand behind each other."""
    width = int(np.prod(rows.shape[1:]))
    out = np.zeros((len(texts), width))
    for start in range(0, len(at), BLOCK):
        some = at[start : start + BLOCK]
        part = np.asarray(rows[some], np.float64).reshape(len(some), width)
        if position == "mean":
            np.add.at(out, np.searchsorted(texts, rows.text[some]), part)
        else:
            out[start : start + len(some)] = part
    if position == "mean":
        out /= np.bincount(np.searchsorted(texts, rows.text[at]))[:, None]
    return out


def _answers(values: Host) -> Host:
    return (values[:, 0] > 0).astype(np.int64) if values.shape[1] == 1 else values.argmax(axis=1)


def _score(values: Host, y: Host, mean: float, *, numeric: bool) -> float:
    if not numeric:
        return float(np.mean(_answers(values) == y))
    spread = float(np.square(y - mean).sum())
    return 1.0 - float(np.square(y - values[:, 0]).sum()) / spread if spread else float("nan")


@dataclass(frozen=True, eq=False)
class _Fit:
    """What a probe is fitted to: rows, and numbers (of classes: which, of so many)."""

    x: Host
    y: Host
    classes: int
    penalty: float
    report: Report

    def centred(self) -> tuple[Host, Host, float]:
        """The rows less their mean, that, and λ."""
        mean = self.x.mean(axis=0)
        rows = self.x - mean
        return rows, mean, self.penalty * float(np.square(rows).mean()) or self.penalty

    def ridge(self) -> tuple[Host, Host]:
        rows, mean, ridge = self.centred()
        y = self.y[:, None] if not self.classes else self.targets() * 2.0 - 1.0
        centre = y.mean(axis=0)
        count, width = rows.shape
        if width <= count:
            weights = np.linalg.solve(rows.T @ rows / count + ridge * np.eye(width), rows.T @ (y - centre) / count)
        else:  # the same, with a matrix of rows × rows
            weights = rows.T @ np.linalg.solve(rows @ rows.T + ridge * count * np.eye(count), y - centre)
        return weights, centre - mean @ weights

    def difference(self) -> tuple[Host, Host]:
        if self.classes != 2:
            raise UsageError(f"a difference of means is between two classes, not {self.classes}")
        low, high = (self.x[self.y == each].mean(axis=0) for each in (0, 1))
        weights = (high - low)[:, None]
        return weights, -(high + low) / 2 @ weights

    def targets(self) -> Host:
        """1 at the class of every row, of two classes at the second alone: rows × outputs."""
        ones: Host = (self.y[:, None] == np.arange(self.classes)).astype(np.float64)
        return ones[:, 1:] if self.classes == 2 else ones

    def logistic(self) -> tuple[Host, Host]:
        rows, mean, ridge = self.centred()
        size = np.sqrt(np.square(rows).mean(axis=0) / 4 + ridge)  # so scaled, columns are curved alike
        x = np.column_stack([rows / size, np.ones(len(rows))])  # the last column is the bias
        shrink = np.append(ridge / size**2, 0.0)[:, None]
        y = self.targets()
        weights = np.zeros((x.shape[1], y.shape[1]))
        for number in range(STEPS):
            self.report(f"step {number}")
            loss, shares = _loss(x, y, weights, shrink)
            slope = x.T @ (shares - y) / len(x) + shrink * weights
            if np.abs(slope).max() <= TOLERANCE:
                break
            step = _solved(x, shares, shrink, slope)
            expected, far = 1e-4 * float((slope * step).sum()), 1.0
            while far > 1e-10 and _loss(x, y, weights - far * step, shrink)[0] > loss - far * expected:
                far /= 2
            weights = weights - far * step
        weights, bias = weights[:-1] / size[:, None], weights[-1]
        return weights, bias - mean @ weights


FITS: Mapping[str, Callable[[_Fit], tuple[Host, Host]]] = {
    "ridge": _Fit.ridge,
    "logistic": _Fit.logistic,
    "difference": _Fit.difference,
}
"""By kind: columns × outputs, and the bias of each output."""


def _loss(x: Host, y: Host, weights: Host, shrink: Host) -> tuple[float, Host]:
    """The mean of −ln share of the right class, with the penalty, and the shares of the outputs.

    Of two classes the first has the fixed output 0.
    """
    z = x @ weights
    if z.shape[1] == 1:
        z, y = np.column_stack([np.zeros(len(z)), z]), np.column_stack([1.0 - y, y])
    z = z - z.max(axis=1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    shares = np.exp(logs)
    penalty = float((shrink * np.square(weights)).sum()) / 2
    return -float((y * logs).sum()) / len(x) + penalty, shares[:, 1:] if weights.shape[1] == 1 else shares


def _solved(x: Host, shares: Host, shrink: Host, slope: Host) -> Host:
    """The step of Newton's method, nearly: conjugate gradients (Hestenes & Stiefel 1952) on the second derivative."""
    solution, rest = np.zeros_like(slope), slope.copy()
    toward, size = rest.copy(), float((rest * rest).sum())
    enough = size * min(1e-2, float(np.sqrt(size))) ** 2
    for _ in range(TURNS):
        moved = shares * (x @ toward)
        turned = x.T @ (moved - shares * moved.sum(axis=1, keepdims=True)) / len(x) + shrink * toward
        curved = float((toward * turned).sum())
        if curved <= 0 or size <= enough:
            break
        share = size / curved
        solution, rest = solution + share * toward, rest - share * turned
        before, size = size, float((rest * rest).sum())
        toward = rest + size / before * toward
    return solution if solution.any() else slope
