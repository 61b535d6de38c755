"""What is computed, laid out and kept: what is on the screen, band by band, and no more than there is room for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from driving import NARROW, WEIGHTS, WIDE, exploring
from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.widget import Widget

from tui_transformer.engine import parts
from tui_transformer.engine.computation import Computation
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.steps import step_lines
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.scene import Scene, scene
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY
from tui_transformer.session.step_scene import WORD_ROWS, around, step_cost, tile_of
from tui_transformer.session.store import AT_ONCE, ENDLESS, Failed, Key, Reading, Store
from tui_transformer.session.view_state import GRADIENT, ViewState
from tui_transformer.session.whole.layer_norms import rungs
from tui_transformer.session.whole.layout import place_bands
from tui_transformer.session.whole.scene import Drawing
from tui_transformer.views.step_view import Place, view_of
from tui_transformer.views.whole import bands

DEEP = {"d_model": 32, "heads": 4, "layers": 30, "d_ff": 64}
LONG = tuple(1 + i % 7 for i in range(500))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The steps that were computed, in order."""
    names: list[str] = []
    run = Computation.run

    def counted(values: Computation, step: object, *rest: object) -> object:
        names.append(step.name)  # type: ignore[attr-defined]
        return run(values, step, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Computation, "run", counted)
    return names


def outside_embedding(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(("tokens", "embedding"))]


def test_the_first_band_computes_what_it_shows_alone(computed: list[str]) -> None:
    session = open_session(ModelOptions("decoder", device="cpu", sizes=DEEP), None, LONG)
    position = Position("embedding.output")
    placed = place_bands(session, position, 160, 30)
    drawing = Drawing(session, session.trace.program, position, Reading(Store(), here=True))
    pictures = drawing.draw(placed[0])
    assert len(pictures[1].rows) <= 12
    assert not outside_embedding(computed)
    drawing.draw(placed[1])
    assert {name.split(".")[1] for name in outside_embedding(computed)} == {"0"}


async def test_the_first_band_is_drawn_before_a_layer_is_computed(computed: list[str], monkeypatch) -> None:
    there: list[tuple[int, list[str]]] = []
    show = WholePane.show_scene

    def shown(pane: WholePane, scene: Scene) -> None:
        bands = [] if scene.whole is None else scene.whole.bands
        count = sum(not any(picture.missing for picture in pictures) for _, pictures in bands)
        there.append((count, outside_embedding(computed)))
        show(pane, scene)

    monkeypatch.setattr(WholePane, "show_scene", shown)
    async with exploring(WIDE, model="decoder", sizes=DEEP, ids=LONG, whole=None) as explorer:
        with_first = next(names for count, names in there if count)
        program = explorer.session.trace.program
        assert sum(program.flops(program.step(name)) for name in with_first) <= AT_ONCE
        assert "rows 0–" in explorer.text
        assert outside_embedding(computed)


