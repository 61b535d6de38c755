"""Classifiers: heads that give labels, where their tensors are, and how each family's files have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import one_of, shown, token_id
from tui_transformer.model.description import ACTIVATION_NAMES, LabelHead, Norm, Transform
from tui_transformer.model.sentence import with_sentence
from tui_transformer.model.weight_table import Part, WeightTable
from tui_transformer.records import dataclass, replace

TASKS = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "PreTraining")
"""Ends of the names of architectures: labels of the sentence, of every token, start and end of an answer, and whether
a token was replaced."""

SENTENCE, TOKEN, QUESTION, REPLACED = TASKS
SPAN = ("start", "end")
FIXED: Mapping[str, tuple[str, ...]] = {QUESTION: SPAN, REPLACED: ("replaced",)}
"""Labels that are the same in all files."""
MOST = 1 << 16
SHARES: Mapping[str, str] = {
    "regression": "",
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
}
"""Values of `problem_type` → the shares of the labels."""

HIDDEN, NORM, LOGITS = "output.transform.hidden", "output.transform.norm", "output.logits"


@dataclass(frozen=True)
class Layout:
    """How a family makes logits of labels.

    Attributes:
        logits: The tensor of the last matrix; of several the first that a file has.
        hidden: That of a matrix before it, "" for none.
        activation: Of that.
        norm: The tensor of a norm after it.
        pool: How the tokens become one vector, "" for labels of every token.
        until_end: Up to the last token that ends a text.
    """

    logits: tuple[str, ...] = ("classifier",)
    hidden: str = ""
    activation: str = ""
    norm: str = ""
    pool: str = ""
    until_end: bool = False


OF_TOKENS, OF_SPANS = Layout(), Layout(("qa_outputs",))


def of_encoder(hidden: str, activation: str = "tanh", logits: str = "classifier") -> Mapping[str, Layout]:
    """Of an encoder, whose first token stands for the sentence (Devlin et al. 2018, §4)."""
    return {TOKEN: OF_TOKENS, QUESTION: OF_SPANS, SENTENCE: Layout((logits,), hidden, activation, pool="first")}


ONE_STACK: Mapping[str, Layout] = {
    SENTENCE: Layout(("score",), pool="last"),
    TOKEN: Layout(("score", "classifier")),
    QUESTION: OF_SPANS,
}
"""Decoders alone: the last token, which has seen all, stands for the sentence (Radford et al. 2018, §3.2)."""

BOTH_STACKS: Mapping[str, Layout] = {
    SENTENCE: Layout(
        ("classification_head.out_proj",), "classification_head.dense", "tanh", pool="last", until_end=True
    ),
    QUESTION: OF_SPANS,
}
"""An encoder and a decoder: the decoder reads the same sentence again, and its vector at the token that ends the text
stands for it (Lewis et al. 2019, §3.1)."""


@dataclass(frozen=True)
class Labels:
    """The labels of a classifier.

    Attributes:
        architecture: As in `config.json`.
        names: Of the labels, in order.
        shares: Of their probabilities, as in `LabelHead`.
        pool: Another way to one vector than the family's, where the file names one.
        activation: Another activation than the family's, likewise.
        bias: The last matrix has a bias; only the file tells.
        hidden_bias: The matrix before it has one, likewise.
        end_id: The token that ends a text, where the family goes by it.
    """

    architecture: str
    names: tuple[str, ...]
    shares: str = "softmax"
    pool: str = ""
    activation: str = ""
    bias: bool = True
    hidden_bias: bool = True
    end_id: int | None = None

    @property
    def task(self) -> str:
        """One of `TASKS`."""
        return self.architecture.rpartition("For")[2]

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        problem = next(name for name, shares in SHARES.items() if shares == self.shares)
        names = {str(number): name for number, name in enumerate(self.names)}
        asked = {"classifier_pooling": self.pool, "classifier_activation": self.activation}
        if self.task == SENTENCE:
            asked["problem_type"] = problem
        ends = {} if self.end_id is None else {"eos_token_id": self.end_id}
        asked = {key: value for key, value in asked.items() if value}
        return {"architectures": [self.architecture], "id2label": names, **asked, **ends}


def read_labels(raw: Mapping[str, Any], layouts: Mapping[str, Layout]) -> Labels | None:
    """The labels that a `config.json` describes; None for a model of another kind, or a head that has no layout.

    Raises:
        UsageError: Labels that cannot be.
    """
    named = raw.get("architectures")
    heads = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    head = re.sub(r"\W", "", heads[0])[:80] if heads else ""
    task = head.rpartition("For")[2]
    if task not in layouts:
        return None
    names = FIXED.get(task) or _names(raw)
    pool = raw.get("classifier_pooling") or ""
    if pool not in ("", "cls", "first", "mean"):
        raise UsageError(f"classifier_pooling {shown(pool)} is not known: use cls, mean")
    activation = raw.get("classifier_activation") or raw.get("pooler_hidden_act") or ""
    if task == REPLACED:
        activation = raw.get("hidden_act", "gelu")
    if activation and activation not in tuple(ACTIVATION_NAMES):  # it may be anything
        raise UsageError(
            f"activation {shown(activation)} of the classifier is not known: use {', '.join(ACTIVATION_NAMES)}"
        )
    end = raw.get("eos_token_id") if layouts[task].until_end else None
    if end is not None:
        token_id("eos_token_id", end)
    shares = _shares(raw, task, len(names))
    return Labels(head, names, shares, pool.replace("cls", "first"), str(activation), end_id=end)


def _names(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the labels, in order; LABEL_0, LABEL_1 … where only their number is said, by default 2."""
    table, count = raw.get("id2label"), raw.get("num_labels", 2)
    if table is None and isinstance(count, int) and 1 <= count <= MOST:
        return tuple(f"LABEL_{number}" for number in range(count))
    if not isinstance(table, Mapping) or not 1 <= len(table) <= MOST:
        raise UsageError(f"id2label {shown(table)} is not a table of labels by number")
    numbers = [str(number) for number in range(len(table))]
    if set(map(str, table)) != set(numbers):
        raise UsageError(f"id2label {shown(table)} does not number the labels 0, 1, 2 …")
    by_number = {str(number): str(name) for number, name in table.items()}
    return tuple(by_number[number] for number in numbers)


