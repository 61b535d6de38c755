"""Characters as tokens."""

from __future__ import annotations

from tui_transformer.text.build import build_characters
from tui_transformer.text.dispatch import tokenizer_for


def test_special_words_are_told_from_characters() -> None:
    tokens = tokenizer_for(build_characters(["ab"], 100).vocabulary).encode("a[PAD]bz").tokens
    assert [token.text for token in tokens] == ["a", "[PAD]", "b", "z"]
    assert [token.special for token in tokens] == [False, True, False, False]
    assert [token.unknown for token in tokens] == [False, False, False, True]
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (1, 6), (6, 7), (7, 8)]
