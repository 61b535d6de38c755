from __future__ import annotations

import re

import numpy as np
import pytest
from driving import NARROW, WIDE, Explorer, exploring
from rich.style import Style

from tui_transformer.engine.explanation import Factor, Sum
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.explorer.main.panes.cell import CellLines, CellPane, Inks, Line, _in_column
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.edit_format import changes
from tui_transformer.views.step_view import index_of

UNLIKE = {"norm": "pre", "activation": "gelu", "bias": True, "positions": "learned", "tie_output": True}
MODELS = {
    "attention": {"model": "attention"},
    "decoder": {"model": "decoder", "vocab": "dog", "sizes": {**UNLIKE, "d_model": 6, "heads": 2, "d_ff": 5}},
    "float64": {"dtype": "float64", "sizes": {"scale_embedding": True, "bias": True, "d_ff": 9}},
}
GIVEN = ("tokens",)
PRECISION = {"float32": 1e-5, "float64": 1e-12}


def words(line: Line) -> str:
    return "".join(text for text, _ in line.parts)


def lines(explorer: Explorer) -> list[str]:
    """The lines of the cell pane, in sight or not."""
    pane = explorer.main.query_one(CellPane)
    assert pane._working is not None
    return [words(pane._working.line(i, 60)) for i in range(pane._working.size)]


def value_at(explorer: Explorer) -> float:
    """The number under the cursor, from the trace."""
    trace, position = explorer.session.trace, explorer.position
    axes = trace.program.axes(position.stop)
    region = tuple(range(i, i + 1) for i in index_of(axes, position.place))
    return float(trace.window(position.stop, region).reshape(()))


async def check_links(explorer: Explorer) -> int:
    """Check where every line leads, follow one of each source and come back; how many lines there were."""
    pane, home = explorer.main.query_one(CellPane), explorer.position
    assert pane._working is not None
    targets = [(i, pane._working.line(i, 60).target) for i in range(pane._working.size)]
    links = {i: target() for i, target in targets if target is not None}
    for target in links.values():
        cell = explorer.session.trace.window(target.name, tuple(range(i, i + 1) for i in target.index))
        assert float(cell.reshape(())) == pytest.approx(target.value, rel=1e-6, abs=1e-12)
    for index, target in {target.name: (i, target) for i, target in links.items()}.values():
        pane.cursor = index
        await explorer.keys("enter")
        assert (explorer.stop, value_at(explorer)) == (target.name, pytest.approx(target.value))
        assert pane.has_focus
        await explorer.keys("escape")
        assert explorer.position == home
    return len(links)


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
async def test_every_step_is_worked_out_and_its_terms_lead_to_their_cells(options):
    text = "a dog bites" if options.get("vocab") else None if options.get("model") else "the waves crashed"
    async with exploring(NARROW, text=text, **options) as explorer:
        program = explorer.session.trace.program
        await explorer.press("5")
        for column, stop in enumerate(name for name in explorer.session.stops if name in program.by_name):
            await explorer.go(stop, 0, 99, column)  # the last row
            assert explorer.main.query_one(CellPane).has_focus
            shown = dict(re.findall(r"^(recomputed|stored|difference) +(\S+)", "\n".join(lines(explorer)), re.M))
            numbers = {name: float(text.replace("−", "-").replace("∞", "inf")) for name, text in shown.items()}
            assert numbers["stored"] == pytest.approx(value_at(explorer), rel=1e-7, abs=1e-8)
            limit = PRECISION[str(explorer.session.model.backend.dtype)] * max(1.0, abs(value_at(explorer)))
            assert abs(numbers["difference"]) <= limit
            if stop not in GIVEN:
                assert await check_links(explorer) > 0, stop


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_enter_goes_to_the_cell_and_esc_back_along_the_trail(size):
    async with exploring(size, at="encoder.0.self_attention.scores") as explorer:
        await explorer.press("5")
        assert explorer.main.query_one(CellPane).has_focus
        assert "shore" in explorer.text
        await explorer.press("end")
        assert "recomputed" in explorer.text
        assert "difference" in explorer.text
        await explorer.press("home", *["down"] * explorer.main.query_one(CellPane)._working.first_target())
        trail = [explorer.position]
        for _ in range(4):
            await explorer.press("enter")
            trail.append(explorer.position)
        assert len({position.stop for position in trail}) > 3
        for position in reversed(trail[:-1]):
            await explorer.press("escape")
            assert explorer.position == position
        await explorer.press("escape")
        assert not explorer.main.query_one(CellPane).has_focus
        assert explorer.stop == "encoder.0.self_attention.scores"


