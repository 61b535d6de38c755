"""The drawings of the generate screen: running text, bars, the cache, and what is said of the number drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from tui_transformer.explorer.tools.generate import view
from tui_transformer.explorer.widgets.generation import (
    FREE,
    KEPT,
    NOW,
    CachePicture,
    cache_lines,
    head_label,
    token_lines,
)
from tui_transformer.generation.sampling import Draw
from tui_transformer.text.display import cells
from tui_transformer.views.numbers import share_bar


def drawn(picture: CachePicture, width: int, height: int = 20) -> list[str]:
    return ["".join(run.text for run in line).rstrip() for line in cache_lines(picture, width, height)]


@pytest.mark.parametrize(
    ("tokens", "width", "lines"),
    [
        (["The", " wa", "ves", " crash"], 10, ["The waves", " crash"]),
        (["ab", "cdefghij"], 4, ["abcd", "efgh", "ij"]),
        (["one\n", "two"], 20, ["one␊", "two"]),
    ],
    ids=["between words", "a wide token", "a newline"],
)
def test_tokens_are_broken_between_words_where_they_are_wide_and_behind_newlines(tokens, width, lines):
    assert ["".join(part.text for part in line) for line in token_lines(tokens, width)] == lines


@pytest.mark.parametrize("tokens", [["漢字", " ab", "🙂"], ["\x1b[31m", "", " x"], ["e\u0301", "\u202e", "abc def"]])
def test_no_line_is_wider_than_asked_and_no_token_is_lost(tokens: list[str]):
    widest = max(cells(character) for token in tokens for character in token + " ")
    for width in (1, 2, 3, 7):
        lines = token_lines(tokens, width)
        assert all(sum(cells(part.text) for part in line) <= max(width, widest) for line in lines), width
        assert {part.token for line in lines for part in line} == set(range(len(tokens))), width


def test_a_bar_is_as_long_as_its_share():
    bars = [share_bar(share, 4) for share in (0, 1, 0.5, 1e-9, 0.28, math.nan, math.inf)]
    assert bars == ["    ", "████", "██  ", "▏   ", "█▏  ", "    ", "████"]


GROUPED = CachePicture(((0, 1), (2, 3)), ("The", " cat", " sat", " on"), computed=1, limit=64)


def test_the_cache_tells_kept_rows_from_the_one_computed_now_and_free_ones_and_counts_them():
    words, first, second, *_, legend = drawn(GROUPED, 70)
    assert words.split() == ["The", "cat", "sat", "on"]
    assert first.startswith("K0 ← q0 q1")
    assert second.startswith("K1 ← q2 q3")
    for line in (first, second):
        signs = line.partition("← ")[2]
        assert [len(signs.split(KEPT)) > 1, NOW in signs, FREE in signs] == [True, True, True]
        assert signs.rindex(KEPT) < signs.index(NOW) < signs.index(FREE)
    assert f"{KEPT} kept 3   {NOW} computed now 1   {FREE} free 60 of 64" in legend
    # after the whole prompt every row was computed now
    line = drawn(CachePicture(((0,),), ("a", "b", "c"), computed=3, limit=8), 60)[1]
    assert KEPT not in line
    assert NOW in line


def test_every_query_head_is_drawn_under_the_key_head_that_it_reads():
    picture = replace(GROUPED, attention=((1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 1.0, 0), (0, 0, 0, 1.0)))
    labels = [line[0].text.strip() if line else "" for line in cache_lines(picture, 60, 30)]
    assert labels[1:10] == ["K0 ← q0 q1", "q0", "q1", "", "K1 ← q2 q3", "q2", "q3", "", "mean"]


def test_a_cache_that_does_not_fit_shows_its_last_tokens_and_counts_the_other_key_heads():
    long = CachePicture(((0,),), tuple(map(str, range(1000))), computed=1, limit=1024)
    words, line, *_ = drawn(long, 40)
    assert line.count(KEPT) + line.count(NOW) == int(words.split()[1]) - int(words.split()[0]) + 1
    assert words.split()[1] == "999"
    assert line.count(NOW) == 1
    many = CachePicture(tuple((head,) for head in range(12)), ("a", "b"), computed=1, limit=8)
    lines = drawn(many, 60, height=8)
    assert len(lines) == 8
    assert "8 more key heads" in lines[-3]


def test_the_attention_of_the_newest_token_has_a_weight_for_every_token_that_is_drawn():
    picture = CachePicture(((0,),), ("a", "b", "c"), computed=1, limit=8, attention=((0.2, 0.3, 0.5),))
    line = next(line for line in cache_lines(picture, 60, 20) if line and line[0].text.startswith("mean"))
    assert [run.weight for run in line if run.weight is not None] == [0.2, 0.3, 0.5]


def test_any_size_is_drawn():
    for width, height in product((1, 5, 20, 40, 100), (1, 2, 5, 30)):
        assert len(drawn(GROUPED, width, height)) <= height, (width, height)


def test_a_key_head_is_named_with_the_query_heads_that_read_it():
    labels = [head_label(1, queries) for queries in ((0,), (2, 3), tuple(range(4, 12)))]
    assert labels == ["K1 ← q0", "K1 ← q2 q3", "K1 ← q4–q11"]


@pytest.mark.parametrize(
    ("number", "low", "high", "written"),
    [
        (0.5, 0.25, 0.75, "r = 0.5000 falls between 0.2500 and 0.7500,"),
        (0.905213, 0.905211, 0.905215, "r = 0.905213 falls between 0.905211 and 0.905215,"),
        (0.0, 0.0, 0.5, "r = 0.0000 falls between 0.0000 and 0.5000,"),
    ],
)
def test_what_was_drawn_is_told_from_the_sums_that_it_fell_between(number, low, high, written):
    draft = SimpleNamespace(state=SimpleNamespace(draw=Draw(number, low, high, 7)))
    assert view.drawn(draft, "x").startswith(written)
