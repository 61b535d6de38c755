"""The way back from a number to the words, as cells, as text and as SVG."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from reference import in_float64

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.report.poster import checked, heading, poster_svg, poster_text
from tui_transformer.views.poster import Cell, Term, poster
from tui_transformer.views.step_view import Labels

SENTENCE = "where did the old sailor hide the map ?"
LAYER = "encoder.0.self_attention"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return in_float64("question").trace(SENTENCE)


def of(trace: Trace, name: str, index: tuple[int, ...], **how: int) -> Cell:
    labels = Labels({"tokens": tuple(SENTENCE.split())})
    return poster(trace, name, index, labels, **how)


def test_every_cell_has_the_value_of_the_trace_and_it_goes_back_to_the_words(trace: Trace) -> None:
    root = of(trace, f"{LAYER}.weights", (2, 0, 8), most=40)
    steps = [cell for cell in root.walk() if cell.kind == "step"]
    assert len(steps) > 40
    for cell in steps:
        assert cell.value == pytest.approx(float(trace[cell.name][cell.index]), abs=1e-12)
        assert abs(cell.difference) < 1e-12
    # back to the words
    names = {cell.name for cell in root.walk()}
    assert {f"{LAYER}.scaled", f"{LAYER}.query", f"{LAYER}.key", "embedding.tokens", "embedding.positions"} <= names
    assert "tokens" in names
    # each taken apart once
    apart = [(cell.name, cell.index) for cell in root.walk() if cell.formula]
    assert len(apart) == len(set(apart))
    assert any(cell.is_repeated for cell in root.walk())


def test_terms_and_the_rest_add_up_to_the_cell(trace: Trace) -> None:
    cell = of(trace, f"{LAYER}.scores", (2, 0, 8), levels=1, terms=3)
    assert [len(term.cells) for term in cell.terms] == [2, 2, 2]
    assert cell.rest == 5
    assert sum(term.contribution for term in cell.terms) + cell.rest_total == pytest.approx(cell.value)
    for term in cell.terms:
        assert np.prod([each.value for each in term.cells]) == pytest.approx(term.contribution)
    sizes = [abs(term.contribution) for term in cell.terms]
    assert sizes == sorted(sizes, reverse=True)


def test_no_further_than_is_asked_for_and_no_cell_that_is_not_there(trace: Trace) -> None:
    def depth(cell: Cell) -> int:
        return max((1 + depth(each) for term in cell.terms for each in term.cells), default=0)

    assert [depth(of(trace, f"{LAYER}.weights", (2, 0, 8), levels=levels)) for levels in (1, 2, 5)] == [1, 2, 5]
    taken_apart = [cell for cell in of(trace, "output.logits", (0, 1), most=7).walk() if cell.formula]
    assert len(taken_apart) == 7
    with pytest.raises(InputError, match="weights"):
        of(trace, f"{LAYER}.weights", (2, 0, 9))


def test_places_are_said_in_words_and_as_text_every_cell_is_a_line(trace: Trace) -> None:
    root = of(trace, f"{LAYER}.weights", (2, 0, 8), levels=1)
    assert root.place == "head 2 · query where · key ?"
    assert heading(root) == f"{LAYER}.weights · head 2 · query where · key ? = 0.98859"
    # as text every cell is a line below that which it is a part of
    root = of(trace, f"{LAYER}.scaled", (2, 0, 8), levels=2)
    lines = "".join(poster_text(root, 120)).splitlines()
    assert lines[0] == f"6.943 = 19.638 ÷ 2.8284   {LAYER}.scaled · head 2 · query where · key ?"
    assert lines[1].startswith(
        "└ 19.638 = (−1.3049) · (−3.039) + … + 0.81462 · 1.849   encoder.0.self_attention.scores"
    )
    assert re.match(
        r"  ├ 9\.14 \(47 %\): −1\.9751   encoder\.0\.self_attention\.query · head 2 · token where", lines[2]
    )
    assert lines[3].startswith("  ├ · −4.6277   encoder.0.self_attention.key")
    assert [line[:4] for line in lines[2:7]] == ["  ├ ", "  ├ ", "  ├ ", "  ├ ", "  └ "]
    assert re.fullmatch(r"2 cells worked out again in float64; at most \S+ from the forward pass", lines[-1])
    assert all(len(line) <= 120 for line in lines)


def test_as_svg_it_is_one_picture_with_every_cell(trace: Trace) -> None:
    root = of(trace, f"{LAYER}.weights", (2, 0, 8), levels=4)
    svg = poster_svg(root, f"{SENTENCE} <&>")
    tree = ElementTree.fromstring(svg)  # noqa: S314 - made here
    kind = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f"{kind}rect")) == 1 + len([*root.walk()])
    assert len(tree.findall(f"{kind}path")) == len([*root.walk()]) - 1
    assert "<&>" in "".join(tree.itertext())
    width, height = float(tree.get("width", "0")), float(tree.get("height", "0"))
    for box in tree.findall(f"{kind}rect")[1:]:
        x, y, wide, high = (float(box.get(name, "nan")) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height


def test_the_number_in_the_heading_is_not_cut_of_a_poster_of_few_columns(trace: Trace) -> None:
    tree = ElementTree.fromstring(poster_svg(of(trace, f"{LAYER}.weights", (2, 0, 8), levels=1), ""))  # noqa: S314
    head = tree.findall("{http://www.w3.org/2000/svg}text")[0]
    text, size = "".join(head.itertext()), float(head.get("font-size", "nan"))
    assert text.endswith(" = 0.98859")
    assert float(head.get("x", "nan")) + 0.602 * size * len(text) <= float(tree.get("width", "0"))


def test_two_boxes_of_a_picture_do_not_look_alike_however_long_the_words_are() -> None:
    name, long = "encoder.10.self_attention.query.{}", "internationalization @{}"
    cells = [
        Cell(
            name.format(end), (0, 0, at), -0.12345, "weight", f"head 2 · query {long.format(0)} · key {long.format(at)}"
        )
        for end, at in (("weight", 3), ("weight", 14), ("bias", 14))
    ]
    cells[0].terms = tuple(Term(1.0, 0.5, (cell,)) for cell in cells[1:])
    tree = ElementTree.fromstring(poster_svg(cells[0], ""))  # noqa: S314 - made here
    texts = ["".join(each.itertext()) for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    heads = [text for text in texts if text.startswith(name[:7]) and text.endswith(" −0.12345") and " = " not in text]
    assert [head.split()[0][:11] for head in heads] == ["encoder.10."] * 3
    assert [head.split()[0].rpartition(".")[2] for head in heads] == ["weight", "weight", "bias"]
    assert [text for text in texts if text.startswith("key")] == [f"key {long.format(at)}" for at in (3, 14, 14)]


def test_a_cell_that_was_set_is_made_of_nothing(trace: Trace) -> None:
    by_hand = trace.edited([Edit(f"{LAYER}.weights", (2, 0, 8), 0.5)])
    root = of(by_hand, f"{LAYER}.weights", (2, 0, 8))
    assert list(poster_text(root, None)) == [
        f"0.5 (set by hand)   {LAYER}.weights · head 2 · query where · key ?\n",
        "\nset by hand, not computed\n",
    ]
    assert ">set by hand</text>" in poster_svg(root, "")
    below = of(by_hand, f"{LAYER}.context", (2, 0, 1), levels=3)
    (cell,) = (each for each in below.walk() if (each.name, each.index) == (f"{LAYER}.weights", (2, 0, 8)))
    assert (cell.value, cell.formula, cell.terms, cell.edited) == (0.5, "", (), "set by hand")
    assert "at most 0.5 " not in "".join(poster_text(below, None))


def test_boxes_of_a_column_do_not_lie_over_one_another(trace: Trace) -> None:
    tree = ElementTree.fromstring(poster_svg(of(trace, "output.logits", (0, 1), most=30), ""))  # noqa: S314
    columns: dict[str, list[tuple[float, float]]] = {}
    for box in tree.findall("{http://www.w3.org/2000/svg}rect")[1:]:
        top = float(box.get("y", "nan"))
        columns.setdefault(box.get("x", ""), []).append((top, top + float(box.get("height", "nan"))))
    assert len(columns) > 3
    for spans in columns.values():
        ordered = sorted(spans)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(ordered))


def test_a_cell_that_is_no_number_is_not_taken_for_the_farthest() -> None:
    cells = [Cell(str(i), (), 0.0, "step", formula="x", difference=apart) for i, apart in enumerate((math.nan, -2e-7))]
    cells[0].terms = (Term(1.0, 1.0, (cells[1],)),)
    assert checked(cells[0]).endswith("; at most 2e-7 from the forward pass, but 1 that are no number")


@pytest.mark.filterwarnings("error")
def test_numbers_whose_sum_is_beyond_the_largest_are_followed_without_a_word(trace: Trace) -> None:
    places = ((0, 0), 1.6e308), ((0, 1), -1.7e308), ((0, 2), 1.7e308)
    large = trace.edited([Edit("embedding.output", place, value) for place, value in places])
    root = of(large, f"{LAYER}.norm", (0, 0), levels=3)
    assert len(list(root.walk())) > 3