async def test_the_arrows_move_the_cell_and_terms_can_be_ordered_by_size():
    async with exploring(NARROW, at="embedding.output") as explorer:
        await explorer.press("j", "j", "l", "l", "l", "up", "left")
        assert (explorer.position.place.row, explorer.position.place.column) == (1, 2)
        assert any("waves @1" in line for line in lines(explorer))
        await explorer.press("G", "end")
        assert (explorer.position.place.row, explorer.position.place.column) == (7, 7)

        def terms() -> list[str]:
            parts = [line.split() for line in lines(explorer)]
            return [part[0] for part in parts if len(part) > 3 and part[0] in words]

        words = ["the", "waves", "crashed", "forcefully", "against", "the", "shore", "!"]
        await explorer.go("encoder.0.self_attention.context")
        await explorer.press("5")
        assert terms() == words
        await explorer.press("r")
        assert sorted(terms()) == sorted(words)
        assert terms() != words
        await explorer.press("r")
        assert terms() == words


async def test_w_goes_to_the_weight_and_back():
    async with exploring(NARROW, at="output.logits") as explorer:
        await explorer.press("w")
        assert explorer.stop == "output.logits.weight"
        await explorer.go("encoder.0.feed_forward.hidden")
        await explorer.press("w")
        assert explorer.stop == "encoder.0.feed_forward.hidden.weight"
        assert "encoder.0.feed_forward.hidden.weight" in explorer.text
        assert "beside the steps" in explorer.text
        await explorer.press("2")
        steps = explorer.main.query_one(StepsPane)
        assert steps.line_at(steps.cursor).plain.split()[0] == "hidden"
        await explorer.press("4", "w")
        assert explorer.stop == "encoder.0.feed_forward.hidden"
        await explorer.press("w", "space")
        assert explorer.stop == "encoder.0.feed_forward.activation"
        await explorer.press("w")
        assert any("no weights" in message for message in explorer.messages)


async def test_weights_that_are_no_numbers_are_not_said_to_be_masked():
    async with exploring(WIDE, model="question") as explorer:
        session = explorer.session
        wrong = changes(session.model, session.base.program, ["0.self_attention.scores[0,0,1] *= 1e39"])
        await explorer.change(session.with_edits(*wrong))
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.shown("× NaN", "1 row sums to NaN", "▸where │              NaN ")
        assert "× masked" not in explorer.text


async def test_a_query_without_a_visible_key_has_zeros_and_says_so():
    async with exploring(WIDE, model="question", ids=(0, 0)) as explorer:
        await explorer.go("encoder.0.self_attention.weights", 0, 1, 1)
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.press("4")
            assert explorer.scene.working.stored == 0
            await explorer.shown("a row without a visible key sums to 0")
            await explorer.press("5")
            await explorer.shown("no key is visible", "not 0 ÷ 0 but 0")


async def test_a_row_whose_weight_was_set_by_hand_is_not_said_to_sum_to_1():
    async with exploring(WIDE, at="encoder.0.self_attention.weights") as explorer:
        assert "every row sums to 1" in explorer.text
        await explorer.prompt("e", "5")
        assert "every row sums to 1" not in explorer.text
        assert "rows sum to 1 to 5." in explorer.text
        assert "* edited" in explorer.text
        await explorer.press("right")
        assert re.search(r"\*\s+5\.00", explorer.text)


async def test_the_equation_stays_in_view_however_long_the_working_is():
    async with exploring(NARROW, model="question") as explorer:
        # operands whose names end alike are told apart
        await explorer.go("encoder.0.self_attention.residual")
        await explorer.press("5")
        await explorer.shown("embedding.output[0, 0]", "self_attention.output[0, 0]")
        # the equation
        await explorer.go("encoder.0.self_attention.query")
        await explorer.press("5")
        pane, equation = explorer.main.query_one(CellPane), explorer.scene.working.equation
        assert len(lines(explorer)) > pane.size.height
        assert equation[:40] in explorer.text
        assert re.search(r"… \d+ more lines", explorer.text)
        below = pane.render_line(pane.size.height + 3)  # as it is asked for while a new size is laid out
        assert below.cell_length == pane.render_line(0).cell_length
        for _ in range(pane.size.height):
            await explorer.press("j")
            assert pane.cursor - pane.scroll_offset.y < pane.viewport.height
        await explorer.press("G")
        assert "more lines" not in explorer.text