def test_a_picture_of_many_columns_is_the_largest_of_its_neighbours_in_every_head(computed: list[str]) -> None:
    session = open_session(ModelOptions("decoder", device="cpu", sizes=DEEP), None, LONG)
    position = Position("decoder.0.self_attention.weights")
    drawing = Drawing(session, session.trace.program, position, Reading(Store(), here=True, most=ENDLESS))
    placed = place_bands(session, position, 160, 30)
    pictures = next(drawing.draw(each) for each in placed if position.stop in each.band.steps)
    picture = next(each for each in pictures if each.step == position.stop)
    whole = session.trace[position.stop]
    for head, tile in zip(picture.heads, picture.tiles.values, strict=True):
        width = tile.shape[1]
        for column in range(width):
            cells = whole[head, picture.rows.start, 500 * column // width : 500 * (column + 1) // width]
            assert tile[0, column] == cells[np.argmax(np.abs(cells))]
    assert computed


TWO_LAYERS = {"layers": 2, "heads": 4}


@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_weights_of_the_first_layer_are_shown_before_another_layer_is_computed(computed, size, budget):
    async with exploring(size, text="the waves", sizes=TWO_LAYERS, budget=budget, at=WEIGHTS) as explorer:
        await explorer.press("]", "down", "right", "c")
        assert explorer.scene.view.name == WEIGHTS
        assert not explorer.view.shared_scale
        assert "encoder.0.self_attention.query" in computed
        assert not any(name.startswith(("encoder.1", "output")) for name in computed)


async def test_the_shared_scale_computes_the_other_layers_and_none_after_it_is_off(computed):
    async with exploring(WIDE, text="the waves", sizes=TWO_LAYERS) as explorer:
        await explorer.press("m")
        await explorer.go("encoder.0.self_attention.query")
        assert "encoder.1.self_attention.query" in computed
        await explorer.press("m", "space")
        assert "encoder.1.self_attention.key" not in computed


def test_of_dropped_probabilities_only_the_rows_on_the_screen_are_fetched():
    session = open_session(ModelOptions(budget=0), None, (1,) * 300)
    name = "output.probabilities"
    view = view_of(session.trace, name, session.labels)
    tile = tile_of(session.trace, view, *around(view, Place(row=200)))
    assert tile.row <= 200 < tile.row + len(tile.values)
    assert len(tile.values) == WORD_ROWS


def cost(name: str, tokens: int, *, shared: bool = False) -> int:
    session = open_session(ModelOptions(budget=0), None, (1,) * tokens)
    session.trace.prepare(name)
    return step_cost(session, name, shared=shared)


@pytest.mark.parametrize("shared", [False, True])
def test_a_look_at_a_part_costs_the_part(shared):
    small, large = (cost(WEIGHTS, tokens, shared=shared) for tokens in (256, 1024))
    assert small < AT_ONCE
    assert large <= 4 * small  # rows of four times as many keys; as many queries of one head


def test_what_the_part_is_made_from_counts_until_it_is_there():
    session = open_session(ModelOptions(budget=0), None, (1,) * 64)
    before = step_cost(session, WEIGHTS, shared=False)
    session.trace.prepare(WEIGHTS)
    sources = session.trace.program.flops(session.trace.program.step("encoder.0.self_attention.query"))
    assert step_cost(session, WEIGHTS, shared=False) < before - 2 * sources


ATTENTION = "encoder.0.self_attention"


async def test_steps_of_a_long_sentence_do_not_lay_the_screen_out_again(monkeypatch: pytest.MonkeyPatch):
    reflow, layouts = Compositor.reflow, list[Size]()

    def counted(compositor: Compositor, parent: Widget, size: Size) -> ReflowResult:
        layouts.append(size)
        return reflow(compositor, parent, size)

    async with exploring(WIDE, ids=[i % 8 for i in range(64)], whole=None, at=f"{ATTENTION}.weights") as explorer:
        await explorer.press("space", "backspace")
        monkeypatch.setattr(Compositor, "reflow", counted)
        await explorer.press("space", "backspace", "backspace")
        assert explorer.stop == f"{ATTENTION}.masked"
        assert not layouts
        assert explorer.main.query_one("#matrix").cells.show_horizontal_scrollbar


async def test_of_short_sentences_no_scroll_bar_and_small_heads_where_they_are_seen_are_drawn_and_results_are_kept():
    async with exploring(WIDE, model="question", whole=None, at=f"{ATTENTION}.weights") as explorer:
        assert not explorer.main.query_one("#matrix").cells.show_horizontal_scrollbar
        heads = explorer.main.query_one(HeadThumbnails)
        assert not heads.tiles
        await explorer.press("0")
        assert len(heads.tiles) == explorer.scene.view.heads > 1
        held = len(explorer.parts.explored.store._results)
        await explorer.press("backspace", "space")
        assert len(explorer.parts.explored.store._results) >= held
        assert explorer.parts.explored.scene is not None
        assert not explorer.parts.explored.scene.missing


async def test_a_step_is_looked_through_once():
    async with exploring(WIDE, model="question", at=f"{ATTENTION}.scores") as explorer:
        low, high, _ = explorer.session.extremes(f"{ATTENTION}.scores")
        values = explorer.session.trace[f"{ATTENTION}.scores"]
        assert (low, high) == (values.min(), values.max())
        assert explorer.session.knows_extremes(f"{ATTENTION}.scores")
        assert not explorer.session.knows_extremes("output.logits")


PICTURE = np.zeros(100, np.uint8)


def kept(store: Store, *keys: Key) -> list[bool]:
    return [store.find(each) is not None for each in keys]


def test_what_is_far_or_of_another_session_goes_first_and_what_the_scene_is_made_of_stays() -> None:
    session, other = (open_session(ModelOptions("question"), None, None) for _ in range(2))
    store = Store(most_bytes=450)
    near, nearer, far = (Key(session, session.stops[place], "picture") for place in (3, 4, 15))
    elsewhere, here = (Key(each, session.stops[5], "picture") for each in (other, session))
    for each in (near, nearer, far, elsewhere, here):
        store.put(each, PICTURE.copy())
    store.used.clear()
    store.make_room(session, session.stops[5])
    assert kept(store, elsewhere, far, near, nearer, here) == [False, False, False, True, True]
    # what the scene is made of, however large it is
    store, keys = Store(most_bytes=10), [Key(session, stop, "picture") for stop in session.stops[:5]]
    reading = Reading(store, here=True, most=ENDLESS)
    for each in keys:
        reading.get(*each, lambda: 10, lambda _: PICTURE.copy())
    store.make_room(session, session.stops[0])
    assert all(kept(store, *keys))


def test_what_costs_more_than_a_key_press_is_missing_and_what_fails_is_told_once() -> None:
    session = open_session(ModelOptions("question"), None, None)
    store, lost = Store(), InputError("a weight is lost")

    def fails(_: object) -> str:
        raise lost

    dear, wrong = Key(session, "a", "dear"), Key(session, "a", "wrong")
    reading = Reading(store, here=True)
    assert reading.get(*dear, lambda: 1 << 40, lambda _: "never") is None
    assert reading.get(*wrong, lambda: 0, fails) is None
    assert [each.key for each, _ in reading.missing] == [dear]
    assert reading.failed == [lost]
    again = Reading(store, here=True)
    assert again.get(*wrong, lambda: 0, fails) is None
    assert not again.failed
    assert isinstance(store.find(wrong), Failed)
    store.forget_failures()
    assert store.find(wrong) is None


def test_a_scene_is_a_function_of_its_arguments() -> None:
    session = open_session(ModelOptions("question"), None, None)
    made = [
        scene(
            Reading(Store(), here=True, most=ENDLESS),
            session,
            Position("encoder.0.self_attention.weights"),
            ViewState(),
            Size(160, 45),
            keys=str,
        )
        for _ in range(2)
    ]
    assert made[0].arrangement == made[1].arrangement
    assert not made[0].missing
    first, second = (each.whole.bands for each in made if each.whole is not None)
    for (placement, pictures), (other, others) in zip(first, second, strict=True):
        assert placement == other
        for one, two in zip(pictures, others, strict=True):
            assert all(map(np.array_equal, one.tiles.values, two.tiles.values))


@pytest.mark.parametrize("stop", [VOCABULARY, TEXT, LOSS, "encoder.0.feed_forward.hidden"])
def test_gradients_are_there_wherever_one_looks_at_the_way_back(stop: str) -> None:
    session = open_session(ModelOptions("question"), None, None).with_overlay(GRADIENT)
    reading = Reading(Store(), here=True, most=ENDLESS)
    scene(reading, session, Position(stop), ViewState(whole=False), Size(*WIDE), keys=str)
    assert session.went_back


def test_nothing_keeps_a_program_whose_steps_were_listed_and_drawn():
    whole = Model.load("encoder").trace("the cat").program
    program = Program(whole.steps, whole.aliases, whole.weights, whole.givens)
    stops = tuple(step.name for step in program.steps)
    step_lines(program, stops, "")
    bands(program, stops[0])
    rungs(program)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


async def test_traces_of_far_sentences_are_gone_before_any_look_through_all_objects():
    async with exploring(WIDE, model="encoder", text="the cat " * 200, whole=True) as explorer:
        explorer.parts.explored.near_bytes = 0
        traces = []
        gc.disable()
        try:
            for count in range(201, 205):
                explorer.parts.port.change(explorer.session.with_text("the cat " * count))
                traces.append(weakref.ref(explorer.session.trace))
                await explorer.settled()
            gone = [trace() is None for trace in traces]
        finally:
            gc.enable()
        assert gone == [True, True, True, False]


async def test_gradients_of_a_long_sentence_are_gone_once_another_is_read():
    async with exploring(WIDE, model="encoder", text="the cat " * 200) as explorer:
        explorer.parts.explored.near_bytes = 1 << 20
        small = explorer.session.with_text("the cat")
        await explorer.press("b")
        long = explorer.session
        assert long.went_back
        assert long.cache.held_bytes >= long.trace.held_bytes + long.gradients.held_bytes > long.trace.held_bytes
        await explorer.change(small)
        assert not long.went_back
        assert long.cache.held_bytes == 0


async def test_gradients_that_do_not_fit_are_refused_before_they_are_computed(monkeypatch):
    async with exploring(WIDE, model="encoder", text="the cat " * 20) as explorer:
        monkeypatch.setattr(parts, "available_memory", lambda: 1 << 10)
        await explorer.press("b")
        assert not explorer.session.went_back
        said = " ".join(explorer.text.split())
        assert "gradients of 40 tokens need" in said or "gradients of 40 tokens need" in " ".join(explorer.messages)
        monkeypatch.undo()
        await explorer.press("b", "b")
        assert explorer.session.went_back
