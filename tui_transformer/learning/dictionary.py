"""A dictionary of features that is learned: a sparse autoencoder of a step of a model, whose k largest are active.

With c = b_dec, z = (x − c) W_enc + b_enc and f the k largest of max(z, 0), x̂ = f W_dec + c, it makes ‖x − x̂‖² small
(Gao et al. 2024, "Scaling and evaluating sparse autoencoders", arXiv 2406.04093):

- Rows of W_dec stay 1 long, W_enc begins as W_decᵀ, c as the mean (§A.1).
- Features that were not active for a while learn what is left, e = x − x̂: with ê what the strongest d ÷ 2 of them
  write, α ‖e − ê‖² is added, α = 1 ÷ 32 (§A.2).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from tui_transformer.engine.backend import Host, numpy_backend
from tui_transformer.engine.parts import check_memory
from tui_transformer.errors import InputError, UsageError
from tui_transformer.features.dictionary import SAELENS, SETTINGS, Features
from tui_transformer.files import make_folder, write_whole
from tui_transformer.learning.optimizers import OPTIMIZERS, cosine
from tui_transformer.model.model import Model
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import SPACE
from tui_transformer.text.encoding import MAX_CHARACTERS, Encoding

HELD = 1 << 26
"""Numbers of activations that are in memory at a time; they are drawn from in any order."""

LEFT_OUT, MEASURED = 20, 20_000
"""Of so many texts one is measured on, and not learned from; and so many rows of these at most."""

ALPHA = 1 / 32
RESTS = 100_000
"""Vectors without it after which a feature learns what is left."""

ITEM, ARRAYS, OF_A_ROW = 4, 10, 6
"""Bytes of a number, and how many arrays there are of the size of both weights, and of the features of a step."""

WARM_UP = 50
Report = Callable[[int, float], None]
"""Is told the steps that were made, and the share of the variance that was left in the last one."""


@dataclass(frozen=True)
class Plan:
    """What is learned, and how.

    Attributes:
        at: The step whose rows are read.
        count: How many features there are.
        k: How many of them are active in a row.
        steps: Of the optimiser (Adam), each on `batch` rows.
        rate: The highest learning rate; after a warm-up it falls as half a cosine.
    """

    at: str
    count: int = 512
    k: int = 8
    steps: int = 4_000
    batch: int = 1_024
    rate: float = 2e-3
    seed: int = 0

    def check(self, width: int) -> None:
        """Raise UsageError where that cannot be learned."""
        said = {"count": "features", "k": "active features", "steps": "steps", "batch": "rows of a step"}
        for name, words in said.items():
            if getattr(self, name) < 1:
                raise UsageError(f"{getattr(self, name)} {words}: use 1 or more")
        if not 0 < self.rate < np.inf:
            raise UsageError(f"the learning rate is {self.rate:g}: use a number above 0")
        if self.k > min(self.count, width):
            raise UsageError(f"{self.k} features cannot be active: there are {self.count}, of {width} numbers each")
        needed = ITEM * self.count * (ARRAYS * width + OF_A_ROW * self.batch)
        check_memory(needed, "learning takes", "use fewer features, or a smaller batch")


@dataclass(frozen=True, eq=False)
class Learned:
    """A dictionary, and how good it is on texts that it was not learned from.

    Attributes:
        left: The share of the variance that it leaves, Σ ‖x − x̂‖² ÷ Σ ‖x − x̄‖².
        dead: How many features were active in no row of these.
        rows: How many there were.
        steps: That were made.
    """

    plan: Plan
    weights: Mapping[str, Host]
    left: float
    dead: int
    rows: int
    steps: int

    def save(self, folder: Path) -> None:
        """Write it as SAELens does, so that it and `Features.load` read it; each file appears whole or not at all.

        Raises:
            InputError: The folder cannot be written.
        """
        from safetensors.numpy import save

        stack, layer, _, rest = (*self.plan.at.split("."), "", "", "")[:4]
        hook = f"blocks.{layer}.hook_resid_post" if (stack, rest) == ("decoder", "") else self.plan.at
        settings = {
            "architecture": "topk",
            "d_in": len(self.weights["b_dec"]),
            "d_sae": self.plan.count,
            "k": self.plan.k,
            "dtype": "float32",
            "apply_b_dec_to_input": True,
            "normalize_activations": "none",
            "rescale_acts_by_decoder_norm": False,
            "metadata": {"hook_name": hook, "step": self.plan.at},
        }
        make_folder(folder)
        write_whole(folder / SAELENS, save({name: np.ascontiguousarray(each) for name, each in self.weights.items()}))
        write_whole(folder / SETTINGS, (json.dumps(settings, indent=2) + "\n").encode())


@np.errstate(all="ignore")
def learn(
    model: Model,
    texts: Sequence[str],
    plan: Plan,
    report: Report = lambda *_: None,
    stops: Callable[[], object] = lambda: False,
) -> Learned:
    """Learn a dictionary of what a model's step holds while it reads texts.

    Args:
        model: A model with a vocabulary.
        texts: Read one by one, cut to what the model reads; of every twentieth it is only measured on.
        plan: What is learned.
        report: Called after every step; what it raises ends the learning.
        stops: Asked after every step whether it was the last one.

    Raises:
        InputError: The model has no such step or no vocabulary, the texts have too few tokens, memory is short, or what
            is left is no finite number.
        UsageError: The plan cannot be carried out.
    """
    axes = model.program(2).axes(plan.at)
    if len(axes) != 2 or axes[0].size != 2:
        raise InputError(f"{plan.at} has no row a token, as decoder.0.output has: a dictionary reads rows")
    width = axes[1].size
    plan.check(width)
    measured = texts[LEFT_OUT - 1 :: LEFT_OUT]
    learned = [text for number, text in enumerate(texts) if number % LEFT_OUT != LEFT_OUT - 1]
    blocks = partial(_blocks, model, learned, plan.at, plan.steps * plan.batch)
    nothing, others = np.zeros((0, width), np.float32), blocks()
    held_out = next(_blocks(model, measured, plan.at, MEASURED), nothing)
    first = next(others, nothing)
    if not measured:
        given = "1 text is" if len(texts) == 1 else f"{len(texts)} texts are"
        raise InputError(f"{given} too few: every twentieth is measured on and not learned from: give 20")
    if len(first) < plan.k or not len(held_out):
        raise InputError(f"{len(texts)} texts have too few tokens to learn {plan.count} features from: give more")
    plan = replace(plan, batch=min(plan.batch, len(first)))
    learner = Learner(plan, first)
    rows = _rows(first, others, blocks, learner.random, plan.batch)
    for step in range(1, plan.steps + 1):
        left = learner.advance(next(rows))
        if not np.isfinite(left):
            raise InputError(f"step {step}: what is left is no finite number: use a smaller learning rate")
        report(step, left)
        if stops():
            break
    weights = learner.weights()
    left, dead = _measured(learner, held_out)
    if not np.isfinite(left):
        raise InputError("what is left is no finite number: use a smaller learning rate")
    return Learned(plan, weights, left, dead, len(held_out), step)


def _blocks(model: Model, texts: Sequence[str], at: str, most: int) -> Iterator[Host]:
    """Rows of a step over texts, as many together as are held, until there are as many as are wanted."""
    rows, count = list[Host](), 0
    for text in texts:
        encoding = _encoded(model, text)
        if not encoding.ids:
            continue
        read = model.trace(ids=encoding.ids, segments=encoding.segments)[at]
        rows.append(np.asarray(read, np.float32))
        count, most = count + rows[-1].size, most - len(rows[-1])
        if count >= HELD or most <= 0:
            yield np.concatenate(rows)
            rows, count = [], 0
        if most <= 0:
            return
    if rows:
        yield np.concatenate(rows)


def _rows(
    first: Host, others: Iterator[Host], again: Callable[[], Iterator[Host]], random: np.random.Generator, batch: int
) -> Iterator[Host]:
    """Batches of the rows in any order, without an end; where all were held, they are not computed again."""
    blocks: Iterable[Host] = chain([first], others)
    while True:
        number = 0
        for block in blocks:
            number += 1
            order = random.permutation(len(block))
            for start in range(0, max(len(block) - batch, 0) + 1, batch):
                yield block[order[start : start + batch]]
        blocks = again() if number > 1 else [block]


class Learner:
    """The weights while they are learned, for rows that are √d long on average; steps change them in place."""

    def __init__(self, plan: Plan, rows: Host) -> None:
        """Begin with directions at random."""
        self.plan, self.random = plan, np.random.default_rng(plan.seed)
        self._scale = np.float32(np.sqrt(rows.shape[1]) / max(np.linalg.norm(rows, axis=1).mean(), 1e-9))
        rows = rows * self._scale
        decoder = _of_length_one(self.random.standard_normal((plan.count, rows.shape[1]), dtype=np.float32))
        self._weights = {
            "W_enc": decoder.T.copy(),
            "b_enc": np.zeros(plan.count, np.float32),
            "W_dec": decoder,
            "b_dec": rows.mean(axis=0, dtype=np.float64).astype(np.float32),
        }
        self._variance = float(rows.var(axis=0, dtype=np.float64).sum())
        self._backend, self._adam = numpy_backend(), OPTIMIZERS["adam"]
        slots = self._adam.slots
        self._state = {name: {slot: np.zeros_like(each) for slot in slots} for name, each in self._weights.items()}
        self._rested, self._made = np.zeros(plan.count, np.int64), 0

    def weights(self) -> dict[str, Host]:
        """Those that read rows as they are, not √d long: z ÷ s = (x − c) W_enc + b_enc ÷ s for s x in place of x."""
        return {
            name: each / self._scale if name.startswith("b_") else each.copy() for name, each in self._weights.items()
        }

    def read(self, rows: Host) -> tuple[Host, Host]:
        """The features of scaled rows, and what they leave of these: f and x̂ − x."""
        weights = self._weights
        z = (rows - weights["b_dec"]) @ weights["W_enc"] + weights["b_enc"]
        features = largest(z, self.plan.k)
        return features, features @ weights["W_dec"] + weights["b_dec"] - rows

    def scaled(self, rows: Host) -> Host:
        """Rows as they are learned from."""
        return rows * self._scale

    def advance(self, rows: Host) -> float:
        """Make a step; the share of the variance that was left before it."""
        weights, rows = self._weights, self.scaled(rows)
        features, wrong = self.read(rows)
        left = float(np.square(wrong, dtype=np.float64).sum()) / len(rows) / max(self._variance, 1e-30)
        self._rested += len(rows)
        self._rested[features.any(axis=0)] = 0
        of_rows = wrong * np.float32(2 / len(rows))  # of the loss, by x̂
        gradients = {"W_dec": features.T @ of_rows}
        of_features = np.where(features > 0, of_rows @ weights["W_dec"].T, 0)
        centred = rows - weights["b_dec"]
        dead = np.flatnonzero(self._rested > RESTS)
        if len(dead):
            z = centred @ weights["W_enc"][:, dead] + weights["b_enc"][dead]
            second = largest(z, min(len(dead), max(rows.shape[1] // 2, 1)))
            of_second = (second @ weights["W_dec"][dead] + wrong) * np.float32(2 * ALPHA / len(rows))
            gradients["W_dec"][dead] += second.T @ of_second
            of_features[:, dead] += np.where(second > 0, of_second @ weights["W_dec"][dead].T, 0)
        gradients["W_enc"] = centred.T @ of_features
        gradients["b_enc"] = of_features.sum(axis=0)
        gradients["b_dec"] = of_rows.sum(axis=0) - weights["W_enc"] @ gradients["b_enc"]
        along = (gradients["W_dec"] * weights["W_dec"]).sum(axis=1, keepdims=True)
        gradients["W_dec"] -= along * weights["W_dec"]  # what would change the length alone
        self._made += 1
        rate = self.plan.rate * cosine(self._made, min(WARM_UP, self.plan.steps // 2), self.plan.steps)
        for name, gradient in gradients.items():
            given = np.ascontiguousarray(gradient, np.float32)
            self._adam.update(self._backend, weights[name], given, self._state[name], rate, self._made, 0.0)
        weights["W_dec"][:] = _of_length_one(weights["W_dec"])
        return left


def largest(z: Host, k: int) -> Host:
    """Of each row the k largest numbers, where they are above 0, else 0."""
    if k < z.shape[1]:
        least = np.partition(z, -k, axis=1)[:, -k, None]
        z = np.where(z >= least, z, 0)
    return np.maximum(z, 0)


def _of_length_one(rows: Host) -> Host:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def _measured(learner: Learner, rows: Host) -> tuple[float, int]:
    """The share of the variance of rows that is left, and how many features are active in none."""
    rows = learner.scaled(rows)
    left, active = 0.0, np.zeros(learner.plan.count, bool)
    for start in range(0, len(rows), learner.plan.batch):
        features, wrong = learner.read(rows[start : start + learner.plan.batch])
        left += float(np.square(wrong, dtype=np.float64).sum())
        active |= features.any(axis=0)
    variance = float(rows.var(axis=0, dtype=np.float64).sum()) * len(rows)
    return left / max(variance, 1e-30), int(np.count_nonzero(~active))


AROUND = 24
"""Characters of a text that are told in front of a token, from the first whole word on."""


def examples(model: Model, features: Features, at: str, texts: Iterable[str]) -> list[str]:
    """What is found of every feature in some texts, as a label: `lived 44% · Otto, who [lived]`; "" where it is never.

    In front stands the word at whose tokens most of Σ f is, with its share, then the token at which f is largest.
    """
    best, told = np.zeros(features.count), [""] * features.count
    totals: list[dict[str, float]] = [{} for _ in range(features.count)]
    for text in texts:
        encoding = _encoded(model, text)
        found = features.encode(np.asarray(model.trace(ids=encoding.ids)[at], np.float32))
        for row, feature in zip(*(each.tolist() for each in np.nonzero(found)), strict=True):
            token, value, words = encoding.tokens[row], float(found[row, feature]), totals[feature]
            piece = text[token.start : token.end]
            word = piece.strip() or SPACE
            words[word] = words.get(word, 0.0) + value
            if value > best[feature]:
                front = text[max(token.start - AROUND, 0) : token.start]
                cut = front.partition(" ")[2] if token.start > AROUND else front
                space = piece[: len(piece) - len(piece.lstrip())]
                best[feature], told[feature] = value, f"{cut}{space if piece.strip() else ''}[{word}]"
    labels = []
    for example, words in zip(told, totals, strict=True):
        word, most = max(words.items(), key=lambda each: each[1], default=("", 0.0))
        labels.append(example and f"{word} {most / sum(words.values()):.0%} · {example}")
    return labels


def _encoded(model: Model, text: str) -> Encoding:
    if model.tokenizer is None:
        raise InputError(f"{model.name} has no vocabulary to read texts with: name one with --vocab")
    return model.tokenizer.encode(text[:MAX_CHARACTERS], max_tokens=model.config.max_length, cut=True)
