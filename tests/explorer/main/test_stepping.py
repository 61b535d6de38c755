"""Steps gone through, and to one by a few letters: its place in the list, its head and its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.compositor import strips_of
from tui_transformer.explorer.main import presenter
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.widgets.labels import inks_of
from tui_transformer.guide.texts import step_text
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import destination, head_at, names


def named(stop: str) -> tuple[str, str]:
    """Names that a stop may have on the screen."""
    return step_text(stop).title, step_text(stop).label


async def test_space_and_backspace_go_through_every_stop():
    async with exploring(SMALL) as explorer:
        stops = explorer.session.stops
        assert (stops[0], stops[-1]) == ("vocabulary", "text")
        for number, stop in enumerate(stops, 1):
            assert explorer.stop == stop
            assert explorer.place == (number, len(stops))
            assert any(word in explorer.text for word in named(stop))
            await explorer.keys("space")
        assert explorer.stop == "text"
        for number, stop in reversed(list(enumerate(stops, 1))):
            assert explorer.stop == stop
            assert explorer.place == (number, len(stops))
            await explorer.press("backspace")
        assert explorer.stop == "vocabulary"
        # and so do down and up in the list of steps
        await there_and_back_in_the_list(explorer)


async def there_and_back_in_the_list(explorer: Explorer) -> None:
    stops = explorer.session.stops
    await explorer.press("2")
    for key, wanted in (("down", stops[1:]), ("up", stops[-2::-1])):
        for stop in wanted:
            await explorer.keys(key)
            assert explorer.stop == stop
    assert explorer.place == (1, len(stops))


async def test_s_goes_by_sublayers_and_braces_by_layers():
    async with exploring(NARROW, sizes={"layers": 3}) as explorer:
        by_sublayer = ["vocabulary"]
        while explorer.stop != "text":
            await explorer.keys("s")
            by_sublayer.append(explorer.stop)
        for layer in range(3):
            assert f"encoder.{layer}.self_attention.norm" in by_sublayer
            assert f"encoder.{layer}.feed_forward.norm" in by_sublayer
        for stop in reversed(by_sublayer):
            assert explorer.stop == stop
            await explorer.keys("S")

        by_layer = ["vocabulary"]
        while explorer.stop != "text":
            await explorer.keys("}")
            by_layer.append(explorer.stop)
        assert [f"encoder.{layer}.feed_forward.norm" for layer in range(3)] == [
            stop for stop in by_layer if stop.startswith("encoder.")
        ]
        for stop in reversed(by_layer):
            assert explorer.stop == stop
            await explorer.keys("{")
        # down and up in the list open and close the layers
        await there_and_back_in_the_list(explorer)


async def test_brackets_go_through_the_heads_and_around():
    async with exploring(WIDE) as explorer:
        await explorer.press("]")
        await explorer.go("encoder.0.self_attention.weights")
        heads = explorer.session.trace.program.shape(explorer.stop)[0]
        async for _ in explorer.sizes(WIDE, SMALL):
            for head in [*range(heads), 0]:
                assert f"head {head} of {heads}" in explorer.text
                await explorer.keys("]")
            for head in [1, 0, heads - 1]:
                assert f"head {head} of {heads}" in explorer.text
                await explorer.keys("[")
            await explorer.keys("]", "]")
        # and do nothing where there are none
        await explorer.go("embedding.output")
        await explorer.press("]", "[", "[")
        assert explorer.stop == "embedding.output"


async def test_the_step_list_follows():
    async with exploring(WIDE, sizes={"layers": 3}) as explorer:
        steps, stops = explorer.main.query_one(StepsPane), explorer.session.stops
        for number, stop in enumerate(stops, 1):
            assert explorer.place == (number, len(stops))
            assert any(word in explorer.text for word in named(stop))
            line = steps._steps[steps.cursor]
            assert (line.stop, line.heading) == (stop, False)
            top = steps.scroll_offset.y
            assert top <= steps.cursor < top + steps.size.height
            await explorer.keys("space")
        # enter and a double click stay at the step
        await explorer.go("vocabulary")
        await explorer.press("2", "down", "enter")
        assert explorer.place[0] == 2
        await explorer.pilot.click("#steps", offset=(4, 2), times=2)
        await explorer.settled()
        assert explorer.place[0] == 2
        # a click on a closed layer opens it
        await explorer.click("▸ Encoder layer 1", 4)
        assert explorer.stop.startswith("encoder.1.")
        assert "query" in explorer.text


async def test_a_click_on_a_heading_goes_there_from_the_line_beside_it_too_and_a_double_click_enters_what_was_clicked():
    async with exploring(WIDE) as explorer:
        last, first = "encoder.0.self_attention.norm", "encoder.0.self_attention.query"

        async def click(word: str, times: int = 1) -> None:
            y = next(y for y, line in enumerate(explorer.text.splitlines()) if word in line[:32])
            await explorer.click_at(8, y, times)

        for beside in (first, "encoder.0.self_attention.weights"):
            await explorer.go(beside)
            await click("▾ Self-attention")
            assert explorer.stop == last, beside
        await explorer.go(first)
        await explorer.press("2", "up")
        assert explorer.stop == "embedding.output", "an arrow passes headings"
        # the layer is closed by the first click, so that the line is no longer there at the second
        await explorer.go(first)
        await click("Logits", 2)
        assert (explorer.stop, explorer.view.active) == ("output.logits", "matrix")


async def test_the_first_line_of_the_step_list_is_its_top_in_a_model_that_begins_with_a_layer():
    async with exploring(WIDE, model="attention") as explorer:
        await explorer.press("2", "up", "up", "down", "up")
        assert explorer.stop == explorer.session.stops[0]
        await explorer.press("home")
        assert explorer.stop in explorer.session.stops


async def test_a_move_in_a_list_that_is_another_one_by_now_goes_nowhere():
    async with exploring(MEDIUM, model="encoder", ids=(1, 2)) as explorer:
        await explorer.press("2", "end")
        pane = explorer.main.query_one(StepsPane)
        moved = StepsPane.Moved(pane)
        assert moved.index > 3
        pane._steps = pane._steps[:3]
        pane.post_message(moved)
        await explorer.press("space")
        assert explorer.app.is_running


async def test_the_position_survives_another_sentence_and_one_that_cannot_be_read_changes_nothing():
    async with exploring(NARROW, at="encoder.0.self_attention.scaled") as explorer:
        await explorer.press("]", "down", "down", "right")
        before = explorer.position
        await explorer.prompt("/", "the shore crashed the waves")
        assert explorer.position == before
        assert "head 1 of 8" in explorer.text
        assert "the shore crashed the waves" in explorer.text
        assert explorer.session.trace.program.shape(explorer.stop) == (8, 5, 5)
        # a shorter one keeps the cell inside
        await explorer.press("u", "G")
        assert explorer.position.place.row == 7
        await explorer.prompt("/", "waves")
        assert explorer.stop == "encoder.0.self_attention.scaled"
        assert explorer.position.place.row == 0
        await explorer.press("u")
        assert explorer.session.trace.program.shape(explorer.stop) == (8, 8, 8)
        await explorer.go("embedding.output")
        before = explorer.session
        await explorer.press("/")
        for bad in ("", "   ", "waves " * 5000):
            await explorer.answer(bad)
            assert "token" in explorer.app.screen.query_one("#problem").visual.plain
        await explorer.press("escape")
        assert explorer.session is before
        assert explorer.stop == "embedding.output"
        assert "The waves crashed" in explorer.text
        await explorer.press("/")
        await explorer.write("the shore")
        await explorer.press("escape")
        assert explorer.session is before


async def test_where_there_is_one_line_it_has_the_sentence_of_the_rows():
    async with exploring(NARROW, model="encoder-decoder") as explorer:
        await explorer.press("}", "}", "}")
        assert (explorer.stop, explorer.text.split()[0]) == ("encoder.0.feed_forward.norm", "source")
        await explorer.press("}")
        assert (explorer.stop, explorer.text.split()[0]) == ("decoder.tokens", "target")
        await explorer.press("T")
        assert "Target" in explorer.text


async def test_a_source_too_long_for_its_line_leaves_the_target_its_own():
    async with exploring(MEDIUM, model="dates", text="Wednesday the 23rd of September 2021") as explorer:
        lines = [line for line in explorer.text.splitlines() if "source" in line or "target" in line]
        assert len(lines) == 2
        assert "[BOS]" in lines[1]


async def test_while_a_key_is_held_only_the_last_press_is_shown(monkeypatch):
    shown = []
    scene = presenter.scene
    monkeypatch.setattr(presenter, "scene", lambda *given, **more: shown.append(given[2].stop) or scene(*given, **more))
    async with exploring(WIDE) as explorer:
        await explorer.press("space", "space")
        shown.clear()
        start = explorer.session.stops.index(explorer.stop)
        explorer.send(*["space"] * 8)
        await explorer.handled()
        await explorer.settled()
        assert explorer.session.stops.index(explorer.stop) == start + 8
        assert explorer.scene.view.name == explorer.stop
        assert len(shown) < 8
        assert shown[-1] == explorer.stop
        # what was put off is shown before another key acts
        await explorer.press("4")
        explorer.send("down", "down", "down", "Y", "right", "right", "x")
        await explorer.until(lambda: len(explorer.app.screen_stack) > 2)
        place = explorer.scene.place
        assert (place.row, place.column) == (3, 2)
        assert explorer.position.place == place
        await explorer.settled()


async def test_the_lines_have_the_colours_of_a_theme_at_once():
    async with exploring(MEDIUM) as explorer:
        await explorer.press("right", "left")
        for theme in ("nord", "ansi-light", "ansi-dark"):
            explorer.app.theme = theme
            await explorer.settled()
            accent, colors = inks_of(explorer.main).accent.color, set()
            for segment in strips_of(explorer.app)[0]:
                colors.add(segment.style.color if segment.style else None)
            assert accent in colors, theme


SENTENCES = Path(__file__).parents[2] / "sentences" / "bert"
SESSION = open_session(ModelOptions(model="encoder", sizes={"layers": 3}), "the waves", None)


@pytest.mark.parametrize(
    ("typed", "stop"),
    [
        ("1", SESSION.stops[0]),
        (f"{len(SESSION.stops)}", SESSION.stops[-1]),
        (":4", SESSION.stops[3]),
        ("weights", "encoder.1.self_attention.weights"),
        ("2.weights", "encoder.2.self_attention.weights"),
        ("0.act", "encoder.0.feed_forward.activation"),
        ("encoder.2.feed_forward.output", "encoder.2.feed_forward.output"),
        ("encoder.2", next(name for name in SESSION.stops if name.startswith("encoder.2."))),
        ("Vocabulary", "vocabulary"),
        ("encoder.0.self_attention.query.weight", "encoder.0.self_attention.query.weight"),
    ],
)
def test_what_is_typed_leads_to_a_step(typed, stop):
    assert destination(SESSION, "encoder.1.self_attention.query", typed) == stop


@pytest.mark.parametrize("typed", ["0", "999", "", "nothing", "7.weights", "[b]", "\x1b[2J"])
def test_what_is_nowhere_is_refused_in_one_line(typed):
    with pytest.raises(InputError) as caught:
        destination(SESSION, "tokens", typed)
    assert "\n" not in str(caught.value)


def test_every_name_that_is_offered_leads_somewhere():
    for name in names(SESSION):
        assert destination(SESSION, "tokens", name).endswith(name.rpartition(".")[2])


async def test_the_colon_asks_where_and_goes_there():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.prompt(":", "nowhere")
        assert "there is no step 'nowhere'" in explorer.text
        await explorer.answer("0.weights")
        assert explorer.stop == "encoder.0.self_attention.weights"
        await explorer.press(":", "escape")
        assert explorer.stop == "encoder.0.self_attention.weights"


async def test_all_of_what_a_step_is_can_be_read_in_the_help():
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.scaled") as explorer:
        words = step_text(explorer.stop)
        async for size in explorer.sizes(WIDE, MEDIUM, SMALL):
            await explorer.press("?", "enter")
            seen = [""]
            while seen[-1] != explorer.text:
                seen.append(explorer.text)
                await explorer.press("pagedown")
            for sentence in (words.what, words.why, words.look):
                assert all(word in "".join(seen) for word in sentence.split()), size
            await explorer.leave()


def test_a_step_that_is_called_so_comes_before_one_that_only_begins_so():
    session = open_session(ModelOptions(str(SENTENCES)), None, (2, 3, 4))
    assert session.stops.index("pooled.first") < session.stops.index("pooled")
    assert destination(session, "tokens", "Pooled") == "pooled"


SHARED = Path(__file__).parents[2] / "references" / "llama"
"""Four heads of queries, two of keys."""

ATTENTION = "encoder.0.self_attention"


async def test_the_head_stays_through_steps_that_have_none():
    async with exploring(WIDE, model="question", whole=True, at=f"{ATTENTION}.weights") as explorer:
        await explorer.press("]", "]", "space", "space")
        assert explorer.stop == f"{ATTENTION}.concat"
        assert explorer.position.place.head == 2
        await explorer.press("backspace", "backspace")
        assert (explorer.stop, explorer.scene.view.head) == (f"{ATTENTION}.weights", 2)


async def test_of_shared_keys_those_of_the_group_are_shown_beside_the_queries():
    layer = "decoder.0.self_attention"
    async with exploring(WIDE, model=str(SHARED), text="a dog bites", whole=True, at=f"{layer}.query") as explorer:
        await explorer.press("]")
        program = explorer.session.trace.program
        assert [head_at(program, head, f"{layer}.query", f"{layer}.key") for head in range(4)] == [0, 0, 1, 1]
        assert [head_at(program, head, f"{layer}.key", "") for head in range(2)] == [0, 2]
        assert shown_heads(explorer, f"{layer}.query") == range(1, 2)
        assert shown_heads(explorer, f"{layer}.key_rotated") == shown_heads(explorer, f"{layer}.value") == range(1)
        await explorer.press("space")
        assert (explorer.stop, explorer.scene.view.head) == (f"{layer}.key", 0)
        while explorer.stop != f"{layer}.scores":
            await explorer.press("space")
        assert explorer.scene.view.head == 1


def shown_heads(explorer, step):
    pictures = [picture for _, band in explorer.parts.explored.scene.whole.bands for picture in band]
    return next(picture.heads for picture in pictures if picture.step == step)
