from __future__ import annotations

from itertools import product

import pytest
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.labels import Written
from tui_transformer.explorer.widgets.matrix_drawing import Header
from tui_transformer.text.display import fit_label


@pytest.mark.parametrize("text", ["shore", "猫が好き", "\x1b[31mred\x1b[0m", "[b]x[/b]", "👩‍👩‍👧", "é" * 9, ""])
def test_labels_take_exactly_their_cells_and_are_harmless(text: str) -> None:
    for width, align in product((0, 1, 2, 3, 5, 20), ("left", "right", "center")):
        fitted = fit_label(text, width, align)  # type: ignore[arg-type]
        assert cell_len(fitted) == width, (width, align)
        assert "\x1b" not in fitted, (width, align)


def test_cut_labels_say_so_and_the_position_of_a_token_stays_where_there_is_room_for_a_character_before_it():
    assert fit_label("forcefully", 5) == "forc…"
    assert fit_label("the", 5, "right") == "  the"
    assert fit_label("!", 5, "center") == "  !  "
    cut = [fit_label("the @2", width) for width in (7, 6, 5, 4, 3, 1)]
    assert cut == ["the @2 ", "the @2", "the@2", "t…@2", "th…", "…"]
    assert fit_label("世界 @12", 6) == "世…@12"
    assert fit_label("世界 @12", 5) == "…@12 "


@pytest.mark.parametrize("name", ["statement", "question", "猫が好きな人", "?", "x" * 40])
def test_the_label_under_the_cursor_is_whole_and_the_columns_stay(name):
    for cursor in range(12):
        line = line_of_labels(name, cursor)
        assert cell_len(line) == 60, cursor
        assert name[:20] in line, cursor
        assert all(word == "car…" for word in line.replace(name, " ").split() if "x" not in word), cursor


@pytest.mark.parametrize("name", ["a", "日本", "海が好き", "é", ""])
def test_every_label_is_as_wide_as_its_column_however_wide_its_characters_are(name):
    header = Header(lambda _: name, Grid(1, 6, 7, 1, gutter=0, header=1), Style(), Style(bold=True))
    assert [segment.cell_length for segment in header.segments(range(6), 9, range(42))] == [7] * 6


def line_of_labels(name: str, cursor: int) -> str:
    """The labels of columns that are all too narrow, with one under the cursor."""
    grid = Grid(1, 12, 5, 1, gutter=0, header=1)
    header = Header(lambda column: name if column == cursor else "carried", grid, Style(), Style(bold=True))
    return "".join(segment.text for segment in header.segments(range(12), cursor, range(2, 57)))


def test_a_line_in_another_look_is_another_line() -> None:
    written = Written(Widget())
    for style, is_new in (("green", True), ("green", False), ("magenta", True)):
        assert written.is_new("title", Text(" title", style).append(" name", "dim")) is is_new
