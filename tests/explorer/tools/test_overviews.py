"""Effects, all heads, links, rollout and lens in the explorer: what is shown, keys, sizes, colours, large models."""

from __future__ import annotations

import re

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES
from rich.style import Style
from textual.widgets import Static

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.analysis.logit_lens import fit_lens, logit_lens, words_at
from tui_transformer.analysis.measures import HEAD_MEASURES
from tui_transformer.analysis.rollout import Link
from tui_transformer.explorer.shell.help_page import HelpScreen
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.ablation import AblateScreen
from tui_transformer.explorer.tools.heads import HeadsScreen
from tui_transformer.explorer.tools.lens import LensScreen
from tui_transformer.explorer.tools.links import LinkLines, LinksScreen
from tui_transformer.explorer.tools.rollout import RolloutScreen
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.tile_grid import TileGrid
from tui_transformer.model import Model
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.edit_format import changes
from tui_transformer.session.position import Position
from tui_transformer.views.step_view import Labels

SCREENS = {"A": AblateScreen, "H": HeadsScreen, "K": LinksScreen, "R": RolloutScreen, "L": LensScreen}
SIZES = [WIDE, MEDIUM, (60, 20), SMALL, (5, 3), (1, 1), NARROW]
IDS = (2, 5, 7, 9, 5, 3)
BERT = {"model": str(REFERENCES / "bert"), "ids": IDS}
GPT2 = {"model": str(REFERENCES / "gpt2"), "ids": IDS}

DONE = {
    "A": lambda screen: not screen.search.missing,
    "H": lambda screen: not screen.measured.missing(),
    "K": lambda screen: not screen.waiting and screen.links,
    "R": lambda screen: screen.view is not None,
    "L": lambda screen: screen.sheet.words and screen.missing() is None,
}


async def opened(explorer: Explorer, key: str) -> Overview:
    """The screen that a key opens, when all of it is there."""
    await explorer.press(key)
    screen = await explorer.front(SCREENS[key])
    await filled(explorer, key)
    return screen


async def filled(explorer: Explorer, key: str) -> None:
    await explorer.until(lambda: DONE[key](explorer.app.screen) and not explorer.app.worker.busy)
    await explorer.handled()


async def test_only_what_says_something_else_is_drawn_again_and_all_have_help() -> None:
    async with exploring(WIDE, **BERT) as explorer:
        for key in SCREENS:
            screen = await opened(explorer, key)
            # nothing says something else
            screen.show_lines()
            assert not [widget for widget in screen.walk_children() if widget._repaint_regions]
            # the title does
            screen.requests.doing = "computing something else"
            screen.show_lines()
            title = screen.query_one("#overview-title", Static)
            assert [widget for widget in screen.walk_children() if widget._repaint_regions] == [title]
            screen.requests.doing = ""
            # help, and the other way out
            await explorer.press("?")
            assert isinstance(explorer.app.screen, HelpScreen)
            await explorer.leave("escape", "q")


async def test_every_size_with_and_without_colour(colors) -> None:
    async with exploring(WIDE, **BERT) as explorer:
        for key in SCREENS:
            await opened(explorer, key)
            async for _ in explorer.sizes(*SIZES):
                await explorer.press("down", "right", "minus", "plus")
            assert "? help" in explorer.text.splitlines()[-1]
            await explorer.leave()


async def test_the_measures_of_a_head_are_those_of_its_weights_and_heads_that_spell_no_words_leave_the_lens() -> None:
    async with exploring(WIDE, **BERT) as explorer:
        await opened(explorer, "H")
        weights = explorer.session.trace["encoder.0.self_attention.weights"][0]
        assert f"itself {np.diag(weights).mean():.2f}" in explorer.text
        assert f"first {weights[:, 0].mean():.2f}" in explorer.text
        await explorer.press("down", "right", "right")
        assert "layer 1 · head 2" in explorer.text
        await explorer.press("enter")
        assert explorer.stop == "encoder.1.self_attention.weights"
        assert explorer.position.place.head == 2
        await opened(explorer, "L")
        await explorer.press("f")
        assert any("nothing spells words" in said for said in explorer.messages)
        assert "all words on screen" in explorer.text


