"""Which tokens are special, which separate; and weights without the hidden ones."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.attentions import renormalized
from tui_transformer.analysis.tokens import NOTHING, Hidden, is_separator, is_special
from tui_transformer.model import Model


@pytest.mark.parametrize(
    ("folder", "special", "separating"),
    [
        ("bert", {"[CLS]", "[SEP]", "[PAD]"}, {"[SEP]", ",", "."}),
        ("gpt2", {"<|endoftext|>"}, {"<|endoftext|>", ","}),
        ("roberta", {"<s>", "</s>", "<pad>"}, {"</s>", ","}),
        ("t5", {"</s>", "<pad>"}, {"</s>"}),
    ],
)
def test_special_and_separating_tokens_of_a_vocabulary(folder: str, special: set[str], separating: set[str]) -> None:
    words = Model.load(REFERENCES / folder, device="cpu").vocabulary
    assert words is not None
    marks = {word for i, word in enumerate(words.words) if is_special(words, i)}
    assert special <= marks
    assert not marks & {"[MASK]", "<mask>", "[UNK]", "<unk>", "the"}
    parting = {word for i, word in enumerate(words.words) if is_separator(words, i)}
    assert separating & set(words.words) <= parting
    assert not parting & {"[CLS]", "<s>", "[PAD]", "<pad>", "the", "[MASK]", "<mask>"}


def test_rows_sum_to_one_without_the_hidden_keys() -> None:
    weights = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    left = renormalized(weights, np.array([True, False, False]))
    assert left.tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]


def test_nothing_is_hidden_by_default() -> None:
    weights = np.array([[0.5, 0.5]])
    assert renormalized(weights, np.array([False, False])) is weights
    assert (NOTHING.active, NOTHING.text) == (False, "")


def test_what_is_hidden_is_said() -> None:
    assert Hidden(special=True).text == "special tokens hidden, rows renormalised"
    assert Hidden(special=True, first=True).text == "special tokens and first token hidden, rows renormalised"