async def test_all_terms_of_a_short_sum_are_in_view_where_the_working_is_longer_than_the_pane():
    async with exploring(WIDE, model="question", whole=None, at="encoder.0.self_attention.scores") as explorer:
        await explorer.press("t")
        while explorer.parts.tour.stop[2] != "key":
            await explorer.press("right")
        await explorer.press("right", "space")
        pane = explorer.main.query_one(CellPane)
        assert len(lines(explorer)) > pane.size.height
        shown = [pane.render_line(y).text.split() for y in range(pane.size.height)]
        assert [line[0] for line in shown if len(line) == 5] == list("01234567")


async def test_the_gradient_of_a_word_that_is_not_read_is_a_sum_of_no_terms() -> None:
    async with exploring(WIDE, text="the cat", model="question") as explorer:
        await explorer.press("b")
        explorer.app.call_later(explorer.parts.navigation.go_to_stop, "embedding.tokens.weight")
        await explorer.until(lambda: explorer.stop == "embedding.tokens.weight")
        await explorer.press("ctrl+end")
        assert re.search(r"^Σ +0$", "\n".join(lines(explorer)), re.MULTILINE)


PLAIN, QUIET = Style(bold=True), Style(dim=True)


def table(count: int, *, of: int = 1) -> CellLines:
    """A sum over so many weights of attention, those of two keys in one head after the other."""
    session = open_session(ModelOptions("encoder"), "the waves")
    name, values = "encoder.0.self_attention.weights", np.arange(1.0, 1.0 + count)
    factor = Factor(GRADIENT + name, lambda k: (3 + k // 2, 0, 1 - k % 2), values)
    explained = session.trace.explain_cell(name, (0, 0, 0))
    items = (Sum("Σ", (factor,) * of, values**of), *explained.items)
    return CellLines(replace(explained, items=items), session.trace.program, session.labels, Inks(PLAIN, QUIET, PLAIN))


def rows(made: CellLines, width: int) -> list[str]:
    return [words(made.line(i, width)) for i in made.terms]


def test_a_term_is_called_by_what_the_sum_goes_over() -> None:
    assert [row.split() for row in rows(table(4), 60)] == [
        ["s", "product", "share"],
        ["3", "waves", "1", "1", "0.1"],
        ["3", "the", "2", "2", "0.2"],
        ["4", "waves", "3", "3", "0.3"],
        ["4", "the", "4", "4", "0.4"],
    ]
    assert [row.split()[0] for row in rows(table(2), 60)[1:]] == ["waves", "the"]
    assert rows(table(1), 60)[1].split()[0] == "waves", "the last axis"


@pytest.mark.parametrize(
    ("width", "label", "columns"),
    [(0, "", 1), (8, "", 1), (11, "th", 1), (21, "the", 1), (22, "the", 2), (99, "the", 4)],
)
def test_the_last_columns_are_those_that_fit_beside_a_label(width: int, label: str, columns: int) -> None:
    made = table(2, of=2)
    shown, header = made.line(made.terms[2], width), rows(made, width)[0]
    numbers = "".join(f"{number:>9}" for number in ("2", "2", "4", "5")[-columns:])
    assert words(shown) == label.ljust(max(min(width, 64) - len(numbers), 0)) + numbers
    assert header.split() == ["a", "b", "product", "sum"][-columns:]
    assert [style for _, style in shown.parts] == [QUIET, QUIET + PLAIN]
    assert shown.parts[1][0] == numbers


def test_a_number_has_the_digits_that_fit_its_column() -> None:
    values = (0.123456, 1.23456e-5, -1.23456e-5, -1.23456e-12, -1.23456e-123)
    assert [*map(_in_column, values)] == ["0.1235", "1.235e-5", "−1.23e-5", "−1.2e-12", "−1e-123"]