def _shares(raw: Mapping[str, Any], task: str, count: int) -> str:
    """The shares of the labels: none for the ends of an answer, and for one number alone."""
    problem = raw.get("problem_type")
    if task in FIXED:
        return "" if task == QUESTION else "sigmoid"
    if problem is None or task != SENTENCE:
        return "" if count == 1 and task == SENTENCE else "softmax"
    one_of(tuple(SHARES))("problem_type", problem)
    return SHARES[problem]


def label_head(labels: Labels, layout: Layout, norm: Norm | None) -> LabelHead:
    """The head of these labels; `norm` is that of the head, where it has one."""
    transform = None
    if layout.hidden:
        activation = ACTIVATION_NAMES[labels.activation or layout.activation]
        transform = Transform(activation=activation, norm=norm if layout.norm else None, bias=labels.hidden_bias)
    pool = layout.pool and (labels.pool or layout.pool)
    return LabelHead(labels.names, pool, transform, labels.bias, labels.shares, labels.end_id is not None)


def table_of(weights: WeightTable, config: Any) -> WeightTable:
    """The table of weights of a configuration, with those of its labels or its sentence vector, where it has some."""
    if config.sentence is not None:
        return with_sentence(weights, config.sentence)
    if config.labels is None:
        return weights
    layout = config.layouts[config.labels.task]
    layers = {step: part for step, part in weights.parts.items() if not step.startswith("output.")}
    parts: dict[str, str | Part] = {LOGITS: Part(layout.logits, turned=True)}
    if layout.hidden:
        parts[HIDDEN] = Part(layout.hidden, turned=True)
    if layout.norm:
        parts[NORM] = layout.norm
    # decoders that answer questions have this prefix, whatever is there in other files of the family
    return replace(weights, parts={**layers, **parts}, prefixes=(*weights.prefixes, "transformer."))


def fitted_labels(labels: Labels, weights: WeightTable, names: frozenset[str]) -> Labels | None:
    """With the biases that a file has; None where an encoder that was only trained came without its head."""
    if labels.task == REPLACED and not weights.has(f"{LOGITS}.weight", names):
        return None
    bias, hidden_bias = (weights.has(f"{step}.bias", names) for step in (LOGITS, HIDDEN))
    return replace(labels, bias=bias, hidden_bias=hidden_bias)