async def test_of_a_single_token_there_is_one_query() -> None:
    async with exploring(WIDE, ids=(5,)) as explorer:
        await opened(explorer, "H")
        assert "mean of 1 query " in explorer.text


async def test_heads_are_ordered_by_a_measure() -> None:
    async with exploring(WIDE, **GPT2) as explorer:
        screen = await opened(explorer, "H")
        await explorer.press("down", "right")
        seen = []
        for _ in HEAD_MEASURES:
            await explorer.press("r")
            measure = screen.ordered.measure
            assert measure is not None
            seen.append(measure.name)
            assert f"by {measure.title}, highest first" in explorer.text
            values = [screen.measured.value(head, measure) for head in screen.ordered.order]
            assert values == sorted(values, reverse=True)
            assert screen.selected == screen.ordered.order[0]
            assert f"L{screen.ordered.order[0] // 4} H{screen.ordered.order[0] % 4}  {values[0]:.2f}" in explorer.text
        assert seen == [measure.name for measure in HEAD_MEASURES]
        # the lowest first
        await explorer.press("ctrl+r")
        assert [screen.measured.value(head, screen.ordered.measure) for head in screen.ordered.order] == sorted(values)
        # by layer, at the same head
        selected = screen.selected
        await explorer.press("r")
        assert "by layer" in explorer.text
        assert (screen.ordered.measure, screen.selected) == (None, selected)
        await explorer.press("m", "plus")
        assert "up to its own largest" in explorer.text


async def test_hiding_tokens_is_said_and_off_at_first() -> None:
    async with exploring(WIDE, **BERT) as explorer:
        for key in "HK":
            await opened(explorer, key)
            assert "renormalised" not in explorer.text
            await explorer.press("i")
            await filled(explorer, key)
            assert "special tokens hidden, rows renormalised" in explorer.text
            await explorer.press("I")
            assert "special tokens and first token hidden, rows renormalised" in explorer.text
            await explorer.press("i", "I")
            await filled(explorer, key)
            assert "renormalised" not in explorer.text
            await explorer.press("escape")


async def test_one_key_goes_through_what_can_be_hidden() -> None:
    async with exploring(WIDE, **BERT, preferences=Preferences()) as explorer:
        for keys in ("gh", "gk"):
            await explorer.press(*keys)
            assert "d hide " in explorer.text.splitlines()[-1]
            for said in ("special tokens hidden", "first token hidden", "special tokens and first token hidden", ""):
                await explorer.press("d")
                assert f"{said}, rows renormalised" in explorer.text if said else "renormalised" not in explorer.text
            await explorer.press("escape")


async def test_links_lead_to_their_cells_and_are_of_one_head_or_all() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        screen = await opened(explorer, "K")
        best = screen.links[0]
        weights = explorer.session.trace[best.step]
        assert weights[best.head, best.query, best.key] == pytest.approx(best.weight)
        assert percent(best.weight) in explorer.text
        await explorer.press("enter")
        assert (explorer.stop, explorer.position.place.head) == (best.step, best.head)
        # of one head
        await explorer.go("decoder.1.self_attention.weights")
        await explorer.press("]")
        screen = await opened(explorer, "K")
        await explorer.press("f", "f")
        await filled(explorer, "K")
        assert "layer 1, head 3" in explorer.text
        assert {link.head for link in screen.links} == {3}
        assert any(link.query == link.key for link in screen.links)
        await explorer.press("X")
        await filled(explorer, "K")
        assert all(link.query != link.key for link in screen.links)
        link = screen.links[screen.lines.index]
        await explorer.press("enter")
        assert (explorer.stop, explorer.position.place.head) == (link.step, 3)
        assert (explorer.position.place.row, explorer.position.place.column) == (link.query, link.key)


