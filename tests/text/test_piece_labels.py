from __future__ import annotations

import pytest

from tui_transformer.text.display import piece_label


@pytest.mark.parametrize(
    ("piece", "style", "label"),
    [
        ("Ġthe", "bytes", "␣the"),
        ("ĠĠ", "bytes", "␣␣"),
        ("Ã©", "bytes", "é"),
        ("ĺĬ", "bytes", "ĺĬ"),
        ("▁the", "marked spaces", "␣the"),
        ("▁", "marked spaces", "␣"),
        ("Ġanni", "words", "Ġanni"),
        (" ", "characters", "␣"),
        ("##ing", "word pieces", "##ing"),
        ("<s>", "bytes", "<s>"),
    ],
)
def test_a_label_has_one_sign_for_a_space(piece, style, label) -> None:
    assert piece_label(piece, style) == label


def test_a_label_is_harmless() -> None:
    assert "\x1b" not in piece_label("Ä\x9b[31m", "marked spaces") + piece_label("\x1b[31m", "words")
