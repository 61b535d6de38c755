"""The tours of the trained models in the whole explorer, and where a tour is offered."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from reference import REFERENCES
from textual.widgets import Static
from touring import lead_to, state

from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.main.panes.matrix import ChartPane
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.keymap import with_keys
from tui_transformer.guide.lecture import lecture
from tui_transformer.guide.texts import Stop, tour, tour_model
from tui_transformer.model.local_models import trained_models
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import backwards, scenery
from tui_transformer.session.view_state import Overlay
from tui_transformer.views.step_view import Place, index_of

OFFER = "t: a guided tour of this model"


@pytest.mark.parametrize("model", ["question", "dates"])
async def test_a_tour_leads_to_its_steps_and_sentences(model):
    async with exploring(NARROW, model=model) as explorer:
        before = state(explorer)
        await explorer.press("t")
        for number, stop in enumerate(tour(model), 1):
            if stop.predict:
                await explorer.press("space")
            assert f"Stop {number} of {len(tour(model))}" in explorer.text
            assert explorer.stop == stop.step
            assert explorer.session.text == stop.sentence
            assert explorer.session.decoder_text == (stop.target or "")
            if stop.row is not None:
                place = explorer.position.place
                assert (place.head, place.row, place.column) == (stop.head or 0, stop.row, stop.column)
            await explorer.press("space")
        assert not explorer.main.query(TourPanel)
        assert state(explorer) == before


async def test_the_first_stop_offers_the_tour_and_no_other():
    async with exploring(WIDE, model="question") as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.press("backspace")
            assert OFFER in explorer.text
            await explorer.press("space")
            assert OFFER not in explorer.text


async def test_a_tour_that_goes_on_is_not_offered():
    async with exploring(WIDE) as explorer:
        assert OFFER in explorer.text
        await explorer.press("t")
        assert explorer.stop == "vocabulary"
        assert OFFER not in explorer.text


async def test_leaving_gives_back_what_was_explored_before():
    async with exploring(WIDE, model="question", text="who did it ?", at="encoder.0.self_attention.key") as explorer:
        await explorer.press("right", "down", "]", "z")
        for size, stops in ((MEDIUM, 16), (NARROW, 0), (WIDE, 11)):
            await explorer.resize(*size)
            before = state(explorer)
            await explorer.press("t")
            if stops:
                explorer.parts.tour.go(stops)
                await explorer.settled()
            await explorer.press(*["space"] * (tour("question")[stops].predict is not None), "escape")
            assert state(explorer) == before
            assert not explorer.main.query(TourPanel)
            assert explorer.main.query_one("#matrix").has_focus_within == (explorer.view.active == "matrix")
        # what the reader wrote meanwhile comes back with redo
        first, position = explorer.session, explorer.position
        await explorer.press("t", "space", "slash")
        await explorer.answer("did the cat sleep")
        await explorer.press("escape")
        assert explorer.session is first
        assert explorer.position == position
        await explorer.press("U")
        assert explorer.session.text == "did the cat sleep"
        assert explorer.position == position


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_tour_tells_of_the_model_and_not_of_what_is_beside_or_left_out(size):
    async with exploring(size, model="question", text="where is the map ?") as explorer:
        port = explorer.parts.port
        port.change(port.session.with_overlay(Overlay("trace", "other", text="who is")))
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.press("I")
        before = state(explorer)
        await explorer.press("t")
        assert "gives the question mark the weight .99" in " ".join(explorer.text.split())
        assert explorer.scene.overlay is None
        assert explorer.position.place == Place(2, 0, 8)
        assert explorer.scene.view.window(range(1), range(8, 9)) == pytest.approx(0.98859, abs=1e-5)
        await explorer.press("escape")
        assert state(explorer) == before


async def test_nothing_of_a_stop_stays_at_the_next_and_undo_takes_back_what_it_did():
    async with exploring(WIDE, model="question") as explorer:
        await lead_to(explorer, "question-heads", "only_mark")
        assert len(explorer.session.edits) == 2
        assert "question" in explorer.text
        assert "→ statement" in explorer.text
        # what becomes of the answer is read whole in the card
        await explorer.resize(*MEDIUM)
        assert "heads 2 and 3 of encoder.0.self_attention → 0" in explorer.text
        card = " ".join(line.strip("│ ") for line in explorer.text.splitlines())
        assert re.search(r"→ 0: question +[0-9.]+ % → statement +[0-9.]+ %", card)
        await explorer.resize(*WIDE)
        await explorer.press("space", "space")
        assert explorer.session.edits == ()
        assert explorer.session.overlay.kind == "nothing"
        assert "→ statement" not in explorer.text
        await explorer.press("escape")
        await lead_to(explorer, "question-heads", "only_mark")
        await explorer.press("u")
        assert explorer.session.edits == ()
        await explorer.press("escape")
        assert explorer.session.text == "where did the old sailor hide the map ?"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("question-heads", {"only_mark": ("question", "statement"), "order": ("question", "statement")}),
        ("story", {"without": ("Mira",), "friend": ("dog", "crow")}),
    ],
    ids=["question", "story"],
)
async def test_a_stop_says_what_becomes_of_the_answer(model, said):
    async with exploring(WIDE, model=tour_model(model)) as explorer:
        for stop, (first, *second) in said.items():
            await lead_to(explorer, model, stop)
            outcome = str(explorer.main.query_one("#outcome", Static).content)
            before, _, after = outcome.partition(": ")[2].partition(" → ")
            assert before.startswith(first)
            assert not after.startswith(before)
            assert after.startswith(second[0]) if second else not after.startswith(first)


def check_gradient(session: Session, stop: Stop, at: Position) -> None:
    """The cell of a stop has the largest gradient of its step, and that of the largest the largest of all weights."""
    gradients = session.gradients.values
    if stop.cell is not None:
        axes = session.trace.program.axes(at.stop)
        assert abs(gradients[at.stop][index_of(axes, at.place)]) == abs(gradients[at.stop]).max() > 0
    if stop.name == "most":
        assert abs(gradients[at.stop]).max() == max(
            abs(gradients[name]).max() for name in session.trace.program.weights
        )


async def test_a_model_without_a_tour_of_its_own_is_led_to_gradients_that_there_are():
    async with exploring(WIDE, model="decoder", sizes={"layers": 1}) as explorer:
        base = explorer.session
        await explorer.press("t")
        await explorer.shown("Which way does every number have to change, and how much?")
        assert explorer.session.backward
        for stop in tour("gradients"):
            check_gradient(explorer.session, stop, explorer.position)
            await explorer.press("space")
        assert explorer.session is base
        await explorer.press("t")
        assert explorer.session.backward
        await explorer.press("t")
        assert not explorer.session.backward
        assert not explorer.main.query(TourPanel)


@pytest.mark.parametrize("model", trained_models())
def test_the_story_of_gradients_of_every_trained_model_leads_to_cells_that_have_one(model):
    session = backwards(open_session(ModelOptions(model), None, None), lambda _: None)
    for stop in tour("gradients"):
        scene = scenery(session, stop, lambda _: None)
        check_gradient(scene.after, stop, scene.position)


async def test_the_target_of_the_story_of_gradients_is_wrong():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.tour("gradients")
        assert explorer.session.model.word(explorer.session.loss_targets[0]) == "statement"
        await explorer.press("space")
        await explorer.shown("the model says question", "the target is statement")


async def test_a_tour_that_begins_again_has_one_panel_and_on_a_small_screen_the_room_of_the_whole():
    async with exploring(NARROW, model="question") as explorer:
        for _ in range(3):
            await explorer.tour("question")
        assert len(explorer.main.query(TourPanel)) == 1
        assert f"1 of {len(tour('question'))}" in explorer.text
        await explorer.press("space")
        await explorer.press("escape")
        assert not explorer.main.query(TourPanel)
        await explorer.resize(*SMALL)
        await explorer.press("0", "t", "space", "0")
        await explorer.shown("beside the card there is no room", "where ▌   12   ▐")
        await explorer.press("escape")
        await explorer.shown("From words to vectors")


async def test_a_chart_that_a_stop_is_about_is_on_the_screen_beside_a_whole_that_opens():
    async with exploring(WIDE, model="encoder", whole=None) as explorer:
        chart, whole = explorer.main.query_one(ChartPane), explorer.main.query_one(WholePane)
        await explorer.tour("gradients")
        while explorer.parts.tour.stop[2] != "norms":
            assert (chart.region.height, whole.region.height > 0) == (0, True)
            await explorer.press("right")
        assert chart.region.height > 0
        assert "Norm of ∂loss/∂weights by layer" in explorer.text
        await explorer.press("left")
        assert whole.region.height > 0
        await explorer.press("right", "escape")
        assert whole.region.height > 0


@pytest.mark.parametrize("family", ["llama", "falcon", "mixtral"])
def test_the_story_of_gradients_leads_to_steps_of_every_family(family):
    session = open_session(ModelOptions(str(REFERENCES / family)), None, (5, 9, 12))
    stops = {stop.name: scenery(session, stop, lambda _: None).position.stop for stop in tour("gradients")}
    assert stops["activation"].endswith((".gate", ".hidden"))
    assert stops["residual"].endswith(".residual")
    assert stops["norms"] == "embedding.tokens"


async def test_the_card_breaks_the_border_of_no_pane_and_nothing_stays_behind_when_another_model_is_opened():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        told = (*tour("question"), *tour("question-heads"))
        stops = [stop for stop in told if stop.name in ("number", "sum", "only_mark")]
        await explorer.tour(replace(lecture("question"), stops=tuple(stops)))
        for stop in stops:
            assert explorer.parts.tour.stop[2] == stop.name
            async for _ in explorer.sizes(NARROW, WIDE):
                lines, panes = explorer.text.split("\n"), explorer.main.query("*")
                framed = [each for each in panes if each.styles.border.top[0] == "round" and each.region]
                assert explorer.main.query_one(TourPanel) in framed
                for left, top, width, height in (each.region for each in framed if each.visible):
                    right, bottom = left + width - 1, top + height - 1
                    assert lines[top][left] + lines[top][right] == "╭╮"
                    assert lines[bottom][left] + lines[bottom][right] == "╰╯"
                    assert {lines[y][x] for y in range(top + 1, bottom) for x in (left, right)} <= {"│"}
            await explorer.press("right")
        stop = next(each for each in tour("question-heads") if each.name == "only_mark")
        await explorer.tour(replace(lecture("question"), stops=(stop,)))
        assert explorer.session.edits
        await explorer.change(open_session(ModelOptions("dates"), None, None))
        assert explorer.session.model.name == "dates"
        assert explorer.parts.tour.stop is None
        assert not explorer.main.query(TourPanel)
        await explorer.press("u")
        assert explorer.session.text == "where did the old sailor hide the map ?"
        assert not explorer.session.edits


NUMBER = re.compile(r"(?<![\w.])[−-]?(?:\d(?:[\d,]*\d)?(?:\.\d+)?|\.\d+)")
REMEMBERED = {
    "yours": {"20,763", "0.0008", "100.0"},  # measured when it was trained
    "decided": {".99"},  # of the first stop
    "scaled": {"19.64"},  # of the stop before
    "query": {"8"},  # the width, where the cell has the place of the matrix
    "scores": {"9"},  # 3 × 3
}
"""Numbers of a stop that need not be on its screen."""


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def not_on(screen: str, said: str) -> set[str]:
    """The numbers of a text that stand nowhere on a screen, with as many digits or more."""
    there = [number(each) for each in NUMBER.findall(screen)]
    digits = {each: len(each.partition(".")[2]) for each in NUMBER.findall(said)}
    return {
        each
        for each, places in digits.items()
        if not any(abs(number(each) - one) <= (0.5 * 10**-places if places else 0) + 1e-9 for one in there)
    }


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("attention", WIDE),
        ("question", MEDIUM),
        ("question-heads", MEDIUM),
        pytest.param("question", WIDE, marks=pytest.mark.slow),
    ],
)
async def test_every_number_that_a_stop_says_is_on_the_screen_beside_its_card(model, size):
    async with exploring(size, model=tour_model(model), whole=None) as explorer:
        await explorer.tour(model)
        for stop in with_keys(lecture(model), {}).stops:
            if stop.predict:
                await explorer.press("space")
            assert explorer.parts.tour.stop[2] == stop.name
            card = explorer.main.query_one(TourPanel).region
            lines = explorer.text.split("\n")
            beside = [line for y, line in enumerate(lines) if not card.y <= y < card.bottom]
            assert not_on("\n".join(beside), stop.text) <= REMEMBERED.get(stop.name, set()), stop.name
            await explorer.press("right")