def test_the_ends_of_a_link_keep_their_positions_however_narrow_the_screen_is() -> None:
    trace = Model.load("question").trace("where is where ?")
    labels = Labels({"tokens": tuple(f"internationalization{'!' * (at == 1)}" for at in range(4))})
    found = Link(0.5, 0, 0, 0, 2, "encoder.0.self_attention.weights")
    for width in (40, 60, 160):
        line = LinkLines(attentions(trace.program), labels).line(found, width, Style()).plain
        assert re.search(r"inter\S*( |…)@0 +→ inter\S*( |…)@2", line), line


async def test_rollout_by_layer_and_all_heads_by_stack() -> None:
    async with exploring(WIDE, model=str(REFERENCES / "bart"), ids=(0, 5, 6, 2)) as explorer:
        screen = await opened(explorer, "R")
        assert "decoder · after" in explorer.text
        await explorer.press("f")
        assert "encoder · after layer 1" in explorer.text
        await explorer.press("{", "down")
        assert "after layer 0" in explorer.text
        weights = explorer.session.trace["encoder.0.self_attention.weights"].mean(axis=0)
        assert f"{weights[1, 0] / 2:.4f} of" in explorer.text
        assert screen.query_one(HeatMap).cursor == (1, 0)
        await explorer.press("{", "}", "}")
        assert "after layer 1" in explorer.text
        await explorer.press("escape")
        # all heads
        await opened(explorer, "H")
        for group in ("encoder self-attention", "decoder self-attention", "decoder cross-attention"):
            assert f"All heads · {group}" in explorer.text
            await explorer.press("f")
            await filled(explorer, "H")


async def test_much_is_measured_in_the_background_until_one_leaves_and_only_tiles_on_screen_are_drawn() -> None:
    sizes = {"layers": 8, "heads": 16, "d_model": 128, "d_ff": 16, "max_length": 256}
    ids = [i % 8 for i in range(256)]
    async with exploring(NARROW, model="decoder", sizes=sizes, ids=ids, budget=0) as explorer:
        explorer.send("H")
        await explorer.until(lambda: explorer.app.worker.busy and isinstance(explorer.app.screen, HeadsScreen))
        explorer.send("escape")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        assert not explorer.app.worker.busy
        # until all is measured
        explorer.send("H")
        await explorer.until(lambda: isinstance(explorer.app.screen, HeadsScreen))
        explorer.send("down", "right")
        await explorer.shown("layer 1 · head 1", "8 of 8 layers measured")
        grid = explorer.app.screen.query_one(TileGrid)
        assert len(grid._pictures) < 16 * 8
        await explorer.press("G", "end")
        assert "layer 7 · head 15" in explorer.text


@pytest.mark.parametrize("name", ["gpt2", "llama"])
async def test_the_lens_ends_with_the_models_own_words_and_spells_what_every_head_raises(name: str) -> None:
    async with exploring(WIDE, model=str(REFERENCES / name), ids=IDS) as explorer:
        await opened(explorer, "L")
        word = explorer.session.labels.word
        best = explorer.session.trace["output.probabilities"][0]
        assert f"{word(int(best.argmax()))} {percent(best.max())}" in explorer.text
        assert "the model's own probabilities" in explorer.text
        await explorer.press("up", "right", "enter")
        assert explorer.stop == "decoder.0.feed_forward.residual"
        assert explorer.position.place.row == 1
        # by head
        await opened(explorer, "L")
        await explorer.press("f")
        await filled(explorer, "L")
        assert "Logit lens by head · what a head writes, norms frozen" in explorer.text
        await explorer.press("g", "home", "down", "right", "right")
        first, value = list(head_lens(explorer.session.trace, 2))[1].highest(1)[0]
        assert f"{word(first)} {value:+.2f}" in explorer.text
        assert "layer 0 · head 1 · token" in explorer.text
        # less the mean
        await explorer.press("M")
        await filled(explorer, "L")
        first, value = list(head_lens(explorer.session.trace, 2, less_mean=True))[1].highest(1)[0]
        assert f"{word(first)} {value:+.2f}" in explorer.text
        assert "less its mean over the tokens" in explorer.text
        await explorer.press("enter")
        assert explorer.stop == "decoder.0.self_attention.weights"
        assert (explorer.position.place.head, explorer.position.place.row) == (1, 2)


