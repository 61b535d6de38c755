"""Text on screen: harmless, on one line, and of a known width."""

from __future__ import annotations

import sys
import unicodedata

from rich.cells import cell_len, get_character_cell_size

from tui_transformer.text.display import byte_codes, cells, fit, piece_label, piece_text, token_label, visible

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_visible_shows_what_cannot_be_seen() -> None:
    for text, shown in (
        ("", ""),
        ("shore!", "shore!"),
        ("a\tb\nc", "a␉b␊c"),
        ("\x1b[31mred", "␛[31mred"),
        ("\x00\x7f", "␀␡"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc", "\\u202eabc"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("\u0378", "\\u0378"),
        ("\u3164", "\\u3164"),
        ("Größe naïve 猫 🌊", "Größe naïve 猫 🌊"),
        ("❤\ufe0f", "❤"),
        ("\u0301a", "◌\u0301a"),
        ("e\u0301", "e\u0301"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ):
        assert visible(text) == shown


def test_visible_leaves_no_unseen_character() -> None:
    planes = [*range(0x20000), *range(0xE0000, 0xE0400), 0xF0000, sys.maxunicode]
    shown = visible("".join(map(chr, planes)))
    assert {unicodedata.category(character) for character in set(shown)}.isdisjoint(UNSEEN)
    text = "\u0301\x1b[2J\u202e猫\ufe0f\n"
    assert visible(visible(text)) == visible(text)


WIDTHS = {"": 0, "abc": 3, "猫": 2, "🌊": 2, "e\u0301": 1, "한": 2, "\x1b": 1, "\u202e": 6, "ｗ": 2}


def test_the_width_of_every_shown_character_is_the_one_the_screen_uses() -> None:
    assert {text: cells(text) for text in WIDTHS} == WIDTHS
    shown = [chr(code) for code in range(0x20, 0x20000) if visible(chr(code)) == chr(code)]
    assert [hex(ord(c)) for c in shown if cells(c) != get_character_cell_size(c)] == []


def test_fit_cuts_or_pads_to_the_width() -> None:
    for text, width, fitted in (
        ("shore", 7, "shore  "),
        ("shore", 5, "shore"),
        ("forcefully", 5, "forc…"),
        ("forcefully", 1, "…"),
        ("forcefully", 0, ""),
        ("", 2, "  "),
        ("", -1, ""),
        ("猫猫", 3, "猫…"),
        ("猫猫", 2, "… "),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("a\nb", 3, "a␊b"),
    ):
        assert fit(text, width) == fitted
    for text in ("forcefully", "猫🌊ab", "\u0301\x1b\u202e", "한e\u0301❤\ufe0f", "👩\u200d💻"):
        assert [cell_len(fit(text, width)) for width in range(12)] == list(range(12)), text
    assert fit("7", 3, align="right") == "  7"


READINGS = [
    ("word pieces", "##ing", "ing, inside a word"),
    ("word pieces", "##", "##"),
    ("word pieces", "é", "é"),
    ("bytes", "Ġthe", "the, after a space"),
    ("bytes", "the", "the"),
    ("bytes", "Ġ", "a space"),
    ("bytes", "ĠĠĠ", "3 spaces"),
    ("bytes", "ðŁĺĬ", "😊, bytes F0 9F 98 8A"),
    ("bytes", "ĠðŁĺĬ", "😊, after a space, bytes F0 9F 98 8A"),
    ("bytes", "ĺĬ", "bytes 98 8A"),
    ("bytes", "Ĭ", "byte 8A"),
    ("bytes", "Ċ", "line break, byte 0A"),
    ("bytes", "Ã©", "é, bytes C3 A9"),
    ("bytes", "▁the", "▁the"),
    ("marked spaces", "▁the", "the, after a space"),
    ("marked spaces", "▁", "a space"),
    ("marked spaces", "the", "the"),
    ("marked spaces", "<0x0A>", "line break, byte 0A"),
    ("marked spaces", "<0xF0>", "byte F0"),
    ("words", "##ing", "##ing"),
]


def test_a_piece_is_read_in_plain_words_and_every_byte_has_one_character():
    from tokenizers import pre_tokenizers

    assert [(style, piece, piece_text(piece, style)) for style, piece, _ in READINGS] == READINGS
    assert sorted(byte_codes().values()) == list(range(256))
    assert set(byte_codes()) == set(pre_tokenizers.ByteLevel.alphabet())


def test_a_label_has_one_sign_for_a_space_and_is_harmless() -> None:
    for piece, style, label in (
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
    ):
        assert piece_label(piece, style) == label
    labels = {" ": "␣", "  ": "␣␣", "": "", "a b": "a b", "\n": visible("\n")}
    assert {text: token_label(text) for text in labels} == labels
    assert "\x1b" not in piece_label("Ä\x9b[31m", "marked spaces") + piece_label("\x1b[31m", "words")