async def test_the_tuned_lens_is_fitted_on_a_file_and_shown_by_layer_and_by_head(tmp_path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("The fox found a shell .\nA crow saw the fox .\n", encoding="utf-8")
    async with exploring(WIDE, model="story", text="The fox found a") as explorer:
        await opened(explorer, "L")
        await explorer.prompt("o", f" {path} ")
        await explorer.shown("Tuned lens · affine map of the layer")
        await filled(explorer, "L")
        model, trace = explorer.session.model, explorer.session.trace
        tuned = fit_lens(map(model.trace, path.read_text("utf-8").splitlines()))
        await explorer.press("g", "down", "right", "right", "right")
        depth, first = 0, list(logit_lens(trace, tuned=tuned))[1]
        word, share = words_at(first, 3)[0]
        assert f"{explorer.session.labels.word(word)} {percent(share)}" in explorer.text
        assert f"map fitted on {tuned[depth].tokens} tokens" in explorer.text
        await explorer.press("f")
        await filled(explorer, "L")
        await explorer.press("g")
        head = head_lens(trace, 3, tuned=tuned)[0]
        word, raised = head.highest(1)[0]
        assert f"{explorer.session.labels.word(word)} {raised:+.2f}" in explorer.text
        assert f"map fitted on {tuned[depth].tokens} tokens" in explorer.text
        assert "without the edits" not in explorer.text
        await explorer.press("o")
        assert "Logit lens by head" in explorer.text
        # the maps are of the model without the changes of what is explored
        await explorer.press("escape")
        session = explorer.session
        await explorer.change(session.with_edits(*changes(model, session.base.program, ["1.output *= 0.5"])))
        await opened(explorer, "L")
        await explorer.prompt("o", str(path))
        await filled(explorer, "L")
        for _ in range(2):
            await explorer.press("g")
            assert f"map fitted on {tuned[depth].tokens} tokens without the edits" in explorer.text
            await explorer.press("f")
            await filled(explorer, "L")


async def test_a_sentence_that_comes_late_changes_nothing_of_what_is_looked_at() -> None:
    async with exploring(MEDIUM, model="encoder", text="a b c d e") as explorer:
        before = explorer.session
        for key in SCREENS:
            screen = await opened(explorer, key)
            explorer.parts.port.change(before.with_text("a b"))
            await explorer.press("i", "I", "down", "minus")
            assert screen.session is before
            assert explorer.session.text == "a b"
            explorer.app.clear_notifications()
            explorer.parts.port.visit(Position("nowhere"))
            await explorer.settled()
            assert "no step of what is explored now" in explorer.messages[-1]
            # back to the sentence
            await explorer.press("escape")
            await explorer.change(before)


async def test_the_lens_that_is_scrolled_by_the_mouse_stays_so_while_words_come() -> None:
    async with exploring(NARROW, model="story", text="the fox and the cat saw the moon and the cat") as explorer:
        screen = await opened(explorer, "L")
        screen.table.scroll_to(60, 0, animate=False)
        await filled(explorer, "L")
        await explorer.settled()
        assert (screen.table.scroll_x, screen.table.at[1]) == (60, 0)


async def test_a_small_screen_has_words_of_the_lens_and_none_are_not_counted_below_0() -> None:
    async with exploring((40, 10), model="question") as explorer:
        screen = await opened(explorer, "L")
        assert "layer 0" in explorer.text
        assert "question"[:4] in explorer.text.splitlines()[3]
        await explorer.resize(40, 6)
        assert "none of 2 rows" in screen.texts().note


async def test_ablation_and_what_the_answer_is_made_of_say_what_they_are_in_few_columns() -> None:
    async with exploring((60, 15), model="story") as explorer:
        await explorer.open("ablation")
        assert explorer.text.splitlines()[-1].rstrip().endswith("esc back")
        await explorer.leave()
        await explorer.open("terms")
        kinds = [line.split()[2] for line in explorer.text.splitlines() if "feed_forward" in line and "+" in line]
        assert kinds[:3] == ["layer"] * 3, explorer.text
